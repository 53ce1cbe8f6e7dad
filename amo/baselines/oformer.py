"""OFormer (Li, Meidani and Farimani, 2023): attention without softmax, with rotary positions.

The encoder mixes the input points by Galerkin attention, q (kᵀ v) / n with normed k and v, in
which queries and keys are rotated by angles proportional to their points' coordinates: a score
knows where two points are from each other only. The decoder starts from random Fourier features of
a query and attends once to the encoded points. Since no softmax couples them, all that a query
needs is the matrix kᵀ v / n of every head: that is the encoding, whatever the number of points.

Paper: coordinates are between 0 and 1; here they are between -1 and 1, so angles and waves are
halved. Latent steps in time are left out: the problems here have no time to march in.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from amo.baselines.points import (
    check_heads,
    mean_products,
    merge_heads,
    split_heads,
    what_is_given,
)
from amo.errors import SettingsError
from amo.layers.feedforward import MLP
from amo.layers.precision import at_least_float32

_SLOWEST = 1e-4  # of the rotations, as a share of the fastest


@dataclass(frozen=True, kw_only=True)
class OFormerConfig:
    """Sizes of the model.

    Attributes
    ----------
    width, n_layers
        Of the encoder.
    latent_width
        Of the decoder.
    n_heads
        Of all attentions.
    resolution
        The fastest rotation turns by one radian over this share of the box: 1 / resolution.
    spread
        Standard deviation of the decoder's waves, in turns over the box.
    """

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    n_outputs: int = 1
    width: int = 96
    latent_width: int = 256
    n_heads: int = 4
    n_layers: int = 6
    resolution: float = 64.0
    spread: float = 8.0

    def __post_init__(self) -> None:
        for width in (self.width, self.latent_width):
            check_heads(width, self.n_heads)
            if width // self.n_heads < 2 * self.n_dimensions:
                raise SettingsError(
                    f"{self.n_heads} heads share a width of {width}: each needs two channels for "
                    f"each of {self.n_dimensions} coordinates"
                )


def rotate(x: Tensor, places: Tensor, resolution: float) -> Tensor:
    """Turn pairs of channels of (batch, heads, n, size) by angles linear in places (batch, n, d).

    Every coordinate has an equal share of the pairs, at frequencies in geometric progression; what
    is left over is not turned. The product of two rotated vectors depends on where they are only
    by the difference of their places.
    """
    x = at_least_float32(x)
    n_dimensions, size = places.shape[-1], x.shape[-1]
    n = size // (2 * n_dimensions)
    n_turned = n * n_dimensions
    share = torch.arange(n, device=x.device, dtype=x.dtype) / n
    frequencies = 0.5 * resolution * _SLOWEST**share
    angles = (places.to(x.dtype).unsqueeze(-1) * frequencies).flatten(-2).unsqueeze(-3)
    first, second, rest = x.split([n_turned, n_turned, size - 2 * n_turned], dim=-1)
    cosine, sine = torch.cos(angles), torch.sin(angles)
    turned = (cosine * first - sine * second, sine * first + cosine * second)
    return torch.cat([*turned, rest], dim=-1)


class RotaryAttention(nn.Module):
    """R(q) (R(LN k)ᵀ LN v) / n over several heads, R the rotation by place."""

    def __init__(self, width: int, n_heads: int, resolution: float) -> None:
        super().__init__()
        self.n_heads, self.resolution = n_heads, resolution
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        size = width // n_heads
        self.key_norm, self.value_norm = nn.LayerNorm(size), nn.LayerNorm(size)

    def summary(self, x: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        """Return all that a query needs of (batch, n, width): (batch, heads, size, size)."""
        k = self.key_norm(split_heads(self.key(x), self.n_heads))
        v = self.value_norm(split_heads(self.value(x), self.n_heads))
        return mean_products(rotate(k, places, self.resolution), at_least_float32(v), mask)

    def answer(self, x: Tensor, places: Tensor, summary: Tensor) -> Tensor:
        """Return what each of (batch, n, width) makes of a summary."""
        q = split_heads(self.query(x), self.n_heads)
        return self.out(merge_heads(rotate(q, places, self.resolution) @ summary))


class EncoderLayer(nn.Module):
    """x + Attention(LN x), x + FFN(LN x)."""

    def __init__(self, config: OFormerConfig) -> None:
        super().__init__()
        width = config.width
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = RotaryAttention(width, config.n_heads, config.resolution)
        self.feedforward = MLP(width, 2 * width, width)

    def forward(self, x: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        """Mix (batch, n, width)."""
        y = self.before(x)
        x = x + self.attention.answer(y, places, self.attention.summary(y, places, mask))
        return x + self.feedforward(self.after(x))


class OFormer(nn.Module):
    """The operator."""

    waves: Tensor

    def __init__(self, config: OFormerConfig) -> None:
        super().__init__()
        self.config = config
        width, latent = config.width, config.latent_width
        self.embed = MLP(config.n_features + config.n_dimensions, 2 * width, width)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, latent)
        self.register_buffer("waves", config.spread * torch.randn(config.n_dimensions, latent // 2))
        self.ask = MLP(2 * (latent // 2), latent, latent)
        self.cross = RotaryAttention(latent, config.n_heads, config.resolution)
        self.feedforward = MLP(latent, 2 * latent, latent)
        self.project = MLP(latent, latent // 2, config.n_outputs)
        self.query_norm, self.answer_norm = nn.LayerNorm(latent), nn.LayerNorm(latent)

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_queries, n_outputs); see :meth:`amo.model.AMO.forward`."""
        latent = self.encode(points, features, mask)
        return self.decode(latent, points if queries is None else queries)

    def encode(
        self,
        points: Tensor,
        features: Tensor,
        mask: Tensor | None = None,
        chunk: int | None = None,  # noqa: ARG002  # every layer needs all points at once
    ) -> Tensor:
        """Return the encoding of an input function, (batch, heads, size, size)."""
        x = self.embed(what_is_given(points, features, mask))
        for layer in self.layers:
            x = layer(x, points, mask)
        return self.cross.summary(self.widen(self.norm(x)), points, mask)

    def decode(self, latent: Tensor, queries: Tensor, chunk: int | None = None) -> Tensor:
        """Return the values at query points, at most ``chunk`` of them at a time."""
        if chunk is not None and queries.shape[1] > chunk:
            parts = queries.split(chunk, dim=1)
            return torch.cat([self.decode(latent, part) for part in parts], dim=1)
        phases = math.pi * at_least_float32(queries) @ at_least_float32(self.waves)
        x = self.ask(torch.cat([torch.sin(phases), torch.cos(phases)], dim=-1))
        x = x + self.cross.answer(self.query_norm(x), queries, latent)
        x = x + self.feedforward(self.answer_norm(x))
        return self.project(x)

"""Latent Neural Operator (Wang and Wang, 2024): attention between positions and latent modes.

One network scores positions against modes. A softmax over points encodes the input function into
the modes, self-attention works among them, and a softmax over modes decodes at any query points.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.baselines.points import check_heads, merge_heads, split_heads
from amo.layers.attention import hide
from amo.layers.feedforward import MLP


@dataclass(frozen=True, kw_only=True)
class LNOConfig:
    """Sizes of the model.

    Attributes
    ----------
    n_modes
        Latent modes, M in its paper.
    n_layers, n_heads
        Of the self-attention among them.
    """

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    n_outputs: int = 1
    width: int = 128
    n_modes: int = 256
    n_heads: int = 8
    n_layers: int = 4

    def __post_init__(self) -> None:
        check_heads(self.width, self.n_heads)


class LatentLayer(nn.Module):
    """z + Attention(LN z), z + FFN(LN z) among the modes."""

    def __init__(self, config: LNOConfig) -> None:
        super().__init__()
        width, self.n_heads = config.width, config.n_heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feedforward = MLP(width, 2 * width, width)

    def forward(self, z: Tensor) -> Tensor:
        """Mix (batch, n_modes, width)."""
        parts = self.project(self.before(z)).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.n_heads) for part in parts)
        z = z + self.out(merge_heads(functional.scaled_dot_product_attention(q, k, v)))
        return z + self.feedforward(self.after(z))


class LNO(nn.Module):
    """The operator."""

    def __init__(self, config: LNOConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.trunk = MLP(config.n_dimensions, width, width)
        self.branch = MLP(config.n_dimensions + config.n_features, width, width)
        self.score = MLP(width, width, config.n_modes)
        self.layers = nn.ModuleList(LatentLayer(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(width)
        self.project = MLP(width, width, config.n_outputs)

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_queries, n_outputs); see :meth:`amo.model.AMO.forward`."""
        return self.decode(
            self.encode(points, features, mask), points if queries is None else queries
        )

    def encode(
        self,
        points: Tensor,
        features: Tensor,
        mask: Tensor | None = None,
        chunk: int | None = None,  # noqa: ARG002  # modes are few: nothing grows with the points
    ) -> Tensor:
        """Return the modes of an input function, (batch, n_modes, width)."""
        given = torch.cat([points, features], dim=-1)
        if mask is not None:
            hidden = ~mask.unsqueeze(-1)
            points, given = points.masked_fill(hidden, 0.0), given.masked_fill(hidden, 0.0)
        z = self.encoding_weights(points, mask) @ self.branch(given)
        for layer in self.layers:
            z = layer(z)
        return self.norm(z)

    def decode(self, latent: Tensor, queries: Tensor, chunk: int | None = None) -> Tensor:
        """Return the values at query points, at most ``chunk`` of them at a time."""
        if chunk is not None and queries.shape[1] > chunk:
            parts = queries.split(chunk, dim=1)
            return torch.cat([self.decode(latent, part) for part in parts], dim=1)
        return self.project(self.decoding_weights(queries) @ latent)

    def encoding_weights(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return (batch, n_modes, n_points), one in sum over the points."""
        scores = self.score(self.trunk(points)).transpose(-1, -2)
        return functional.softmax(hide(scores, mask), dim=-1)

    def decoding_weights(self, queries: Tensor) -> Tensor:
        """Return (batch, n_queries, n_modes), one in sum over the modes."""
        return functional.softmax(self.score(self.trunk(queries)), dim=-1)

"""Latent spectral model (Wu et al., 2023), on a regular grid only.

A U-Net whose scales are cut into patches. In every patch a few latent tokens attend to the points,
a trigonometric series with learned coefficients maps each of their channels, and the points attend
to the tokens to get the answer back.

Paper: what leads from scale to scale is not printed. Here, as is usual in a U-Net, two convolutions
with batch normalisation at each, the largest of neighbouring points on the way down, and linear
interpolation on the way up.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.baselines.grid import CONVOLUTIONS, INTERPOLATIONS, GridModel
from amo.baselines.points import check_heads, merge_heads, split_heads
from amo.errors import SettingsError
from amo.layers.grids import check_axes
from amo.layers.precision import at_least_float32

_NORMS: dict[int, type[nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d]] = {
    1: nn.BatchNorm1d,
    2: nn.BatchNorm2d,
    3: nn.BatchNorm3d,
}
_POOLS: dict[int, type[nn.MaxPool1d | nn.MaxPool2d | nn.MaxPool3d]] = {
    1: nn.MaxPool1d,
    2: nn.MaxPool2d,
    3: nn.MaxPool3d,
}


@dataclass(frozen=True, kw_only=True)
class LSMConfig:
    """Sizes of the model.

    Attributes
    ----------
    width
        Channels of the finest scale; each coarser one has twice as many, the last as the one above.
    n_scales
        Each has half of the points along every axis.
    patch
        Points along each axis of a patch, at every scale.
    n_bases, n_tokens, n_heads
        Waves of the series, latent tokens in a patch, and heads of both attentions.
    """

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    grid: tuple[int, ...]
    n_outputs: int = 1
    width: int = 64
    n_scales: int = 5
    patch: int = 3
    n_bases: int = 12
    n_tokens: int = 4
    n_heads: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", tuple(self.grid))
        check_axes(self.grid, self.n_dimensions)
        check_heads(self.width, self.n_heads)
        if self.patch < 2:  # batch normalisation of a single point leaves nothing of it
            raise SettingsError(f"a patch has at least 2 points along an axis, got {self.patch}")
        if min(self.n_scales, self.n_bases, self.n_tokens) < 1:
            raise SettingsError(
                "n_scales, n_bases and n_tokens must be at least 1, got "
                f"{self.n_scales}, {self.n_bases} and {self.n_tokens}"
            )

    @property
    def widths(self) -> list[int]:
        """Channels of every scale, the finest first."""
        last = max(self.n_scales - 2, 0)
        return [self.width * 2 ** min(scale, last) for scale in range(self.n_scales)]

    @property
    def lengths(self) -> tuple[int, ...]:
        """Points along each axis, with zeros up to whole patches at the coarsest scale."""
        step = self.patch * 2 ** (self.n_scales - 1)
        return tuple(step * math.ceil(n / step) for n in self.grid)


class TrigonometricMap(nn.Module):
    """x_c → a_c0 + Σ_k a_ck cos(k x_c) + b_ck sin(k x_c), k = 1 … n_bases, in every channel c."""

    def __init__(self, width: int, n_bases: int) -> None:
        super().__init__()
        self.n_bases = n_bases
        self.constant = nn.Parameter(torch.zeros(width))
        self.cosine = nn.Parameter(torch.randn(width, n_bases) / width)
        self.sine = nn.Parameter(torch.randn(width, n_bases) / width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., width)."""
        x = at_least_float32(x)  # a phase is up to n_bases times as coarse as its channel
        waves = torch.arange(1, self.n_bases + 1, device=x.device, dtype=x.dtype)
        phases = x.unsqueeze(-1) * waves
        series = self.cosine * torch.cos(phases) + self.sine * torch.sin(phases)
        return self.constant + series.sum(-1)


class LatentSpectralBlock(nn.Module):
    """z = tokens + Attention(tokens, x); z + series(z); x + Attention(x, z), patch by patch."""

    def __init__(self, config: LSMConfig, width: int) -> None:
        super().__init__()
        self.patch, self.n_heads = config.patch, config.n_heads
        self.tokens = nn.Parameter(torch.randn(config.n_tokens, width) / math.sqrt(width))
        self.gather = nn.Linear(width, 2 * width)
        self.query = nn.Linear(width, width)
        self.series = TrigonometricMap(width, config.n_bases)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, width, *grid)."""
        points = to_patches(x, self.patch)
        tokens = self.tokens.expand(len(points), -1, -1)
        z = tokens + self._attend(tokens, *self.gather(points).chunk(2, dim=-1))
        z = z + self.series(z)
        answer = points + self._attend(self.query(points), z, z)
        return from_patches(answer, self.patch, x.shape)

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        q, k, v = (split_heads(part, self.n_heads) for part in (queries, keys, values))
        return merge_heads(functional.scaled_dot_product_attention(q, k, v))


class TwoConvolutions(nn.Sequential):
    """Convolution, batch normalisation, GELU, twice."""

    def __init__(self, n_dimensions: int, n_inputs: int, n_outputs: int) -> None:
        convolution, norm = CONVOLUTIONS[n_dimensions], _NORMS[n_dimensions]
        super().__init__(
            convolution(n_inputs, n_outputs, 3, padding=1, bias=False),
            norm(n_outputs),
            nn.GELU(),
            convolution(n_outputs, n_outputs, 3, padding=1, bias=False),
            norm(n_outputs),
            nn.GELU(),
        )


class LatentPyramid(nn.Module):
    """Down through the scales, a latent spectral block at each, and up again."""

    def __init__(self, config: LSMConfig) -> None:
        super().__init__()
        d, widths = config.n_dimensions, config.widths
        above = [widths[0], *widths[:-1]]  # what comes down to a scale, and what goes up from it
        self.mode = INTERPOLATIONS[d]
        self.pool = _POOLS[d](2)
        self.down = nn.ModuleList(
            TwoConvolutions(d, n_from, n_to) for n_from, n_to in zip(above, widths, strict=True)
        )
        self.blocks = nn.ModuleList(LatentSpectralBlock(config, width) for width in widths)
        self.up = nn.ModuleList(
            TwoConvolutions(d, 2 * n_from, n_to)
            for n_from, n_to in zip(widths[:-1], above[:-1], strict=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, width, *grid)."""
        scales = []
        for scale, down in enumerate(self.down):
            x = down(self.pool(x) if scale else x)
            scales.append(x)
        *finer, x = (block(y) for block, y in zip(self.blocks, scales, strict=True))
        for up, beside in zip(reversed(self.up), reversed(finer), strict=True):
            x = functional.interpolate(x, size=beside.shape[2:], mode=self.mode)
            x = up(torch.cat([beside, x], dim=1))
        return x


class LSM(GridModel):
    """The operator."""

    def __init__(self, config: LSMConfig) -> None:
        super().__init__(config, [LatentPyramid(config)], config.lengths)


def to_patches(x: Tensor, patch: int) -> Tensor:
    """Return (batch × patches, patch^d, channels) from (batch, channels, *grid)."""
    n = x.ndim - 2
    for axis in reversed(range(2, 2 + n)):
        x = x.unflatten(axis, (-1, patch))
    places, inside = range(2, 2 + 2 * n, 2), range(3, 3 + 2 * n, 2)
    return x.permute(0, *places, *inside, 1).flatten(0, n).flatten(1, n)


def from_patches(points: Tensor, patch: int, shape: torch.Size) -> Tensor:
    """Undo :func:`to_patches` for a function of that shape."""
    batch, channels, *grid = shape
    n = len(grid)
    x = points.reshape(batch, *(length // patch for length in grid), *[patch] * n, channels)
    pairs = [axis for k in range(n) for axis in (1 + k, 1 + n + k)]
    return x.permute(0, 1 + 2 * n, *pairs).reshape(shape)

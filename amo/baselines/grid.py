"""What models on one regular grid share: lift, layers on the grid, project."""

from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.configuration import ModelConfig
from amo.errors import SettingsError
from amo.layers.feedforward import MLP
from amo.layers.grids import check_axes, require_whole_grid
from amo.layers.precision import at_least_float32, full_precision

CONVOLUTIONS: dict[int, type[nn.Conv1d | nn.Conv2d | nn.Conv3d]] = {
    1: nn.Conv1d,
    2: nn.Conv2d,
    3: nn.Conv3d,
}
INTERPOLATIONS = {1: "linear", 2: "bilinear", 3: "trilinear"}


class GridConfig(ModelConfig, Protocol):
    """What the configuration of a grid model says."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Points along each axis; the points of a sample come in this order, last axis first."""

    @property
    def width(self) -> int:
        """Channels of the hidden functions."""


class PaddedConfig(GridConfig, Protocol):
    """What the configuration of a grid model says that is told how far to pad."""

    @property
    def padding(self) -> int:
        """Zeros beyond the end of each axis, for functions that are not periodic."""


class GridModel(nn.Module):
    """Linear lift of (features, points), layers (batch, width, *grid), an MLP to the answer.

    Grid-only: it answers at its grid's points and nowhere else, and no point may be missing.

    Parameters
    ----------
    config
        Sizes.
    layers
        Maps of functions on the grid with zeros beyond its end.
    lengths
        Points along each axis with those zeros.
    """

    def __init__(
        self, config: GridConfig, layers: Iterable[nn.Module], lengths: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.config: Any = config
        self.lengths = lengths
        self.lift = nn.Linear(config.n_features + config.n_dimensions, config.width)
        self.layers = nn.ModuleList(layers)
        self.project = MLP(config.width, 2 * config.width, config.n_outputs)

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_points, n_outputs); see :meth:`amo.model.AMO.forward`."""
        grid = self.config.grid
        require_whole_grid(type(self).__name__, grid, points, queries, mask)
        x = self.lift(torch.cat([features, points], dim=-1)).unflatten(1, grid).movedim(-1, 1)
        zeros = [(0, n - n_given) for n, n_given in zip(self.lengths, grid, strict=True)]
        x = functional.pad(x, [n for pair in reversed(zeros) for n in pair])
        for layer in self.layers:
            x = layer(x)
        inside = x[(..., *(slice(n) for n in grid))]
        return self.project(inside.movedim(1, -1).flatten(1, len(grid)))


class SpectralConvolution(nn.Module):
    """A multiplication of the lowest modes of some axes by learned matrices.

    (K x)^(k) = R_k x^(k) for -modes ≤ k < modes, zero elsewhere. An axis too short for that many
    modes has those that fit, half as many as it has points.

    Parameters
    ----------
    width, modes
        Channels, and modes kept of each sign.
    axes
        Those transformed, counted from the back: all of them, or one for a factorised layer.
    """

    def __init__(self, width: int, modes: int, axes: tuple[int, ...]) -> None:
        super().__init__()
        self.modes, self.axes = modes, axes
        shape = (*[2 * modes] * (len(axes) - 1), modes)
        # real and imaginary parts: weights files and devices know no complex numbers
        self.weight = nn.Parameter(torch.randn(width, width, *shape, 2) / width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, width, *grid)."""
        *others, last = self.axes
        sizes = [x.shape[axis] for axis in self.axes]
        *counts, count = (min(self.modes, n // 2) for n in sizes)
        letters = "xyz"[: x.ndim - 2]
        kept = "".join(letters[axis] for axis in self.axes)
        with full_precision(x):
            modes = torch.fft.rfftn(at_least_float32(x), dim=self.axes, norm="ortho")
            weight = torch.view_as_complex(at_least_float32(self.weight)).narrow(-1, 0, count)
            for axis, n in zip(others, counts, strict=True):
                modes = _both_signs(modes, axis, n)
                weight = _both_signs(weight, axis, n)
            modes = modes.narrow(last, 0, count)
            modes = torch.einsum(f"bi{letters},io{kept}->bo{letters}", modes, weight)
            for axis, n in zip(others, sizes, strict=False):
                low, high = modes.chunk(2, dim=axis)
                between = _zeros(modes, axis, n - low.shape[axis] - high.shape[axis])
                modes = torch.cat([low, between, high], dim=axis)
            above = _zeros(modes, last, sizes[-1] // 2 + 1 - count)
            modes = torch.cat([modes, above], dim=last)
            return torch.fft.irfftn(modes, s=sizes, dim=self.axes, norm="ortho")


class ChannelsFirst(nn.Module):
    """A map of the last axis, applied to the second."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, channels, *grid)."""
        return self.inner(x.movedim(1, -1)).movedim(-1, 1)


def padded_lengths(config: PaddedConfig) -> tuple[int, ...]:
    """Return the points along each axis with as many zeros as the settings say."""
    return tuple(n + config.padding for n in config.grid)


def check_grid(config: GridConfig, modes: int) -> tuple[int, ...]:
    """Return the grid as a tuple, refusing one that does not fit the settings."""
    grid = tuple(config.grid)
    check_axes(grid, config.n_dimensions)
    if not 1 <= modes <= min(grid) // 2:
        raise SettingsError(f"modes must be 1 to half of the grid {grid}, got {modes}")
    return grid


def _both_signs(x: Tensor, axis: int, n: int) -> Tensor:
    """Return the n lowest modes of each sign: the first ones and the last ones."""
    if x.shape[axis] == 2 * n:
        return x
    return torch.cat([x.narrow(axis, 0, n), x.narrow(axis, x.shape[axis] - n, n)], dim=axis)


def _zeros(like: Tensor, axis: int, n: int) -> Tensor:
    shape = list(like.shape)
    shape[axis] = n
    return like.new_zeros(shape)

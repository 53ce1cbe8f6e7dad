"""AMO on a grid: state-space blocks as Takenaka–Malmquist transfer functions at full resolution.

The paper's frequency-domain form, Y = H X with H of Takenaka–Malmquist functions, applied to the
grid itself: tokens are patches of points, and the blocks of :mod:`amo.layers.filter_block` filter
them along every axis.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from amo.errors import SettingsError
from amo.layers.feedforward import MLP
from amo.layers.filter_block import FilterBlocks, FilterConfig, channels
from amo.layers.grids import check_axes, require_whole_grid

_UNFOLDED = 16  # channels of each point of a patch


@dataclass(frozen=True, kw_only=True)
class GridAMOConfig(FilterConfig):
    """Sizes and choices of an AMO on a grid, beside those of its blocks.

    Attributes
    ----------
    n_features, n_outputs, n_dimensions
        Channels of the input function and of the answer, and coordinates of a point.
    grid
        Points along each axis; the points of a sample come in this order.
    is_periodic
        Whether the grid, or each of its axes, is a torus; if not, filters do not wrap around.
    patch
        Points along each axis that make one token.
    """

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    grid: tuple[int, ...]
    n_outputs: int = 1
    is_periodic: bool | tuple[bool, ...] = False
    patch: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "grid", tuple(self.grid))
        check_axes(self.grid, self.n_dimensions)
        if not 1 <= self.patch <= min(self.grid):
            raise SettingsError(f"a patch of {self.patch} is not inside the grid {self.grid}")
        if not isinstance(self.is_periodic, bool):
            object.__setattr__(self, "is_periodic", tuple(self.is_periodic))
            if len(self.periodic_axes) != len(self.grid):
                raise SettingsError(f"is_periodic has not one entry for each axis of {self.grid}")
        if any(n % self.patch for n, on in zip(self.grid, self.periodic_axes, strict=True) if on):
            raise SettingsError(f"patches of {self.patch} do not fill the torus {self.grid}")

    @property
    def periodic_axes(self) -> tuple[bool, ...]:
        """Which axes are closed."""
        if isinstance(self.is_periodic, bool):
            return (self.is_periodic,) * len(self.grid)
        return self.is_periodic

    @property
    def tokens(self) -> tuple[int, ...]:
        """Tokens along each axis."""
        return tuple(-(-n // self.patch) for n in self.grid)


class GridAMO(nn.Module):
    """The operator on one grid; the same weights work on a finer or a coarser one."""

    def __init__(self, config: GridAMOConfig) -> None:
        super().__init__()
        self.config = config
        width, cells = config.width, config.patch**config.n_dimensions
        n_inputs = config.n_features + config.n_dimensions
        self.lift = MLP(cells * config.n_features + config.n_dimensions, width, width)
        self.blocks = FilterBlocks(config, config.tokens, config.periodic_axes)
        if config.patch == 1:
            self.project = MLP(width, 2 * width, config.n_outputs)
        else:
            self.unfold = nn.Linear(width, cells * _UNFOLDED)
            self.project = MLP(_UNFOLDED + n_inputs, 2 * width, config.n_outputs)

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_points, n_outputs); see :meth:`amo.model.AMO.forward`."""
        grid = self.config.grid
        require_whole_grid("this AMO", grid, points, queries, mask)
        values = features.unflatten(1, grid).movedim(-1, 0)
        places = points.unflatten(1, grid).movedim(-1, 0)
        tokens = torch.cat([self._fold(values), self._centres(places)])
        x = self.blocks(channels(tokens, self.lift))
        if self.config.patch > 1:
            x = torch.cat([self._unfold(channels(x, self.unfold)), values, places])
        return channels(x, self.project).movedim(0, -1).flatten(1, len(grid))

    def _fold(self, x: Tensor) -> Tensor:
        """Return (channels × cells, batch, *tokens) of (channels, batch, *grid): patch by patch."""
        config = self.config
        if config.patch == 1:
            return x
        for axis, (n, m) in enumerate(zip(config.grid, config.tokens, strict=True), start=2):
            missing = m * config.patch - n
            if missing:  # the last points are repeated
                last = x.narrow(axis, n - 1, 1)
                x = torch.cat([x, *[last] * missing], dim=axis)
        for axis, m in enumerate(config.tokens):
            x = x.unflatten(2 + 2 * axis, (m, config.patch))
        within = range(3, 2 + 2 * len(config.grid), 2)
        order = [0, *within, 1, *range(2, 2 + 2 * len(config.grid), 2)]
        return x.permute(order).flatten(0, len(config.grid))

    def _centres(self, places: Tensor) -> Tensor:
        """Return where tokens are: the mean of their points."""
        if self.config.patch == 1:
            return places
        folded = self._fold(places)
        return folded.unflatten(0, (self.config.n_dimensions, -1)).mean(dim=1)

    def _unfold(self, x: Tensor) -> Tensor:
        """Return (channels, batch, *grid) of (channels × cells, batch, *tokens)."""
        config = self.config
        n = len(config.grid)
        x = x.unflatten(0, (-1, *[config.patch] * n))  # (channels, patch…, batch, tokens…)
        order = [0, n + 1]
        for axis in range(n):
            order += [n + 2 + axis, 1 + axis]
        x = x.permute(order)
        for axis in range(n):
            x = x.flatten(2 + axis, 3 + axis)
        for axis, points in enumerate(config.grid, start=2):
            x = x.narrow(axis, 0, points)
        return x

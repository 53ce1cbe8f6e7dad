"""AMO on a grid: state-space blocks as Takenaka–Malmquist transfer functions at full resolution.

The paper's frequency-domain form, Y = H X with H of Takenaka–Malmquist functions, applied to the
grid itself: tokens are patches of points, and each block filters them along every axis, in both
directions, gated as Mamba is.

    v = W_b x,  f = F_d … F_1 v,  g = f ⊙ W_g x,  x ← x + W_3 GELU(W_1 g + W_2 x)

Hidden functions are (width, batch, *tokens): a map of channels is one matrix product.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.errors import SettingsError
from amo.layers.feedforward import MLP
from amo.layers.transfer_bank import BankBasis, BankPoles, TransferBank, convolve

_UNFOLDED = 16  # channels of each point of a patch


@dataclass(frozen=True, kw_only=True)
class GridAMOConfig:
    """Sizes and choices of an AMO on a grid.

    Attributes
    ----------
    n_features, n_outputs, n_dimensions
        Channels of the input function and of the answer, and coordinates of a point.
    grid
        Points along each axis; the points of a sample come in this order.
    is_periodic
        Whether the grid is a torus; if not, filters do not wrap around.
    width, n_blocks, n_heads
        Channels, blocks, and groups of channels that share poles.
    n_poles
        Of each head, block and axis.
    patch
        Points along each axis that make one token.
    poles, basis, directions, is_gated
        Learned, or fixed where they start, or random; orthogonal functions or plain kernels; scans
        one or two ways; with or without the gate.
    """

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    grid: tuple[int, ...]
    n_outputs: int = 1
    is_periodic: bool = False
    width: int = 40
    n_blocks: int = 4
    n_heads: int = 4
    n_poles: int = 8
    patch: int = 1
    poles: BankPoles = "learned"
    basis: BankBasis = "orthogonal"
    directions: Literal[1, 2] = 2
    is_gated: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", tuple(self.grid))
        if len(self.grid) != self.n_dimensions or not 1 <= len(self.grid) <= 3:
            raise SettingsError(
                f"a grid of {self.n_dimensions} axes is needed (1 to 3), got {self.grid}"
            )
        if self.width % self.n_heads:
            raise SettingsError(f"width {self.width} is no multiple of {self.n_heads} heads")
        if self.n_poles < 2 or not 1 <= self.patch <= min(self.grid):
            raise SettingsError("at least two poles, and a patch inside the grid, are needed")
        if self.directions not in (1, 2):
            raise SettingsError(f"directions must be 1 or 2, got {self.directions!r}")
        if self.is_periodic and any(n % self.patch for n in self.grid):
            raise SettingsError(f"patches of {self.patch} do not fill the torus {self.grid}")
        for name, kind in (("poles", BankPoles), ("basis", BankBasis)):
            if getattr(self, name) not in get_args(kind):
                raise SettingsError(f"{name} must be one of {get_args(kind)}")

    @property
    def tokens(self) -> tuple[int, ...]:
        """Tokens along each axis."""
        return tuple(-(-n // self.patch) for n in self.grid)


class GridBlock(nn.Module):
    """One state-space block: filters along all axes, gate, pointwise map, residual stream."""

    def __init__(self, width: int, *, is_gated: bool) -> None:
        super().__init__()
        self.is_gated = is_gated
        self.enter = nn.Linear(width, (3 if is_gated else 2) * width)  # W_b, W_2, W_g
        self.mix = nn.Linear(width, width, bias=False)  # W_1
        self.leave = nn.Linear(width, width)  # W_3

    def forward(self, x: Tensor, filters: list[Tensor]) -> Tensor:
        """Map (width, batch, *tokens), filtered by one kernel (width, n_lags) an axis."""
        entered = channels(x, self.enter).chunk(3 if self.is_gated else 2)
        filtered = entered[0]
        for axis, kernel in enumerate(filters, start=2):
            filtered = convolve(filtered, kernel, axis)
        if self.is_gated:
            filtered = filtered * entered[2]
        hidden = functional.gelu(channels(filtered, self.mix) + entered[1])
        return x + channels(hidden, self.leave)


class GridAMO(nn.Module):
    """The operator on one grid; the same weights work on a finer or a coarser one."""

    def __init__(self, config: GridAMOConfig) -> None:
        super().__init__()
        self.config = config
        width, cells = config.width, config.patch**config.n_dimensions
        n_inputs = config.n_features + config.n_dimensions
        self.lift = MLP(cells * config.n_features + config.n_dimensions, width, width)
        self.banks = nn.ModuleList(
            TransferBank(
                config.n_blocks,
                config.n_heads,
                width,
                config.n_poles,
                n,
                is_periodic=config.is_periodic,
                poles=config.poles,
                basis=config.basis,
                directions=config.directions,
            )
            for n in config.tokens
        )
        self.blocks = nn.ModuleList(
            GridBlock(width, is_gated=config.is_gated) for _ in range(config.n_blocks)
        )
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
        if queries is not None or mask is not None or points.shape[1] != math.prod(grid):
            raise SettingsError(
                f"this AMO knows functions on the grid {grid} only: it takes all of its points, no "
                "queries and no padding"
            )
        values = features.unflatten(1, grid).movedim(-1, 0)
        places = points.unflatten(1, grid).movedim(-1, 0)
        tokens = torch.cat([self._fold(values), self._centres(places)])
        x = channels(tokens, self.lift)
        kernels = [bank(n) for bank, n in zip(self.banks, self.config.tokens, strict=True)]
        for number, block in enumerate(self.blocks):
            x = block(x, [kernel[number] for kernel in kernels])
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


def channels(x: Tensor, layer: nn.Linear | MLP) -> Tensor:
    """Apply a map of channels to the first axis: one matrix product without a copy."""
    if isinstance(layer, MLP):
        return channels(functional.gelu(channels(x, layer.first)), layer.last)
    y = layer.weight @ x.flatten(1)
    if layer.bias is not None:
        y = y + layer.bias.unsqueeze(-1)
    return y.unflatten(1, x.shape[1:])

"""Space grids of S/K: a smooth map of an evenly spaced coordinate, the strike at its origin.

Nodes run from the exercise side outwards (rising S for a put, falling S for a call), so that one
sweep serves both. Blocks of :data:`LANES` contracts lie side by side in the last axis: the
kernels work on all lanes of a block at once.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from amo.arrays import BoolArray, FloatArray

_Scalar = TypeVar("_Scalar", bound=np.generic)
LANES = 16
ANCHOR_INTERVALS = 3
GridKind = Literal["log", "sinh"]
StrikePlacement = Literal["average", "node", "midpoint"]


@dataclass(frozen=True, kw_only=True)
class SpaceGrid:
    """Grids for blocks of contracts; arrays have shape (blocks, lanes).

    ``log``:  ln(S/K) = y. Even in log-moneyness.
    ``sinh``: ln(S/K) = c sinh(y). Dense around the strike, where the payoff has its kink, with
    ``scale`` c of the order of σ√T.

    Attributes
    ----------
    strike_position
        Index of the strike in nodes of the coarsest grid; half-integer for midpoint placement.
    direction
        +1 where S rises with the index (puts), -1 where it falls (calls).
    """

    kind: GridKind
    n_intervals: int
    spacing: FloatArray
    scale: FloatArray
    strike_position: FloatArray
    direction: FloatArray

    def nodes(self, refinement: int = 1) -> FloatArray:
        """Return S/K, shape (blocks, nodes, lanes); a refined grid contains the coarse nodes."""
        index = np.arange(self.n_intervals * refinement + 1)[:, None] / refinement
        offset = index - self.strike_position[:, None, :]
        y = self.direction[:, None, :] * offset * self.spacing[:, None, :]
        if self.kind == "sinh":
            y = self.scale[:, None, :] * np.sinh(y)
        return np.exp(y)

    def position(self, log_moneyness: FloatArray) -> FloatArray:
        """Return where ln(S/K) lies, as a fractional index of the coarsest grid."""
        y = log_moneyness
        if self.kind == "sinh":
            y = np.arcsinh(log_moneyness / self.scale)
        return self.strike_position + self.direction * y / self.spacing


def build_grid(
    low: FloatArray,
    high: FloatArray,
    scale: FloatArray,
    is_call: BoolArray,
    *,
    anchor: FloatArray | None = None,
    n_intervals: int,
    kind: GridKind = "sinh",
    placement: StrikePlacement = "average",
) -> SpaceGrid:
    """Cover log-moneyness from ``low`` < 0 to ``high`` > 0 with ``n_intervals`` intervals.

    The intervals are divided between both sides of the strike so that the strike falls where
    ``placement`` puts it; one end then reaches a little further than asked. ``anchor`` is a
    log-moneyness to put on a node too, by widening the spacing; it is left between nodes where
    fewer than :data:`ANCHOR_INTERVALS` intervals separate it from the strike.
    """
    if kind == "sinh":
        low, high = np.arcsinh(low / scale), np.arcsinh(high / scale)
        anchor = None if anchor is None else np.arcsinh(anchor / scale)
    near = np.where(is_call, high, -low)  # length of the exercise side
    total = high - low
    shift = 0.5 if placement == "midpoint" else 0.0
    position = np.clip(np.round(n_intervals * near / total - shift), 4, n_intervals - 4) + shift
    spacing = np.maximum(near / position, (total - near) / (n_intervals - position))
    if anchor is not None:
        distance = np.abs(anchor)
        n_between = np.floor(distance / spacing - shift) + shift
        can_anchor = n_between >= ANCHOR_INTERVALS
        spacing = np.where(can_anchor, distance / np.where(can_anchor, n_between, 1.0), spacing)
    return SpaceGrid(
        kind=kind,
        n_intervals=n_intervals,
        spacing=spacing,
        scale=scale,
        strike_position=position,
        direction=np.where(is_call, -1.0, 1.0),
    )


def pack(values: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """Return (contracts, ...) as (blocks, ..., lanes), repeating the last contract to fill up."""
    n_missing = -len(values) % LANES
    filled = np.concatenate([values, np.repeat(values[-1:], n_missing, axis=0)])
    blocks = filled.reshape(len(filled) // LANES, LANES, *values.shape[1:])
    return np.ascontiguousarray(np.moveaxis(blocks, 1, -1))


def unpack(values: FloatArray, n_contracts: int) -> FloatArray:
    """Return (blocks, ..., lanes) as (contracts, ...), the inverse of packing."""
    moved = np.moveaxis(values, -1, 1)
    return np.ascontiguousarray(moved.reshape(-1, *moved.shape[2:])[:n_contracts])

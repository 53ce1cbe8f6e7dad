"""The error that a surrogate states for a price, from errors measured in every cell of its domain.

A surrogate's error is in proportion to the scale of its output (:mod:`pricing.surrogate.encoding`):
near expiry, or where rates are small, there is little to get wrong. So errors are measured in that
scale, over a lattice of the five coordinates of the put. The ends of every axis are separate cells,
because there a surrogate has data on one side only. A cell states the largest error found in it and
in the cells beside it, among a few hundred contracts in all, so that about 99 of 100 others stay
below.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray
from pricing.surrogate.domain import Domain
from pricing.surrogate.encoding import Put

FLOOR = 1e-8  # per unit strike: rounding, and the referee's own error
_AXES = {
    "log_moneyness": (-0.7, -0.3, -0.1, 0.1, 0.3, 0.7),
    "time_to_expiry": (0.01, 0.1, 0.35, 1.0, 2.0),
    "volatility": (0.12, 0.25, 0.6),
    "rate": (0.005, 0.04),
    "dividend_yield": (0.005, 0.04),
}
_ENDS = 0.03  # of an axis: the width of the cells at its ends
_NEAR = 0.1  # of log-moneyness: around the money
_AT_END = 1 / 2  # share of such a cell's contracts on the very end of the domain


@dataclass(frozen=True)
class Lattice:
    """Cells of a domain: the edges of every axis, ends included."""

    edges: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, domain: Domain) -> Self:
        """Cut a domain."""
        ranges = {name: _range(domain, name) for name in _AXES}
        edges = {}
        for name, inner in _AXES.items():
            low, high = ranges[name]
            first, last = low + _ENDS * (high - low), high - _ENDS * (high - low)
            if name == "volatility":
                first, last = 1.2 * low, high / 1.07
            between = sorted({x for x in (*inner, first, last) if low < x < high})
            if low == 0.0:  # the first cell is an end already
                between = [x for x in between if x != first]
            edges[name] = (low, *between, high)
        return cls(edges)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along every axis."""
        return tuple(len(edges) - 1 for edges in self.edges.values())

    def numbers(self, place: "Put | tuple[FloatArray, ...]") -> tuple[npt.NDArray[np.intp], ...]:
        """Return each row's cell, one index per axis, from a tuple that has these names."""
        return tuple(
            np.searchsorted(edges[1:-1], np.broadcast_to(getattr(place, name), np.shape(place[0])))
            for name, edges in self.edges.items()
        )

    def draw(self, n: int, rng: np.random.Generator) -> Iterator[Put]:
        """Yield about ``n`` puts of every cell, one block of market states after the other.

        Half of those around the money are drawn around the forward, on the scale of σ√τ, where
        short options have all their value.
        """
        names = list(self.edges)
        for rate_cell in np.ndindex(self.shape[3:]):
            rate, dividend_yield = (
                self._within(name, np.full(n, place), rng)
                for name, place in zip(names[3:], rate_cell, strict=True)
            )
            cells = np.array(list(np.ndindex(self.shape[:3]))).repeat(n, axis=0)
            state = np.tile(np.arange(n), len(cells) // n)
            x, tau, sigma = (
                self._within(name, cells[:, axis], rng) for axis, name in enumerate(names[:3])
            )
            put = Put(x, tau, rate[state], dividend_yield[state], sigma)
            near = (put.dividend_yield - put.rate) * tau
            near = near + sigma * np.sqrt(tau) * rng.normal(0.0, 1.5, len(x))
            is_near = (np.abs(x) < _NEAR) & (rng.random(len(x)) < 0.5)
            yield put._replace(log_moneyness=np.clip(np.where(is_near, near, x), *self.ends(0)))

    def ends(self, axis: int) -> tuple[float, float]:
        """Return the ends of the domain along an axis."""
        edges = list(self.edges.values())[axis]
        return edges[0], edges[-1]

    def _within(
        self, name: str, cell: npt.NDArray[np.intp], rng: np.random.Generator
    ) -> FloatArray:
        """Draw a coordinate evenly within cells; at the domain's ends often on the end itself."""
        edges = np.array(self.edges[name])
        values = edges[cell] + (edges[cell + 1] - edges[cell]) * rng.random(len(cell))
        is_pushed = rng.random(len(cell)) < _AT_END
        if edges[0] == 0.0:  # evenly in the logarithm down to it: seconds, hundredths of a point
            first = edges[1] * 10.0 ** rng.uniform(-4.5, 0.0, len(cell))
            is_first = (cell == 0) & (is_pushed | (name == "time_to_expiry"))
            values = np.where(is_first, first, values)
        else:
            values = np.where(is_pushed & (cell == 0), edges[0], values)
        return np.asarray(np.where(is_pushed & (cell == len(edges) - 2), edges[-1], values))


@dataclass(frozen=True)
class StatedError:
    """Bars of a lattice's cells, in the scale of the output."""

    lattice: Lattice
    bars: FloatArray

    @classmethod
    def measured(cls, lattice: Lattice, largest: FloatArray) -> Self:
        """State the largest error found in each cell and in those beside it."""
        bars = largest.copy()
        for axis in range(largest.ndim):
            for step in (1, -1):
                beside = np.roll(largest, step, axis)
                edge = [slice(None)] * largest.ndim
                edge[axis] = slice(0, 1) if step == 1 else slice(-1, None)
                beside[tuple(edge)] = 0.0
                bars = np.maximum(bars, beside)
        return cls(lattice, bars)

    def of(self, place: "Put | tuple[FloatArray, ...]", scale: FloatArray) -> FloatArray:
        """Return the stated error per unit strike."""
        return np.asarray(FLOOR + scale * self.bars[self.lattice.numbers(place)])

    def to_dict(self) -> dict[str, Any]:
        """Return edges and bars in JSON form."""
        return {
            "edges": {name: list(edges) for name, edges in self.lattice.edges.items()},
            "bars": [float(f"{bar:.2e}") for bar in self.bars.ravel()],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_dict`."""
        lattice = Lattice({name: tuple(edges) for name, edges in content["edges"].items()})
        return cls(lattice, np.reshape(content["bars"], lattice.shape))


def _range(domain: Domain, name: str) -> tuple[float, float]:
    low, high = getattr(domain, "expiry" if name == "time_to_expiry" else name)
    return float(low), float(high)

"""Two operators with known answers, on irregular points: the first things a model must learn.

``antiderivative``: f ↦ ∫_0^x f, exact. ``diffusion``: k ↦ u with -(k u')' = 1 on (0, 1) and
u(0) = u(1) = 0, by quadrature of the closed form u(x) = ∫_0^x (c - y) / k(y) dy with c such that
u(1) = 0. Points and their number differ from sample to sample: the rest is masked.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.integrate import cumulative_simpson
from scipy.interpolate import CubicSpline
from scipy.linalg import solve_banded

from amo.arrays import FloatArray
from amo.errors import SettingsError
from data_gen.dataset import Arrays, Check, Shard, split_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_SHARD = 128
_WAVES = np.pi * np.arange(1, 4)  # of the random series
_FINE = 2048


@dataclass(frozen=True, kw_only=True)
class _ToySet(ABC):
    """Random smooth functions at random points of [0, 1], and their images at other points."""

    samples: int = 2048
    points: int = 96
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples < 3 * _SHARD or self.samples % _SHARD:
            raise SettingsError(
                f"samples must be a multiple of {_SHARD}, at least 3 times that, got {self.samples}"
            )
        if self.points < 16:
            raise SettingsError(f"points must be at least 16, got {self.points}")
        if self.seed < 0:
            raise SettingsError(f"seed must be >= 0, got {self.seed}")

    @property
    def n_shards(self) -> int:
        """How many shards make the set."""
        return self.samples // _SHARD

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the bytes."""
        return {"samples": self.samples, "points": self.points, "seed": self.seed}

    def split(self, shard: int) -> str:
        """Return the split a shard belongs to."""
        return split_of(shard, self.n_shards)

    @property
    def units(self) -> Mapping[str, str]:
        """What each array holds."""
        return {
            "points": "x in [0, 1], (samples, points, 1)",
            "features": "the input function there",
            "mask": "false where a point is padding",
            "queries": "x in [0, 1], (samples, queries, 1)",
            "values": "the answer there",
        }

    def make(self, shard: int) -> Shard:
        """Make one shard."""
        rng = np.random.default_rng([self.seed, shard])
        n = self.points
        count = rng.integers(3 * n // 4, n + 1, size=_SHARD)
        mask = np.arange(n) < count[:, None]
        points, queries = rng.uniform(size=(2, _SHARD, n, 1))
        points = (np.arange(n)[:, None] + points) / count[:, None, None]  # one in each cell
        features, values, error = self._solve(rng, points[..., 0], queries[..., 0])
        arrays = {
            "points": np.where(mask[..., None], points, 0.0),
            "features": np.where(mask[..., None], features, 0.0),
            "queries": queries,
            "values": values[..., None],
        }
        single = {name: values.astype(np.float32) for name, values in arrays.items()}
        return Shard({**single, "mask": mask}, n_dropped=0, worst_error=error)

    @abstractmethod
    def _solve(
        self, rng: np.random.Generator, points: FloatArray, queries: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return features at points, values at queries, and the largest error of the values."""

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw four samples."""
        from data_gen.previews import draw_curves  # noqa: PLC0415  # plotly is slow to load

        return draw_curves(arrays)


class AntiderivativeSet(_ToySet):
    """f(x) = Σ_k a_k cos πkx + b_k sin πkx, and its integral from 0, both in closed form."""

    def _solve(
        self, rng: np.random.Generator, points: FloatArray, queries: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        a, b = _coefficients(rng, len(points))
        phase = queries[..., None] * _WAVES
        integrals = a[:, None, :] * np.sin(phase) + b[:, None, :] * (1.0 - np.cos(phase))
        return _series(a, b, points)[..., None], (integrals / _WAVES).sum(-1), 0.0

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Refit the series to the stored input and integrate it again."""
        worst = 0.0
        for row in rng.integers(len(arrays["points"]), size=n_points):
            phase = arrays["queries"][row].astype(np.float64) * _WAVES
            integrals = np.concatenate([np.sin(phase), 1.0 - np.cos(phase)], axis=1)
            again = integrals @ (_refit(arrays, row) / np.tile(_WAVES, 2))
            worst = max(worst, float(np.abs(again - arrays["values"][row, :, 0]).max()))
        return [Check("values", worst, 1e-4, n_points, unit="")]


class DiffusionSet(_ToySet):
    """-(k u')' = 1 with log k a random series, u zero at both ends; the input is log k."""

    def _solve(
        self, rng: np.random.Generator, points: FloatArray, queries: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        log_k = _coefficients(rng, len(points), size=0.5)
        fine, coarse = (
            np.stack([spline(x) for spline, x in zip(_diffuse(log_k, n), queries, strict=True)])
            for n in (_FINE, _FINE // 2)
        )
        return _series(*log_k, points)[..., None], fine, float(np.abs(fine - coarse).max())

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Fit the input series again and solve by finite differences."""
        rows = rng.integers(len(arrays["points"]), size=min(n_points, 20))
        worst = max(_finite_difference_error(arrays, row) for row in rows)
        return [Check("values", worst, 1e-5, len(rows), unit="")]


def _coefficients(
    rng: np.random.Generator, n: int, size: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    scale = size / np.arange(1, len(_WAVES) + 1)
    a, b = rng.standard_normal((2, n, len(_WAVES))) * scale
    return a, b


def _series(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    phase = x[..., None] * _WAVES
    terms: FloatArray = a[:, None, :] * np.cos(phase) + b[:, None, :] * np.sin(phase)
    return np.asarray(terms.sum(-1))


def _refit(arrays: Arrays, row: int) -> FloatArray:
    """Return the coefficients (cosines, then sines) of a stored input function."""
    seen = arrays["mask"][row]
    matrix = _modes(arrays["points"][row, seen, 0].astype(np.float64))
    return np.asarray(np.linalg.lstsq(matrix, arrays["features"][row, seen, 0], rcond=None)[0])


def _modes(x: FloatArray) -> FloatArray:
    phase = x[:, None] * _WAVES
    return np.concatenate([np.cos(phase), np.sin(phase)], axis=1)


def _diffuse(log_k: tuple[FloatArray, FloatArray], n_cells: int) -> list[CubicSpline]:
    """Return the solutions as splines through Simpson's rule."""
    x = np.linspace(0.0, 1.0, n_cells + 1)
    grid = np.broadcast_to(x, (len(log_k[0]), n_cells + 1))
    inverse = np.exp(-_series(*log_k, grid))
    weighted = cumulative_simpson(grid * inverse, x=x, axis=-1, initial=0.0)
    resistance = cumulative_simpson(inverse, x=x, axis=-1, initial=0.0)
    u = weighted[:, -1:] / resistance[:, -1:] * resistance - weighted
    return [CubicSpline(x, row) for row in u]


def _finite_difference_error(arrays: Arrays, row: int, n_cells: int = 4000) -> float:
    nodes = np.linspace(0.0, 1.0, n_cells + 1)
    middle = 0.5 * (nodes[1:] + nodes[:-1])
    conductivity = np.exp(_modes(middle) @ _refit(arrays, row)) * n_cells**2
    bands = np.zeros((3, n_cells - 1))
    bands[0, 1:] = bands[2, :-1] = -conductivity[1:-1]
    bands[1] = conductivity[:-1] + conductivity[1:]
    inner = solve_banded((1, 1), bands, np.ones(n_cells - 1))
    again = np.interp(arrays["queries"][row, :, 0], nodes, np.concatenate([[0.0], inner, [0.0]]))
    return float(np.abs(again - arrays["values"][row, :, 0]).max())

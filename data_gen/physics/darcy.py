"""Two-phase Darcy flow: -div(a grad u) = 1 on the unit square, u zero on its edge.

a is 12 where a Gaussian field g ~ N(0, (-Δ + 9)^{-2}) is positive, else 3: the benchmark of the
Fourier operator, whose paper, unlike its files, has 4 instead of 3. Labels come from a grid five
times finer than the stored one, with k averaged over the faces' volumes from a grid four times
finer still; the authors' own labels use node values only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import fft

from amo.arrays import FloatArray
from data_gen.dataset import Arrays, Check
from data_gen.physics import elliptic
from data_gen.sized import SampleSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PHASES = (3.0, 12.0)
_SUBCELLS = 4
_RESIDUAL = 1e-7


@dataclass(frozen=True, kw_only=True)
class DarcySet(SampleSet):
    """Coefficient and solution at the nodes of a regular grid, edges included."""

    shard_size: ClassVar[int] = 50
    least: ClassVar[Mapping[str, int]] = {"resolution": 5, "finer": 2}

    train: int = 1000
    validation: int = 100
    test: int = 200
    resolution: int = 85
    finer: int = 5

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {"coefficient": "a(x, y), axes x, y", "solution": "u(x, y), axes x, y"}

    @property
    def _cells(self) -> int:
        return (self.resolution - 1) * self.finer

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one sample; its error is the distance to a grid half as fine."""
        g = field_modes(rng, self._cells)
        fine, coarse = (self._solution(g, n) for n in (self._cells, self._cells // 2))
        nodes = np.linspace(0.0, 1.0, self.resolution)
        error = float(np.linalg.norm(fine - coarse) / np.linalg.norm(fine))
        return {"coefficient": _phases(at_points(g, nodes)), "solution": fine}, error

    def _solution(self, g: FloatArray, n: int) -> FloatArray:
        """Return u at the stored nodes from an n × n grid."""
        k = elliptic.of_cells(_phases(at_cells(g, _SUBCELLS * n)), n)
        u = elliptic.solve(k, np.ones((n - 1, n - 1)), _RESIDUAL).u
        if n % (self.resolution - 1):  # half of an odd multiple
            ends = np.linspace(0.0, 1.0, n + 1)
            return _interpolated(u, ends, np.linspace(0.0, 1.0, self.resolution))
        every = n // (self.resolution - 1)
        return u[::every, ::every]

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Solve up to three samples again on a grid twice as fine."""
        rows = rng.permutation(len(arrays["number"]))[: min(3, n_points)]
        worst = 0.0
        for row in rows:
            own = np.random.default_rng([self.seed, int(arrays["number"][row])])
            again = self._solution(field_modes(own, self._cells), 2 * self._cells)
            error = np.linalg.norm(again - arrays["solution"][row]) / np.linalg.norm(again)
            worst = max(worst, float(error))
        return [Check("solution", worst, 1e-3, len(rows), unit=" of its norm")]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw coefficient and solution of three samples."""
        from data_gen.physics.previews import draw_maps  # noqa: PLC0415  # plotly is slow

        return draw_maps({name: arrays[name][:3] for name in self.fields})


def field_modes(rng: np.random.Generator, n: int) -> FloatArray:
    """Return the coefficients of cos πjx cos πky in a Gaussian field, j, k < n, without mean."""
    k = np.arange(n)
    spread = 3.0 / (np.pi**2 * (k[:, None] ** 2 + k**2) + 9.0)
    spread[0, 0] = 0.0
    norm = np.where(k > 0, np.sqrt(2.0), 1.0)
    return np.asarray(spread * norm[:, None] * norm * rng.standard_normal((n, n)))


def at_points(modes: FloatArray, x: FloatArray) -> FloatArray:
    """Return the field at the nodes of a grid."""
    waves = np.cos(np.pi * np.outer(x, np.arange(len(modes))))
    return np.asarray(waves @ modes @ waves.T)


def at_cells(modes: FloatArray, n: int) -> FloatArray:
    """Return the field at the centres of n × n cells, by a cosine transform; n ≥ modes."""
    weights = np.where(np.arange(len(modes)) > 0, 0.5, 1.0)  # of a transform of type 3
    padded = np.zeros((n, n))
    padded[: len(modes), : len(modes)] = weights[:, None] * weights * modes
    return np.asarray(fft.dctn(padded, type=3))


def _phases(g: FloatArray) -> FloatArray:
    return np.where(g >= 0.0, PHASES[1], PHASES[0])


def _interpolated(u: FloatArray, old: FloatArray, new: FloatArray) -> FloatArray:
    """Return a field on another tensor grid, by cubic splines."""
    from scipy.interpolate import RectBivariateSpline  # noqa: PLC0415  # rarely needed

    return np.asarray(RectBivariateSpline(old, old, u)(new, new))

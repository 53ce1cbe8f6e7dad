"""Two maps on the unit circle whose Fourier symbol depends on the input.

advection-speeds: u_t + c u_x = 0 with each sample's own speed c: e^{-2πimcT} at wavenumber m.
helmholtz: u″/k² + 2η u′/k + u = f, a wave equation at one frequency with absorption and each
sample's own wavenumber k: 1 / (1 - (w/k)² + 2iη w/k) at w = 2πm, a resonance at w = k.

Inputs are sums of sines up to wavenumber 16, and the number, repeated at all points. A filter that
is the same for all inputs can serve one speed or one wavenumber, not all of them.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

from amo.arrays import FloatArray
from data_gen.dataset import Arrays, Check
from data_gen.physics.advection import SMOOTH, TIME
from data_gen.sized import SampleSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SLOWEST, FASTEST = 0.5, 1.5
LONGEST, SHORTEST = 2.0, 12.0  # waves around the circle
ABSORPTION = 0.1  # η: at its resonance a wave grows to 1 / 2η


@dataclass(frozen=True, kw_only=True)
class SymbolSet(SampleSet):
    """A function, a number and an image on equally spaced points."""

    shard_size: ClassVar[int] = 100
    least: ClassVar[Mapping[str, int]] = {"points": 4 * SMOOTH}

    train: int = 1000
    validation: int = 100
    test: int = 200
    points: int = 256

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> float:
        """Return the number of one sample."""

    @abstractmethod
    def symbol(self, k: FloatArray, number: float) -> FloatArray:
        """Return the factor, complex, that waves exp(2πikx) are multiplied by."""

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one sample; its error is zero."""
        k = np.arange(1.0, SMOOTH + 1.0)
        amplitude = rng.standard_normal(SMOOTH) / (1.0 + k)
        phase = rng.uniform(0.0, 2.0 * np.pi, size=SMOOTH)
        number = self.draw(rng)
        x = np.arange(self.points) / self.points
        waves = np.exp(1j * (2.0 * np.pi * np.outer(x, k) + phase))
        names = iter(self.fields)
        arrays = {
            next(names): (waves @ amplitude).imag,
            next(names): np.full(self.points, number),
            next(names): (waves @ (self.symbol(k, number) * amplitude)).imag,
        }
        return arrays, 0.0

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw three samples."""
        from data_gen.physics.previews import draw_lines  # noqa: PLC0415  # plotly is slow

        return draw_lines({name: arrays[name][:3] for name in self.fields})


@dataclass(frozen=True, kw_only=True)
class AdvectionSpeedsSet(SymbolSet):
    """Initial and final states, and the speed between them."""

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {"initial": "u(x, 0)", "speed": "c at all points", "final": "u(x, T), exact"}

    def draw(self, rng: np.random.Generator) -> float:
        """Return a speed."""
        return rng.uniform(SLOWEST, FASTEST)

    def symbol(self, k: FloatArray, number: float) -> FloatArray:
        """Return e^{-2πikcT}."""
        return np.asarray(np.exp(-2j * np.pi * k * number * TIME))

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Follow the characteristics: interpolate initial states where they came from."""
        rows = rng.permutation(len(arrays["number"]))[:n_points]
        worst = 0.0
        for row in rows:
            n = self.points
            back = np.arange(n) / n - float(arrays["speed"][row, 0]) * TIME
            again = trigonometric(arrays["initial"][row].astype(np.float64), back)
            worst = max(worst, float(np.abs(again - arrays["final"][row]).max()))
        return [Check("final", worst, 1e-5, len(rows), unit="")]


@dataclass(frozen=True, kw_only=True)
class HelmholtzSet(SymbolSet):
    """Source and field, and the wavenumber of the medium."""

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {"source": "f(x)", "wavenumber": "k / 2π at all points", "field": "u(x), exact"}

    def draw(self, rng: np.random.Generator) -> float:
        """Return how many waves go around the circle."""
        return rng.uniform(LONGEST, SHORTEST)

    def symbol(self, k: FloatArray, number: float) -> FloatArray:
        """Return 1 / (1 - (w/k)² + 2iη w/k)."""
        ratio = k / number
        return np.asarray(1.0 / (1.0 - ratio**2 + 2j * ABSORPTION * ratio))

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Solve the equation by a matrix of fourth-order differences on a grid four times finer."""
        rows = rng.permutation(len(arrays["number"]))[: min(3, n_points)]
        worst = 0.0
        for row in rows:
            source = arrays["source"][row].astype(np.float64)
            again = by_differences(source, float(arrays["wavenumber"][row, 0]))
            worst = max(worst, float(np.abs(again - arrays["field"][row]).max()))
        return [Check("field", worst, 1e-5, len(rows), unit="")]


def trigonometric(u: FloatArray, x: FloatArray) -> FloatArray:
    """Return the trigonometric interpolant of equally spaced values of period one, at points x."""
    n = len(u)
    modes = np.fft.rfft(u) / n
    modes[1:] *= 2.0
    waves = np.exp(2j * np.pi * np.outer(x, np.arange(len(modes))))
    return np.asarray((waves @ modes).real)


def by_differences(source: FloatArray, wavenumber: float, refine: int = 4) -> FloatArray:
    """Return u of u″/k² + 2η u′/k + u = f by periodic differences of fourth order."""
    n, k = refine * len(source), 2.0 * np.pi * wavenumber
    fine = trigonometric(source, np.arange(n) / n)

    def circulant(stencil: dict[int, float]) -> sparse.csr_matrix:
        rows = np.arange(n)
        parts = [
            sparse.csr_matrix((np.full(n, weight), (rows, (rows + lag) % n)), shape=(n, n))
            for lag, weight in stencil.items()
        ]
        return sum(parts[1:], parts[0])

    first = circulant({-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}) * n
    second = circulant({-2: -1 / 12, -1: 16 / 12, 0: -30 / 12, 1: 16 / 12, 2: -1 / 12}) * n**2
    system = second / k**2 + 2.0 * ABSORPTION * first / k + sparse.identity(n)
    return np.asarray(spsolve(sparse.csc_matrix(system), fine)[::refine])

"""u_t + c u_x = 0 on the periodic unit interval, with a weak spike at a high wavenumber.

u(x, 0) = Σ_k a_k sin(2πkx + φ_k), a_k ~ 1/(1 + k), k ≤ 16, plus a spike at one k from 128 to 240,
on 512 points. Targets after time T: exact, a shift of the phases, and by the first-order upwind
scheme of the paper, which all but removes the spike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from amo.arrays import FloatArray
from data_gen.dataset import Arrays, Check
from data_gen.sized import SampleSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SPEED, TIME = 1.0, 0.3
COURANT = 0.5
SMOOTH = 16  # the largest of the low wavenumbers
_SPIKE = 0.05  # its amplitude, a tenth of a_1


@dataclass(frozen=True, kw_only=True)
class AdvectionSet(SampleSet):
    """Initial and final states at equally spaced points."""

    shard_size: ClassVar[int] = 100
    least: ClassVar[Mapping[str, int]] = {"points": 4 * SMOOTH}

    train: int = 1000
    validation: int = 100
    test: int = 200
    points: int = 512

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {
            "initial": "u(x, 0)",
            "final": "u(x, T), exact",
            "upwind": f"u(x, T) by first-order upwind at Courant number {COURANT}",
        }

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one sample; its error is zero."""
        n = self.points
        k = np.append(np.arange(1, SMOOTH + 1), rng.integers(n // 4, 15 * n // 32 + 1))
        amplitude = np.append(rng.standard_normal(SMOOTH) / (1.0 + k[:-1]), _SPIKE)
        phase = rng.uniform(0.0, 2.0 * np.pi, size=len(k))
        x = np.arange(n) / n

        def waves(shift: float) -> FloatArray:
            angle = 2.0 * np.pi * (x[:, None] - shift) * k + phase
            return np.asarray(np.sin(angle) @ amplitude)

        initial = waves(0.0)
        arrays = {
            "initial": initial, "final": waves(SPEED * TIME), "upwind": upwind(initial),
        }  # fmt: skip
        return arrays, 0.0

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Shift some stored initial states by a Fourier transform."""
        rows = rng.permutation(len(arrays["number"]))[:n_points]
        again = shifted(arrays["initial"][rows].astype(np.float64), SPEED * TIME)
        worst = float(np.abs(again - arrays["final"][rows]).max())
        return [Check("final", worst, 1e-5, len(rows), unit="")]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw three samples."""
        from data_gen.physics.previews import draw_lines  # noqa: PLC0415  # plotly is slow

        return draw_lines({name: arrays[name][:3] for name in self.fields})


def shifted(u: FloatArray, distance: float) -> FloatArray:
    """Return periodic functions, points on the last axis, moved to the right."""
    n = u.shape[-1]
    modes = np.fft.rfft(u)
    return np.fft.irfft(modes * np.exp(-2j * np.pi * np.arange(n // 2 + 1) * distance), n=n)


def upwind(u: FloatArray) -> FloatArray:
    """Return the state at time T by u_i ← u_i - C (u_i - u_{i-1}), of order one."""
    n = len(u)
    n_steps = int(np.ceil(SPEED * TIME * n / COURANT))
    courant = SPEED * TIME * n / n_steps
    growth = 1.0 - courant * (1.0 - np.exp(-2j * np.pi * np.arange(n // 2 + 1) / n))
    return np.fft.irfft(growth**n_steps * np.fft.rfft(u), n=n)  # all steps at once

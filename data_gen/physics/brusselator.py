"""The forced Brusselator on a 28 × 28 unit grid: a force f(t) to the concentration u(x, y, t).

u_t = Δu + a - (b + 1) u + u² v + f(t), v_t = Δv / 2 + b u - u² v, a = 1, b = 3, no flux through the
edges, on cells of size one: the grid is part of the problem, as in the Laplace operator's set.
Every sample starts from the same state; forces are damped random waves. The Laplacian is diagonal
in cosine modes; ETDRK4 in time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import fft
from scipy.integrate import solve_ivp

from amo.arrays import FloatArray
from data_gen.dataset import Arrays, Check
from data_gen.physics.exponential import estimated_error, solve
from data_gen.sized import SampleSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

A, B = 1.0, 3.0
SIDE = 28
TIMES = np.linspace(0.0, 19.5, 40)[1:]  # 39, as stored; the start is always the same
_N_WAVES = 4
_STEPS = 12  # between two stored times


@dataclass(frozen=True, kw_only=True)
class BrusselatorSet(SampleSet):
    """A force at 39 times and the field u at those times."""

    shard_size: ClassVar[int] = 50

    train: int = 500
    validation: int = 50
    test: int = 100

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {"force": "f(t)", "field": "u(t, x, y), axes t, x, y"}

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one sample; its error is estimated by halving the number of steps."""
        waves = random_waves(rng)
        fine, coarse = (_solution(waves, n) for n in (_STEPS, _STEPS // 2))
        error = estimated_error(fine, coarse)
        return {"force": force(waves, TIMES), "field": fine}, error

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Solve one or two samples by differences in space and an adaptive scheme in time."""
        rows = rng.permutation(len(arrays["number"]))[: min(2, n_points)]
        worst = 0.0
        for row in rows:
            own = np.random.default_rng([self.seed, int(arrays["number"][row])])
            again = _by_lines(random_waves(own))
            error = np.linalg.norm(again - arrays["field"][row]) / np.linalg.norm(again)
            worst = max(worst, float(error))
        return [Check("field", worst, 1e-4, len(rows), unit=" of its norm")]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw some frames of three samples."""
        from data_gen.physics.previews import draw_frames  # noqa: PLC0415  # plotly is slow

        return draw_frames(np.moveaxis(arrays["field"][:3], 1, -1))


def random_waves(rng: np.random.Generator) -> FloatArray:
    """Return amplitude, damping, frequency and phase of each wave in a force, as rows."""
    return np.stack(
        [
            0.3 * rng.standard_normal(_N_WAVES),
            rng.uniform(0.0, 0.2, _N_WAVES),
            rng.uniform(0.2, 3.0, _N_WAVES),
            rng.uniform(0.0, 2.0 * np.pi, _N_WAVES),
        ]
    )


def force(waves: FloatArray, t: FloatArray | float) -> FloatArray:
    """Return f = Σ A e^{-γt} sin(ωt + φ)."""
    amplitude, damping, frequency, phase = waves
    t = np.asarray(t)[..., None]
    return np.asarray(np.sin(frequency * t + phase) * np.exp(-damping * t) @ amplitude)


def initial_state() -> FloatArray:
    """Return u = a and v = b / a with a smooth bump, the same for all samples."""
    x = (np.arange(SIDE) + 0.5) / SIDE
    bump = np.cos(np.pi * x)[:, None] * np.cos(2.0 * np.pi * x) + 0.5 * np.cos(np.pi * x)
    return np.stack([np.full((SIDE, SIDE), A), B / A + 0.2 * bump])


def _reaction(state: FloatArray, f: FloatArray) -> FloatArray:
    u, v = state
    turned = u * u * v
    return np.stack([A - (B + 1.0) * u + turned + f, B * u - turned])


def _solution(waves: FloatArray, n_steps: int) -> FloatArray:
    """Return u at the stored times, by cosine modes."""
    one = 2.0 * np.cos(np.pi * np.arange(SIDE) / SIDE) - 2.0
    laplacian = one[:, None] + one
    rates = np.stack([laplacian, 0.5 * laplacian])

    def nonlinear(modes: FloatArray, t: float) -> FloatArray:
        state = fft.idctn(modes, axes=(1, 2))
        return np.asarray(fft.dctn(_reaction(state, force(waves, t)), axes=(1, 2)))

    start = fft.dctn(initial_state(), axes=(1, 2))
    modes = solve(rates, nonlinear, start, np.append(0.0, TIMES), n_steps)
    return np.asarray(fft.idctn(modes[1:, 0], axes=(1, 2)))


def _by_lines(waves: FloatArray) -> FloatArray:
    diffusion = np.array([1.0, 0.5])[:, None, None]

    def slope(t: float, flat: FloatArray) -> FloatArray:
        state = flat.reshape(2, SIDE, SIDE)
        whole = np.pad(state, ((0, 0), (1, 1), (1, 1)), mode="edge")  # no flux
        bend = np.diff(whole, 2, axis=1)[:, :, 1:-1] + np.diff(whole, 2, axis=2)[:, 1:-1]
        return np.asarray((diffusion * bend + _reaction(state, force(waves, t))).ravel())

    found = solve_ivp(
        slope, (0.0, TIMES[-1]), initial_state().ravel(), "DOP853", TIMES, rtol=1e-8, atol=1e-10
    )
    return np.asarray(found.y.T.reshape(len(TIMES), 2, SIDE, SIDE)[:, 0])

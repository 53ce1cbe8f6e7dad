"""u_t = D u_xx + k u² - f on 0 ≤ x ≤ 2, u zero at both ends and at the start; f to u(x, t).

The equation that the Laplace operator's paper prints, with its D = k = 0.01; its files hold
u = A sin πx e^{-gt}, which solves it with D = k = 1. Here f is a random function, so that the map
is an operator, nearly linear: sums of four sines in x with smooth random histories. Sine modes in
space, ETDRK4 in time.
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

DIFFUSION = REACTION = 0.01
LENGTH, END = 2.0, 1.0
_N_SINES, _N_HISTORIES = 4, 3
_CELLS = 156  # 39 × 4: the stored nodes are among its nodes
_STEPS = 4  # between two stored times


@dataclass(frozen=True, kw_only=True)
class ReactionDiffusionSet(SampleSet):
    """Source and solution on 40 × 20 points of x and t, as the official file has them."""

    shard_size: ClassVar[int] = 100

    train: int = 1000
    validation: int = 100
    test: int = 200

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {"source": "f(x, t), axes x, t", "solution": "u(x, t), axes x, t"}

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one sample; its error is estimated by halving the number of steps."""
        weights = random_weights(rng)
        fine, coarse = (_solution(weights, n) for n in (_STEPS, _STEPS // 2))
        error = estimated_error(fine, coarse)
        x, t = _stored()
        f = np.stack([source(weights, x, float(moment)) for moment in t], axis=1)
        return {"source": f, "solution": fine}, error

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Solve up to three samples by second-order differences in x and an adaptive scheme."""
        rows = rng.permutation(len(arrays["number"]))[: min(3, n_points)]
        worst = 0.0
        for row in rows:
            own = np.random.default_rng([self.seed, int(arrays["number"][row])])
            again = _by_lines(random_weights(own))
            error = np.linalg.norm(again - arrays["solution"][row]) / np.linalg.norm(again)
            worst = max(worst, float(error))
        return [Check("solution", worst, 1e-4, len(rows), unit=" of its norm")]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw source and solution of three samples."""
        from data_gen.physics.previews import draw_maps  # noqa: PLC0415  # plotly is slow

        return draw_maps({name: arrays[name][:3] for name in self.fields})


def random_weights(rng: np.random.Generator) -> FloatArray:
    """Return the weights of (sine in x, cosine or sine in t) in a source."""
    decay = 1.0 + np.arange(_N_SINES)[:, None]
    return np.asarray(10.0 * rng.standard_normal((_N_SINES, 2 * _N_HISTORIES)) / decay)


def source(weights: FloatArray, x: FloatArray, t: float) -> FloatArray:
    """Return f at points and one time."""
    angles = np.pi * np.arange(1, _N_HISTORIES + 1) * t / END
    history = weights @ np.concatenate([np.cos(angles), np.sin(angles)])
    return np.asarray(np.sin(np.pi * np.outer(x, np.arange(1, _N_SINES + 1)) / LENGTH) @ history)


def _stored() -> tuple[FloatArray, FloatArray]:
    return np.linspace(0.0, LENGTH, 40), np.linspace(0.0, END, 20)


def _solution(weights: FloatArray, n_steps: int) -> FloatArray:
    """Return u at the stored points, by sine modes."""
    x = np.linspace(0.0, LENGTH, _CELLS + 1)[1:-1]
    rates = -DIFFUSION * (np.pi * np.arange(1.0, _CELLS) / LENGTH) ** 2

    def nonlinear(modes: FloatArray, t: float) -> FloatArray:
        u = fft.idst(modes, type=1)
        return np.asarray(fft.dst(REACTION * u**2 - source(weights, x, t), type=1))

    modes = solve(rates, nonlinear, np.zeros(_CELLS - 1), _stored()[1], n_steps)
    u = np.pad(fft.idst(modes, type=1), ((0, 0), (1, 1)))
    return np.asarray(u[:, :: _CELLS // 39].T)


def _by_lines(weights: FloatArray, n_cells: int = 312) -> FloatArray:
    x, dx = np.linspace(0.0, LENGTH, n_cells + 1), LENGTH / n_cells

    def slope(t: float, u: FloatArray) -> FloatArray:
        bend = np.diff(np.pad(u, 1), 2) / dx**2
        return np.asarray(DIFFUSION * bend + REACTION * u**2 - source(weights, x[1:-1], t))

    times = _stored()[1]
    found = solve_ivp(
        slope, (0.0, END), np.zeros(n_cells - 1), "RK45", times, rtol=1e-8, atol=1e-10
    )
    return np.pad(found.y, ((1, 1), (0, 0)))[:: n_cells // 39]

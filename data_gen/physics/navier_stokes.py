"""Vorticity on the unit torus: w_t + u·∇w = ν Δw + f, the benchmark of the Fourier operator.

ν = 1e-5, f = 0.1 (sin 2π(x+y) + cos 2π(x+y)), w(0) ~ N(0, 7³ (-Δ + 49)^{-5/2}), frames at
t = 1 … 20. Pseudo-spectral, ETDRK4 in time, on a grid finer than the stored one; aliasing is held
off by the smooth filter of Hou and Li (2007), three times as accurate here as the 2/3 rule.
The advection is written as second derivatives of uv and v² - u²: four transforms per stage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import fft

from amo.arrays import FloatArray
from amo.errors import SettingsError
from data_gen.dataset import Arrays, Check
from data_gen.physics.exponential import Nonlinear, estimated_error, solve
from data_gen.sized import SampleSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

VISCOSITY = 1e-5
_N_MODES = 32  # of each sign in a random initial state: all others have variances below 1e-9
ComplexArray = npt.NDArray[np.complex128]


@dataclass(frozen=True, kw_only=True)
class NavierStokesSet(SampleSet):
    """Trajectories of vorticity, (resolution, resolution, frames) each."""

    shard_size: ClassVar[int] = 10
    least: ClassVar[Mapping[str, int]] = {
        "resolution": 8, "fine": 16, "frames": 2, "steps": 1,
    }  # fmt: skip

    train: int = 1000
    validation: int = 100
    test: int = 200
    resolution: int = 64
    fine: int = 128
    frames: int = 20
    steps: int = 64  # per unit of time

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fine % self.resolution:
            raise SettingsError(f"fine must be a multiple of {self.resolution}, got {self.fine}")

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {"vorticity": "w(x, y, t) at t = 1, 2, …, axes x, y, t"}

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one trajectory; its error in time is estimated by halving the steps, to t = 1."""
        initial = initial_modes(rng)
        w = trajectory(initial, self.fine, self.frames, self.steps)
        rough = trajectory(initial, self.fine, 1, max(1, self.steps // 2))
        error = estimated_error(w[..., 0], rough[..., 0])
        every = self.fine // self.resolution
        return {"vorticity": w[::every, ::every]}, error

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Solve up to three trajectories again, twice as fine in space and in time."""
        rows = rng.permutation(len(arrays["number"]))[: min(3, n_points)]
        worst = 0.0
        every = 2 * self.fine // self.resolution
        for row in rows:
            again = trajectory(
                initial_modes(np.random.default_rng([self.seed, int(arrays["number"][row])])),
                2 * self.fine,
                self.frames,
                2 * self.steps,
            )[::every, ::every]
            error = np.linalg.norm(again - arrays["vorticity"][row]) / np.linalg.norm(again)
            worst = max(worst, float(error))
        return [Check("vorticity", worst, 1e-2, len(rows), unit=" of its norm")]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw some frames of three trajectories."""
        from data_gen.physics.previews import draw_frames  # noqa: PLC0415  # plotly is slow

        return draw_frames(arrays["vorticity"][:3])


def initial_modes(rng: np.random.Generator) -> ComplexArray:
    """Return the Fourier coefficients of a random state, (2 modes + 1)² with zero mean.

    The standard deviation of the coefficient of exp 2πi k·x is 7^{3/2} (4π²|k|² + 49)^{-5/4}: this
    is how the authors' sampler of complex coefficients draws it, 7^{3/4} times larger than the
    covariance that they print.
    """
    n = 2 * _N_MODES + 1
    k = np.fft.fftfreq(n, 1.0 / n)
    spread = 7.0**1.5 * (4.0 * np.pi**2 * (k[:, None] ** 2 + k**2) + 49.0) ** -1.25
    spread[0, 0] = 0.0
    noise = fft.fft2(rng.standard_normal((n, n)), norm="ortho")  # unit variance, real in space
    return np.asarray(spread * noise)


def trajectory(initial: ComplexArray, n: int, frames: int, steps: int) -> FloatArray:
    """Return w on an n × n grid at t = 1 … frames, with ``steps`` steps per unit of time."""
    square = _square(n)
    modes = solve(
        -VISCOSITY * square,
        advection_and_force(n),
        _filter(square, n) * _spread(initial, n),
        np.arange(frames + 1.0),
        steps,
    )
    return np.moveaxis(fft.irfft2(modes[1:], s=(n, n)), 0, -1)


def advection_and_force(n: int) -> Nonlinear:
    """Return -u·∇w + f as a function of the modes of w, with -Δψ = w, u = ψ_y and v = -ψ_x.

    As the flow has no divergence, u·∇w = (∂_yy - ∂_xx)(uv) + ∂_xy (u² - v²).
    """
    k, m = _waves(n)
    square = _square(n)
    inverse = np.divide(1.0, square, out=np.zeros_like(square), where=square > 0.0)
    to_u, to_v = 1j * m * inverse, -1j * k * inverse
    kept = _filter(square, n)
    cross, plain = kept * (k**2 - m**2), kept * (k * m)
    x = np.arange(n) / n
    phase = 2.0 * np.pi * (x[:, None] + x)
    force = fft.rfft2(0.1 * (np.sin(phase) + np.cos(phase)))

    def right_side(w: ComplexArray, _: float) -> ComplexArray:
        u, v = fft.irfft2(to_u * w, s=(n, n)), fft.irfft2(to_v * w, s=(n, n))
        products = cross * fft.rfft2(u * v) + plain * fft.rfft2(v * v - u * u)
        return np.asarray(products + force)

    return right_side


def _waves(n: int) -> tuple[FloatArray, FloatArray]:
    """Return 2π times the wavenumbers along x, as a column, and along y, of a real transform."""
    k, m = np.fft.fftfreq(n, 1.0 / n)[:, None], np.arange(n // 2 + 1.0)
    return np.asarray(2.0 * np.pi * k), np.asarray(2.0 * np.pi * m)


def _square(n: int) -> FloatArray:
    k, m = _waves(n)
    return np.asarray(k**2 + m**2)


def _filter(square: FloatArray, n: int) -> FloatArray:
    """Return the filter, from one to rounding at half the grid's wavenumber."""
    return np.asarray(np.exp(-36.0 * (np.sqrt(square) / (np.pi * n)) ** 36))


def _spread(initial: ComplexArray, n: int) -> ComplexArray:
    """Return coefficients as those of a real transform on a grid of n × n."""
    half = min(_N_MODES, n // 2 - 1)
    modes = np.zeros((n, n // 2 + 1), dtype=np.complex128)
    modes[: half + 1, : half + 1] = initial[: half + 1, : half + 1]
    modes[-half:, : half + 1] = initial[-half:, : half + 1]
    return modes * n**2

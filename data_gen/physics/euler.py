"""Steady flow of a gas without viscosity around a wing section, by finite volumes on a C-mesh.

Density, momentum and energy are means over cells. Fluxes are central, with the dissipation of
Jameson, Schmidt and Turkel: third differences where the flow is smooth, first differences where the
pressure bends sharply, as at shocks. The scheme is of second order away from these. Dissipation
acts on the enthalpy instead of the energy, so that a steady flow has the total enthalpy of the free
stream everywhere.

A steady state is reached by five-stage Runge–Kutta steps, each cell at its own pace, with smoothed
residuals. Cells have axes along the C, from the lower end of the wake round the section to its
upper end, and outwards; all arrays of states have two layers of ghost cells.

References
----------
A. Jameson, W. Schmidt, E. Turkel, Numerical solution of the Euler equations by finite volume
methods using Runge–Kutta time-stepping schemes, 1981.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from amo.arrays import BoolArray, FloatArray
from amo.errors import FailedError
from data_gen.physics.c_mesh import CMesh

GAMMA = 1.4
_FIRST, _THIRD = 1.0, 1.0 / 32.0  # of differences in the dissipation
_COURANT, _SMOOTHING = 6.0, 0.8
_STAGES = np.array([1.0 / 4.0, 1.0 / 6.0, 3.0 / 8.0, 1.0 / 2.0, 1.0])
_DAMPED = np.array([1.0, 0.0, 0.56, 0.0, 0.44])  # how much of the dissipation a stage renews
_GHOSTS = 2


class NotSteadyError(FailedError):
    """A march has taken all its steps, or left the realm of finite numbers."""


class Stream(NamedTuple):
    """The state far away."""

    density: float
    u: float
    v: float
    pressure: float

    @property
    def enthalpy(self) -> float:
        """Of unit mass, kinetic energy included."""
        inner = GAMMA / (GAMMA - 1.0) * self.pressure / self.density
        return inner + 0.5 * (self.u**2 + self.v**2)


def uniform(mesh: CMesh, stream: Stream) -> FloatArray:
    """Return the free stream in all cells, (n + 4, m + 4, 4)."""
    n, m = mesh.volume.shape
    kinetic = 0.5 * stream.density * (stream.u**2 + stream.v**2)
    energy = stream.pressure / (GAMMA - 1.0) + kinetic
    momentum = (stream.density * stream.u, stream.density * stream.v)
    state = np.array([stream.density, *momentum, energy])
    return np.tile(state, (n + 2 * _GHOSTS, m + 2 * _GHOSTS, 1))


def find_steady(
    states: FloatArray, mesh: CMesh, stream: Stream, tolerance: float, most: int = 10_000
) -> FloatArray:
    """March states (n + 4, m + 4, 4) in place until they are steady; return the residuals.

    The residual is the root mean square of the density's rate of change.
    """
    residuals = np.empty(most)
    n_steps = _march(states, mesh, np.array(stream), tolerance, residuals)
    residuals = residuals[:n_steps]
    if not residuals[-1] <= tolerance:
        raise NotSteadyError(
            f"the flow is not steady after {n_steps} steps: its residual is {residuals[-1]:.1e}, "
            f"not {tolerance:.1e}"
        )
    return residuals


def residual_of(states: FloatArray, mesh: CMesh) -> FloatArray:
    """Return the rates of change (n, m, 4) of states whose ghost cells are filled."""
    n, m = mesh.volume.shape
    work = _work(n, m)
    _measure(states, mesh, work)
    _sum_fluxes(states, mesh, work)
    work.damping[:] = 0.0
    _sum_damping(states, mesh, work, 1.0)
    return -(work.flux - work.damping) / mesh.volume[..., None]


class _Work(NamedTuple):
    """Memory of a march: pressures, spectral radii and sums over faces."""

    pressure: FloatArray
    along: FloatArray
    out: FloatArray
    flux: FloatArray
    damping: FloatArray


@numba.njit(nogil=True, error_model="numpy")
def _work(n: int, m: int) -> _Work:
    return _Work(
        np.ones((n + 4, m + 4)),
        np.ones((n + 4, m + 4)),
        np.ones((n + 4, m + 4)),
        np.zeros((n, m, 4)),
        np.zeros((n, m, 4)),
    )


@numba.njit(nogil=True, error_model="numpy")
def _march(
    w: FloatArray, mesh: CMesh, stream: FloatArray, tolerance: float, residuals: FloatArray
) -> int:
    """Take steps until the residual is small, or no number; return how many."""
    n, m = mesh.volume.shape
    work = _work(n, m)
    before = w.copy()
    for step in range(len(residuals)):
        before[:] = w
        for stage in range(len(_STAGES)):
            fill_ghosts(w, mesh, stream)
            _measure(w, mesh, work)
            _sum_fluxes(w, mesh, work)
            if _DAMPED[stage] > 0.0:
                work.damping[:] *= 1.0 - _DAMPED[stage]
                _sum_damping(w, mesh, work, _DAMPED[stage])
            work.flux[:] -= work.damping
            if stage == 0:
                rates = work.flux[:, :, 0] / mesh.volume
                residuals[step] = math.sqrt((rates * rates).mean())
                if not residuals[step] > tolerance:
                    return step + 1
            for i in range(n):
                for j in range(m):
                    work.flux[i, j] *= _COURANT / (
                        work.along[i + 2, j + 2] + work.out[i + 2, j + 2]
                    )
            _smooth(work.flux)
            _smooth(work.flux.transpose(1, 0, 2))
            w[2:-2, 2:-2] = before[2:-2, 2:-2] - _STAGES[stage] * work.flux
    return len(residuals)


@numba.njit(nogil=True, error_model="numpy")
def fill_ghosts(w: FloatArray, mesh: CMesh, stream: FloatArray) -> None:
    """Mirror states at the wall, carry them across the wake, and match the far field."""
    n, m = mesh.volume.shape
    for i in range(n):
        is_wake = i < mesh.n_wake or i >= n - mesh.n_wake
        x, y = mesh.out_x[i, 0], mesh.out_y[i, 0]
        for k in range(2):
            if is_wake:
                w[i + 2, 1 - k] = w[n + 1 - i, 2 + k]
            else:
                w[i + 2, 1 - k] = w[i + 2, 2 + k]
                normal = 2.0 * (w[i + 2, 2 + k, 1] * x + w[i + 2, 2 + k, 2] * y) / (x * x + y * y)
                w[i + 2, 1 - k, 1] -= normal * x
                w[i + 2, 1 - k, 2] -= normal * y
        _match(w[i + 2, m + 1], stream, mesh.out_x[i, m], mesh.out_y[i, m], w[i + 2, m + 2])
        w[i + 2, m + 3] = w[i + 2, m + 2]
    for j in range(m):
        _match(w[2, j + 2], stream, -mesh.along_x[0, j], -mesh.along_y[0, j], w[1, j + 2])
        w[0, j + 2] = w[1, j + 2]
        _match(w[n + 1, j + 2], stream, mesh.along_x[n, j], mesh.along_y[n, j], w[n + 2, j + 2])
        w[n + 3, j + 2] = w[n + 2, j + 2]


@numba.njit(nogil=True, error_model="numpy")
def _match(inner: FloatArray, stream: FloatArray, x: float, y: float, ghost: FloatArray) -> None:
    """Set a ghost state by the Riemann invariants that cross a far face, (x, y) its outer normal.

    What leaves is that of the cell, what enters that of the free stream.
    """
    size = math.sqrt(x * x + y * y)
    x, y = x / size, y / size
    density, u, v = inner[0], inner[1] / inner[0], inner[2] / inner[0]
    pressure = (GAMMA - 1.0) * (inner[3] - 0.5 * density * (u * u + v * v))
    here, there = u * x + v * y, stream[1] * x + stream[2] * y
    leaves = here + 2.0 / (GAMMA - 1.0) * math.sqrt(GAMMA * pressure / density)
    enters = there - 2.0 / (GAMMA - 1.0) * math.sqrt(GAMMA * stream[3] / stream[0])
    speed, sound = 0.5 * (leaves + enters), 0.25 * (GAMMA - 1.0) * (leaves - enters)
    if speed > 0.0:
        entropy = pressure / density**GAMMA
        u, v = u + (speed - here) * x, v + (speed - here) * y
    else:
        entropy = stream[3] / stream[0] ** GAMMA
        u, v = stream[1] + (speed - there) * x, stream[2] + (speed - there) * y
    density = (sound * sound / (GAMMA * entropy)) ** (1.0 / (GAMMA - 1.0))
    ghost[0], ghost[1], ghost[2] = density, density * u, density * v
    pressure = density * sound * sound / GAMMA
    ghost[3] = pressure / (GAMMA - 1.0) + 0.5 * density * (u * u + v * v)


@numba.njit(nogil=True, error_model="numpy")
def _measure(w: FloatArray, mesh: CMesh, work: _Work) -> None:
    """Find pressures, and the spectral radii of both directions, weighed for flat cells."""
    n, m = mesh.volume.shape
    for i in range(n + 4):
        for j in range(m + 4):
            kinetic = 0.5 * (w[i, j, 1] ** 2 + w[i, j, 2] ** 2) / w[i, j, 0]
            work.pressure[i, j] = (GAMMA - 1.0) * (w[i, j, 3] - kinetic)
    for i in range(n):
        for j in range(m):
            density = w[i + 2, j + 2, 0]
            u, v = w[i + 2, j + 2, 1] / density, w[i + 2, j + 2, 2] / density
            sound = math.sqrt(GAMMA * work.pressure[i + 2, j + 2] / density)
            x = 0.5 * (mesh.along_x[i, j] + mesh.along_x[i + 1, j])
            y = 0.5 * (mesh.along_y[i, j] + mesh.along_y[i + 1, j])
            along = abs(u * x + v * y) + sound * math.sqrt(x * x + y * y)
            x = 0.5 * (mesh.out_x[i, j] + mesh.out_x[i, j + 1])
            y = 0.5 * (mesh.out_y[i, j] + mesh.out_y[i, j + 1])
            out = abs(u * x + v * y) + sound * math.sqrt(x * x + y * y)
            mean = math.sqrt(along * out)
            work.along[i + 2, j + 2], work.out[i + 2, j + 2] = along + mean, out + mean
    for i in range(n):
        is_wake = i < mesh.n_wake or i >= n - mesh.n_wake
        work.out[i + 2, 1] = work.out[n + 1 - i if is_wake else i + 2, 2]
        work.out[i + 2, m + 2] = work.out[i + 2, m + 1]
    for j in range(m):
        work.along[1, j + 2] = work.along[2, j + 2]
        work.along[n + 2, j + 2] = work.along[n + 1, j + 2]


@numba.njit(nogil=True, error_model="numpy")
def _sum_fluxes(w: FloatArray, mesh: CMesh, work: _Work) -> None:
    """Sum central fluxes over the faces of each cell; the wall's are its pressure alone."""
    n, p = mesh.volume.shape[0], work.pressure
    work.flux[:] = 0.0
    _convect(w, p, mesh.along_x, mesh.along_y, work.flux)
    _convect(w.transpose(1, 0, 2), p.T, mesh.out_x.T, mesh.out_y.T, work.flux.transpose(1, 0, 2))
    for i in range(mesh.n_wake, n - mesh.n_wake):  # instead of the flux to a mirrored cell
        x, y = mesh.out_x[i, 0], mesh.out_y[i, 0]
        normal = (w[i + 2, 2, 1] * x + w[i + 2, 2, 2] * y) ** 2 / (w[i + 2, 2, 0] * (x * x + y * y))
        excess = 0.5 * (p[i + 2, 2] - p[i + 2, 3]) - normal
        work.flux[i, 0, 1] -= excess * x
        work.flux[i, 0, 2] -= excess * y


@numba.njit(nogil=True, error_model="numpy")
def _convect(w: FloatArray, p: FloatArray, x: FloatArray, y: FloatArray, total: FloatArray) -> None:
    """Add the central fluxes out of each cell through its faces along the first axis."""
    n, m = total.shape[0], total.shape[1]
    for i in range(n + 1):
        for j in range(m):
            a, b = w[i + 1, j + 2], w[i + 2, j + 2]
            p_a, p_b = p[i + 1, j + 2], p[i + 2, j + 2]
            q_a = 0.5 * (a[1] * x[i, j] + a[2] * y[i, j]) / a[0]
            q_b = 0.5 * (b[1] * x[i, j] + b[2] * y[i, j]) / b[0]
            mean = 0.5 * (p_a + p_b)
            mass = a[0] * q_a + b[0] * q_b
            along_x = a[1] * q_a + b[1] * q_b + mean * x[i, j]
            along_y = a[2] * q_a + b[2] * q_b + mean * y[i, j]
            energy = (a[3] + p_a) * q_a + (b[3] + p_b) * q_b
            if i > 0:
                total[i - 1, j, 0] += mass
                total[i - 1, j, 1] += along_x
                total[i - 1, j, 2] += along_y
                total[i - 1, j, 3] += energy
            if i < n:
                total[i, j, 0] -= mass
                total[i, j, 1] -= along_x
                total[i, j, 2] -= along_y
                total[i, j, 3] -= energy


@numba.njit(nogil=True, error_model="numpy")
def _sum_damping(w: FloatArray, mesh: CMesh, work: _Work, share: float) -> None:
    """Add a share of the dissipation of each cell; none goes through the wall."""
    n, m = mesh.volume.shape
    is_open = np.ones(m, dtype=np.bool_)
    _damp(w, work.pressure, work.along, is_open, share, work.damping)
    is_open = np.ones(n, dtype=np.bool_)
    is_open[mesh.n_wake : n - mesh.n_wake] = False
    _damp(
        w.transpose(1, 0, 2),
        work.pressure.T,
        work.out.T,
        is_open,
        share,
        work.damping.transpose(1, 0, 2),
    )


@numba.njit(nogil=True, error_model="numpy")
def _damp(
    w: FloatArray,
    p: FloatArray,
    radius: FloatArray,
    is_open: BoolArray,
    share: float,
    total: FloatArray,
) -> None:
    """Add the dissipation along the first axis; ``is_open`` says of each first face."""
    n, m = total.shape[0], total.shape[1]
    for i in range(n + 1):
        for j in range(m):
            if i == 0 and not is_open[j]:
                continue
            k = j + 2
            low, a, b, high = p[i, k], p[i + 1, k], p[i + 2, k], p[i + 3, k]
            bend = max(
                abs(b - 2.0 * a + low) / (b + 2.0 * a + low),
                abs(high - 2.0 * b + a) / (high + 2.0 * b + a),
            )
            size = 0.5 * share * (radius[i + 1, k] + radius[i + 2, k])
            first = size * _FIRST * bend
            third = max(0.0, size * _THIRD - first)
            for c in range(4):
                d_0, d_1, d_2, d_3 = w[i, k, c], w[i + 1, k, c], w[i + 2, k, c], w[i + 3, k, c]
                if c == 3:
                    d_0, d_1, d_2, d_3 = d_0 + low, d_1 + a, d_2 + b, d_3 + high
                flux = first * (d_2 - d_1) - third * (d_3 - 3.0 * d_2 + 3.0 * d_1 - d_0)
                if i > 0:
                    total[i - 1, j, c] += flux
                if i < n:
                    total[i, j, c] -= flux


@numba.njit(nogil=True, error_model="numpy")
def _smooth(change: FloatArray) -> None:
    """Solve (1 - ε δ²) change' = change along the first axis, in place, with flat ends."""
    n, m = change.shape[0], change.shape[1]
    factor = np.empty(n)
    factor[0] = _SMOOTHING / (1.0 + _SMOOTHING)
    for i in range(1, n):
        ends = 1.0 if i == n - 1 else 2.0
        factor[i] = _SMOOTHING / (1.0 + ends * _SMOOTHING - _SMOOTHING * factor[i - 1])
    for j in range(m):
        for c in range(4):
            change[0, j, c] *= factor[0] / _SMOOTHING
    for i in range(1, n):
        for j in range(m):
            for c in range(4):
                change[i, j, c] = (
                    (change[i, j, c] + _SMOOTHING * change[i - 1, j, c]) * factor[i] / _SMOOTHING
                )
    for i in range(n - 2, -1, -1):
        for j in range(m):
            for c in range(4):
                change[i, j, c] += factor[i] * change[i + 1, j, c]

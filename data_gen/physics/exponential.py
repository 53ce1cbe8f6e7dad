"""Exponential time differencing for stiff systems whose linear part is diagonal.

y' = λ y + N(y, t), with the scheme ETDRK4 of Cox and Matthews (2002), of order four. Its
coefficients are differences of nearly equal numbers where λh is small; so they are computed as
means over a circle around λh, as Kassam and Trefethen (2005) showed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray

ORDER = 4
_CONTOUR = np.exp(1j * np.pi * (np.arange(32) + 0.5) / 32)  # the upper half: λ is real
State = npt.NDArray[Any]  # real or complex modes
Nonlinear = Callable[[State, float], State]


class Stepper(NamedTuple):
    """The coefficients of one step h: growth over h and h/2, and the weights of the stages."""

    h: float
    growth: FloatArray
    half_growth: FloatArray
    half: FloatArray
    first: FloatArray
    middle: FloatArray
    last: FloatArray

    @classmethod
    def of(cls, linear: FloatArray, h: float) -> "Stepper":
        """Return the coefficients for real λ and a step."""
        z = h * linear[..., None] + _CONTOUR
        e = np.exp(z)

        def mean(values: npt.NDArray[np.complex128]) -> FloatArray:
            return np.asarray(h * values.mean(-1).real)

        return cls(
            h,
            np.exp(h * linear),
            np.exp(0.5 * h * linear),
            half=mean((np.exp(0.5 * z) - 1.0) / z),
            first=mean((-4.0 - z + e * (4.0 - 3.0 * z + z**2)) / z**3),
            middle=mean((2.0 + z + e * (z - 2.0)) / z**3),
            last=mean((-4.0 - 3.0 * z - z**2 + e * (4.0 - z)) / z**3),
        )

    def advance(self, y: State, t: float, nonlinear: Nonlinear) -> State:
        """Return y one step later."""
        h, e2 = self.h, self.half_growth
        n0 = nonlinear(y, t)
        a = e2 * y + self.half * n0
        n1 = nonlinear(a, t + 0.5 * h)
        b = e2 * y + self.half * n1
        n2 = nonlinear(b, t + 0.5 * h)
        c = e2 * a + self.half * (2.0 * n2 - n0)
        n3 = nonlinear(c, t + h)
        sums = self.first * n0 + 2.0 * self.middle * (n1 + n2) + self.last * n3
        return np.asarray(self.growth * y + sums)


def solve(
    linear: FloatArray, nonlinear: Nonlinear, y: State, times: FloatArray, n_steps: int
) -> State:
    """Return y at equally spaced times, with ``n_steps`` steps from each to the next.

    ``y`` is the state at the first of them.
    """
    interval = float(times[1] - times[0])
    stepper = Stepper.of(linear, interval / n_steps)
    states = [y]
    for start in times[:-1]:
        for step in range(n_steps):
            y = stepper.advance(y, float(start) + step * stepper.h, nonlinear)
        states.append(y)
    return np.stack(states)


def estimated_error(fine: FloatArray, coarse: FloatArray) -> float:
    """Return the relative error of a solution, estimated from one with half the steps."""
    distance = float(np.linalg.norm(fine - coarse) / np.linalg.norm(fine))
    return distance / (2.0**ORDER - 1.0)

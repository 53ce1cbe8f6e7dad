"""Time stepping: theta schemes, their damped start, and the order each one declares."""

from dataclasses import dataclass

import numpy as np

from amo.arrays import FloatArray


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """What the kernel does, substep by substep.

    Attributes
    ----------
    lengths
        Length of each substep as a fraction of the time to expiry.
    ends
        Time to expiry reached by each substep, as the same fraction.
    implicitness
        Theta of each substep: 1 implicit Euler, ½ Crank–Nicolson.
    level
        The time level a substep completes, or -1 for a half step on the way.
    """

    lengths: FloatArray
    ends: FloatArray
    implicitness: FloatArray
    level: np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """A theta scheme (1 - θkL) V⁺ = (1 + (1 - θ)kL) V on time levels τ_n = T (n/N)^power.

    Attributes
    ----------
    implicitness
        θ of the undamped steps.
    n_damped
        How many of the first steps are replaced by two implicit half steps each (Rannacher): the
        kink of the payoff excites modes that Crank–Nicolson alone never damps.
    time_power
        1 for even steps, 2 for steps growing from expiry, where the exercise boundary of an
        American option moves like √τ.
    order
        Order in price when space and time steps are halved together, measured by a test.
    extrapolated_order
        Order after one Richardson extrapolation, for European options.
    """

    name: str
    implicitness: float
    n_damped: int
    time_power: float
    order: int
    extrapolated_order: int

    def plan(self, n_time: int) -> StepPlan:
        """Lay out the substeps of ``n_time`` time levels."""
        levels = (np.arange(n_time + 1) / n_time) ** self.time_power
        ends: list[float] = []
        implicitness: list[float] = []
        level: list[int] = []
        for n in range(1, n_time + 1):
            if n <= self.n_damped:
                ends.append(0.5 * float(levels[n - 1] + levels[n]))
                implicitness.append(1.0)
                level.append(-1)
            ends.append(float(levels[n]))
            implicitness.append(1.0 if n <= self.n_damped else self.implicitness)
            level.append(n)
        return StepPlan(
            lengths=np.diff(ends, prepend=0.0),
            ends=np.array(ends),
            implicitness=np.array(implicitness),
            level=np.array(level, dtype=np.int64),
        )


CRANK_NICOLSON = Scheme(
    name="Crank–Nicolson, Rannacher start",
    implicitness=0.5,
    n_damped=2,
    time_power=2.0,
    order=2,
    extrapolated_order=4,
)
CRANK_NICOLSON_EVEN = Scheme(
    name="Crank–Nicolson, Rannacher start, even steps",
    implicitness=0.5,
    n_damped=2,
    time_power=1.0,
    order=2,
    extrapolated_order=4,
)
CRANK_NICOLSON_UNDAMPED = Scheme(
    name="Crank–Nicolson, undamped, even steps",
    implicitness=0.5,
    n_damped=0,
    time_power=1.0,
    order=2,
    extrapolated_order=2,
)
IMPLICIT_EULER = Scheme(
    name="implicit Euler, even steps",
    implicitness=1.0,
    n_damped=0,
    time_power=1.0,
    order=1,
    extrapolated_order=2,
)
SCHEMES = (CRANK_NICOLSON, CRANK_NICOLSON_EVEN, CRANK_NICOLSON_UNDAMPED, IMPLICIT_EULER)

"""Zero curves: continuously compounded, forwards constant between nodes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numba
import numpy as np
import numpy.typing as npt

from amo.arrays import BoolArray, FloatArray, IntArray
from amo.errors import SettingsError

MAX_RATE = 10.0  # of |zero rate|: only keeps exp() finite


@dataclass(frozen=True)
class Curve:
    """Zero rates at nodes in time; ∫₀ᵗ f(u) du is linear between them, and so beyond the last.

    Attributes
    ----------
    times
        Years, rising and positive.
    rates
        Zero rates to those times: continuously compounded, per year, 0.05 is 5 %.
    """

    times: tuple[float, ...]
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.times or len(self.times) != len(self.rates):
            raise SettingsError(
                f"a curve needs as many rates as times, one at least; got {len(self.times)} times "
                f"and {len(self.rates)} rates"
            )
        times, rates = np.array(self.times), np.array(self.rates)
        if not (np.isfinite(times).all() and times[0] > 0 and (np.diff(times) > 0).all()):
            raise SettingsError(
                f"the times of a curve must be positive and rise; got {list(self.times)}"
            )
        if not (np.isfinite(rates).all() and (np.abs(rates) <= MAX_RATE).all()):
            raise SettingsError(
                f"the rates of a curve must lie in [-{MAX_RATE:g}, {MAX_RATE:g}], 0.05 meaning "
                f"5 %; got {list(self.rates)}"
            )

    @classmethod
    def of(cls, given: "float | Mapping[float, float] | Curve") -> Self:
        """Return a curve of one rate, of rates by time in years, or the curve itself."""
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            try:
                nodes = sorted((float(time), float(rate)) for time, rate in given.items())
            except (TypeError, ValueError):
                raise SettingsError(
                    f"a curve is a number, or a mapping of years to rates; got {given!r}"
                ) from None
            return cls(tuple(time for time, _ in nodes), tuple(rate for _, rate in nodes))
        try:
            return cls((1.0,), (float(given),))  # type: ignore[arg-type]  # whatever float() takes
        except (TypeError, ValueError) as error:
            if isinstance(error, SettingsError):
                raise
            raise SettingsError(
                f"a curve is a number, or a mapping of years to rates; got {given!r}"
            ) from None

    @property
    def is_flat(self) -> bool:
        """Whether all rates are the same."""
        return len(set(self.rates)) == 1

    def integral(self, time: npt.ArrayLike) -> FloatArray:
        """Return ∫₀ᵗ f(u) du, minus the logarithm of the discount factor; 0 at and before 0."""
        t = np.maximum(np.asarray(time, dtype=np.float64), 0.0)
        times = np.concatenate([[0.0], self.times])
        totals = np.concatenate([[0.0], np.array(self.rates) * self.times])
        inside = np.interp(t, times, totals)
        last = (totals[-1] - totals[-2]) / (times[-1] - times[-2])  # the last forward goes on
        return np.asarray(np.where(t > times[-1], totals[-1] + last * (t - times[-1]), inside))

    def zero_rate(self, time: npt.ArrayLike) -> FloatArray:
        """Return the zero rate to a time; at 0 that of the first node."""
        t = np.maximum(np.asarray(time, dtype=np.float64), 0.0)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(t > 0, self.integral(t) / t, self.rates[0]))

    def shifted(self, by: float) -> "Curve":
        """Return the curve with every zero rate moved."""
        return Curve(self.times, tuple(rate + by for rate in self.rates))

    def bumped(self, node: int, by: float) -> "Curve":
        """Return the curve with the zero rate of one node moved."""
        rates = list(self.rates)
        rates[node] += by
        return Curve(self.times, tuple(rates))

    def after(self, start: float) -> "Curve":
        """Return the curve as it will be at a later moment, if its forwards come true."""
        later = tuple(time for time in self.times if time > start) or (start + 1.0,)
        totals = self.integral(later) - self.integral(start)
        times = np.array(later) - start
        return Curve(tuple(times.tolist()), tuple((totals / times).tolist()))


@dataclass(frozen=True)
class Curves:
    """The curves of several markets as rectangles (markets, nodes), starting at time zero.

    Short curves are filled up by going on with their last forward, which changes nothing.
    """

    times: FloatArray
    totals: FloatArray  # the integrals up to those times

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> Self:
        """Stack curves."""
        width = max((len(curve.times) for curve in curves), default=1)
        times = np.zeros((len(curves), width + 1))
        totals = np.zeros_like(times)
        for number, curve in enumerate(curves):
            more = curve.times[-1] + np.arange(1, width - len(curve.times) + 1)
            times[number, 1:] = [*curve.times, *more]
            totals[number, 1:] = curve.integral(times[number, 1:])
        return cls(times, totals)

    @property
    def first(self) -> FloatArray:
        """The rate of each market at time zero, per year."""
        return np.asarray(self.totals[:, 1] / self.times[:, 1])

    @property
    def is_flat(self) -> BoolArray:
        """Which curves have one forward all along."""
        forwards = np.diff(self.totals, axis=1) / np.diff(self.times, axis=1)
        return np.asarray(np.ptp(forwards, axis=1) <= 1e-15 * (1.0 + np.abs(self.first)))

    def forward(self, time: FloatArray, number: IntArray) -> FloatArray:
        """Return the rate just after times (rows, ...), per year."""
        at = time.reshape(len(number), math.prod(time.shape[1:]), 1)
        place = np.sum(self.times[number][:, None, 1:-1] <= at, axis=2)
        forwards = np.diff(self.totals, axis=1) / np.diff(self.times, axis=1)
        return np.asarray(forwards[number[:, None], place].reshape(time.shape))

    def shifted(self, by: float) -> "Curves":
        """Return the curves with every zero rate moved."""
        return replace(self, totals=self.totals + by * self.times)

    def integral(self, time: FloatArray, number: IntArray) -> FloatArray:
        """Return ∫₀ᵗ f(u) du for times (rows, ...), each row by the curve of its number."""
        flat = np.ascontiguousarray(time, dtype=np.float64)
        flat = flat.reshape(len(number), math.prod(flat.shape[1:]))
        found = np.empty_like(flat)
        _integrals(self.times, self.totals, flat, number, found)
        return found.reshape(np.shape(time))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _integrals(
    times: FloatArray, totals: FloatArray, at: FloatArray, number: IntArray, found: FloatArray
) -> None:
    """Interpolate in a straight line; beyond the last node the last forward goes on."""
    last = times.shape[1] - 1
    for row in range(at.shape[0]):
        curve = number[row]
        for column in range(at.shape[1]):
            time = max(at[row, column], 0.0)
            node = 1
            while node < last and times[curve, node] < time:
                node += 1
            start, end = times[curve, node - 1], times[curve, node]
            slope = (totals[curve, node] - totals[curve, node - 1]) / (end - start)
            found[row, column] = totals[curve, node - 1] + slope * (time - start)

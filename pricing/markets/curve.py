"""Zero curves: continuously compounded, forwards constant between nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray
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

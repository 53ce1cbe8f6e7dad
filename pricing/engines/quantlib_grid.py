"""The engine "quantlib-fd": QuantLib's own finite differences, under markets a named referee.

QuantLib counts in whole days. Here the time to expiry is cut into 36,500 of them and the volatility
is scaled to match, so that ex-dates and curve nodes fall within half an hour of where they are for
an expiry in two years. Of two payments on a day QuantLib makes only the first: those that fall on
one are added up. Payments in proportion are refused, because its grid cannot make them. Its own
implied volatility forgets dividends and is never used.

Its error with cash dividends is about 2e-3 at a spot of 100 on the grid used here, and grows with
the number of payments: it interpolates in a straight line across each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import QuantLib as ql

from amo.arrays import BoolArray, FloatArray
from pricing.engines.base import Failures
from pricing.engines.quantlib import Method, QuantLibEngine, in_chunks
from pricing.markets.slices import Slices
from pricing.options import Options, Values
from pricing.progress import Advance

_DAYS = 36_500
_LAST = ql.Date.maxDate()
_FIRST = _LAST - _DAYS
_YEARS = _DAYS / 365  # in QuantLib's eyes
_CHUNK = 50
_RATE, _VOLATILITY, _SPOT = 1e-3, 5e-3, 1e-2  # bumps; the last two relative


@dataclass(frozen=True)
class QuantLibGridEngine(QuantLibEngine):
    """QuantLib's grid for both styles: 100 × 200 without dividends, ``steps`` under markets."""

    method: Method = "fd"
    steps: tuple[int, int] = (200, 400)
    takes_markets: Literal[True] = True

    def refusals(self, options: Options) -> list[tuple[BoolArray, str]]:
        """Refuse payments in proportion to the spot."""
        if options.slices is None:
            return []
        has_share = np.asarray((options.slices.proportion > 0).any(axis=1))
        reason = 'QuantLib\'s grid makes no payments in proportion to the spot: use engine="fd"'
        return [(has_share, reason)]

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        *,
        workers: int | None = None,
        progress: Advance = None,
    ) -> tuple[Values, Failures]:
        """Return quantities; under markets delta and gamma are the grid's, the rest is bumped."""
        if options.slices is None:
            return super().evaluate(options, quantities, workers=workers, progress=progress)
        task = partial(_evaluate_chunk, quantities=tuple(quantities), steps=self.steps)
        return in_chunks(task, options, quantities, _CHUNK, workers, progress)


def _evaluate_chunk(
    options: Options, quantities: tuple[str, ...], steps: tuple[int, int]
) -> tuple[Values, Failures]:
    values = {name: np.full(len(options), np.nan) for name in quantities}
    failures: Failures = {}
    for row in range(len(options)):
        option = options.take(slice(row, row + 1))
        if option.slices is None:
            raise TypeError("options without slices are priced by QuantLibEngine")
        try:
            found = _evaluate(option, option.slices, quantities, steps)
        except RuntimeError as error:
            failures[row] = f"QuantLib: {error}"
            continue
        for name in quantities:
            values[name][row] = found[name]
    return values, failures


def _evaluate(
    option: Options, slices: Slices, quantities: tuple[str, ...], steps: tuple[int, int]
) -> dict[str, float]:
    """Return quantities of one option: with the bumps that they need, and no others."""
    now = _solved(option, slices, steps)
    V, delta, gamma = now.NPV(), now.delta(), now.gamma()
    wanted = set(quantities)
    r, b = slices.rate_now.item(), slices.borrow_now.item()
    S, volatility = option.spot.item(), option.volatility.item()
    found = {
        "price": V,
        "delta": delta,
        "gamma": gamma,
        "theta": r * V - (r - b) * S * delta - 0.5 * (volatility * S) ** 2 * gamma,
    }

    def moved(column: str, by: float) -> tuple[ql.VanillaOption, ql.VanillaOption]:
        value = getattr(option, column)
        up, down = (option.with_values(**{column: value + k * by}) for k in (1, -1))
        return _solved(up, slices, steps), _solved(down, slices, steps)

    if wanted & {"vega", "vanna", "volga"}:
        h = _VOLATILITY * volatility
        up, down = moved("volatility", h)
        found["vega"] = (up.NPV() - down.NPV()) / (2 * h)
        found["vanna"] = (up.delta() - down.delta()) / (2 * h)
        found["volga"] = (up.NPV() - 2 * V + down.NPV()) / h**2
    if "charm" in wanted:
        h = _SPOT * S
        up, down = moved("spot", h)
        speed = (up.gamma() - down.gamma()) / (2 * h)
        drift = (r - b + volatility**2) * S * gamma
        found["charm"] = b * delta - drift - 0.5 * (volatility * S) ** 2 * speed
    for name, curve in (("rho", "rate"), ("dividend_rho", "borrow")):
        if name in wanted:
            up, down = (
                _solved(option, slices.shifted(**{curve: k * _RATE}), steps) for k in (1, -1)
            )
            found[name] = (up.NPV() - down.NPV()) / (2 * _RATE)
    return {name: found[name] for name in quantities}


def _solved(option: Options, slices: Slices, steps: tuple[int, int]) -> ql.VanillaOption:
    """Return QuantLib's option for one row under its market."""
    expiry = option.expiry.item()
    day_count = ql.Actual365Fixed()

    def curve(
        times: FloatArray, integral: Callable[[FloatArray], FloatArray]
    ) -> ql.YieldTermStructureHandle:
        inside = times[(times > 0) & (times < expiry)]
        days = sorted({_day(time, expiry) for time in inside.tolist()} - {0, _DAYS})
        at = np.array([0.0, *(day / _DAYS * expiry for day in days), expiry])
        factors = np.exp(-integral(at[None, :])[0])
        dates = [_FIRST, *(_FIRST + day for day in days), _LAST]
        return ql.YieldTermStructureHandle(ql.DiscountCurve(dates, factors.tolist(), day_count))

    number = slices.number.item()
    start = slices.start.item()
    deviation = option.volatility.item() * (expiry / _YEARS) ** 0.5
    process = ql.BlackScholesMertonProcess(
        ql.QuoteHandle(ql.SimpleQuote(option.spot.item())),
        curve(slices.borrows.times[number] - start, slices.borrow_integral),
        curve(slices.rates.times[number] - start, slices.rate_integral),
        ql.BlackVolTermStructureHandle(
            ql.BlackConstantVol(_FIRST, ql.NullCalendar(), deviation, day_count)
        ),
    )
    paid: dict[int, float] = {}
    for time, cash in zip(slices.time[0].tolist(), slices.cash[0].tolist(), strict=True):
        if cash > 0:
            day = _day(time, expiry)
            paid[day] = paid.get(day, 0.0) + cash
    dividends = ql.DividendVector([_FIRST + day for day in paid], list(paid.values()))
    exercise = (
        ql.AmericanExercise(_FIRST, _LAST)
        if option.is_american.item()
        else ql.EuropeanExercise(_LAST)
    )
    kind = ql.Option.Call if option.is_call.item() else ql.Option.Put
    solved = ql.VanillaOption(ql.PlainVanillaPayoff(kind, option.strike.item()), exercise)
    solved.setPricingEngine(ql.FdBlackScholesVanillaEngine(process, dividends, *steps))
    return solved


def _day(time: float, expiry: float) -> int:
    return min(max(round(time / expiry * _DAYS), 0), _DAYS)

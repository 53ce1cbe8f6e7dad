"""QuantLib: the third referee, and the only place that imports it.

Exact non-integer expiries
--------------------------
QuantLib's Python dates are whole days. All options expire on its last day, 31 December 2199, and
are valued one year (365 days, act/365) before; an option of expiry T is priced there with rate rT,
dividend yield qT and volatility σ√T, which is the same problem in another unit of time. Greeks
scale back: vega × √T, rho × T, theta ÷ T. Prices are taken per unit strike.

The evaluation date is a process-wide global of QuantLib and belongs to the user: it is not changed
here, and no price depends on it. Curves have a fixed reference date, and no date that QuantLib
knows is later than the last: the option is expired on that very day only, and the row then says so.

QuantLib's pricing calls hold the GIL: objects are made per call, never shared between threads, and
large books go to processes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import QuantLib as ql

from amo.arrays import BoolArray, FloatArray
from pricing import bounds
from pricing.engines.base import Failures
from pricing.options import Options, Values
from pricing.processes import in_processes
from pricing.progress import Advance

Method = Literal["fast", "accurate", "high-precision", "fd"]

_IN_A_YEAR = ql.Date.maxDate()
_TODAY = _IN_A_YEAR - 365

# Relative bumps of spot for delta, gamma and speed: the smoother the prices, the smaller. They
# shrink in proportion where σ√T is below 0.2, because that is the scale on which prices curve.
_SPOT_BUMP = {"fast": 1e-2, "accurate": 4e-3, "high-precision": 2e-3, "fd": 1e-2}
_RATE_BUMP = {"fast": 2e-4, "accurate": 2e-4, "high-precision": 2e-5, "fd": 1e-3}
_VOLATILITY_BUMP = 5e-3  # relative
_CHUNK = 500
# Time value per unit strike below which an American option counts as exercised: QdFp's own error.
_STOPPED = {"fast": 5e-6, "accurate": 1e-6, "high-precision": 2e-8, "fd": 1e-9}


@dataclass(frozen=True)
class QuantLibEngine:
    """European options by the analytic engine, American ones by QdFp or by QuantLib's own grid.

    Attributes
    ----------
    method
        Andersen–Lake–Offengenden's fixed-point engine with QuantLib's ``fast``, ``accurate`` or
        ``high-precision`` scheme, or ``fd``: QuantLib's finite differences, 100 × 200, for both
        exercise styles. QdFp gives no Greeks; they are bumped.
    """

    method: Method = "accurate"
    name: str = field(init=False)

    def __post_init__(self) -> None:
        suffix = "" if self.method == "accurate" else f"-{self.method}"
        object.__setattr__(self, "name", f"quantlib{suffix}")

    def refusals(self, options: Options) -> list[tuple[BoolArray, str]]:
        """Return the rows this engine does not take, with the reason and the way out."""
        if self.method == "fd":
            return []
        is_double = options.is_american & bounds.has_double_boundary(
            options.rate, options.dividend_yield, options.is_call
        )
        return [
            (
                is_double,
                (
                    f"{self.name} does not price Americans with two exercise boundaries (put: "
                    "dividend_yield < rate < 0; call: rate < dividend_yield < 0): use "
                    'engine="quantlib-fd"'
                ),
            )
        ]

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        *,
        workers: int | None = None,
        progress: Advance = None,
    ) -> tuple[Values, Failures]:
        """Return the named quantities of each option, and QuantLib's message where it fails.

        ``workers`` above one spreads the rows over that many processes where that is faster.
        """
        task = partial(_evaluate_chunk, method=self.method, quantities=tuple(quantities))
        return in_chunks(task, options, quantities, _CHUNK, workers, progress)


def in_chunks(
    task: Callable[[Options], tuple[Values, Failures]],
    options: Options,
    quantities: Sequence[str],
    size: int,
    workers: int | None,
    progress: Advance,
) -> tuple[Values, Failures]:
    """Evaluate options chunk by chunk, in processes where that is faster."""
    chunks = [options.take(slice(i, i + size)) for i in range(0, len(options), size)]
    values = {name: np.full(len(options), np.nan) for name in quantities}
    failures: Failures = {}
    start = 0
    for part, failed in in_processes(task, chunks, workers):
        stop = start + len(next(iter(part.values())))
        for name in quantities:
            values[name][start:stop] = part[name]
        failures.update({start + row: text for row, text in failed.items()})
        if progress is not None:
            progress(stop - start)
        start = stop
    return values, failures


class _Pricer:
    """QuantLib objects made once and re-used by moving their quotes; unit strike, unit expiry."""

    def __init__(self, method: Method) -> None:
        self.method = method
        day_count, calendar = ql.Actual365Fixed(), ql.NullCalendar()
        self.spot, self.rate, self.dividend_yield, self.deviation = (
            ql.SimpleQuote(x) for x in (1.0, 0.0, 0.0, 0.2)
        )

        def curve(quote: ql.SimpleQuote) -> ql.YieldTermStructureHandle:
            return ql.YieldTermStructureHandle(
                ql.FlatForward(_TODAY, ql.QuoteHandle(quote), day_count)
            )

        volatility = ql.BlackConstantVol(
            _TODAY, calendar, ql.QuoteHandle(self.deviation), day_count
        )
        process = ql.BlackScholesMertonProcess(
            ql.QuoteHandle(self.spot),
            curve(self.dividend_yield),
            curve(self.rate),
            ql.BlackVolTermStructureHandle(volatility),
        )
        grid = ql.FdBlackScholesVanillaEngine(process, 100, 200)
        analytic = grid if method == "fd" else ql.AnalyticEuropeanEngine(process)
        schemes = {
            "fast": ql.QdFpAmericanEngine.fastScheme,
            "accurate": ql.QdFpAmericanEngine.accurateScheme,
            "high-precision": ql.QdFpAmericanEngine.highPrecisionScheme,
        }
        american = grid if method == "fd" else ql.QdFpAmericanEngine(process, schemes[method]())
        self.options = {}
        for is_call in (False, True):
            payoff = ql.PlainVanillaPayoff(ql.Option.Call if is_call else ql.Option.Put, 1.0)
            for is_american in (False, True):
                exercise = (
                    ql.AmericanExercise(_TODAY, _IN_A_YEAR)
                    if is_american
                    else ql.EuropeanExercise(_IN_A_YEAR)
                )
                option = ql.VanillaOption(payoff, exercise)
                option.setPricingEngine(american if is_american else analytic)
                self.options[is_call, is_american] = option

    def set(
        self, spot: float, expiry: float, rate: float, dividend_yield: float, volatility: float
    ) -> None:
        self.spot.setValue(spot)
        self.rate.setValue(rate * expiry)
        self.dividend_yield.setValue(dividend_yield * expiry)
        self.deviation.setValue(volatility * expiry**0.5)


@dataclass(frozen=True)
class _Contract:
    """One option per unit strike and the pricer it is priced with."""

    pricer: _Pricer
    option: ql.VanillaOption
    spot: float
    expiry: float
    rate: float
    dividend_yield: float
    volatility: float
    sign: float

    def at(
        self,
        *,
        spot: float = 0.0,
        rate: float = 0.0,
        dividend_yield: float = 0.0,
        volatility: float = 0.0,
    ) -> ql.VanillaOption:
        """Return the option with the market moved by the given amounts."""
        self.pricer.set(
            self.spot + spot,
            self.expiry,
            self.rate + rate,
            self.dividend_yield + dividend_yield,
            self.volatility + volatility,
        )
        if self.option.isExpired():
            raise RuntimeError(
                f"nothing expires after its evaluation date {_IN_A_YEAR.ISO()}: set an earlier one"
            )
        return self.option


def _evaluate_chunk(
    options: Options, method: Method, quantities: tuple[str, ...]
) -> tuple[dict[str, FloatArray], dict[int, str]]:
    pricer = _Pricer(method)
    values = {name: np.full(len(options), np.nan) for name in quantities}
    failures: dict[int, str] = {}
    columns = (
        options.spot / options.strike,
        options.expiry,
        options.rate,
        options.dividend_yield,
        options.volatility,
        options.strike,
        options.is_call,
        options.is_american,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row, (spot, expiry, rate, dividend, volatility, strike, is_call, is_american) in enumerate(
        rows
    ):
        contract = _Contract(
            pricer,
            pricer.options[is_call, is_american],
            spot,
            expiry,
            rate,
            dividend,
            volatility,
            1.0 if is_call else -1.0,
        )
        is_analytic = not is_american and method != "fd"
        try:
            found = (_analytic if is_analytic else _bumped)(contract, set(quantities))
        except RuntimeError as error:
            failures[row] = f"QuantLib: {error}"
            continue
        for name in quantities:
            scale = {"gamma": 1.0 / strike, "delta": 1.0, "vanna": 1.0, "charm": 1.0}
            values[name][row] = found[name] * scale.get(name, strike)
    return values, failures


def _analytic(contract: _Contract, wanted: set[str]) -> dict[str, float]:
    """QuantLib's own Greeks; the mixed ones by bumping those."""
    T, root = contract.expiry, contract.expiry**0.5
    option = contract.at()
    found = {"price": option.NPV()}
    if wanted <= {"price"}:
        return found
    found |= {
        "delta": option.delta(),
        "gamma": option.gamma(),
        "vega": option.vega() * root,
        "theta": option.theta() / T,
        "rho": option.rho() * T,
        "dividend_rho": option.dividendRho() * T,
    }
    if wanted & {"vanna", "volga", "charm"}:
        v, h = 1e-4 * contract.volatility, 1e-4 * contract.spot
        up = contract.at(volatility=v)
        delta_up, vega_up = up.delta(), up.vega()
        down = contract.at(volatility=-v)
        found["vanna"] = (delta_up - down.delta()) / (2 * v)
        found["volga"] = (vega_up - down.vega()) * root / (2 * v)
        theta_up = contract.at(spot=h).theta()
        found["charm"] = (theta_up - contract.at(spot=-h).theta()) / (2 * h * T)
    return found


def _bumped(contract: _Contract, wanted: set[str]) -> dict[str, float]:
    """Price, and Greeks by central differences; theta and charm from the equation."""
    V = contract.at().NPV()
    found = {"price": V}
    if wanted <= {"price"}:
        return found
    payoff = contract.sign * (contract.spot - 1.0)
    is_american = contract.option.exercise().type() == ql.Exercise.American
    never = bounds.never_exercised_early(
        np.array(contract.rate), np.array(contract.dividend_yield), contract.sign > 0
    ).item()
    time_value = V - payoff
    is_stopped = is_american and not never and time_value < _STOPPED[contract.pricer.method]
    if is_stopped and contract.pricer.method != "high-precision":
        return dict.fromkeys(wanted, 0.0) | {"price": max(V, payoff), "delta": contract.sign}
    S, r, q = contract.spot, contract.rate, contract.dividend_yield
    variance = contract.volatility**2
    h = _SPOT_BUMP[contract.pricer.method] * S * min(1.0, 5.0 * (variance * contract.expiry) ** 0.5)
    up, down = contract.at(spot=h).NPV(), contract.at(spot=-h).NPV()
    delta, gamma = (up - down) / (2 * h), (up - 2 * V + down) / h**2
    found |= {
        "delta": delta,
        "gamma": gamma,
        "theta": r * V - (r - q) * S * delta - 0.5 * variance * S**2 * gamma,
    }
    v = _VOLATILITY_BUMP * contract.volatility
    if wanted & {"vega", "volga"}:
        above, below = contract.at(volatility=v).NPV(), contract.at(volatility=-v).NPV()
        found["vega"] = (above - below) / (2 * v)
        found["volga"] = (above - 2 * V + below) / v**2
    if "vanna" in wanted:
        corners = [
            sign * contract.at(spot=a * h, volatility=a * sign * v).NPV()
            for a in (1, -1)
            for sign in (1, -1)
        ]
        found["vanna"] = sum(corners) / (4 * h * v)
    if "charm" in wanted:
        speed = contract.at(spot=2 * h).NPV() - contract.at(spot=-2 * h).NPV() - 2 * (up - down)
        speed /= 2 * h**3
        found["charm"] = q * delta - (r - q + variance) * S * gamma - 0.5 * variance * S**2 * speed
    if "rho" in wanted:
        found["rho"] = _slope(contract, "rate")
    if "dividend_rho" in wanted:
        found["dividend_rho"] = _slope(contract, "dividend_yield")
    if is_stopped:  # the equation does not hold there; bumps of precise prices are valid
        found |= {"theta": 0.0, "charm": 0.0}
    return found


def _slope(contract: _Contract, name: Literal["rate", "dividend_yield"]) -> float:
    """Central difference in a rate; one-sided where the other bump would leave QdFp's range."""
    bump = _RATE_BUMP[contract.pricer.method]

    def is_taken(by: float) -> bool:
        moved = {"rate": contract.rate, "dividend_yield": contract.dividend_yield}
        moved[name] += by
        rate, dividend_yield = np.array(moved["rate"]), np.array(moved["dividend_yield"])
        return not bounds.has_double_boundary(rate, dividend_yield, contract.sign > 0).item()

    up, down = bump * is_taken(bump), bump * is_taken(-bump)
    rise = contract.at(**{name: up}).NPV() - contract.at(**{name: -down}).NPV()
    return float(rise / (up + down))

"""Engines: what prices a list of options, and one Protocol for all of them.

:mod:`pricing.registry` finds them by name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from pricing import black_scholes, fd, limits
from pricing.contracts import BoolArray, FloatArray, Options

FIRST_GREEKS = ("delta", "gamma", "vega", "theta", "rho")
SECOND_GREEKS = ("dividend_rho", "vanna", "volga", "charm")
QUANTITIES = ("price", *FIRST_GREEKS, *SECOND_GREEKS)

# What one unit of a Greek becomes in market units: per day, per 1 % of volatility or rate.
MARKET_UNITS: Mapping[str, float] = {
    "vega": 1e-2,
    "theta": 1 / 365,
    "rho": 1e-2,
    "dividend_rho": 1e-2,
    "vanna": 1e-2,
    "volga": 1e-4,
    "charm": 1 / 365,
}

Values = dict[str, FloatArray]
Failures = dict[int, str]
_CHUNK = 1 << 14  # rows whose temporaries stay in cache


class Engine(Protocol):
    """Prices options, or says beforehand which rows it does not take.

    :func:`evaluate` serves expired options, so an engine only sees positive expiries. An engine
    has no state that a call changes: any thread may call it.
    """

    @property
    def name(self) -> str:
        """The name under which results are reported."""

    def refusals(self, options: Options) -> list[tuple[BoolArray, str]]:
        """Return masks of rows the engine does not take, each with reason and way out."""

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        *,
        workers: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[Values, Failures]:
        """Return an array per quantity, and a reason for each row that could not be priced."""


@runtime_checkable
class BoundedEngine(Engine, Protocol):
    """An engine that knows a part of the world only, and how wrong it is there.

    It refuses what lies outside: :mod:`pricing.batch` gives such rows to
    :func:`pricing.registry.fallbacks`.
    """

    def inside(self, options: Options) -> BoolArray:
        """Return which rows it knows."""

    def price_error(self, options: Options) -> FloatArray:
        """Return the price error that 99 of 100 rows like these stay below."""

    def implied_volatility(
        self,
        options: Options,
        price: FloatArray,
        *,
        workers: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[FloatArray, Failures]:
        """Return the volatility that gives each price, NaN where it knows none, and failures."""


@dataclass(frozen=True)
class AnalyticEngine:
    """The closed form; European only."""

    name: str = "analytic"

    def refusals(self, options: Options) -> list[tuple[BoolArray, str]]:
        """Refuse Americans: there is no formula."""
        return [
            (
                options.is_american,
                (
                    "the analytic engine prices European options only: for American ones use "
                    'engine="fd" or engine="quantlib"'
                ),
            )
        ]

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        *,
        workers: int | None = None,  # noqa: ARG002  # one thread outruns the memory bus
        progress: Callable[[int], None] | None = None,
    ) -> tuple[Values, Failures]:
        """Return the closed form, in slices that stay in cache."""
        values = {name: np.empty(len(options)) for name in quantities}
        for start in range(0, len(options), _CHUNK):
            rows = slice(start, start + _CHUNK)
            part = _closed_form(options.take(rows), quantities)
            for name in quantities:
                values[name][rows] = part[name]
            if progress is not None:
                progress(min(_CHUNK, len(options) - start))
        return values, {}


@dataclass(frozen=True)
class FDEngine:
    """Our finite differences; both exercise styles, with an error estimate at three levels."""

    name: str = "fd"
    settings: fd.FDSettings = fd.ACCURATE

    def refusals(self, options: Options) -> list[tuple[BoolArray, str]]:
        """Refuse what the grid does not resolve; see :func:`pricing.fd.refusals`."""
        return fd.refusals(options)

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        *,
        workers: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[Values, Failures]:
        """Solve every option on its own grids."""
        values = fd.evaluate(options, quantities, self.settings, workers=workers, progress=progress)
        answers = [value for name, value in values.items() if name != "price_error"]
        lost = np.flatnonzero(~np.isfinite(answers).all(axis=0))
        return values, {int(row): f"{self.name} found no finite answer" for row in lost}


def evaluate(
    engine: Engine,
    options: Options,
    quantities: Sequence[str],
    *,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Values, Failures]:
    """Evaluate options of any expiry: expired ones by their limits, the others by the engine.

    What an engine gives outside of the bounds of :mod:`pricing.limits`, or an American below its
    European, is moved to the bound: a numerical error of that size is known to be one.

    At expiry a price is intrinsic and Greeks are the limits as time runs out, at the strike the
    mean of both sides. An American's theta there is never positive: whoever would gain by waiting
    for the strike's interest exercises instead.
    """
    is_live = options.expiry > 0
    if is_live.all():
        values, failures = engine.evaluate(options, quantities, workers=workers, progress=progress)
        return _bounded(engine, options, values), failures
    live_options = options.take(is_live)
    live, failures = engine.evaluate(live_options, quantities, workers=workers, progress=progress)
    live = _bounded(engine, live_options, live)
    expired_options = options.take(~is_live)
    expired = _closed_form(expired_options, [name for name in quantities if name in QUANTITIES])
    if "theta" in expired:
        theta = expired["theta"]
        expired["theta"] = np.where(expired_options.is_american, np.minimum(theta, 0.0), theta)
    values = {}
    for name in quantities:
        values[name] = np.empty(len(options))
        values[name][is_live] = live[name]
        values[name][~is_live] = expired.get(name, 0.0)
    positions = np.flatnonzero(is_live)
    return values, {int(positions[row]): text for row, text in failures.items()}


def _bounded(engine: Engine, options: Options, values: Values) -> Values:
    if isinstance(engine, AnalyticEngine):  # the formula keeps them by itself
        return values
    projected = limits.project(options, values)
    early = np.flatnonzero(options.is_american) if "price" in values else np.empty(0, np.intp)
    if len(early):
        european = _closed_form(options.take(early), ("price",))["price"]
        price = projected["price"]
        price[early] = np.where(np.isnan(price[early]), np.nan, np.maximum(price[early], european))
    return projected


def _closed_form(options: Options, quantities: Sequence[str]) -> Values:
    return black_scholes.evaluate(*options.terms, quantities)

"""What an engine is, what else it may be able to do, and the one way to call it.

:class:`Engine` is all that is needed to price a book. Everything else that some engines can do is
a separate protocol, so that a third-party engine can have any of them:

:class:`KnowsDomain`
    The rows it refuses lie outside its domain, and other engines may price them instead.
:class:`StatesError`
    It gives the quantity ``price_error``.
:class:`Inverts`
    It finds implied volatilities by itself.
:class:`HasBoundary`
    It knows where American options are exercised.
:class:`KeepsBounds`
    Its numbers need no projection into their bounds.
:class:`TakesMarkets`
    It prices under curves and dividends.
:class:`HasSurface`
    It gives values at many spots and moments of a contract in one go.

:mod:`pricing.engines.registry` finds engines by name.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from amo.arrays import BoolArray, FloatArray
from pricing import black_scholes, bounds
from pricing.markets.slices import Slices
from pricing.options import Options, Values
from pricing.progress import Advance
from pricing.slopes import Slopes

FIVE_GREEKS = ("delta", "gamma", "vega", "theta", "rho")
MORE_GREEKS = ("dividend_rho", "vanna", "volga", "charm")
QUANTITIES = ("price", *FIVE_GREEKS, *MORE_GREEKS)

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

Failures = dict[int, str]
Refusals = list[tuple[BoolArray, str]]


class Engine(Protocol):
    """Prices options, and says beforehand which rows it does not take.

    :func:`evaluate` serves expired options and keeps refused rows away, so an engine only sees
    what it takes. No call changes an engine: any thread may use it.
    """

    @property
    def name(self) -> str:
        """The name under which results are reported."""

    def refusals(self, options: Options) -> Refusals:
        """Return masks of rows the engine does not take, each with reason and way out."""

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        *,
        workers: int | None = None,
        progress: Advance = None,
    ) -> tuple[Values, Failures]:
        """Return an array for each quantity, and a reason for each row that was not priced."""


@runtime_checkable
class KnowsDomain(Protocol):
    """Prices a limited domain only: other engines may price the rows that it refuses."""

    def inside(self, options: Options) -> BoolArray:
        """Return which rows lie in its domain."""


@runtime_checkable
class StatesError(Protocol):
    """Gives ``price_error`` among its quantities: how far its price may be from the true one."""

    @property
    def stated_error(self) -> str:
        """What the error means, in words."""


@runtime_checkable
class Inverts(Protocol):
    """Finds implied volatilities by itself, faster than by a search over its prices."""

    def implied_volatility(
        self,
        options: Options,
        price: FloatArray,
        *,
        workers: int | None = None,
        progress: Advance = None,
    ) -> tuple[FloatArray, Failures]:
        """Return the volatility that gives each price, NaN where it knows none, and failures."""


@runtime_checkable
class HasBoundary(Protocol):
    """Knows the spot at which an American option is exercised."""

    def exercise_boundary(self, options: Options) -> FloatArray:
        """Return that spot for each row, NaN where there is none or it is not known."""


@runtime_checkable
class KeepsBounds(Protocol):
    """Keeps the bounds of :mod:`pricing.bounds` by itself, as an exact formula does."""

    @property
    def keeps_bounds(self) -> Literal[True]:
        """Always true."""


@runtime_checkable
class TakesMarkets(Protocol):
    """Prices options with ``slices``: under curves, and dividends in cash or in proportion."""

    @property
    def takes_markets(self) -> Literal[True]:
        """Always true."""


@runtime_checkable
class HasSurface(Protocol):
    """Gives V(S, t) of a contract at many spots and moments faster than point by point."""

    @property
    def surface_quantities(self) -> Sequence[str]:
        """What it gives so; the rest is asked point by point."""

    def surface(
        self,
        options: Options,
        spot: FloatArray,
        time: FloatArray,
        quantities: Sequence[str],
        *,
        workers: int | None = None,
        progress: Advance = None,
    ) -> Values:
        """Return quantities (contracts, moments, spots) of contracts that it does not refuse.

        ``spot`` is (contracts, spots), ``time`` (contracts, moments) in years from now, not after
        the expiry of each.
        """


@runtime_checkable
class HasSlopes(Protocol):
    """Differentiates a book's value in all numbers of its markets at once."""

    def slopes(
        self, options: Options, weight: FloatArray, workers: int | None = None
    ) -> tuple[BoolArray, Slopes | None]:
        """Return for which rows it does, and the slopes of Σ weight × price over these."""


def refused(engine: Engine, options: Options) -> Refusals:
    """Ask an engine which rows it does not take; it never sees expired ones."""
    is_live = options.expiry > 0
    if options.slices is not None and not isinstance(engine, TakesMarkets) and is_live.any():
        reason = (
            f'engine "{engine.name}" does not price under markets: use engine="amo", "fd" or '
            '"fd-fast", engine="quantlib-fd", or engine="analytic" for European options'
        )
        return [(is_live, reason)]
    return [
        (mask & is_live, reason)
        for mask, reason in engine.refusals(options)
        if (mask & is_live).any()
    ]


def evaluate(
    engine: Engine,
    options: Options,
    quantities: Sequence[str],
    *,
    refusals: Refusals | None = None,
    workers: int | None = None,
    progress: Advance = None,
) -> tuple[Values, Failures]:
    """Evaluate options of any expiry: expired ones by their limits, the others by the engine.

    Rows that the engine refuses are failures with its reason, never numbers. A caller that has
    already called :func:`refused` passes the result as ``refusals``. A value outside the bounds of
    :mod:`pricing.bounds`, or an American price below the European one, is certainly a numerical
    error and is moved to the bound.

    At expiry the price is intrinsic and the Greeks are the limits as time runs out, at the strike
    the mean of both sides. Theta of an American option there is never positive: instead of waiting
    for the strike's interest, the holder exercises.
    """
    refusals = refused(engine, options) if refusals is None else refusals
    failures: Failures = {}
    is_asked = options.expiry > 0
    for mask, reason in refusals:
        failures.update(dict.fromkeys(np.flatnonzero(mask).tolist(), reason))
        is_asked &= ~mask
    if is_asked.all():
        values, failures = engine.evaluate(options, quantities, workers=workers, progress=progress)
        return bounded(engine, options, values), failures
    values = {name: np.full(len(options), np.nan) for name in quantities}
    rows = np.flatnonzero(is_asked)
    if len(rows):
        asked = options.take(rows)
        found, failed = engine.evaluate(asked, quantities, workers=workers, progress=progress)
        failures.update({int(rows[row]): reason for row, reason in failed.items()})
        for name, column in bounded(engine, asked, found).items():
            values[name][rows] = column
    rows = np.flatnonzero(options.expiry <= 0)
    for name, column in _expired(options.take(rows), quantities).items():
        values[name][rows] = column
    return values, failures


def _expired(options: Options, quantities: Sequence[str]) -> Values:
    if options.slices is not None and options.slices.n_payments.any():
        options = _after_payments(options, options.slices)
    values = closed_form(options, [name for name in quantities if name in QUANTITIES])
    if "theta" in values:
        early = np.minimum(values["theta"], 0.0)
        values["theta"] = np.where(options.is_american, early, values["theta"])
    return {name: values.get(name, np.zeros(len(options))) for name in quantities}


def _after_payments(options: Options, slices: Slices) -> Options:
    """Return options at expiry with the spot after what is paid then.

    An American one is exercised before, if that is better.
    """
    spot = options.spot
    for cash, proportion in zip(slices.cash.T, slices.proportion.T, strict=True):
        spot = np.maximum((1.0 - proportion) * spot - cash, 0.0)
    spot = np.maximum(spot, 1e-12 * options.strike)  # its logarithm is taken
    now, then = (bounds.intrinsic(s, options.strike, options.is_call) for s in (options.spot, spot))
    return options.with_values(
        spot=np.where(options.is_american & (now >= then), options.spot, spot)
    )


def bounded(engine: Engine, options: Options, values: Values) -> Values:
    """Move values that are certainly wrong to their bounds."""
    if isinstance(engine, KeepsBounds):
        return values
    if options.slices is not None:
        return bounds.project_under_market(options, values)
    projected = bounds.project(options, values)
    early = np.flatnonzero(options.is_american) if "price" in values else np.empty(0, np.intp)
    if len(early):
        european = closed_form(options.take(early), ("price",))["price"]
        price = projected["price"]
        price[early] = np.where(np.isnan(price[early]), np.nan, np.maximum(price[early], european))
    return projected


def closed_form(options: Options, quantities: Sequence[str]) -> Values:
    """Return Black–Scholes values, whatever the exercise style."""
    return black_scholes.evaluate(*options.terms, quantities)

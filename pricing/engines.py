"""Engines: what prices a list of options, one Protocol for all of them, found by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from pricing import black_scholes, fd
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

    It refuses what lies outside: :mod:`pricing.batch` gives such rows to :func:`fallbacks`.
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
        progress: Callable[[int], None] | None = None,
    ) -> FloatArray:
        """Return the volatility that gives each price, NaN where it knows none."""


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


def _quantlib(method: str) -> Engine:
    from pricing.quantlib_engine import QuantLibEngine  # noqa: PLC0415  # slow to import

    return QuantLibEngine(method)  # type: ignore[arg-type]  # names below are its methods


def _surrogate() -> Engine:
    from pricing.amo_engine import SurrogateEngine  # noqa: PLC0415  # torch is slow to import

    return SurrogateEngine.load()


ENGINES: Mapping[str, Callable[[], Engine]] = {
    "amo": _surrogate,
    "analytic": AnalyticEngine,
    "fd": FDEngine,
    "fd-fast": lambda: FDEngine("fd-fast", fd.FAST),
    "quantlib": lambda: _quantlib("accurate"),
    "quantlib-fast": lambda: _quantlib("fast"),
    "quantlib-high-precision": lambda: _quantlib("high-precision"),
    "quantlib-fd": lambda: _quantlib("fd"),
}


def get_engine(engine: str | Engine) -> Engine:
    """Return the engine of that name, or the engine itself."""
    if not isinstance(engine, str):
        return engine
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; there are: {', '.join(ENGINES)}")
    return ENGINES[engine]()


def fallbacks(options: Options) -> list[tuple[Engine, BoolArray]]:
    """Return who prices rows that a bounded engine does not know: formula, or QuantLib."""
    return [
        (AnalyticEngine(), ~options.is_american),
        (get_engine("quantlib"), options.is_american),
    ]


def evaluate(
    engine: Engine,
    options: Options,
    quantities: Sequence[str],
    *,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Values, Failures]:
    """Evaluate options of any expiry: expired ones by their limits, the others by the engine.

    At expiry a price is intrinsic and Greeks are the limits as time runs out, at the strike the
    mean of both sides. An American's theta there is never positive: whoever would gain by waiting
    for the strike's interest exercises instead.
    """
    is_live = options.expiry > 0
    if is_live.all():
        return engine.evaluate(options, quantities, workers=workers, progress=progress)
    live, failures = engine.evaluate(
        options.take(is_live), quantities, workers=workers, progress=progress
    )
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


def _closed_form(options: Options, quantities: Sequence[str]) -> Values:
    return black_scholes.evaluate(*options.terms, quantities)

"""Books in, books out: the DataFrame functions of the library."""

import datetime as dt
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from amo.arrays import FloatArray, IntArray
from amo.errors import SettingsError
from pricing.books import read_book
from pricing.columns import (
    BadRows,
    Errors,
    OptionFrameError,
    error_texts,
    good_rows,
)
from pricing.engines import registry
from pricing.engines.base import (
    FIVE_GREEKS,
    MARKET_UNITS,
    MORE_GREEKS,
    QUANTITIES,
    Engine,
    Inverts,
    KnowsDomain,
    StatesError,
    closed_form,
    evaluate,
)
from pricing.implied_vol import implied_volatility
from pricing.markets.clock import CLOSE
from pricing.markets.market import Market
from pricing.options import Exercise, Options
from pricing.progress import Progress, progress_bar
from pricing.reading import read_numbers
from pricing.routing import OutOfDomain, engine_column, follow, in_place, send

Greeks = bool | Literal["second"] | Sequence[str]


def price_frame(
    frame: pd.DataFrame,
    engine: str | Engine = "quantlib",
    *,
    greeks: Greeks = True,
    units: Literal["natural", "market"] = "natural",
    error_bars: bool = False,
    out_of_domain: OutOfDomain = "fallback",
    errors: Errors = "raise",
    exercise: Exercise | None = None,
    columns: Mapping[str, Hashable] | None = None,
    markets: Mapping[str, Market] | None = None,
    as_of: str | dt.date | None = None,
    expiry_time: dt.time = CLOSE,
    assumed: list[str] | None = None,
    workers: int | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """Price a book.

    Parameters
    ----------
    frame
        One option per row; columns and units in :mod:`pricing.columns`. It is not changed.
    engine
        A name of :data:`pricing.ENGINES`, or an engine.
    greeks
        True: delta, gamma, vega, theta, rho. "second": also dividend_rho, vanna, volga, charm.
        False: none. Or the names wanted.
    units
        "natural": theta and charm per year, vega, rho and the like per 1.00. "market": per day,
        and per 1 % of volatility or rate.
    error_bars
        Also ``price_error``, the error that the engine states. "fd": an estimate for this very
        row. "amo": what at least 99 of 100 contracts like this one stay below, as measured; NaN
        where another engine priced the row.
    out_of_domain
        Rows that engine "amo" was not trained for: "fallback" prices them by the closed form
        (European), QuantLib or, under markets, "fd-fast" (American); "nan" leaves them empty,
        "raise" treats them as bad rows.
    errors
        "raise": one bad row raises :class:`OptionFrameError`, which lists them all. "coerce":
        bad rows get NaN and their reason in column ``error``.
    exercise
        "european" or "american": the style of a frame that has no such column. Without either,
        rows are taken as European, with an :class:`AssumptionWarning`.
    columns
        Where the frame's names differ: ``{"spot": "Px_Last"}``.
    markets
        ``{"AAPL": Market(…)}``: curves and dividends by underlying. The column ``underlying``
        picks the market of a row; spot, rate and dividend_yield are then not needed (a spot column
        overrides the market's), and expiries may be dates. Engines "fd", "fd-fast", "quantlib-fd",
        for European options "analytic" and for American ones "amo" price under markets.
    as_of
        The moment at which the book is seen, where no market says: expiries may then be dates.
    expiry_time
        When a date of expiry ends, in New York.
    assumed
        What was assumed is added to this list; without one it is warned of.
    workers
        Threads (amo, fd; by default one per core) or processes (quantlib; by default one; for more,
        guard your script with ``if __name__ == "__main__"``). The numbers do not depend on it.
    progress
        True or False: whether to show a bar after a second of work; by default only on a terminal.
        Or a function, called with the number of rows done and the total.

    Returns
    -------
    DataFrame
        The frame's own columns, index and order, plus ``price``, the Greeks and ``engine``, the
        name of the one that priced the row; with engine "amo" also ``in_domain``. Prices and
        Greeks keep the bounds of :mod:`pricing.bounds`.
    """
    chosen = registry.get_engine(engine)
    knows_domain = isinstance(chosen, KnowsDomain)
    quantities = ("price", *greek_names(greeks), *(["price_error"] * error_bars))
    if error_bars and not isinstance(chosen, StatesError):
        raise SettingsError(f'engine "{chosen.name}" states no error; engines "amo" and "fd" do')
    added = [*quantities, *(["in_domain"] * knows_domain), "engine"]
    _check_request(frame, [*added, *(["error"] * (errors == "coerce"))], errors, units)
    _check_choice("out_of_domain", out_of_domain, get_args(OutOfDomain))
    check_workers(workers)
    options, problems = read_book(
        frame, columns, exercise=exercise, markets=markets, as_of=as_of, expiry_time=expiry_time,
        assumed=assumed,
    )  # fmt: skip
    routes, refused = send(chosen, options, good_rows(len(frame), problems), out_of_domain)
    problems += refused
    _raise_if_wanted(problems, errors, frame)
    with progress_bar(progress, sum(len(route.rows) for route in routes), "pricing") as advance:
        values, failed = follow(routes, options, quantities, workers, advance)
    problems += failed
    _raise_if_wanted(problems, errors, frame)
    result = frame.copy(deep=False)
    for name in quantities:
        result[name] = values[name] * (MARKET_UNITS.get(name, 1.0) if units == "market" else 1.0)
    if knows_domain:
        result["in_domain"] = np.isin(np.arange(len(frame)), routes[0].rows)
    result["engine"] = engine_column(routes, good_rows(len(frame), problems))
    if errors == "coerce":
        result["error"] = error_texts(len(frame), problems)
    return result


def implied_vol_frame(
    frame: pd.DataFrame,
    price_column: Hashable = "price",
    engine: str | Engine = "quantlib",
    *,
    error_bars: bool = False,
    out_of_domain: Literal["fallback", "nan"] = "fallback",
    errors: Errors = "raise",
    exercise: Exercise | None = None,
    columns: Mapping[str, Hashable] | None = None,
    markets: Mapping[str, Market] | None = None,
    as_of: str | dt.date | None = None,
    expiry_time: dt.time = CLOSE,
    assumed: list[str] | None = None,
    workers: int | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """Invert quotes to volatilities.

    Takes the frame of :func:`price_frame` with a column of quotes; ``volatility`` is not needed.
    Adds ``implied_volatility``, ``engine`` and ``error``: a quote without a volatility gets
    NaN and the reason, never an exception; ``errors`` concerns unreadable rows only. European
    options are inverted by the closed form, American ones, and all under markets, with the engine's
    prices; engine "amo" inverts both where it was trained, ``out_of_domain`` ("fallback", "nan")
    says what happens to the others, and ``error_bars`` adds ``implied_volatility_error``: the
    stated price error over vega, large where a quote has little time value.
    """
    chosen = registry.get_engine(engine)
    inverts = isinstance(chosen, Inverts)
    if error_bars and not (inverts and isinstance(chosen, StatesError)):
        raise SettingsError(f'engine "{chosen.name}" states no error of volatilities; "amo" does')
    check_workers(workers)
    added = ["implied_volatility", "engine", "error", *["implied_volatility_error"] * error_bars]
    _check_request(frame, added, errors, "natural")
    _check_quotes(frame, price_column)
    _check_choice("out_of_domain", out_of_domain, ("fallback", "nan"))
    options, problems = read_book(
        frame, columns, ("volatility",), exercise,
        markets=markets, as_of=as_of, expiry_time=expiry_time, assumed=assumed,
    )  # fmt: skip
    options = _at_moderate_volatility(options)  # to find refused rows
    if not inverts:
        problems += send(chosen, options, good_rows(len(frame), problems), "raise")[1]
    _raise_if_wanted(problems, errors, frame)
    quotes = read_numbers("price", frame[price_column], problems)
    rows = np.flatnonzero(good_rows(len(frame), problems))
    with progress_bar(progress, len(rows), "implied volatility") as advance:
        found = implied_volatility(
            chosen,
            options.take(rows),
            quotes[rows],
            falls_back=out_of_domain == "fallback",
            workers=workers,
            progress=advance,
        )
    problems += [BadRows(p.column, p.reason, rows[p.rows]) for p in found.problems]
    result = frame.copy(deep=False)
    result["implied_volatility"] = in_place(found.volatility, rows, len(frame))
    if error_bars:
        own = found.engine == chosen.name
        stated = _volatility_error(chosen, options.take(rows[own]), found.volatility[own])
        result["implied_volatility_error"] = in_place(stated, rows[own], len(frame))
    result["engine"] = _names(found.engine, rows, len(frame))
    result["error"] = error_texts(len(frame), problems)
    return result


def _names(given: "npt.NDArray[np.object_]", rows: IntArray, n: int) -> "pd.Categorical[str]":
    """Return names by row of the frame, missing where there is none."""
    names = np.full(n, None, dtype=object)
    names[rows] = given
    return pd.Categorical(names)


def _at_moderate_volatility(options: Options) -> Options:
    root = np.sqrt(np.maximum(options.expiry, 1e-12))  # NaN stays NaN
    return options.with_values(volatility=0.5 / root)


def _check_quotes(frame: pd.DataFrame, price_column: Hashable) -> None:
    n_columns = sum(label == price_column for label in getattr(frame, "columns", ()))
    if n_columns != 1:
        raise OptionFrameError(
            f"{n_columns} columns {price_column!r} of quotes where one is needed; the frame has "
            f"{list(getattr(frame, 'columns', ()))}: pass price_column="
        )


def _volatility_error(engine: Engine, options: Options, volatility: FloatArray) -> FloatArray:
    """Return the stated price error over the European vega; infinite where vega is zero."""
    solved = options.with_values(volatility=volatility)
    stated = evaluate(engine, solved, ("price_error",))[0]["price_error"]
    vega = closed_form(solved, ("vega",))["vega"]
    with np.errstate(divide="ignore"):
        return np.asarray(stated / vega)


def greek_names(greeks: Greeks) -> tuple[str, ...]:
    """Return the names of the Greeks that are asked for."""
    if greeks is True:
        return FIVE_GREEKS
    if greeks is False:
        return ()
    if greeks == "second":
        return (*FIVE_GREEKS, *MORE_GREEKS)
    names = (greeks,) if isinstance(greeks, str) or not isinstance(greeks, Iterable) else greeks
    wanted = tuple(dict.fromkeys(names))
    if unknown := [name for name in wanted if name not in QUANTITIES[1:]]:
        raise SettingsError(
            f'greeks= takes True, False, "second" or names of {", ".join(QUANTITIES[1:])}; '
            f"got {unknown}"
        )
    return wanted


def check_workers(workers: int | None) -> None:
    """Raise SettingsError unless it is None or a number of threads or processes."""
    is_number = isinstance(workers, int | np.integer) and not isinstance(workers, bool)
    if workers is not None and not (is_number and workers >= 1):
        raise SettingsError(f"workers= takes a number from 1 on, or None; got {workers!r}")


def _check_request(frame: pd.DataFrame, added: Sequence[str], errors: str, units: str) -> None:
    _check_choice("errors", errors, ("raise", "coerce"))
    _check_choice("units", units, ("natural", "market"))
    if isinstance(frame, pd.DataFrame) and (taken := [c for c in added if c in frame.columns]):
        raise OptionFrameError(
            f"the frame already has {', '.join(taken)}, which would be overwritten: rename or "
            f"frame.drop(columns={taken})"
        )


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise SettingsError(f"{name}= takes {', '.join(map(repr, choices))}; got {value!r}")


def _raise_if_wanted(problems: Sequence[BadRows], errors: Errors, frame: pd.DataFrame) -> None:
    if problems and errors == "raise":
        raise OptionFrameError.from_problems(problems, frame.index)

"""Books in, books out: the DataFrame functions of the library."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from amo.arrays import BoolArray, FloatArray, IntArray
from amo.errors import SettingsError
from pricing.columns import BadRows, Errors, OptionFrameError, error_texts, good_rows
from pricing.engines import base, registry
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
from pricing.options import Exercise, Options, Values
from pricing.progress import Progress, progress_bar
from pricing.reading import read_numbers, read_options

Greeks = bool | Literal["second"] | Sequence[str]
OutOfDomain = Literal["fallback", "nan", "raise"]


class Route(NamedTuple):
    """Which rows, by position, go to which engine."""

    engine: Engine
    rows: IntArray


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
        (European) or QuantLib (American), "nan" leaves them empty, "raise" treats them as bad rows.
    errors
        "raise": one bad row raises :class:`OptionFrameError`, which lists them all. "coerce":
        bad rows get NaN and their reason in column ``error``.
    exercise
        "european" or "american": the style of a frame that has no such column. Without either,
        rows are taken as European, with an :class:`AssumptionWarning`.
    columns
        Where the frame's names differ: ``{"spot": "Px_Last"}``.
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
    quantities = ("price", *_greek_names(greeks), *(["price_error"] * error_bars))
    if error_bars and not isinstance(chosen, StatesError):
        raise SettingsError(f'engine "{chosen.name}" states no error; engines "amo" and "fd" do')
    added = [*quantities, *(["in_domain"] * knows_domain), "engine"]
    _check_request(frame, [*added, *(["error"] * (errors == "coerce"))], errors, units)
    _check_choice("out_of_domain", out_of_domain, get_args(OutOfDomain))
    check_workers(workers)
    options, problems = read_options(frame, columns, exercise=exercise)
    routes, refused = _routes(chosen, options, good_rows(len(frame), problems), out_of_domain)
    problems += refused
    _raise_if_wanted(problems, errors, frame)
    with progress_bar(progress, sum(len(route.rows) for route in routes), "pricing") as advance:
        values, failed = _follow(routes, options, quantities, workers, advance)
    problems += failed
    _raise_if_wanted(problems, errors, frame)
    result = frame.copy(deep=False)
    for name in quantities:
        result[name] = values[name] * (MARKET_UNITS.get(name, 1.0) if units == "market" else 1.0)
    if knows_domain:
        result["in_domain"] = np.isin(np.arange(len(frame)), routes[0].rows)
    result["engine"] = _engine_column(routes, good_rows(len(frame), problems))
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
    workers: int | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """Invert quotes to volatilities.

    Takes the frame of :func:`price_frame` with a column of quotes; ``volatility`` is not needed.
    Adds ``implied_volatility``, ``engine`` and ``error``: a quote without a volatility gets
    NaN and the reason, never an exception; ``errors`` concerns unreadable rows only. European
    options are inverted by the closed form, American ones with the engine's prices; engine "amo"
    inverts both where it was trained, ``out_of_domain`` ("fallback", "nan") says what happens to
    the others, and ``error_bars`` adds ``implied_volatility_error``: the stated price error over
    vega. Where that is large, the quote has less time value than the surrogate can resolve.
    """
    chosen = registry.get_engine(engine)
    inverts = isinstance(chosen, Inverts)
    if error_bars and not (inverts and isinstance(chosen, StatesError)):
        raise SettingsError(f'engine "{chosen.name}" states no error of volatilities; "amo" does')
    check_workers(workers)
    added = ["implied_volatility", "engine", "error"]
    added += ["implied_volatility_error"] * error_bars
    _check_request(frame, added, errors, "natural")
    n_columns = sum(label == price_column for label in getattr(frame, "columns", ()))
    if n_columns != 1:
        raise OptionFrameError(
            f"{n_columns} columns {price_column!r} of quotes where one is needed; the frame has "
            f"{list(getattr(frame, 'columns', ()))}: pass price_column="
        )
    _check_choice("out_of_domain", out_of_domain, ("fallback", "nan"))
    options, problems = read_options(frame, columns, ("volatility",), exercise)
    root = np.sqrt(np.maximum(options.expiry, 1e-12))  # NaN stays NaN
    options = options.with_values(volatility=0.5 / root)  # a moderate one, to find refused rows
    if not inverts:
        problems += _routes(chosen, options, good_rows(len(frame), problems), "raise")[1]
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
    result["implied_volatility"] = _in_place(found.volatility, rows, len(frame))
    if error_bars:
        own = found.engine == chosen.name
        stated = _volatility_error(chosen, options.take(rows[own]), found.volatility[own])
        result["implied_volatility_error"] = _in_place(stated, rows[own], len(frame))
    names = np.full(len(frame), None, dtype=object)
    names[rows] = found.engine
    result["engine"] = pd.Categorical(names)
    result["error"] = error_texts(len(frame), problems)
    return result


def _volatility_error(engine: Engine, options: Options, volatility: FloatArray) -> FloatArray:
    """Return the stated price error over the European vega; infinite where vega is zero."""
    solved = options.with_values(volatility=volatility)
    stated = evaluate(engine, solved, ("price_error",))[0]["price_error"]
    vega = closed_form(solved, ("vega",))["vega"]
    with np.errstate(divide="ignore"):
        return np.asarray(stated / vega)


def _greek_names(greeks: Greeks) -> tuple[str, ...]:
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


def _routes(
    engine: Engine, options: Options, is_readable: BoolArray, out_of_domain: OutOfDomain
) -> tuple[list[Route], list[BadRows]]:
    """Send readable rows to the engine, and those it refuses where ``out_of_domain`` says.

    Every engine is asked once which rows it takes. Rows that no engine takes are bad rows.
    """
    is_taken, refused = _asked(engine, options, is_readable)
    routes = [Route(engine, np.flatnonzero(is_taken))]
    if not isinstance(engine, KnowsDomain) or out_of_domain == "raise":
        return routes, refused
    if out_of_domain == "nan":
        return routes, []
    refused = []
    for other, mask in registry.fallbacks(options, is_readable & ~is_taken):
        is_taken, further = _asked(other, options, mask)
        routes.append(Route(other, np.flatnonzero(is_taken)))
        refused += further
    return routes, refused


def _asked(
    engine: Engine, options: Options, is_wanted: BoolArray
) -> tuple[BoolArray, list[BadRows]]:
    """Return which of the wanted rows an engine takes, and why it does not take the others."""
    rows = np.flatnonzero(is_wanted)
    some = options if len(rows) == len(options) else options.take(rows)
    is_taken, bad = is_wanted.copy(), []
    for mask, reason in base.refused(engine, some):
        is_taken[rows[mask]] = False
        bad.append(BadRows("engine", reason, rows[mask]))
    return is_taken, bad


def _follow(
    routes: Sequence[Route],
    options: Options,
    quantities: Sequence[str],
    workers: int | None,
    progress: Callable[[int], None] | None,
) -> tuple[Values, list[BadRows]]:
    """Evaluate every route; rows without a route are NaN, as are errors that no engine states."""
    values: Values = {}
    problems: list[BadRows] = []
    for engine, rows in routes:
        if len(rows) == 0 and values:
            continue
        asked = [q for q in quantities if q != "price_error" or isinstance(engine, StatesError)]
        some = options if len(rows) == len(options) else options.take(rows)
        part, failures = evaluate(
            engine, some, asked, refusals=[], workers=workers, progress=progress
        )
        problems += _failed(failures, rows)
        for name in asked:
            if name in values:
                values[name][rows] = part[name]
            else:
                values[name] = _in_place(part[name], rows, len(options))
    return values, problems


def _raise_if_wanted(problems: Sequence[BadRows], errors: Errors, frame: pd.DataFrame) -> None:
    if problems and errors == "raise":
        raise OptionFrameError.from_problems(problems, frame.index)


def _engine_column(routes: Sequence[Route], is_good: BoolArray) -> "pd.Categorical[Any]":
    """Return the name of the engine that priced each row, missing for bad rows."""
    codes = np.full(len(is_good), -1, dtype=np.int8)
    for number, route in enumerate(routes):
        codes[route.rows] = number
    names = pd.Index([route.engine.name for route in routes])
    return pd.Categorical.from_codes(np.where(is_good, codes, -1), categories=names)


def _failed(failures: Mapping[int, str], rows: IntArray) -> list[BadRows]:
    by_reason: dict[str, list[int]] = {}
    for row, reason in failures.items():
        by_reason.setdefault(reason, []).append(int(rows[row]))
    return [BadRows("engine", reason, np.array(at)) for reason, at in by_reason.items()]


def _in_place(values: FloatArray, rows: IntArray, n_rows: int) -> FloatArray:
    """Return one value per row of the frame, NaN for rows that were not priced."""
    if len(rows) == n_rows:
        return values
    spread = np.full(n_rows, np.nan)
    spread[rows] = values
    return spread

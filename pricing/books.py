"""Reading a book: under markets, if its rows name underlyings, and with dates for expiries."""

import datetime as dt
import numbers
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from amo.arrays import FloatArray, IntArray
from amo.errors import SettingsError
from pricing.columns import (
    AssumptionWarning,
    BadRows,
    OptionFrameError,
    candidates,
    find_columns,
)
from pricing.markets import clock
from pricing.markets.clock import CLOSE
from pricing.markets.market import Market
from pricing.markets.slices import Slices
from pricing.options import Exercise, Options
from pricing.reading import read_options

_UNDERLYING = ("underlying", "ticker", "symbol", "root", "underlying_symbol")
_FROM_MARKET = ("spot", "rate", "dividend_yield")


def read_book(
    frame: pd.DataFrame,
    columns: Mapping[str, Hashable] | None = None,
    unread: Sequence[str] = (),
    exercise: Exercise | None = None,
    *,
    markets: Mapping[str, Market] | None = None,
    as_of: str | dt.date | None = None,
    expiry_time: dt.time = CLOSE,
    assumed: list[str] | None = None,
) -> tuple[Options, list[BadRows]]:
    """Read a frame as :func:`pricing.reading.read_options` does, under markets where there are any.

    Where ``as_of`` is known, the moment of the book, expiries may be dates or times; a date means
    ``expiry_time`` in New York. A market's own moment comes first. What was assumed is added to
    ``assumed``, or if that is None the caller's caller gets an :class:`AssumptionWarning`.
    """
    texts: list[str] = []
    if not isinstance(expiry_time, dt.time):
        raise SettingsError(f"expiry_time= takes a datetime.time, got {expiry_time!r}")
    seen = None if as_of is None else clock.moment(as_of, "as_of")
    if markets is not None:
        found = _read_under(frame, markets, columns, unread, exercise, seen, expiry_time, texts)
    elif seen is not None and isinstance(frame, pd.DataFrame):
        problems: list[BadRows] = []
        label = find_columns(frame.columns, columns, unread)["expiry"]
        here = np.zeros(len(frame), dtype=np.intp)
        years = _years(frame[label], [seen], here, expiry_time, problems)
        dated = frame.copy(deep=False)
        dated[label] = years
        options, more = read_options(dated, columns, unread, exercise, assumed=texts)
        found = options, [*problems, *more]
    else:
        found = read_options(frame, columns, unread, exercise, assumed=texts)
    if assumed is not None:
        assumed += texts
    else:
        for text in texts:
            warnings.warn(text, AssumptionWarning, stacklevel=3)
    return found


def _read_under(
    frame: pd.DataFrame,
    markets: Mapping[str, Market],
    columns: Mapping[str, Hashable] | None,
    unread: Sequence[str],
    exercise: Exercise | None,
    as_of: dt.datetime | None,
    expiry_time: dt.time,
    assumed: list[str],
) -> tuple[Options, list[BadRows]]:
    """Read a book whose column ``underlying`` (or ticker, symbol, root) picks each row's market.

    Rate and dividend yield come from the market, and so does the spot where the frame has no such
    column.
    """
    if not isinstance(frame, pd.DataFrame):
        raise OptionFrameError(f"expected a pandas DataFrame, got {type(frame).__name__}")
    check_markets(markets)
    problems: list[BadRows] = []
    number = market_numbers(frame, list(markets), problems)
    values = list(markets.values())
    overrides = {k: v for k, v in (columns or {}).items() if k not in _FROM_MARKET}
    found = find_columns(frame.columns, overrides, (*unread, *_FROM_MARKET))
    plain = pd.DataFrame({name: frame[label] for name, label in found.items()}, index=frame.index)
    own = candidates("spot", list(frame.columns), columns or {})
    if len(own) > 1:
        raise OptionFrameError(
            f'several columns may be spot: {own}; say which by columns={{"spot": {own[0]!r}}}, or '
            "drop them all for the market's"
        )
    if columns and "spot" in columns and not own:
        raise OptionFrameError(
            f"no column {columns['spot']!r} of spots; the frame has {list(frame.columns)}"
        )
    spots = np.array([market.spot for market in values])[np.maximum(number, 0)]
    plain["spot"] = frame[own[0]] if len(own) == 1 else spots
    moments = [as_of if market.as_of is None else market.as_of for market in values]
    plain["expiry"] = _years(plain["expiry"], moments, number, expiry_time, problems)
    numeric = pd.to_numeric(plain["spot"], errors="coerce").to_numpy(np.float64)
    expiry = plain["expiry"].to_numpy(np.float64)
    is_known = (number >= 0) & (expiry >= 0) & (numeric > 0)
    until, spots = np.where(is_known, expiry, 1.0), np.where(is_known, numeric, 1.0)
    slices = Slices.of(values, np.maximum(number, 0), until)
    rate, dividend_yield, is_ruined = slices.flat_terms(spots, until)
    ruined = np.flatnonzero(is_known & is_ruined)
    if len(ruined):
        reason = "the dividends before expiry are worth more than the spot: check their cash"
        problems.append(BadRows("underlying", reason, ruined))
    plain["rate"] = np.where(is_known & ~is_ruined, rate, 0.0)
    plain["dividend_yield"] = np.where(is_known & ~is_ruined, dividend_yield, 0.0)
    texts: list[str] = []
    options, more = read_options(plain, unread=unread, exercise=exercise, assumed=texts)
    made = ("rate is", "dividend_yield is")  # by us, from the market: they are not in per cent
    assumed += [text for text in texts if not text.startswith(made)]
    return options.with_slices(slices), [*problems, *more]


def check_markets(markets: object) -> None:
    """Raise SettingsError unless it maps names to markets."""
    is_right = isinstance(markets, Mapping) and bool(markets)
    if not is_right or not all(
        isinstance(name, str) and isinstance(market, Market)
        for name, market in markets.items()  # type: ignore[attr-defined]
    ):
        raise SettingsError('markets= takes a mapping of names to Market, {"AAPL": Market(…)}')


def market_numbers(frame: pd.DataFrame, names: Sequence[str], problems: list[BadRows]) -> IntArray:
    """Return the number of each row's market, -1 where there is none, which is a problem."""
    labels = [c for name in _UNDERLYING for c in frame.columns if str(c).strip().lower() == name]
    if len(labels) != len(set(labels)):
        raise OptionFrameError(f"several columns are called {labels[0]!r}: drop all but one")
    label = labels[0] if labels else None
    if label is None:
        if len(names) == 1:  # one market for all rows
            return np.zeros(len(frame), dtype=np.intp)
        raise OptionFrameError(
            f"no column says which market a row has: add one called underlying, with values of "
            f"{', '.join(names[:10])}; the frame has {list(frame.columns)}"
        )
    codes, kinds = pd.factorize(frame[label])
    places = {name: place for place, name in enumerate(names)}
    found = np.array([places.get(str(kind), -1) for kind in kinds] + [-1], dtype=np.intp)
    for code, kind in enumerate(kinds):
        if found[code] < 0:
            reason = f"there is no market for {str(kind)[:40]!r}; there are {', '.join(names[:10])}"
            problems.append(BadRows("underlying", reason, np.flatnonzero(codes == code)))
    if (codes == -1).any():
        problems.append(BadRows("underlying", "underlying is missing", np.flatnonzero(codes == -1)))
    return np.asarray(found[codes])


def _years(
    column: "pd.Series[Any]",
    moments: Sequence[dt.datetime | None],
    number: IntArray,
    close: dt.time,
    problems: list[BadRows],
) -> FloatArray:
    """Return expiries in years, counted from the moment of each row's number.

    Every kind of date is read once a moment. Rows without a moment count as bad already.
    """
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if is_number and not pd.api.types.is_complex_dtype(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    cells_given = column.astype(object)
    try:
        codes, cells = pd.factorize(cells_given)
    except TypeError:  # lists and other cells without a hash
        codes, cells = pd.factorize(cells_given.map(str))
    kinds, kind = np.unique(np.stack([np.maximum(number, 0), codes]), axis=1, return_inverse=True)
    years = np.ones(kinds.shape[1])
    for place, (moment, code) in enumerate(kinds.T.tolist()):
        try:
            years[place] = _expiry(moments[moment], None if code < 0 else cells[code], close)
        except SettingsError as error:
            rows = np.flatnonzero((kind == place) & (number >= 0))
            problems.extend([BadRows("expiry", str(error), rows)] if len(rows) else [])
    return np.asarray(years[kind])


def _expiry(moment: dt.datetime | None, cell: object, close: dt.time) -> float:
    """Return the years to one expiry: a text may hold a number of years."""
    is_flag = isinstance(cell, bool | np.bool_)
    if isinstance(cell, str | numbers.Real) and not is_flag:
        try:
            return float(cell)
        except (ValueError, OverflowError):
            pass
    if moment is None:
        raise SettingsError(
            f"the expiry {cell!r} is a date, and it is not known from when: give as_of, or years"
        )
    return clock.years(moment, clock.moment(cell, "expiry", close))  # type: ignore[arg-type]

"""Reading a book under markets: each row's underlying says which, and dates become years."""

import datetime as dt
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from amo.arrays import FloatArray, IntArray
from amo.errors import SettingsError
from pricing.columns import BadRows, OptionFrameError, candidates, find_columns
from pricing.markets.clock import CLOSE
from pricing.markets.market import Market
from pricing.markets.slices import Slices
from pricing.options import Exercise, Options
from pricing.reading import read_options

_UNDERLYING = ("underlying", "ticker", "symbol", "root", "underlying_symbol")
_FROM_MARKET = ("spot", "rate", "dividend_yield")


def read_under_markets(
    frame: pd.DataFrame,
    markets: Mapping[str, Market],
    columns: Mapping[str, Hashable] | None = None,
    unread: Sequence[str] = (),
    exercise: Exercise | None = None,
    *,
    expiry_time: dt.time = CLOSE,
    assumed: list[str] | None = None,
) -> tuple[Options, list[BadRows]]:
    """Read a frame as :func:`pricing.reading.read_options` does, under the markets it names.

    The column ``underlying`` (or ticker, symbol, root) picks the market. Rate and dividend yield
    come from the market, and so does the spot where the frame has no such column. ``expiry`` may
    hold years, dates or times; a date means ``expiry_time`` in New York.
    """
    if not isinstance(frame, pd.DataFrame):
        raise OptionFrameError(f"expected a pandas DataFrame, got {type(frame).__name__}")
    if not markets or not all(isinstance(market, Market) for market in markets.values()):
        raise SettingsError('markets= takes a mapping of names to Market, {"AAPL": Market(…)}')
    problems: list[BadRows] = []
    number = _numbers(frame, list(markets), problems)
    values = list(markets.values())
    overrides = {k: v for k, v in (columns or {}).items() if k not in _FROM_MARKET}
    found = find_columns(frame.columns, overrides, (*unread, *_FROM_MARKET))
    plain = pd.DataFrame({name: frame[label] for name, label in found.items()}, index=frame.index)
    own = candidates("spot", list(frame.columns), columns or {})
    spots = np.array([market.spot for market in values])[np.maximum(number, 0)]
    plain["spot"] = frame[own[0]] if len(own) == 1 else spots
    plain["expiry"] = _years(plain["expiry"], values, number, expiry_time, problems)
    numeric = pd.to_numeric(plain["spot"], errors="coerce").to_numpy(np.float64)
    expiry = plain["expiry"].to_numpy(np.float64)
    is_known = (number >= 0) & (expiry > 0) & (numeric > 0)
    slices = Slices.of(values, np.maximum(number, 0), np.where(is_known, expiry, 1.0))
    rate, dividend_yield, is_ruined = _equivalent(slices, np.where(is_known, numeric, 1.0), expiry)
    ruined = np.flatnonzero(is_known & is_ruined)
    if len(ruined):
        reason = "the dividends before expiry are worth more than the spot: check their cash"
        problems.append(BadRows("underlying", reason, ruined))
    plain["rate"] = np.where(is_known & ~is_ruined, rate, 0.0)
    plain["dividend_yield"] = np.where(is_known & ~is_ruined, dividend_yield, 0.0)
    options, more = read_options(plain, unread=unread, exercise=exercise, assumed=assumed)
    return options.with_slices(slices), [*problems, *more]


def _numbers(frame: pd.DataFrame, names: list[str], problems: list[BadRows]) -> IntArray:
    """Return the number of each row's market, -1 where there is none."""
    label = next(
        (c for name in _UNDERLYING for c in frame.columns if str(c).strip().lower() == name), None
    )
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
    markets: Sequence[Market],
    number: IntArray,
    close: dt.time,
    problems: list[BadRows],
) -> FloatArray:
    """Return expiries in years; each kind of date is read once per market."""
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if is_number:
        return column.to_numpy(np.float64, na_value=np.nan)
    known: dict[tuple[int, object], float] = {}
    bad: dict[str, list[int]] = {}
    years = np.full(len(column), np.nan)
    for row, (place, cell) in enumerate(zip(number.tolist(), column, strict=True)):
        if place < 0:
            years[row] = 1.0  # a bad row already
            continue
        key = (place, cell if isinstance(cell, Hashable) else str(cell))
        try:
            if key not in known:
                known[key] = _expiry(markets[place], cell, close)
            years[row] = known[key]
        except SettingsError as error:
            bad.setdefault(str(error), []).append(row)
            years[row] = 1.0
    problems += [BadRows("expiry", reason, np.array(rows)) for reason, rows in bad.items()]
    return years


def _expiry(market: Market, cell: object, close: dt.time) -> float:
    """Return the years to one expiry: a text may hold a number of years."""
    if isinstance(cell, str):
        try:
            return float(cell)
        except ValueError:
            pass
    return market.years_to(cell, close)  # type: ignore[arg-type]  # refused there


def _equivalent(
    slices: Slices, spot: FloatArray, expiry: FloatArray
) -> tuple[FloatArray, FloatArray, "np.ndarray[Any, np.dtype[np.bool_]]"]:
    """Return zero rate, the yield with the same forward, and where the forward is not positive."""
    time = np.where(expiry > 0, expiry, 1.0)
    rate, borrow = slices.rate_integral(time), slices.borrow_integral(time)
    carry = slices.borrow_integral(slices.time) - slices.rate_integral(slices.time)
    later = np.cumprod((1.0 - slices.proportion)[:, ::-1], axis=1)[:, ::-1]
    after = np.concatenate([later[:, 1:], np.ones((len(spot), 1))], axis=1)[:, : later.shape[1]]
    whole = later[:, 0] if later.shape[1] else np.ones(len(spot))
    left = whole * spot - np.sum(slices.cash * after * np.exp(carry), axis=1)
    is_ruined = left <= 0.0
    share = np.where(is_ruined, 1.0, left / spot)
    return rate / time, (borrow - np.log(share)) / time, is_ruined

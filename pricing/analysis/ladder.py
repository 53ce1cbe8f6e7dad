"""Ladders: how a book's value moves with each node of each curve, and with each dividend."""

import datetime as dt
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from amo.arrays import BoolArray, FloatArray
from pricing.analysis.book import quantities_of
from pricing.books import check_markets, market_numbers, read_book
from pricing.columns import BadRows, OptionFrameError
from pricing.engines.base import Engine, HasSlopes
from pricing.engines.registry import get_engine
from pricing.frames import price_frame
from pricing.markets.clock import CLOSE
from pricing.markets.market import Dividend, Market
from pricing.options import Exercise, Options
from pricing.slopes import QUARTERS, Slopes

_BASIS_POINT = 1e-4
_CASH = 0.01  # by which a dividend is moved, in the currency of the spot


class _Rung(NamedTuple):
    """One number of a market: by how many of its units it is moved, and the market then."""

    kind: str
    time: float
    step: float
    moved: Callable[[float], Market]


def ladder_frame(
    book: pd.DataFrame,
    engine: str | Engine,
    markets: Mapping[str, Market],
    *,
    quantity: Hashable | None = None,
    exercise: Exercise | None = None,
    columns: Mapping[str, Hashable] | None = None,
    as_of: str | dt.date | None = None,
    expiry_time: dt.time = CLOSE,
    assumed: list[str] | None = None,
    workers: int | None = None,
) -> pd.DataFrame:
    """Return the sensitivity of a book to each node of its markets.

    Parameters
    ----------
    book, engine, markets, exercise, columns, as_of, expiry_time, assumed, workers
        As :func:`pricing.price_frame` takes them; the book needs a volatility in each row.
    quantity
        The column of positions, negative for short ones; by default one of each.

    Returns
    -------
    DataFrame
        One line for each node: ``underlying``, ``kind`` (rate, borrow or dividend), ``time`` in
        years, and ``sensitivity``: the change of the book's value for one basis point of the zero
        rate or of the borrow at that node, or for one unit of cash of that dividend. The market
        model of engine "amo" gives them by one backward pass; for other rows and engines they are
        central differences, two prices of the underlying's rows for each line.
    """
    if not isinstance(book, pd.DataFrame):
        raise OptionFrameError(f"expected a pandas DataFrame, got {type(book).__name__}")
    check_markets(markets)
    problems: list[BadRows] = []
    number = market_numbers(book, list(markets), problems)
    if problems:
        raise OptionFrameError.from_problems(problems, book.index)
    held = quantities_of(book, quantity)
    chosen = get_engine(engine)
    is_done = np.zeros(len(book), dtype=np.bool_)
    slopes = None
    options = None
    if isinstance(chosen, HasSlopes):
        options, bad = read_book(
            book, columns, exercise=exercise, markets=markets, as_of=as_of, expiry_time=expiry_time,
            assumed=[],
        )  # fmt: skip
        if not bad:  # if there are any, the prices below say which
            is_done, slopes = chosen.slopes(options, held, workers)
    lines = []
    for place, (name, market) in enumerate(markets.items()):
        mine = number == place
        if not mine.any():
            continue
        total = np.zeros(len(list(_rungs(market))))
        if slopes is not None and options is not None:
            total += _by_slopes(market, slopes, options, mine)
        left = mine & ~is_done
        if left.any():
            price = partial(
                price_frame, book[left], chosen, greeks=False, exercise=exercise, columns=columns,
                as_of=as_of, expiry_time=expiry_time, assumed=assumed, workers=workers,
                progress=False,
            )  # fmt: skip
            total += _by_differences(name, market, price, held[left])
        lines += [
            (name, rung.kind, rung.time, value)
            for rung, value in zip(_rungs(market), total.tolist(), strict=True)
        ]
    return pd.DataFrame(lines, columns=["underlying", "kind", "time", "sensitivity"])


def _by_differences(
    name: str, market: Market, price: Callable[..., pd.DataFrame], held: FloatArray
) -> FloatArray:
    """Return the sensitivity to each rung by central differences."""
    found = []
    for rung in _rungs(market):
        up, down = (
            price(markets={name: rung.moved(k * rung.step)})["price"].to_numpy() for k in (1, -1)
        )
        found.append(float(np.sum((up - down) * held)) / (2.0 * rung.step))
    return np.array(found)


def _by_slopes(market: Market, slopes: Slopes, options: Options, mine: BoolArray) -> FloatArray:
    """Return the sensitivity to each rung from the slopes of the slices of a market.

    The integrals of a curve are linear in its nodes.
    """
    own = np.flatnonzero(mine[slopes.row])
    rows = slopes.row[own]
    expiry = options.expiry[rows]
    time = options.market_slices.time[rows][:, : slopes.cash.shape[1]]
    along = expiry[:, None] * np.array(QUARTERS)
    found = []
    for kind, curve in (("rate", market.rate), ("borrow", market.borrow)):
        at = {"_to": time, "": expiry, "_along": along}
        for node in range(len(curve.times)):
            moved = curve.bumped(node, _BASIS_POINT)
            found.append(
                sum(
                    float(
                        np.sum(
                            getattr(slopes, kind + suffix)[own]
                            * (moved.integral(times) - curve.integral(times))
                        )
                    )
                    for suffix, times in at.items()
                )
            )
    per_cash = slopes.cash[own] / options.spot[rows][:, None]
    found += [
        float(per_cash[:, number].sum()) if number < per_cash.shape[1] else 0.0
        for number, payment in enumerate(market.dividends)
        if payment.cash > 0
    ]
    return np.array(found)


def _rungs(market: Market) -> Iterator[_Rung]:
    for node, time in enumerate(market.rate.times):
        yield _Rung(
            "rate",
            time,
            1.0,
            lambda k, n=node: market.replaced(  # type: ignore[misc]
                rate=market.rate.bumped(n, k * _BASIS_POINT)
            ),
        )
    for node, time in enumerate(market.borrow.times):
        yield _Rung(
            "borrow",
            time,
            1.0,
            lambda k, n=node: market.replaced(  # type: ignore[misc]
                borrow=market.borrow.bumped(n, k * _BASIS_POINT)
            ),
        )
    for number, payment in enumerate(market.dividends):
        if payment.cash > 0:
            step = min(_CASH, payment.cash)
            moved = partial(_paid, market, number)
            yield _Rung("dividend", payment.time, step, moved)


def _paid(market: Market, number: int, by: float) -> Market:
    """Return the market with the cash of one dividend moved."""
    payments = list(market.dividends)
    moved = payments[number]
    payments[number] = Dividend(moved.time, moved.cash + by, moved.proportion)
    return market.replaced(dividends=payments)

"""Ladders: how a book's value moves with each node of each curve, and with each dividend."""

import datetime as dt
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from pricing.analysis.book import quantities_of
from pricing.books import check_markets, market_numbers
from pricing.columns import BadRows, OptionFrameError
from pricing.engines.base import Engine
from pricing.frames import price_frame
from pricing.markets.clock import CLOSE
from pricing.markets.market import Dividend, Market
from pricing.options import Exercise

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
    workers: int | None = None,
) -> pd.DataFrame:
    """Return the sensitivity of a book to each node of its markets.

    Parameters
    ----------
    book, engine, markets, exercise, columns, as_of, expiry_time, workers
        As :func:`pricing.price_frame` takes them; the book needs a volatility in each row.
    quantity
        The column of positions, negative for short ones; by default one of each.

    Returns
    -------
    DataFrame
        One line for each node: ``underlying``, ``kind`` (rate, borrow or dividend), ``time`` in
        years, and ``sensitivity``: the change of the book's value for one basis point of the zero
        rate or of the borrow at that node, or for one unit of cash of that dividend. Central
        differences: two prices of the underlying's rows for each line.
    """
    if not isinstance(book, pd.DataFrame):
        raise OptionFrameError(f"expected a pandas DataFrame, got {type(book).__name__}")
    check_markets(markets)
    problems: list[BadRows] = []
    number = market_numbers(book, list(markets), problems)
    if problems:
        raise OptionFrameError.from_problems(problems, book.index)
    held = quantities_of(book, quantity)
    lines = []
    for place, (name, market) in enumerate(markets.items()):
        mine = number == place
        if not mine.any():
            continue

        price = partial(
            price_frame,
            book[mine],
            engine,
            greeks=False,
            exercise=exercise,
            columns=columns,
            as_of=as_of,
            expiry_time=expiry_time,
            workers=workers,
            progress=False,
        )
        for rung in _rungs(market):
            up, down = (
                price(markets={name: rung.moved(k * rung.step)})["price"].to_numpy()
                for k in (1, -1)
            )
            change = float(np.sum((up - down) * held[mine]))
            lines.append((name, rung.kind, rung.time, change / (2.0 * rung.step)))
    return pd.DataFrame(lines, columns=["underlying", "kind", "time", "sensitivity"])


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

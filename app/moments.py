"""Moments of markets as charts show them: dates in New York, and what goes ex."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray
from pricing.markets import clock
from pricing.markets.market import Market


def dates(markets: Mapping[str, Market], times: FloatArray) -> npt.NDArray[Any]:
    """Return moments as dates in New York; as years where markets are not seen at one moment."""
    seen = {market.as_of for market in markets.values()}
    start = seen.pop() if len(seen) == 1 else None
    if start is None:
        return times
    later = (clock.later(start, time).astimezone(clock.NEW_YORK) for time in times.tolist())
    return np.array([moment.replace(tzinfo=None) for moment in later], dtype="datetime64[ms]")


def ex_dates(markets: Mapping[str, Market], until: float) -> dict[Any, str]:
    """Return the moments up to a time at which something goes ex, and what is paid then."""
    found: dict[Any, list[str]] = {}
    for name, market in markets.items():
        paid = market.before(until)
        days = dates(markets, np.array([payment.time for payment in paid]))
        for day, payment in zip(days.tolist(), paid, strict=True):
            parts = [f"{payment.cash:g}"] if payment.cash else []
            parts += [f"{100 * payment.proportion:g} %"] if payment.proportion else []
            word = " + ".join(parts)
            if not word:  # a payment of nothing
                continue
            found.setdefault(day, []).append(f"{name} {word}" if len(markets) > 1 else word)
    return {day: ", ".join(words) for day, words in sorted(found.items())}

"""What a book gains or loses while time passes: across ex-dates and expiries."""

import datetime as dt
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from amo.arrays import FloatArray
from amo.errors import SettingsError
from pricing.analysis.book import quantities_of
from pricing.books import read_book
from pricing.columns import BadRows, OptionFrameError, good_rows
from pricing.engines.base import Engine
from pricing.engines.registry import get_engine
from pricing.markets.clock import CLOSE
from pricing.markets.market import Market
from pricing.options import Exercise, Options
from pricing.routing import OutOfDomain, follow, send

_JUST_AFTER = 1e-7  # years: three seconds
_MOST_ADDED = 250  # expiries and ex-dates of a book with more would cost more than they show
_WORTHLESS = 1e-6  # of the spot: payments take no more than the rest


def profit_over_time(
    frame: pd.DataFrame,
    engine: str | Engine = "fd-fast",
    *,
    times: int | Sequence[float] | FloatArray = 41,
    quantity: Hashable | None = None,
    exercise: Exercise | None = None,
    columns: Mapping[str, Hashable] | None = None,
    markets: Mapping[str, Market] | None = None,
    as_of: str | dt.date | None = None,
    expiry_time: dt.time = CLOSE,
    out_of_domain: OutOfDomain = "fallback",
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Return the profit or loss of a book at moments to come, if nothing happens but time.

    Each spot stays where it is, and falls by its dividends at their ex-dates. Volatilities stay,
    forward rates come true. No option is exercised before its expiry; then it pays, and its payment
    earns no interest.

    Parameters
    ----------
    frame, engine, exercise, columns, markets, as_of, expiry_time, out_of_domain
        As :func:`pricing.price_frame` takes them.
    times
        Moments in years from now; or how many, evenly up to the last expiry: then the expiries and
        the moments before and after the ex-dates are added, unless there are hundreds of them.
    quantity
        The column of positions.
    workers
        As :func:`pricing.price_frame` has it.
    progress
        Called with the number of moments done and the total.

    Returns
    -------
    DataFrame
        ``time``; ``value`` of what lives; ``settled``, what expired options have paid; ``profit``,
        the sum of the two less today's value. Rows that cannot be priced at some moment are left
        out everywhere; ``attrs["left_out"]`` is their number.
    """
    chosen = get_engine(engine)
    options, problems = read_book(
        frame, columns, exercise=exercise, markets=markets, as_of=as_of, expiry_time=expiry_time
    )
    is_good = good_rows(len(frame), problems)
    good, held = options.take(is_good), quantities_of(frame, quantity)[is_good]
    if not len(good):
        raise OptionFrameError.from_problems(problems, frame.index)
    moments = _moments(times, good)
    worth = np.empty((1 + len(moments), len(good)))
    labels = frame.index[is_good]
    reasons: list[BadRows] = []
    for number, moment in enumerate([0.0, *moments.tolist()]):
        at = np.minimum(moment, good.expiry)  # an expired option stays what it paid
        later = good.after(at, spot_if_nothing_happens(good, at))
        routes, refused = send(chosen, later, np.ones(len(later), dtype=np.bool_), out_of_domain)
        if refused and out_of_domain == "raise":
            raise OptionFrameError.from_problems(refused, labels)
        values, failed = follow(routes, later, ("price",), workers, None)
        worth[number] = values["price"]
        reasons += [*refused, *failed]
        if progress is not None:
            progress(number + 1, len(worth))
    is_known = np.isfinite(worth).all(axis=0)
    if not is_known.any():
        raise OptionFrameError.from_problems(reasons, labels)
    held_worth = np.where(is_known, worth, 0.0) * np.where(is_known, held, 0.0)
    is_expired = good.expiry <= moments[:, None]
    value = np.where(is_expired, 0.0, held_worth[1:]).sum(axis=1)
    settled = np.where(is_expired, held_worth[1:], 0.0).sum(axis=1)
    table = pd.DataFrame(
        {
            "time": moments,
            "value": value,
            "settled": settled,
            "profit": value + settled - held_worth[0].sum(),
        }
    )
    table.attrs["left_out"] = len(frame) - int(is_known.sum())
    return table


def spot_if_nothing_happens(options: Options, time: FloatArray) -> FloatArray:
    """Return each option's spot some years later: as it is, less the dividends before then."""
    spot = options.spot.copy()
    if options.slices is None:
        return spot
    paid = options.slices
    for number in range(paid.time.shape[1]):
        fallen = (1.0 - paid.proportion[:, number]) * spot - paid.cash[:, number]
        spot = np.where(paid.time[:, number] < time, fallen, spot)
    return np.maximum(spot, _WORTHLESS * options.spot)


def _moments(given: int | Sequence[float] | FloatArray, options: Options) -> FloatArray:
    """Return the moments to look at, in order."""
    if not isinstance(given, int | np.integer):
        moments = np.asarray(given, dtype=np.float64)
        if moments.ndim != 1 or not len(moments) or not (moments >= 0).all():
            raise SettingsError(f"times= takes years from now, >= 0, or a number; got {given!r}")
        return np.unique(moments)
    if given < 2:
        raise SettingsError(f"times= takes at least 2 moments, got {given}")
    even, added = np.linspace(0.0, float(options.expiry.max()), int(given)), [options.expiry]
    if options.slices is not None:
        is_paid = np.arange(options.slices.time.shape[1]) < options.slices.n_payments[:, None]
        before = options.slices.time[is_paid]
        added += [before, before + _JUST_AFTER]
    special = np.unique(np.concatenate(added))
    return np.union1d(even, special) if len(special) <= _MOST_ADDED else even

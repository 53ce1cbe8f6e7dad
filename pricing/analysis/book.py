"""A book as a whole: what is wrong with it, what it is exposed to, what it may gain or lose."""

import datetime as dt
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from amo.arrays import FloatArray
from pricing.books import read_book
from pricing.columns import OptionFrameError, good_rows
from pricing.engines.base import Engine
from pricing.engines.registry import get_engine
from pricing.markets.clock import CLOSE
from pricing.markets.market import Market
from pricing.options import Exercise, Options
from pricing.reading import read_numbers
from pricing.routing import OutOfDomain, follow, send

# Buckets of exposure: upper edges and their names.
EXPIRIES: Mapping[str, float] = {
    "to 1W": 7 / 365,
    "1W to 1M": 1 / 12,
    "1M to 3M": 0.25,
    "3M to 6M": 0.5,
    "6M to 1Y": 1.0,
    "1Y to 2Y": 2.0,
    "over 2Y": np.inf,
}
MONEYNESS: Mapping[str, float] = {
    "S/K < 0.8": 0.8,
    "0.8 to 0.95": 0.95,
    "0.95 to 1.05": 1.05,
    "1.05 to 1.25": 1.25,
    "S/K > 1.25": np.inf,
}
MEASURES = ("value", "delta_1pct", "gamma_1pct", "vega_1pt", "theta_day", "rho_1pt")
LOWEST_VOLATILITY = 1e-3  # scenarios do not go below this


def check_frame(
    frame: pd.DataFrame,
    columns: Mapping[str, Hashable] | None = None,
    *,
    unread: Sequence[str] = (),
    quantity: Hashable | None = None,
    exercise: Exercise | None = None,
    markets: Mapping[str, Market] | None = None,
    as_of: str | dt.date | None = None,
    assumed: list[str] | None = None,
) -> pd.DataFrame:
    """Return what is wrong with a book: ``row``, ``column`` and ``reason`` of every bad cell.

    ``row`` is the label of the row. ``unread`` names columns that are not needed, ``quantity`` the
    column of positions, if there is one; the rest is as :func:`pricing.price_frame` takes it.
    Assumptions are added to ``assumed``, or issued as warnings if that is None.
    """
    _, problems = read_book(
        frame, columns, unread, exercise, markets=markets, as_of=as_of, assumed=assumed
    )
    if quantity is not None:
        if quantity not in frame.columns:
            raise OptionFrameError(f"no column {quantity!r} of positions: {list(frame.columns)}")
        read_numbers("quantity", frame[quantity], problems)
    parts = [
        pd.DataFrame({"position": p.rows, "column": p.column, "reason": p.reason}) for p in problems
    ]
    report = pd.concat(parts) if parts else pd.DataFrame(columns=["position", "column", "reason"])
    report = report.sort_values("position", kind="stable", ignore_index=True)
    report.insert(0, "row", frame.index[report["position"].to_numpy(dtype=np.intp)])
    return report.drop(columns="position")


def exposure(
    priced: pd.DataFrame,
    *,
    quantity: Hashable | None = None,
    columns: Mapping[str, Hashable] | None = None,
    markets: Mapping[str, Market] | None = None,
    as_of: str | dt.date | None = None,
    expiry_time: dt.time = CLOSE,
    assumed: list[str] | None = None,
) -> pd.DataFrame:
    """Return what a priced book is exposed to, by bucket of expiry and moneyness.

    Parameters
    ----------
    priced
        What :func:`pricing.frames.price_frame` returned in natural units, with delta, gamma, vega,
        theta and rho. Rows without a price are left out.
    quantity
        The column of positions, negative for short ones; by default one of each.
    columns, markets, as_of, expiry_time, assumed
        As :func:`pricing.frames.price_frame` takes them.

    Returns
    -------
    DataFrame
        Indexed by expiry and moneyness: ``options``, ``value``, and in money: ``delta_1pct`` for a
        spot 1 % up, ``gamma_1pct`` for the change of that delta, ``vega_1pt`` for volatility one
        point up, ``theta_day`` for one day passing, ``rho_1pt`` for the rate one point up.
    """
    options, _ = read_book(
        priced,
        columns,
        ("exercise",),
        markets=markets,
        as_of=as_of,
        expiry_time=expiry_time,
        assumed=assumed,
    )
    held = quantities_of(priced, quantity)
    needed = ("price", "delta", "gamma", "vega", "theta", "rho")
    if missing := [name for name in needed if name not in priced.columns]:
        raise OptionFrameError(
            f"exposure needs what price_frame adds, and the frame has no {', '.join(missing)}"
        )
    one_percent = 0.01 * options.spot
    sizes = {
        "value": priced["price"],
        "delta_1pct": priced["delta"] * one_percent,
        "gamma_1pct": priced["gamma"] * one_percent**2,
        "vega_1pt": priced["vega"] * 0.01,
        "theta_day": priced["theta"] / 365,
        "rho_1pt": priced["rho"] * 0.01,
    }
    table = pd.DataFrame({name: size.to_numpy() * held for name, size in sizes.items()})
    table["expiry"] = _bucket(options.expiry, EXPIRIES)
    table["moneyness"] = _bucket(options.spot / options.strike, MONEYNESS)
    table = table[np.isfinite(priced["price"].to_numpy())]
    groups = table.groupby(["expiry", "moneyness"], observed=True)
    result: pd.DataFrame = groups[list(MEASURES)].sum()
    result.insert(0, "options", groups.size())
    return result


def scenario_grid(
    frame: pd.DataFrame,
    engine: str | Engine = "quantlib",
    *,
    spot_moves: Sequence[float],
    volatility_moves: Sequence[float],
    quantity: Hashable | None = None,
    exercise: Exercise | None = None,
    columns: Mapping[str, Hashable] | None = None,
    markets: Mapping[str, Market] | None = None,
    as_of: str | dt.date | None = None,
    expiry_time: dt.time = CLOSE,
    out_of_domain: OutOfDomain = "fallback",
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Return the profit or loss of a book when all spots and all volatilities move at once.

    Dividends in cash stay as they are when the spot moves.

    Parameters
    ----------
    exercise, columns, markets, as_of, expiry_time, out_of_domain
        As :func:`pricing.frames.price_frame` takes them.
    spot_moves
        Relative: -0.1 is a fall by 10 %.
    volatility_moves
        Absolute: 0.05 is five points up; no volatility falls below 0.001.
    progress
        Called with the number of scenarios done and the total.

    Returns
    -------
    DataFrame
        Spot moves down, volatility moves across. Rows that cannot be priced today or in some
        scenario are left out everywhere; ``attrs["left_out"]`` is their number.
    """
    chosen = get_engine(engine)
    options, problems = read_book(
        frame, columns, exercise=exercise, markets=markets, as_of=as_of, expiry_time=expiry_time
    )
    is_good = good_rows(len(frame), problems)
    good, held = options.take(is_good), quantities_of(frame, quantity)[is_good]

    def value(moved: Options) -> FloatArray:
        routes, refused = send(chosen, moved, np.ones(len(moved), dtype=np.bool_), out_of_domain)
        if refused and not any(len(route.rows) for route in routes):
            raise OptionFrameError.from_problems(refused, frame.index[is_good])
        return follow(routes, moved, ("price",), None, None)[0]["price"]

    now = value(good)
    moves = [(s, v) for s in spot_moves for v in volatility_moves]
    gains = np.empty((len(moves), len(good)))
    for number, (spot_move, volatility_move) in enumerate(moves):
        volatility = np.maximum(good.volatility + volatility_move, LOWEST_VOLATILITY)
        moved = good.with_values(spot=good.spot * (1.0 + spot_move), volatility=volatility)
        gains[number] = value(moved.at_forwards()) - now
        if progress is not None:
            progress(number + 1, len(moves))
    is_known = np.isfinite(gains).all(axis=0)
    totals = gains[:, is_known] @ held[is_known]
    grid = pd.DataFrame(
        totals.reshape(len(spot_moves), len(volatility_moves)),
        index=pd.Index(spot_moves, name="spot"),
        columns=pd.Index(volatility_moves, name="volatility"),
    )
    grid.attrs["left_out"] = len(frame) - int(is_known.sum())
    return grid


def quantities_of(frame: pd.DataFrame, quantity: Hashable | None) -> FloatArray:
    """Return the positions of a book, one of each where no column says.

    A missing or unreadable one counts as zero.
    """
    if quantity is None:
        return np.ones(len(frame))
    if quantity not in frame.columns:
        raise OptionFrameError(f"no column {quantity!r} of positions: {list(frame.columns)}")
    return np.nan_to_num(read_numbers("quantity", frame[quantity], []), posinf=0.0, neginf=0.0)


def _bucket(values: FloatArray, edges: Mapping[str, float]) -> "pd.Categorical[str]":
    codes = np.searchsorted(list(edges.values())[:-1], values)
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(edges)), ordered=True)

"""Engines side by side: errors in price, Greeks and implied-volatility points, and time."""

import datetime as dt
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from amo.arrays import FloatArray
from amo.errors import SettingsError
from pricing.books import read_book
from pricing.columns import BadRows, OptionFrameError
from pricing.engines.base import FIVE_GREEKS, Engine, evaluate, refused
from pricing.engines.registry import get_engine
from pricing.frames import check_workers
from pricing.markets.clock import CLOSE
from pricing.markets.market import Market
from pricing.options import Exercise, Options, Values
from pricing.surrogate.regions import label_regions

_WARM_UP = 64  # rows of each style
_SMALLEST_VEGA = 1e-3  # per unit strike: below this, a price tells nothing about volatility


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What :func:`compare_frame` found.

    Attributes
    ----------
    rows
        The frame with ``{quantity}_{engine}`` for every engine, and ``iv_points_{engine}``: its
        price error in hundredths of volatility.
    summary
        One row per engine: ``microseconds`` per option, ``priced`` rows, then RMSE and largest
        error against the reference, for price, ``iv_points`` (hundredths of volatility) and
        each Greek.
    reference
        The engine the others are measured against.
    errors, places
        Errors of each engine row by row, and the rows' regions.
    """

    rows: pd.DataFrame
    summary: pd.DataFrame
    reference: str
    errors: Mapping[str, dict[str, FloatArray]]
    places: pd.DataFrame

    @cached_property
    def regions(self) -> pd.DataFrame:
        """Errors by engine and region of moneyness × expiry × volatility."""
        return _by_region(self.errors, self.places)


def compare_frame(
    frame: pd.DataFrame,
    engines: Sequence[str | Engine] = ("quantlib", "fd"),
    *,
    greeks: Sequence[str] = FIVE_GREEKS,
    reference: str | None = None,
    exercise: Exercise | None = None,
    columns: Mapping[str, Hashable] | None = None,
    markets: Mapping[str, Market] | None = None,
    as_of: str | dt.date | None = None,
    expiry_time: dt.time = CLOSE,
    workers: int | None = None,
    warm_up: bool = True,
) -> Comparison:
    """Price a book with several engines and measure them against one.

    Parameters
    ----------
    engines
        Names or engines; a row that an engine does not take is left out of its errors.
    reference
        Name of the engine taken as truth; the first by default.
    exercise, columns, markets, as_of, expiry_time, workers
        As :func:`pricing.price_frame` takes them.
    warm_up
        Whether each engine first prices some rows untimed, so that loading and compiling are not
        measured. A book that takes less than a fifth of a second is priced up to three times, and
        the shortest time counts.

    Notes
    -----
    An error in implied-volatility points is the price error over the reference's vega, and is
    not counted where vega is below 0.001 of the strike.
    """
    chosen = [get_engine(engine) for engine in engines]
    names = [engine.name for engine in chosen]
    if len(set(names)) < len(names) or not names:
        raise SettingsError(f"engines must be named once each, got {names}")
    truth = names[0] if reference is None else reference
    if truth not in names:
        raise SettingsError(f"the reference {truth!r} is not among the engines {names}")
    check_workers(workers)
    options, problems = read_book(
        frame, columns, exercise=exercise, markets=markets, as_of=as_of, expiry_time=expiry_time
    )
    if problems:
        raise OptionFrameError.from_problems(problems, frame.index)
    _require_some(chosen[names.index(truth)], options, frame)
    quantities = ("price", *dict.fromkeys((*greeks, "vega")))
    values, seconds = {}, {}
    for engine in chosen:
        values[engine.name], seconds[engine.name] = _timed(
            engine, options, quantities, workers, warm_up=warm_up
        )
    errors = {
        name: _errors(values[name], values[truth], options, ("price", *greeks)) for name in names
    }
    found: dict[str, FloatArray] = {}
    for name in names:
        found |= {f"{quantity}_{name}": values[name][quantity] for quantity in ("price", *greeks)}
        found[f"iv_points_{name}"] = errors[name]["iv_points"]
    kept = frame.drop(columns=[column for column in found if column in frame.columns])
    rows = pd.concat([kept, pd.DataFrame(found, index=frame.index)], axis=1)
    summary = pd.DataFrame({name: _spread(errors[name]) for name in names}).T
    priced = {name: int(np.isfinite(values[name]["price"]).sum()) for name in names}
    micro = [1e6 * seconds[n] / priced[n] if priced[n] else np.nan for n in names]
    summary.insert(0, "microseconds", micro)
    summary.insert(1, "priced", list(priced.values()))
    summary.index.name = "engine"
    return Comparison(
        rows=rows,
        summary=summary,
        reference=truth,
        errors=errors,
        places=label_regions(options),
    )


def _require_some(engine: Engine, options: Options, frame: pd.DataFrame) -> None:
    """Raise where the reference prices no row of a book under markets, with its reasons."""
    asked = refused(engine, options) if options.slices is not None else []
    if asked and np.any([mask for mask, _ in asked], axis=0).all():
        reasons = [BadRows("engine", text, np.flatnonzero(mask)) for mask, text in asked]
        raise OptionFrameError.from_problems(reasons, frame.index)


def _timed(
    engine: Engine,
    options: Options,
    quantities: Sequence[str],
    workers: int | None,
    *,
    warm_up: bool,
) -> tuple[Values, float]:
    """Price the rows an engine takes, NaN elsewhere; also return the seconds it took."""
    masks = [mask for mask, _ in refused(engine, options)]
    rows = np.flatnonzero(~np.any(masks, axis=0)) if masks else np.arange(len(options))
    taken = options.take(rows)
    if warm_up:
        first = [np.flatnonzero(taken.is_american == style)[:_WARM_UP] for style in (False, True)]
        evaluate(engine, taken.take(np.concatenate(first)), quantities, workers=workers)
    seconds: list[float] = []
    while not seconds or (warm_up and len(seconds) < 3 and sum(seconds) < 0.2):
        start = time.perf_counter()
        found, _ = evaluate(engine, taken, quantities, workers=workers)
        seconds.append(time.perf_counter() - start)
    values = {name: np.full(len(options), np.nan) for name in quantities}
    for name in quantities:
        values[name][rows] = found[name]
    return values, min(seconds)


def _errors(
    values: Values, truth: Values, options: Options, quantities: Sequence[str]
) -> dict[str, FloatArray]:
    errors = {name: values[name] - truth[name] for name in quantities}
    vega = np.where(truth["vega"] > _SMALLEST_VEGA * options.strike, truth["vega"], np.nan)
    return {
        "price": errors.pop("price"),
        "iv_points": 100.0 * (values["price"] - truth["price"]) / vega,
        **errors,
    }


def _spread(errors: dict[str, FloatArray]) -> "pd.Series[float]":
    out = {}
    for name, error in errors.items():
        known = error[np.isfinite(error)]
        out[f"{name}_rmse"] = float(np.sqrt(np.mean(known**2))) if len(known) else np.nan
        out[f"{name}_max"] = float(np.max(np.abs(known))) if len(known) else np.nan
    return pd.Series(out)


def _by_region(
    errors: Mapping[str, dict[str, FloatArray]],
    regions: pd.DataFrame,
) -> pd.DataFrame:
    parts = []
    for engine, error in errors.items():
        groups = pd.concat([regions, pd.DataFrame(error)], axis=1).groupby(
            list(regions.columns), observed=True
        )
        part = pd.DataFrame({"options": groups.size()})
        for name in error:
            part[f"{name}_rmse"] = groups[name].agg(lambda e: np.sqrt(np.mean(e**2)))
            part[f"{name}_max"] = groups[name].agg(lambda e: np.max(np.abs(e)))
        parts.append(part.reset_index().assign(engine=engine))
    return pd.concat(parts, ignore_index=True)

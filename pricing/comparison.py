"""Engines side by side: errors in price, Greeks and implied-volatility points, and time."""

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pricing import engines
from pricing.contracts import FloatArray, OptionFrameError, Options
from pricing.engines import FIRST_GREEKS, Engine, Failures, Values
from pricing.reading import read_options
from pricing.regions import label_regions

_SMALLEST_VEGA = 1e-3  # per unit strike: below, a price says nothing of volatility


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What :func:`compare_frame` found.

    Attributes
    ----------
    rows
        The frame with ``{quantity}_{engine}`` for every engine.
    summary
        One row an engine: ``microseconds`` per option, ``priced`` rows, then RMSE and largest
        error against the reference, for price, ``iv_points`` (hundredths of volatility) and
        each Greek.
    regions
        The same errors by engine and region of moneyness × expiry × volatility.
    reference
        The engine the others are measured against.
    """

    rows: pd.DataFrame
    summary: pd.DataFrame
    regions: pd.DataFrame
    reference: str


def compare_frame(
    frame: pd.DataFrame,
    engines_: Sequence[str | Engine] = ("quantlib", "fd"),
    *,
    greeks: Sequence[str] = FIRST_GREEKS,
    reference: str | None = None,
    columns: Mapping[str, Hashable] | None = None,
    workers: int | None = None,
) -> Comparison:
    """Price a book with several engines and measure them against one.

    Parameters
    ----------
    engines_
        Names or engines; a row that an engine does not take is left out of its errors.
    reference
        Name of the engine taken as truth; the first by default.

    Notes
    -----
    An error in implied-volatility points is the price error over the reference's vega, and is
    not counted where vega is below 0.001 of the strike. Each engine first prices the book's first
    row untimed, so that compilation is not measured.
    """
    chosen = [engines.get_engine(engine) for engine in engines_]
    names = [engine.name for engine in chosen]
    if len(set(names)) < len(names) or not names:
        raise ValueError(f"engines must be named once each, got {names}")
    truth = names[0] if reference is None else reference
    if truth not in names:
        raise ValueError(f"the reference {truth!r} is not among the engines {names}")
    options, problems = read_options(frame, columns)
    if problems:
        raise OptionFrameError.from_problems(problems, frame.index)
    quantities = ("price", *dict.fromkeys((*greeks, "vega")))
    values, microseconds = {}, {}
    for engine in chosen:
        values[engine.name], microseconds[engine.name] = _timed(
            engine, options, quantities, workers
        )
    errors = {
        name: _errors(values[name], values[truth], options, ("price", *greeks)) for name in names
    }
    rows = frame.copy(deep=False)
    for name in names:
        for quantity in ("price", *greeks):
            rows[f"{quantity}_{name}"] = values[name][quantity]
    summary = pd.DataFrame({name: _spread(errors[name]) for name in names}).T
    summary.insert(0, "microseconds", pd.Series(microseconds))
    priced = [int(np.isfinite(values[name]["price"]).sum()) for name in names]
    summary.insert(1, "priced", priced)
    summary.index.name = "engine"
    return Comparison(
        rows=rows,
        summary=summary,
        regions=_by_region(errors, options),
        reference=truth,
    )


def _timed(
    engine: Engine, options: Options, quantities: Sequence[str], workers: int | None
) -> tuple[Values, float]:
    """Price the rows an engine takes; NaN elsewhere. Time per option in microseconds."""
    live = np.flatnonzero(options.expiry > 0)
    refused = [mask for mask, _ in engine.refusals(options.take(live))]
    is_taken = np.ones(len(options), dtype=np.bool_)
    is_taken[live[np.any(refused, axis=0)] if refused else []] = False
    taken = np.flatnonzero(is_taken)
    values = {name: np.full(len(options), np.nan) for name in quantities}
    if len(taken) == 0:
        return values, np.nan
    engines.evaluate(engine, options.take(taken[:1]), quantities)
    start = time.perf_counter()
    found: tuple[Values, Failures] = engines.evaluate(
        engine, options.take(taken), quantities, workers=workers
    )
    elapsed = time.perf_counter() - start
    for name in quantities:
        values[name][taken] = found[0][name]
    return values, 1e6 * elapsed / len(taken)


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


def _by_region(errors: Mapping[str, dict[str, FloatArray]], options: Options) -> pd.DataFrame:
    keys = label_regions(options)
    parts = []
    for engine, error in errors.items():
        groups = pd.concat([keys, pd.DataFrame(error)], axis=1).groupby(
            list(keys.columns), observed=True
        )
        part = pd.DataFrame({"options": groups.size()})
        for name in error:
            part[f"{name}_rmse"] = groups[name].agg(lambda e: np.sqrt(np.mean(e**2)))
            part[f"{name}_max"] = groups[name].agg(lambda e: np.max(np.abs(e)))
        parts.append(part.reset_index().assign(engine=engine))
    return pd.concat(parts, ignore_index=True)

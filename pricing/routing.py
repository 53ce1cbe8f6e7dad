"""Which rows go to which engine, and what comes back of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from amo.arrays import BoolArray, FloatArray, IntArray
from pricing.columns import BadRows
from pricing.engines import base, registry
from pricing.engines.base import Engine, KnowsDomain, StatesError, evaluate
from pricing.options import Options, Values

OutOfDomain = Literal["fallback", "nan", "raise"]


class Route(NamedTuple):
    """Which rows, by position, go to which engine."""

    engine: Engine
    rows: IntArray


def send(
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


def follow(
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
                values[name] = in_place(part[name], rows, len(options))
    return values, problems


def engine_column(routes: Sequence[Route], is_good: BoolArray) -> "pd.Categorical[Any]":
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


def in_place(values: FloatArray, rows: IntArray, n_rows: int) -> FloatArray:
    """Return one value per row of the frame, NaN for rows that were not priced."""
    if len(rows) == n_rows:
        return values
    spread = np.full(n_rows, np.nan)
    spread[rows] = values
    return spread

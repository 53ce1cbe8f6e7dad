"""Implied volatility of European and American quotes, with the reason where there is none."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray
from pricing import black_scholes, bounds
from pricing.columns import BadRows
from pricing.engines.base import Engine, Inverts, TakesMarkets, closed_form, evaluate
from pricing.engines.registry import get_engine
from pricing.options import Options
from pricing.roots import find_roots, secant_roots

_TOLERANCE = 1e-8  # of volatility, by a bracketed search
_STEP = 1e-6  # of volatility: a last secant of that length is far more exact
_RESIDUAL = 1e-10  # of the logarithm of the time value
_LOWEST, _HIGHEST = 1e-3, 10.0  # volatilities tried for American options
_NEAR, _MARGIN = 0.55, 1e-3  # around the European volatility: where the search looks first
_FAINT = 1e-6  # per unit strike: less time value than this is lost in every engine's own error
_RESOLUTION = 1e-12  # per unit strike: time values are resolved down to this
_TOO_SMALL = "time value is too small to hold a volatility"


class Inverted(NamedTuple):
    """Volatilities, NaN where there is none; the engine that found each, or None; and reasons."""

    volatility: FloatArray
    engine: npt.NDArray[np.object_]
    problems: list[BadRows]


def implied_volatility(
    engine: Engine,
    options: Options,
    price: FloatArray,
    *,
    falls_back: bool = True,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Inverted:
    """Return the volatility at which each option is worth its price; NaN with a reason if none.

    ``options.volatility`` is not read. A bounded engine inverts the rows in its domain; the rest
    fall back to the formula and QuantLib, American ones under markets to "fd-fast", if wanted.
    Otherwise European options are inverted by the closed form whatever the engine, and American
    ones, or all under markets, by a search on the engine's prices.
    An American time value below 1e-6 of the strike is smaller than the errors of the engines that
    would have to explain it, and gets no volatility.
    """
    low, high = bounds.bounds(options)
    dead = options.expiry <= 0
    rounding = 1e-13 * (options.spot + options.strike)
    below, above = ~dead & (price <= low + rounding), ~dead & (price >= high - rounding)
    faint = ~(dead | below | above) & options.is_american
    faint &= price - low < _FAINT * options.strike
    found = Inverted(
        np.full(len(options), np.nan),
        np.full(len(options), None, dtype=object),
        [
            BadRows("price", reason, np.flatnonzero(mask))
            for mask, reason in (
                (dead, "no implied volatility at expiry"),
                (below & (price < low - rounding), "price is below its no-arbitrage bound"),
                (below & (price >= low - rounding), "price is at its lower bound: no time value"),
                (above, "price is at or above its upper no-arbitrage bound"),
                (faint, _TOO_SMALL),
            )
            if mask.any()
        ],
    )
    rows = np.flatnonzero(~(dead | below | above | faint))
    if progress is not None:
        progress(len(options) - len(rows))
    if not isinstance(engine, Inverts):
        _solve(engine, options, price, rows, found, workers, progress)
        return found
    knows = options.slices is None or isinstance(engine, TakesMarkets)
    reason = f'engine "{engine.name}" does not price under markets'
    if knows:
        rows = _own(engine, options, price, rows, found, workers, progress)
        found.engine[np.isfinite(found.volatility)] = engine.name
        reason = f"no volatility in the domain of {engine.name} gives this price"
        progress = None  # its rows are counted already
    if falls_back:
        for other, share in _fallbacks(options, rows):
            _solve(get_engine(other), options, price, share, found, workers, progress)
    elif len(rows):
        found.problems.append(BadRows("price", reason, rows))
    return found


def _fallbacks(
    options: Options, rows: npt.NDArray[np.intp]
) -> list[tuple[str, npt.NDArray[np.intp]]]:
    """Return which engine inverts which rows that a bounded one does not."""
    if options.slices is None:
        return [("quantlib", rows)]
    early = options.is_american[rows]
    return [
        (name, share)
        for name, share in (("fd-fast", rows[early]), ("analytic", rows[~early]))
        if len(share)
    ]


def _own(
    engine: Inverts,
    options: Options,
    price: FloatArray,
    rows: npt.NDArray[np.intp],
    found: Inverted,
    workers: int | None,
    progress: Callable[[int], None] | None,
) -> npt.NDArray[np.intp]:
    """Store what an engine inverts by itself in ``found``; return the rows that it does not."""
    own, failures = engine.implied_volatility(
        options.take(rows), price[rows], workers=workers, progress=progress
    )
    for reason in dict.fromkeys(failures.values()):
        lost = [row for row, text in failures.items() if text == reason]
        found.problems.append(BadRows("price", reason, rows[lost]))
    is_found = np.isfinite(own)
    is_found[list(failures)] = False
    found.volatility[rows[is_found]] = own[is_found]
    is_left = ~is_found
    is_left[list(failures)] = False
    return np.asarray(rows[is_left])


def _solve(
    engine: Engine,
    options: Options,
    price: FloatArray,
    rows: npt.NDArray[np.intp],
    found: Inverted,
    workers: int | None,
    progress: Callable[[int], None] | None,
) -> None:
    """Invert the rows by closed form and search, and store the results in ``found``.

    An American option is worth at least as much as the European one, so the European implied
    volatility is an upper bound.
    """
    chosen = options.take(rows)
    european = np.full(len(options), np.nan)
    european[rows] = black_scholes.implied_volatility(price[rows], *chosen.quoted_terms)
    is_searched = chosen.is_american | (chosen.slices is not None)  # what has no formula to invert
    early, late = rows[is_searched], rows[~is_searched]
    found.volatility[late] = european[late]
    if progress is not None:
        progress(len(late))
    if len(early):
        found.volatility[early] = _search(
            engine, options, price, european, early, workers, progress
        )
    tried = f"no volatility in [{_LOWEST:g}, {_HIGHEST:g}] gives this price by {engine.name}"
    for part, name, reason in ((early, engine.name, tried), (late, "analytic", _TOO_SMALL)):
        is_unsolved = np.isnan(found.volatility[part])
        found.engine[part[~is_unsolved]] = name
        if is_unsolved.any():
            found.problems.append(BadRows("price", reason, part[is_unsolved]))


def _search(
    engine: Engine,
    options: Options,
    price: FloatArray,
    european: FloatArray,
    rows: npt.NDArray[np.intp],
    workers: int | None,
    progress: Callable[[int], None] | None,
) -> FloatArray:
    """Solve ln(time value at a volatility / quoted one) = 0 for American rows.

    The logarithm is nearly straight where the time value itself is almost flat. Secants from the
    European volatility come first, and a bracketed search for the rows where they do not end.
    """
    lowest, strike = bounds.bounds(options)[0][rows], options.strike[rows]

    def log_time_value(value: FloatArray, position: npt.NDArray[np.intp]) -> FloatArray:
        above = np.maximum(value - lowest[position], 0.0) / strike[position]
        return np.asarray(np.log(above + _RESOLUTION))

    quoted = log_time_value(price[rows], np.arange(len(rows)))

    def excess(volatility: FloatArray, position: npt.NDArray[np.intp]) -> FloatArray:
        chosen = options.take(rows[position]).with_values(volatility=volatility)
        values, failures = evaluate(engine, chosen, ("price",), workers=workers)
        difference = log_time_value(values["price"], position) - quoted[position]
        difference[list(failures)] = np.nan
        return difference

    low, high = _taken_range(engine, options.take(rows))
    # An engine may err downwards; and early exercise seldom moves a volatility far.
    near = np.clip((1.0 + _MARGIN) * np.nan_to_num(european[rows], nan=_HIGHEST), low, high)
    chosen = options.take(rows).with_values(volatility=near)
    vega = closed_form(chosen, ("vega",))["vega"]
    slope = vega / np.maximum(price[rows] - lowest, _RESOLUTION * strike)
    found = secant_roots(excess, near, slope, (low, high), tolerance=_STEP, residual=_RESIDUAL)
    if progress is not None:
        progress(int(np.isfinite(found).sum()))
    left = np.flatnonzero(np.isnan(found))
    if len(left):
        found[left] = find_roots(
            lambda volatility, position: excess(volatility, left[position]),
            (np.maximum(low, _NEAR * near)[left], near[left]),
            (low[left], high[left]),
            tolerance=_TOLERANCE,
            residual=_RESIDUAL,
            progress=progress,
        )
    return found


def _taken_range(engine: Engine, options: Options) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and highest volatility to try, inside what the engine takes."""
    ladder = np.geomspace(_LOWEST, _HIGHEST, 41)
    is_taken = np.empty((len(ladder), len(options)), dtype=np.bool_)
    for row, volatility in enumerate(ladder):
        moved = options.with_values(volatility=np.full(len(options), volatility))
        refused = [mask for mask, _ in engine.refusals(moved)]
        is_taken[row] = ~np.any(refused, axis=0) if refused else True
    lowest = ladder[np.argmax(is_taken, axis=0)]
    highest = ladder[::-1][np.argmax(is_taken[::-1], axis=0)]
    return lowest, highest

"""Options under curves and dividends on nested grids: price and Greeks at each option's own spot.

Contracts with equally many payments are solved together. Backwards in time, steps grow from expiry
to the last ex-date and are even before it; the first two after each kink are damped. Rates of a
step are the mean forwards over it, so curves need no nodes in time. At an ex-date the spot falls,
and an American option takes the better of holding and exercising just before.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from amo.arrays import FloatArray, IntArray
from pricing import bounds
from pricing.fd.grid import SpaceGrid, build_grid, pack, unpack
from pricing.fd.jumps import march
from pricing.fd.solver import WIDTH, FDSettings, extrapolate, smoothed
from pricing.fd.spot import around_spot, interpolate, position_of
from pricing.markets.slices import Slices
from pricing.options import Options, Values
from pricing.progress import Advance

_DAMPED = 2  # steps after a kink, each replaced by two implicit half steps
_POWER = 2.0  # steps grow from expiry on, where the exercise boundary moves like √τ
_FEWEST = 3  # steps between two ex-dates, at the least
_CHUNK = 64  # contracts solved at a time
_SAFETY = 4.0  # a change between two extrapolations, each with errors of its own
_EARLY = 4e-7  # per unit strike: what the sweep adds by putting the exercise boundary on a node
_ROUNDING = 1e-8  # per unit strike
_SHIFT = 1e-4  # of a curve, per year


@dataclass(frozen=True)
class _Plan:
    """Substeps from expiry to today, the same number for all contracts."""

    share: FloatArray  # of the segment that each substep lies in, where it ends
    segment: IntArray
    theta: FloatArray
    jump: IntArray


def _plan(lengths: FloatArray, n_time: int) -> _Plan:
    """Lay out about ``n_time`` steps over segments of given lengths (contracts, segments)."""
    share = (lengths / lengths.sum(axis=1, keepdims=True)).max(axis=0)
    counts = np.maximum(np.round(n_time * share / max(share.sum(), 1e-300)), _FEWEST).astype(int)
    n_segments = lengths.shape[1]
    ends, segment, theta, jump = [], [], [], []
    for number, count in enumerate(counts):
        levels = (np.arange(count + 1) / count) ** (_POWER if number == 0 else 1.0)
        for n in range(1, count + 1):
            if n <= _DAMPED:
                ends.append(0.5 * (levels[n - 1] + levels[n]))
                theta.append(1.0)
                segment.append(number)
                jump.append(-1)
            ends.append(levels[n])
            theta.append(1.0 if n <= _DAMPED else 0.5)
            segment.append(number)
            jump.append(number if n == count and number < n_segments - 1 else -1)
    return _Plan(np.array(ends), np.array(segment), np.array(theta), np.array(jump))


def _grid(unit: Options, slices: Slices, settings: FDSettings) -> SpaceGrid:
    """Build grids of S/K that hold spot, strike and forward, before and after all payments."""
    x = np.log(unit.spot)
    left = unit.spot * np.prod(1.0 - slices.proportion, axis=1)
    least = np.log(np.maximum(left - slices.cash.sum(axis=1), 0.2 * left))
    deviation = unit.volatility * np.sqrt(unit.expiry)
    carry = slices.borrow_integral(unit.expiry) - slices.rate_integral(unit.expiry)
    meets = carry + x - least  # where the forward meets the strike, about
    margin = WIDTH * deviation + 0.5 * deviation**2
    lowest = np.minimum(np.minimum(x, least), np.minimum(carry, 0.0))
    highest = np.maximum(np.maximum(x, meets), 0.0)
    return build_grid(
        pack(lowest - margin),
        pack(highest + margin),
        pack(deviation),
        pack(unit.is_call),
        anchor=pack(x),
        n_intervals=settings.n_space,
    )


def _solve(
    unit: Options, slices: Slices, grid: SpaceGrid, settings: FDSettings, level: int
) -> tuple[FloatArray, FloatArray]:
    """Return nodes and values today, (contracts, nodes) each, on one level of the grids."""
    refinement = 2**level
    nodes = grid.nodes(refinement)
    n = len(slices)
    moments = np.concatenate([unit.expiry[:, None], slices.time[:, ::-1], np.zeros((n, 1))], axis=1)
    lengths = np.maximum(-np.diff(moments, axis=1), 0.0)
    plan = _plan(lengths, settings.n_time * refinement)
    ends = moments[:, plan.segment] - plan.share * lengths[:, plan.segment]
    starts = np.concatenate([unit.expiry[:, None], ends[:, :-1]], axis=1)
    first = np.flatnonzero(np.diff(plan.segment, prepend=-1))
    starts[:, first] = moments[:, plan.segment[first]]
    step = np.maximum(starts - ends, 0.0)
    safe = np.where(step > 0, step, 1.0)
    rate, borrow = (
        np.where(step > 0, (of(starts) - of(ends)) / safe, 0.0)
        for of in (slices.rate_integral, slices.borrow_integral)
    )
    discount = np.exp(
        slices.rate_integral(slices.time) - slices.rate_integral(unit.expiry)[:, None]
    )
    ruined = np.where(
        unit.is_call[:, None], 0.0, np.where(unit.is_american[:, None], 1.0, discount)
    )
    payoff = bounds.intrinsic(nodes, np.ones(1), pack(unit.is_call)[:, None, :])
    obstacle = np.where(pack(unit.is_american)[:, None, :], payoff, -np.inf)
    values = np.empty_like(nodes)
    march(
        nodes,
        obstacle,
        smoothed(payoff, nodes, grid, refinement),
        pack(unit.volatility),
        _lanes(rate),
        _lanes(borrow),
        _lanes(step),
        plan.theta,
        plan.jump,
        _lanes(slices.cash[:, ::-1]),
        _lanes(slices.proportion[:, ::-1]),
        _lanes(ruined[:, ::-1]),
        values,
    )
    return unpack(nodes, n), unpack(values, n)


def _lanes(values: FloatArray) -> FloatArray:
    """Return (contracts, k) as (blocks, k, lanes)."""
    columns = [pack(np.ascontiguousarray(column)) for column in values.T]
    if not columns:
        return np.zeros(
            (pack(np.zeros(len(values))).shape[0], 0, pack(np.zeros(len(values))).shape[1])
        )
    return np.stack(columns, axis=1)


def _at_spot(unit: Options, slices: Slices, grid: SpaceGrid, settings: FDSettings) -> Values:
    """Return price and three derivatives in spot per unit strike, and the price's error."""
    place = position_of(grid, unit.spot)
    left = np.clip(place.astype(np.intp), 3, grid.n_intervals - 4)
    fields = [
        around_spot(*_solve(unit, slices, grid, settings, level), left, 2**level)
        for level in range(settings.levels)
    ]
    best: Values = {}
    error = np.zeros(len(unit))
    for name in ("price", "delta", "gamma", "speed"):
        best[name], change = extrapolate([field[name] for field in fields])
        error = change.max(axis=1) if name == "price" else error
    found = interpolate(unit.spot, fields[0]["spot"], place - left + 1, best)
    early = np.where(unit.is_american, _EARLY, 0.0)
    return {**found, "price_error": _SAFETY * error + early + _ROUNDING}


def _evaluate_group(
    options: Options, slices: Slices, quantities: Sequence[str], settings: FDSettings
) -> Values:
    """Return quantities of options with equally many payments."""
    strike = options.strike
    unit = options.with_values(spot=options.spot / strike, strike=np.ones_like(strike))
    part = replace(slices, cash=slices.cash / strike[:, None])
    grid = _grid(unit, part, settings)
    found = _at_spot(unit, part, grid, settings)
    S, V, delta, gamma = unit.spot, found["price"], found["delta"], found["gamma"]
    r, b, variance = part.rate_now, part.borrow_now, unit.volatility**2
    found["theta"] = r * V - (r - b) * S * delta - 0.5 * variance * S**2 * gamma
    found["charm"] = (
        b * delta - (r - b + variance) * S * gamma - 0.5 * variance * S**2 * found["speed"]
    )
    if {"vega", "vanna", "volga"} & set(quantities):
        h = unit.volatility * np.where(unit.is_american, 2e-2, 2e-3)
        up, down = (
            _at_spot(unit.with_values(volatility=unit.volatility + k * h), part, grid, settings)
            for k in (1, -1)
        )
        found["vega"] = (up["price"] - down["price"]) / (2.0 * h)
        found["vanna"] = (up["delta"] - down["delta"]) / (2.0 * h)
        found["volga"] = (up["price"] - 2.0 * V + down["price"]) / h**2
    for name, moved in (("rho", "rate"), ("dividend_rho", "borrow")):
        if name in quantities:
            up, down = (
                _at_spot(unit, part.shifted(**{moved: k * _SHIFT}), grid, settings) for k in (1, -1)
            )
            found[name] = (up["price"] - down["price"]) / (2.0 * _SHIFT)
    one = np.ones(len(strike))
    scale = {"delta": one, "vanna": one, "charm": one, "gamma": 1.0 / strike}
    return {name: found[name] * scale.get(name, strike) for name in quantities}


def evaluate(
    options: Options,
    slices: Slices,
    quantities: Sequence[str],
    settings: FDSettings,
    *,
    workers: int | None = None,
    progress: Advance = None,
) -> Values:
    """Return the quantities of :func:`pricing.fd.evaluate` for options under their markets.

    Theta follows from the equation at this moment: the fall of the spot at an ex-date is no decay.
    Rho and dividend_rho are parallel shifts of the rate and of the borrow curve.
    """
    threads = workers or os.cpu_count() or 1
    groups = []
    for n_payments in np.unique(slices.n_payments).tolist():
        rows = np.flatnonzero(slices.n_payments == n_payments)
        rows = rows[np.argsort(options.expiry[rows], kind="stable")]  # steps are shared in a chunk
        groups += [(n_payments, rows[i : i + _CHUNK]) for i in range(0, len(rows), _CHUNK)]

    def work(group: tuple[int, IntArray]) -> Values:
        n_payments, rows = group
        some = options.take(rows)
        return _evaluate_group(some, slices.take(rows).first(n_payments), quantities, settings)

    result = {name: np.empty(len(options)) for name in quantities}
    with ThreadPoolExecutor(threads) as pool:
        for (_, rows), part in zip(groups, pool.map(work, groups), strict=True):
            for name in quantities:
                result[name][rows] = part[name]
            if progress is not None:
                progress(len(rows))
    return result

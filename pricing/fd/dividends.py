"""Options under curves and dividends on nested grids: price and Greeks at each option's own spot.

Contracts with equally many payments are solved together; :mod:`pricing.fd.timeline` lays the steps,
whose rates are the mean forwards over each. At an ex-date the spot falls, and an American option
takes the better of holding and exercising just before.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from amo.arrays import FloatArray, IntArray
from pricing import bounds
from pricing.fd.grid import SpaceGrid, build_grid, pack, unpack
from pricing.fd.jumps import march
from pricing.fd.solver import WIDTH, FDSettings, extrapolate, smoothed
from pricing.fd.spot import around_spot, interpolate, position_of
from pricing.fd.timeline import Stops, lay_steps
from pricing.markets.slices import Slices
from pricing.options import Options, Values
from pricing.progress import Advance

_CHUNK = 128  # contracts solved at a time
_SAFETY = 4.0  # a change between two extrapolations, each with errors of its own
_EARLY = 4e-7  # per unit strike: what the sweep adds by putting the exercise boundary on a node
_ROUNDING = 1e-8  # per unit strike
_STOPPED = 1e-9  # per unit strike: time value below which an American option is exercised
_SHIFT = 1e-4  # of a curve, per year


def grid_under(
    unit: Options, slices: Slices, settings: FDSettings, cover: FloatArray | None = None
) -> SpaceGrid:
    """Build grids of S/K that hold spot, strike and forward, before and after all payments.

    ``cover`` (contracts, spots) must lie inside too; the spot is then no node.
    """
    x = np.log(unit.spot)
    left = unit.spot * np.prod(1.0 - slices.proportion, axis=1)
    least = np.log(np.maximum(left - slices.cash.sum(axis=1), 0.2 * left))
    deviation = unit.volatility * np.sqrt(unit.expiry)
    carry = slices.borrow_integral(unit.expiry) - slices.rate_integral(unit.expiry)
    meets = carry + x - least  # where the forward meets the strike, about
    margin = WIDTH * deviation + 0.5 * deviation**2
    lowest = np.minimum(np.minimum(x, least), np.minimum(carry, 0.0))
    highest = np.maximum(np.maximum(x, meets), 0.0)
    if cover is not None:
        lowest = np.minimum(lowest, np.log(cover.min(axis=1)) + margin)  # that is far enough
        highest = np.maximum(highest, np.log(cover.max(axis=1)) - margin)
    return build_grid(
        pack(lowest - margin),
        pack(highest + margin),
        pack(deviation),
        pack(unit.is_call),
        anchor=pack(x) if cover is None else None,
        n_intervals=settings.n_space,
    )


def solve(
    unit: Options,
    slices: Slices,
    grid: SpaceGrid,
    settings: FDSettings,
    level: int,
    kept: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Solve options of unit strike on one level of their grids.

    Returns nodes and values now, (blocks, nodes, lanes) each, and the values at the moments
    ``kept`` (contracts, moments) in years from now: (blocks, moments, nodes, lanes).
    """
    refinement = 2**level
    nodes = grid.nodes(refinement)
    stops = Stops.of(slices, np.empty((len(unit), 0)) if kept is None else kept)
    steps = lay_steps(stops, unit.expiry, settings.n_time, refinement)
    length = np.maximum(steps.start - steps.end, 0.0)
    rate, borrow = (
        np.divide(of(steps.start) - of(steps.end), length, where=length > 0, out=0.0 * length)
        for of in (slices.rate_integral, slices.borrow_integral)
    )
    discount = np.exp(slices.rate_integral(stops.time) - slices.rate_integral(unit.expiry)[:, None])
    ruined = np.where(
        unit.is_call[:, None], 0.0, np.where(unit.is_american[:, None], 1.0, discount)
    )
    payoff = bounds.intrinsic(nodes, np.ones(1), pack(unit.is_call)[:, None, :])
    obstacle = np.where(pack(unit.is_american)[:, None, :], payoff, -np.inf)
    values = np.empty_like(nodes)
    n_kept = 0 if kept is None else kept.shape[1]
    surface = np.empty((nodes.shape[0], n_kept, *nodes.shape[1:]))
    march(
        nodes,
        obstacle,
        smoothed(payoff, nodes, grid, refinement),
        pack(unit.volatility),
        pack(rate),
        pack(borrow),
        pack(length * steps.theta),
        pack(length * (1.0 - steps.theta)),
        steps.cut,
        pack(stops.cash),
        pack(stops.proportion),
        pack(ruined),
        pack(stops.keep),
        values,
        surface,
    )
    return nodes, values, surface


def _at_spot(unit: Options, slices: Slices, grid: SpaceGrid, settings: FDSettings) -> Values:
    """Return price and three derivatives in spot per unit strike, and the price's error."""
    place = position_of(grid, unit.spot)
    left = np.clip(place.astype(np.intp), 3, grid.n_intervals - 4)
    fields = []
    for level in range(settings.levels):
        nodes, values, _ = solve(unit, slices, grid, settings, level)
        fields.append(
            around_spot(unpack(nodes, len(unit)), unpack(values, len(unit)), left, 2**level)
        )
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
    grid = grid_under(unit, part, settings)
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
    found = at_exercise(unit, found)
    one = np.ones(len(strike))
    scale = {"delta": one, "vanna": one, "charm": one, "gamma": 1.0 / strike}
    return {name: found[name] * scale.get(name, strike) for name in quantities}


def at_exercise(unit: Options, found: Values) -> Values:
    """Set the values of what is exercised at once: worth what it pays, delta ±1, the rest zero."""
    paid = bounds.intrinsic(unit.spot, unit.strike, unit.is_call)
    is_stopped = unit.is_american & (paid > 0) & (found["price"] <= paid + _STOPPED)
    stopped = {
        "price": paid,
        "delta": np.where(unit.is_call, 1.0, -1.0),
        "price_error": found["price_error"],
    }
    return {
        name: np.where(is_stopped, stopped.get(name, 0.0), value) for name, value in found.items()
    }


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

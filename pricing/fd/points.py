"""V(S, t) of whole contracts at any spots and moments: one solve a contract gives them all.

The moments are stops of the march and the spots are read off by the quintic of
:mod:`pricing.fd.hermite`, so nothing is interpolated in time.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from amo.arrays import FloatArray, IntArray
from pricing import bounds
from pricing.fd.dividends import at_exercise, grid_under, solve
from pricing.fd.grid import SpaceGrid, pack, unpack
from pricing.fd.hermite import Pair, cubic, quintic
from pricing.fd.readout import exercise_boundary, read_fields
from pricing.fd.solver import FDSettings, bump_weights, extrapolation_weights
from pricing.markets.slices import Slices
from pricing.options import Options, Values
from pricing.progress import Advance

QUANTITIES = ("price", "delta", "gamma", "theta", "vega", "rho", "dividend_rho")
_CHUNK = 32  # contracts solved at a time: their kept moments fill some 50 MB
_SHIFT = 1e-4  # of a curve, per year
_SAFETY = 4.0  # as under dividends
_ROUNDING = 1e-8  # per unit strike
_COMPARED = ("strike", "is_call", "is_american")  # with (contracts, moments, spots)


def evaluate_points(
    options: Options,
    spot: FloatArray,
    time: FloatArray,
    quantities: Sequence[str],
    settings: FDSettings,
    *,
    workers: int | None = None,
    progress: Advance = None,
) -> Values:
    """Return quantities of each contract at its spots and moments before expiry.

    Parameters
    ----------
    spot
        (contracts, spots).
    time
        (contracts, moments), years from now, below the contract's expiry. Of the moment of a
        payment it is the value before it.
    quantities
        Of :data:`QUANTITIES`, ``price_error`` and ``boundary``, where exercise begins; all but the
        last, which is (contracts, moments), are (contracts, moments, spots).
    """
    slices = options.slices or Slices.flat(options.rate, options.dividend_yield, options.expiry)
    threads = workers or os.cpu_count() or 1
    size = max(1, min(_CHUNK, -(-len(options) // threads)))
    order = np.argsort(options.expiry, kind="stable")  # steps are shared in a chunk
    rows = [order[i : i + size] for i in range(0, len(options), size)]

    def work(chunk: IntArray) -> Values:
        return _chunk(
            options.take(chunk), slices.take(chunk), spot[chunk], time[chunk], quantities, settings
        )

    found: Values = {}
    with ThreadPoolExecutor(threads) as pool:
        for chunk, part in zip(rows, pool.map(work, rows), strict=True):
            for name, values in part.items():
                shape = (len(options), *values.shape[1:])
                found.setdefault(name, np.empty(shape))[chunk] = values
            if progress is not None:
                progress(len(chunk))
    return found


def _chunk(
    options: Options,
    slices: Slices,
    spot: FloatArray,
    time: FloatArray,
    quantities: Sequence[str],
    settings: FDSettings,
) -> Values:
    strike = options.strike
    unit = options.with_values(spot=options.spot / strike, strike=np.ones_like(strike))
    part = replace(slices, cash=slices.cash / strike[:, None])
    at = spot / strike[:, None]
    grid = grid_under(unit, part, settings, at)
    fields = _fields(unit, part, grid, time, settings)
    found = _read(fields, at, unit)
    S, V, delta, gamma = at[:, None, :], found["price"], found["delta"], found["gamma"]
    rate, borrow = (
        curves.forward(time + part.start[:, None], part.number)[:, :, None]
        for curves in (part.rates, part.borrows)
    )
    variance = unit.volatility[:, None, None] ** 2
    found["theta"] = rate * V - (rate - borrow) * S * delta - 0.5 * variance * S**2 * gamma
    if "vega" in quantities:
        h = unit.volatility * np.where(unit.is_american, 2e-2, 2e-3)
        up, down = (
            _bumped(unit.with_values(volatility=unit.volatility + k * h), part, grid, time, at,
                    settings)
            for k in (1, -1)
        )  # fmt: skip
        found["vega"] = (up - down) / (2.0 * h[:, None, None])
    for name, moved in (("rho", "rate"), ("dividend_rho", "borrow")):
        if name in quantities:
            up, down = (
                _bumped(unit, part.shifted(**{moved: k * _SHIFT}), grid, time, at, settings)
                for k in (1, -1)
            )
            found[name] = (up - down) / (2.0 * _SHIFT)
    beside = {name: getattr(unit, name)[:, None, None] for name in _COMPARED}
    found = at_exercise(unit.with_values(**beside, spot=S), found)
    found["boundary"] = fields["boundary"]
    whole = strike[:, None, None]
    scale = {"boundary": strike[:, None], "gamma": 1.0 / whole, "delta": np.ones(1)}
    return {name: found[name] * scale.get(name, whole) for name in quantities}


def _fields(
    unit: Options,
    slices: Slices,
    grid: SpaceGrid,
    time: FloatArray,
    settings: FDSettings,
    *,
    price_only: bool = False,
) -> Values:
    """Return extrapolated fields (contracts, moments, coarse nodes), rising in S, and the nodes."""
    n = len(unit)
    solved = [solve(unit, slices, grid, settings, level, time) for level in range(settings.levels)]
    nodes, surfaces = zip(*((nodes, kept) for nodes, _, kept in solved), strict=True)
    best, change = extrapolation_weights(settings.levels)
    weights = np.broadcast_to(best[:, None, None], (settings.levels, *grid.spacing.shape))
    if price_only:
        weights = bump_weights(settings.levels, pack(unit.is_american))
    names = ("price", "delta", "gamma", "change")
    shape = (n, time.shape[1], grid.n_intervals + 1)
    fields = {name: np.empty(shape) for name in names}
    read_fields(
        nodes, surfaces, unit.is_call, np.ascontiguousarray(weights), change, *fields.values()
    )
    coarse = unpack(grid.nodes(), n)
    fields["spot"] = np.where(unit.is_call[:, None], coarse[:, ::-1], coarse)
    if not price_only:
        paid = bounds.intrinsic(fields["spot"], np.ones((n, 1)), unit.is_call[:, None])[:, None, :]
        floor = np.where(unit.is_american[:, None, None], paid, 0.0)
        fields["boundary"] = exercise_boundary(
            unit, fields["spot"], np.maximum(fields["price"], floor)
        )
    return fields


def _bumped(
    unit: Options,
    slices: Slices,
    grid: SpaceGrid,
    time: FloatArray,
    at: FloatArray,
    settings: FDSettings,
) -> FloatArray:
    """Return prices to be differenced."""
    fields = _fields(unit, slices, grid, time, settings, price_only=True)
    return _read(fields, at, unit)["price"]


def _read(fields: Values, at: FloatArray, unit: Options) -> Values:
    """Interpolate fields to spots (contracts, spots); American prices not below exercise."""
    nodes = fields["spot"]
    right = np.array([np.searchsorted(row, x) for row, x in zip(nodes, at, strict=True)])
    right = np.clip(right, 2, nodes.shape[1] - 2)

    def ends(field: FloatArray) -> Pair:
        index = right[:, None, :]
        return (
            np.take_along_axis(field, index - 1, axis=2),
            np.take_along_axis(field, index, axis=2),
        )

    start, stop = ends(nodes[:, None, :])
    h, t = stop - start, (at[:, None, :] - start) / (stop - start)
    slope, curvature = ends(fields["delta"]), ends(fields["gamma"])
    price = quintic(t, h, ends(fields["price"]), slope, curvature)
    paid = bounds.intrinsic(at, np.ones((len(unit), 1)), unit.is_call[:, None])[:, None, :]
    floor = np.where(unit.is_american[:, None, None], paid, 0.0)
    change = ends(np.abs(fields["change"]))
    return {
        "price": np.maximum(price, floor),
        "delta": cubic(t, h, slope, curvature),
        "gamma": _cubic(fields["gamma"], nodes, right, at),
        "price_error": _SAFETY / 3.0 * np.maximum(*change) + _ROUNDING,
    }


def _cubic(field: FloatArray, nodes: FloatArray, right: IntArray, at: FloatArray) -> FloatArray:
    """Interpolate (contracts, moments, nodes) to spots by the cubic through four nodes."""
    places = [right + k for k in (-2, -1, 0, 1)]
    spots = [np.take_along_axis(nodes, place, axis=1) for place in places]
    total = np.zeros((len(nodes), field.shape[1], at.shape[1]))
    for j, place in enumerate(places):
        weight = np.ones_like(at)
        for k in range(4):
            if k != j:
                weight *= (at - spots[k]) / (spots[j] - spots[k])
        total += weight[:, None, :] * np.take_along_axis(field, place[:, None, :], axis=2)
    return total

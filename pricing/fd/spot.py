"""Price and Greeks of each option at its own spot."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray
from pricing import bounds
from pricing.fd.grid import LANES, SpaceGrid, unpack
from pricing.fd.hermite import cubic, quintic
from pricing.fd.readout import exercise_boundary
from pricing.fd.solver import (
    ACCURATE,
    FDSettings,
    Triple,
    bump_weights,
    bumped,
    differentiate,
    extrapolate,
    grid_for,
    per_unit_strike,
    require_taken,
    solve,
)
from pricing.options import Options

_CHUNK = 256  # contracts a thread solves at a time, at most
_ROUNDING = 1e-8  # per unit strike
_SAFETY = 2.0  # for a change between two extrapolations, each with its own error
_NEEDS_BUMP = {
    "volatility": {"vega", "vanna", "volga"},
    "rate": {"rho"},
    "dividend_yield": {"dividend_rho"},
}


def evaluate(
    options: Options,
    quantities: Sequence[str],
    settings: FDSettings = ACCURATE,
    *,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, FloatArray]:
    """Return the named quantities of each option at its own spot.

    Takes the quantities of :mod:`pricing.black_scholes`, with its units, and ``price_error``, an
    estimate that 99 of 100 price errors stay below (NaN below three levels). Delta and gamma come
    from the grid, theta and charm from the equation, vega, rho, dividend_rho, vanna and volga
    from central bumps on a fixed grid. A spot at or beyond the exercise boundary gets the stopped
    values: intrinsic, delta ±1, the rest zero. Expiries must be positive.

    Parameters
    ----------
    workers
        Threads; the answer does not depend on it. Default: one per core.
    progress
        Called with the number of options just finished.
    """
    require_taken(options)
    threads = workers or os.cpu_count() or 1
    size = max(LANES, min(_CHUNK, -(-len(options) // threads)))
    chunks = [options.take(slice(i, i + size)) for i in range(0, len(options), size)]
    task = partial(_evaluate_chunk, quantities=tuple(quantities), settings=settings)
    parts = []
    with ThreadPoolExecutor(threads) as pool:
        for chunk, part in zip(chunks, pool.map(task, chunks), strict=True):
            parts.append(part)
            if progress is not None:
                progress(len(chunk))
    return {
        name: np.concatenate([part[name] for part in parts]) if parts else np.empty(0)
        for name in quantities
    }


def _evaluate_chunk(
    options: Options, quantities: tuple[str, ...], settings: FDSettings
) -> dict[str, FloatArray]:
    unit = per_unit_strike(options)
    grid = grid_for(unit, settings)
    base, base_for_bumps = _at_spot(unit, grid, settings)
    S, r, q = unit.spot, unit.rate, unit.dividend_yield
    variance = unit.volatility**2
    sign = np.where(unit.is_call, 1.0, -1.0)
    V, delta, gamma, speed = base["price"], base["delta"], base["gamma"], base["speed"]
    out = {  # per unit strike
        "price": V,
        "price_error": base["price_error"],
        "delta": delta,
        "gamma": gamma,
        "theta": r * V - (r - q) * S * delta - 0.5 * variance * S**2 * gamma,
        "charm": q * delta - (r - q + variance) * S * gamma - 0.5 * variance * S**2 * speed,
    }
    for column, dependants in _NEEDS_BUMP.items():
        if dependants & set(quantities):
            out |= _slopes(unit, grid, settings, column, base_for_bumps)
    intrinsic = bounds.intrinsic(unit.spot, unit.strike, unit.is_call)
    is_stopped = sign * S >= sign * base["boundary"]  # at or beyond; never where that is NaN
    stopped_values = {"price": intrinsic, "delta": sign, "price_error": out["price_error"]}
    scale = {"gamma": 1.0 / options.strike, "delta": 1.0, "vanna": 1.0, "charm": 1.0}
    result = {}
    for name in quantities:
        value = np.where(is_stopped, stopped_values.get(name, 0.0), out[name])
        result[name] = value * scale.get(name, options.strike)
    if "price" in result:
        floor = np.where(options.is_american, intrinsic * options.strike, 0.0)
        result["price"] = np.maximum(result["price"], floor)
    return result


def _slopes(
    unit: Options, grid: SpaceGrid, settings: FDSettings, column: str, base: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """Differentiate in one market input by solving again on the same grid."""
    lowered, raised, down, up = bumped(unit, column)
    above = _at_spot(raised, grid, settings)[1]
    below = _at_spot(lowered, grid, settings)[1]
    slope = (above["price"] - below["price"]) / (up + down)
    if column != "volatility":
        return {"rho" if column == "rate" else "dividend_rho": slope}
    return {
        "vega": slope,
        "vanna": (above["delta"] - below["delta"]) / (up + down),
        "volga": (above["price"] - 2.0 * base["price"] + below["price"]) / up**2,
    }


def _at_spot(
    unit: Options, grid: SpaceGrid, settings: FDSettings
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Price and three spot derivatives per unit strike, interpolated to spot.

    The first answer is the best one, with the price's error and the boundary; the second is for
    differencing in a market input, see :func:`pricing.fd.solver.bump_weights`.
    """
    position = position_of(grid, unit.spot)
    left = np.clip(position.astype(np.intp), 3, grid.n_intervals - 4)
    solutions = [
        [unpack(each, len(unit)) for each in solve(unit, grid, settings, level)]
        for level in range(settings.levels)
    ]
    around = [
        around_spot(nodes, values, left, 2**level)
        for level, (nodes, values) in enumerate(solutions)
    ]
    weights = bump_weights(settings.levels, unit.is_american)[..., None]
    best, smooth = {}, {}
    error = np.empty(0)
    for name in ("price", "delta", "gamma", "speed"):
        fields = [each[name] for each in around]
        best[name], change = extrapolate(fields)
        smooth[name] = np.sum(weights * np.stack(fields), axis=0)
        error = change if name == "price" else error
    at_spot, for_bumps = (
        interpolate(unit.spot, around[0]["spot"], position - left + 1, fields)
        for fields in (best, smooth)
    )
    today = extrapolate([values[:, :: 2**level] for level, (_, values) in enumerate(solutions)])[0]
    spot, price = (np.where(unit.is_call[:, None], x[:, ::-1], x) for x in (solutions[0][0], today))
    boundary = exercise_boundary(unit, spot, price[:, None, :])[:, 0]
    at_spot["boundary"] = boundary
    at_spot["price_error"] = _ROUNDING + np.maximum(
        _SAFETY * error.max(axis=1), _boundary_error(unit, grid, settings, boundary)
    )
    return at_spot, for_bumps


def position_of(grid: SpaceGrid, spot: FloatArray) -> FloatArray:
    """Return where spots lie, in intervals of the coarsest grid."""
    x = np.resize(np.log(spot), grid.spacing.shape)  # pad to whole blocks
    return grid.position(x).ravel()[: len(spot)]


def _boundary_error(
    unit: Options, grid: SpaceGrid, settings: FDSettings, boundary: FloatArray
) -> FloatArray:
    """Return what the exercise boundary adds to the price's error; zero where there is none.

    The sweep puts the boundary on a node. That moves the value by a part of Γ h², where
    Γ = 2 |rK - qS*| / (σ S*)² is gamma's jump at the boundary S* and h the step of the finest grid
    there; no extrapolation removes it, because where the boundary lies between two nodes differs
    from grid to grid. How large a part, and how it fades with the distance in σ√T, is measured:
    tests/pricing/test_wrong_numbers.py compares it with QuantLib. Deep in the exercise region it
    vanishes.
    """
    known = np.where(np.isnan(boundary), 1.0, boundary)
    place = position_of(grid, known)
    near = place + 0.5 * np.where(place > 0.5 * grid.n_intervals, -1.0, 1.0)
    step = 2.0 * np.abs(_spot_at(grid, near) - known) / 2 ** (settings.levels - 1)
    jump = 2.0 * np.abs(unit.rate - unit.dividend_yield * known) / (unit.volatility * known) ** 2
    outwards = np.where(unit.is_call, -1.0, 1.0) * np.log(unit.spot / known)
    deviations = np.maximum(outwards, 0.0) / (unit.volatility * np.sqrt(unit.expiry))
    inside = np.maximum(place - position_of(grid, unit.spot), 0.0)  # intervals
    part = (0.2 * np.exp(-4.0 * deviations) + 0.002) * np.exp(-4.0 * np.maximum(inside - 1.0, 0.0))
    return np.where(np.isnan(boundary), 0.0, part * jump * step**2)


def _spot_at(grid: SpaceGrid, position: FloatArray) -> FloatArray:
    """Return the spot at a place in intervals of the coarsest grid."""
    place = np.resize(position, grid.spacing.shape)
    y = grid.direction * (place - grid.strike_position) * grid.spacing
    x = grid.scale * np.sinh(y) if grid.kind == "sinh" else y
    return np.exp(x).ravel()[: len(position)]


def around_spot(
    nodes: FloatArray, values: FloatArray, left: npt.NDArray[np.intp], refinement: int
) -> dict[str, FloatArray]:
    """Fields at the four coarse nodes around spot, differentiated on the grid at hand."""
    window = refinement * left[:, None] + np.arange(-refinement - 2, 2 * refinement + 3)
    s, v = np.take_along_axis(nodes, window, axis=1), np.take_along_axis(values, window, axis=1)
    delta, gamma = differentiate(_neighbours(s), _neighbours(v))
    speed, _ = differentiate(_neighbours(s[:, 1:-1]), _neighbours(gamma))
    return {
        "spot": s[:, 2:-2:refinement],
        "price": v[:, 2:-2:refinement],
        "delta": delta[:, 1:-1:refinement],
        "gamma": gamma[:, 1:-1:refinement],
        "speed": speed[:, ::refinement],
    }


def _neighbours(values: FloatArray) -> Triple:
    return values[:, :-2], values[:, 1:-1], values[:, 2:]


def interpolate(
    spot: FloatArray, nodes: FloatArray, position: FloatArray, fields: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """Interpolate from four nodes to a spot between the inner two; exact on a node.

    Price by the quintic with the inner nodes' value, slope and curvature, delta by the cubic with
    their slope and curvature, both in S and so exact for linear payoffs; gamma and speed by the
    cubic through all four, in the grid's own coordinate.
    """
    h = nodes[:, 2] - nodes[:, 1]
    t = (spot - nodes[:, 1]) / h
    value, slope, curvature = (
        (fields[name][:, 1], fields[name][:, 2]) for name in ("price", "delta", "gamma")
    )
    a, b, c, d = position, position - 1.0, position - 2.0, position - 3.0
    weights = np.stack([-b * c * d / 6, a * c * d / 2, -a * b * d / 2, a * b * c / 6], axis=1)
    return {
        "price": quintic(t, h, value, slope, curvature),
        "delta": cubic(t, h, slope, curvature),
        "gamma": np.sum(weights * fields["gamma"], axis=1),
        "speed": np.sum(weights * fields["speed"], axis=1),
    }

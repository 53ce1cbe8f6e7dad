"""Whole surfaces V(S, t), with delta, gamma and the exercise boundary."""

from dataclasses import dataclass

import numpy as np

from pricing import limits
from pricing.contracts import FloatArray, Options
from pricing.fd.grid import SpaceGrid
from pricing.fd.solver import (
    ACCURATE,
    FDSettings,
    bumped,
    differentiate,
    exercise_boundary,
    extrapolate,
    grid_for,
    per_unit_strike,
    solve,
)

_BUMPED = {"vega": "volatility", "rho": "rate", "dividend_rho": "dividend_yield"}


@dataclass(frozen=True, kw_only=True)
class Surface:
    """Values of whole contracts over spot and time; spot rises along the last axis.

    Attributes
    ----------
    spot
        (contracts, nodes).
    time_to_expiry
        (contracts, times), from zero to the contract's expiry, years.
    price, delta, gamma
        (contracts, times, nodes). At expiry: payoff, its slope, zero.
    boundary
        (contracts, times): the spot at which exercise becomes optimal; NaN for Europeans and
        where exercise is not optimal on the grid.
    error
        (contracts, times, nodes): the estimated error of price; NaN below three levels.
    vega, rho, dividend_rho
        (contracts, times, nodes), where asked for.
    """

    spot: FloatArray
    time_to_expiry: FloatArray
    price: FloatArray
    delta: FloatArray
    gamma: FloatArray
    boundary: FloatArray
    error: FloatArray
    vega: FloatArray | None = None
    rho: FloatArray | None = None
    dividend_rho: FloatArray | None = None


def solve_surface(
    options: Options,
    settings: FDSettings = ACCURATE,
    *,
    log_moneyness: tuple[float, float] | None = None,
    greeks: bool = False,
) -> Surface:
    """Return whole surfaces on the coarsest grid, extrapolated where levels allow.

    Parameters
    ----------
    log_moneyness
        The range of ln(S/K) a surface must cover; by default each contract's spot and strike.
        Either way the grid reaches five σ√T further.
    greeks
        Also vega, rho and dividend_rho, by bumps on the same grid: six more solves.

    Notes
    -----
    Memory: contracts × (n_time + 1) × (n_space + 1) × 8 bytes a field, and 2^levels times that
    while solving. Pass thousands of contracts in batches.
    """
    unit = per_unit_strike(options)
    grid = grid_for(unit, settings, log_moneyness)
    nodes, fields, error = _solve_fields(unit, grid, settings)
    if greeks:
        for name, column in _BUMPED.items():
            lowered, raised, down, up = bumped(unit, column)
            above = _solve_fields(raised, grid, settings)[1]["price"]
            below = _solve_fields(lowered, grid, settings)[1]["price"]
            fields[name] = (above - below) / (up + down)[:, None, None]
    is_call = options.is_call[:, None]
    intrinsic = limits.intrinsic(nodes, np.ones(1), is_call)
    floor = np.where(options.is_american[:, None, None], intrinsic[:, None, :], 0.0)
    fields["price"] = np.maximum(fields["price"], floor)
    boundary = exercise_boundary(nodes, fields["price"], unit)
    boundary[:, 0] = boundary_at_expiry(unit)
    at_expiry = {
        "price": intrinsic,
        "delta": np.where(is_call, 1.0, -1.0) * (np.sign(intrinsic) + 0.5 * (nodes == 1.0)),
    }
    strike = options.strike[:, None]
    flip = options.is_call[:, None, None]
    scaled = {}
    for name, field in fields.items():
        field[:, 0] = at_expiry.get(name, 0.0)
        scale = {"delta": 1.0, "gamma": 1.0 / strike[..., None]}.get(name, strike[..., None])
        scaled[name] = np.where(flip, field[..., ::-1], field) * scale
    plan = settings.scheme.plan(settings.n_time)
    fraction = np.concatenate([[0.0], plan.ends[plan.level >= 0]])
    return Surface(
        spot=np.where(is_call, nodes[:, ::-1], nodes) * strike,
        time_to_expiry=fraction * options.expiry[:, None],
        **scaled,
        boundary=boundary * strike,
        error=np.where(flip, error[..., ::-1], error) * strike[..., None],
    )


def _solve_fields(
    unit: Options, grid: SpaceGrid, settings: FDSettings
) -> tuple[FloatArray, dict[str, FloatArray], FloatArray]:
    """Return the coarsest nodes, extrapolated price, delta and gamma there, and price's error."""
    on_levels = []
    coarse = np.empty(0)
    for level in range(settings.levels):
        nodes, values = solve(unit, grid, settings, level, keep=True)
        coarse = nodes if level == 0 else coarse
        on_levels.append(_on_coarse_grid(nodes, values, 2**level))
    price, error = extrapolate([each["price"] for each in on_levels])
    fields = {
        name: extrapolate([each[name] for each in on_levels])[0] for name in ("delta", "gamma")
    }
    return coarse, {"price": price, **fields}, error


def boundary_at_expiry(unit: Options) -> FloatArray:
    """Return the limit of S*/K as expiry nears: put min(1, r/q), call max(1, r/q); else NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(unit.dividend_yield > 0, unit.rate / unit.dividend_yield, np.nan)
    put = np.where(unit.rate > 0, np.fmin(1.0, ratio), np.nan)
    call = np.where(unit.dividend_yield > 0, np.fmax(1.0, ratio), np.nan)
    return np.where(unit.is_american, np.where(unit.is_call, call, put), np.nan)


def _on_coarse_grid(
    nodes: FloatArray, values: FloatArray, refinement: int
) -> dict[str, FloatArray]:
    """Price, delta and gamma at every ``refinement``-th node; end slopes repeated."""
    delta, gamma = differentiate(nodes[:, None, :], values)

    def coarse(field: FloatArray) -> FloatArray:
        return np.pad(field, ((0, 0), (0, 0), (1, 1)), mode="edge")[..., ::refinement]

    return {"price": values[..., ::refinement], "delta": coarse(delta), "gamma": coarse(gamma)}

"""Whole surfaces V(S, t), with delta, gamma and the exercise boundary."""

from dataclasses import dataclass

import numpy as np

from pricing import limits
from pricing.contracts import FloatArray, Options
from pricing.fd.solver import (
    ACCURATE,
    FDSettings,
    differentiate,
    exercise_boundary,
    extrapolate,
    grid_for,
    per_unit_strike,
    solve,
)


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
        (contracts,): the largest estimated error of today's prices; NaN below three levels.
    """

    spot: FloatArray
    time_to_expiry: FloatArray
    price: FloatArray
    delta: FloatArray
    gamma: FloatArray
    boundary: FloatArray
    error: FloatArray


def solve_surface(
    options: Options,
    settings: FDSettings = ACCURATE,
    *,
    log_moneyness: tuple[float, float] | None = None,
) -> Surface:
    """Return whole surfaces on the coarsest grid, extrapolated where levels allow.

    Parameters
    ----------
    log_moneyness
        The range of ln(S/K) a surface must cover; by default each contract's spot and strike.
        Either way the grid reaches five σ√T further.

    Notes
    -----
    Memory while solving: contracts × (n_time + 1) × (n_space + 1) × 8 bytes × 4^levels or so.
    Pass thousands of contracts in batches.
    """
    unit = per_unit_strike(options)
    grid = grid_for(unit, settings, log_moneyness)
    on_levels: list[dict[str, FloatArray]] = []
    coarse = np.empty(0)
    for level in range(settings.levels):
        nodes, values = solve(unit, grid, settings, level, keep=True)
        coarse = nodes if level == 0 else coarse
        on_levels.append(_on_coarse_grid(nodes, values, 2**level))
    price, error = extrapolate([fields["price"] for fields in on_levels])
    delta, _ = extrapolate([fields["delta"] for fields in on_levels])
    gamma, _ = extrapolate([fields["gamma"] for fields in on_levels])
    is_call = options.is_call[:, None]
    intrinsic = limits.intrinsic(coarse, np.ones(1), is_call)
    price = np.where(
        options.is_american[:, None, None], np.maximum(price, intrinsic[:, None, :]), price
    )
    sign = np.where(is_call, 1.0, -1.0)
    boundary = exercise_boundary(coarse, price, unit)
    price[:, 0] = intrinsic
    delta[:, 0] = sign * (np.sign(intrinsic) + 0.5 * (coarse == 1.0))
    gamma[:, 0] = 0.0
    boundary[:, 0] = boundary_at_expiry(unit)
    plan = settings.scheme.plan(settings.n_time)
    fraction = np.concatenate([[0.0], plan.ends[plan.level >= 0]])
    strike = options.strike[:, None]

    def rising(field: FloatArray) -> FloatArray:
        flip = options.is_call.reshape(-1, *(1,) * (field.ndim - 1))
        return np.where(flip, field[..., ::-1], field)

    return Surface(
        spot=rising(coarse) * strike,
        time_to_expiry=fraction * options.expiry[:, None],
        price=rising(price) * strike[..., None],
        delta=rising(delta),
        gamma=rising(gamma) / strike[..., None],
        boundary=boundary * strike,
        error=error[:, -1].max(axis=1) * options.strike,
    )


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
    """Price, delta and gamma at every ``refinement``-th time and node; end slopes repeated."""
    values = values[:, ::refinement]
    delta, gamma = differentiate(nodes[:, None, :], values)

    def coarse(field: FloatArray) -> FloatArray:
        return np.pad(field, ((0, 0), (0, 0), (1, 1)), mode="edge")[..., ::refinement]

    return {"price": values[..., ::refinement], "delta": coarse(delta), "gamma": coarse(gamma)}

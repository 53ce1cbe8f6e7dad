"""Whole surfaces V(S, t), with delta, gamma and the exercise boundary."""

from dataclasses import dataclass

import numpy as np

from pricing import limits
from pricing.contracts import FloatArray, Options
from pricing.fd.grid import LANES, SpaceGrid, pack, unpack
from pricing.fd.hermite import Pair, quintic
from pricing.fd.readout import accumulate, find_boundary, turn
from pricing.fd.solver import (
    ACCURATE,
    FDSettings,
    bump_weights,
    bumped,
    extrapolation_weights,
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

    def price_at(self, spot: FloatArray) -> FloatArray:
        """Return prices at other spots (shape (points,)) and all times, interpolated in S."""
        right = np.array([np.searchsorted(row, spot) for row in self.spot])
        right = np.clip(right, 1, self.spot.shape[1] - 1)[:, None, :]

        def ends(field: FloatArray) -> Pair:
            return (
                np.take_along_axis(field, right - 1, axis=2),
                np.take_along_axis(field, right, axis=2),
            )

        start, stop = ends(self.spot[:, None, :])
        return quintic(
            (spot - start) / (stop - start),
            stop - start,
            ends(self.price),
            ends(self.delta),
            ends(self.gamma),
        )


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
    fields = _solve_fields(unit, grid, settings)
    change = fields.pop("change")
    if greeks:
        for name, column in _BUMPED.items():
            lowered, raised, down, up = bumped(unit, column)
            above = _solve_fields(raised, grid, settings, price_only=True)
            below = _solve_fields(lowered, grid, settings, price_only=True)
            fields[name] = (above["price"] - below["price"]) / (up + down)[:, None, None]
    nodes = unpack(grid.nodes(), len(unit))
    is_call = options.is_call[:, None]
    spot = np.where(is_call, nodes[:, ::-1], nodes)
    intrinsic = limits.intrinsic(spot, np.ones(1), is_call)
    american = np.flatnonzero(options.is_american)
    price = fields["price"]
    price[american] = np.maximum(price[american], intrinsic[american, None, :])
    boundary = np.full(price.shape[:2], np.nan)
    found = np.empty((len(american), price.shape[1]))
    find_boundary(spot[american], price[american], options.is_call[american], found)
    boundary[american] = found
    boundary[:, 0] = boundary_at_expiry(unit)
    price[:, 0] = intrinsic
    sign = np.where(is_call, 1.0, -1.0)
    fields["delta"][:, 0] = sign * (np.sign(intrinsic) + 0.5 * (spot == 1.0))
    fields["gamma"][:, 0] = 0.0
    strike = options.strike[:, None, None]
    for name in fields.keys() - {"delta"}:
        fields[name] *= 1.0 / strike if name == "gamma" else strike
    np.abs(change, out=change)
    change *= strike / 3.0
    plan = settings.scheme.plan(settings.n_time)
    fraction = np.concatenate([[0.0], plan.ends[plan.level >= 0]])
    return Surface(
        spot=spot * options.strike[:, None],
        time_to_expiry=fraction * options.expiry[:, None],
        **fields,
        boundary=boundary * options.strike[:, None],
        error=change,
    )


def _solve_fields(
    unit: Options, grid: SpaceGrid, settings: FDSettings, *, price_only: bool = False
) -> dict[str, FloatArray]:
    """Return extrapolated price, delta and gamma on the coarsest grid, and price's last change.

    Arrays are (contracts, times, nodes), rising in S. ``price_only``: prices to be differenced.
    """
    shape = (len(grid.spacing), settings.n_time + 1, settings.n_space + 1, LANES)
    price, change = np.zeros(shape), np.zeros(shape)
    delta, gamma = (np.zeros((0, 0, 0, 0) if price_only else shape) for _ in range(2))
    best, change_weights = extrapolation_weights(settings.levels)
    weights = np.broadcast_to(best[:, None, None], (settings.levels, *grid.spacing.shape))
    if price_only:
        weights = bump_weights(settings.levels, pack(unit.is_american))
    for level in range(settings.levels):
        if not weights[level].any() and price_only:
            continue
        nodes, surface = solve(unit, grid, settings, level, keep=True)
        accumulate(
            nodes,
            surface,
            2**level,
            weights[level],
            change_weights[level],
            price,
            delta,
            gamma,
            change,
        )
    fields = {"price": price} if price_only else {"price": price, "delta": delta, "gamma": gamma}
    if not price_only:
        fields["change"] = change
    turned = {}
    for name, field in fields.items():
        turned[name] = np.empty((len(unit), *shape[1:3]))
        turn(field, unit.is_call, turned[name])
    return turned


def boundary_at_expiry(unit: Options) -> FloatArray:
    """Return the limit of S*/K as expiry nears: put min(1, r/q), call max(1, r/q); else NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(unit.dividend_yield > 0, unit.rate / unit.dividend_yield, np.nan)
    put = np.where(unit.rate > 0, np.fmin(1.0, ratio), np.nan)
    call = np.where(unit.dividend_yield > 0, np.fmax(1.0, ratio), np.nan)
    return np.where(unit.is_american, np.where(unit.is_call, call, put), np.nan)

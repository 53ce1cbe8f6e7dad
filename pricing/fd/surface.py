"""Whole surfaces V(S, t), with delta, gamma and the exercise boundary."""

from dataclasses import dataclass

import numpy as np

from amo.arrays import FloatArray
from pricing import bounds
from pricing.fd.grid import SpaceGrid, pack, unpack
from pricing.fd.hermite import Pair, quintic
from pricing.fd.readout import exercise_boundary, read_fields
from pricing.fd.solver import (
    ACCURATE,
    FDSettings,
    bump_weights,
    bumped,
    extrapolation_weights,
    grid_for,
    per_unit_strike,
    require_taken,
    solve,
)
from pricing.options import Options

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
        (contracts, times): the spot at which exercise becomes optimal; NaN for European
        options and where exercise is not optimal on the grid.
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
    Memory: contracts × (n_time + 1) × (n_space + 1) × 8 bytes per field, and 2^levels times that
    while solving. Pass thousands of contracts in batches.
    """
    require_taken(options)
    unit = per_unit_strike(options)
    grid = grid_for(unit, settings, log_moneyness)
    fields = _solve_fields(unit, grid, settings)
    if greeks:
        fields |= _bumped_greeks(unit, grid, settings)
    nodes = unpack(grid.nodes(), len(unit))
    spot = np.where(unit.is_call[:, None], nodes[:, ::-1], nodes)
    intrinsic = bounds.intrinsic(spot, unit.strike[:, None], unit.is_call[:, None])
    floor = np.where(unit.is_american[:, None], intrinsic, 0.0)
    fields["price"] = np.maximum(fields["price"], floor[:, None, :])
    boundary = exercise_boundary(unit, spot, fields["price"])
    boundary[:, 0] = boundary_at_expiry(unit)
    sign = np.where(unit.is_call, 1.0, -1.0)[:, None]
    fields["price"][:, 0] = intrinsic
    fields["delta"][:, 0] = sign * (np.sign(intrinsic) + 0.5 * (spot == 1.0))
    fields["gamma"][:, 0] = 0.0
    unknown = np.broadcast_to(np.nan, fields["price"].shape)
    error = np.abs(fields.pop("change", unknown)) / 3.0
    strike = options.strike[:, None, None]
    for name in fields.keys() - {"delta"}:
        fields[name] *= 1.0 / strike if name == "gamma" else strike
    plan = settings.scheme.plan(settings.n_time)
    fraction = np.concatenate([[0.0], plan.ends[plan.level >= 0]])
    return Surface(
        spot=spot * options.strike[:, None],
        time_to_expiry=fraction * options.expiry[:, None],
        **fields,
        boundary=boundary * options.strike[:, None],
        error=error * strike,
    )


def _bumped_greeks(unit: Options, grid: SpaceGrid, settings: FDSettings) -> dict[str, FloatArray]:
    greeks = {}
    for name, column in _BUMPED.items():
        lowered, raised, down, up = bumped(unit, column)
        above = _solve_fields(raised, grid, settings, price_only=True)["price"]
        below = _solve_fields(lowered, grid, settings, price_only=True)["price"]
        greeks[name] = (above - below) / (up + down)[:, None, None]
    return greeks


def _solve_fields(
    unit: Options, grid: SpaceGrid, settings: FDSettings, *, price_only: bool = False
) -> dict[str, FloatArray]:
    """Return extrapolated price, delta and gamma on the coarsest grid.

    Arrays are (contracts, times, nodes), rising in S. With three levels ``change`` is the last
    change of price. ``price_only``: prices to be differenced.
    """
    shape = (len(unit), settings.n_time + 1, settings.n_space + 1)
    names = ["price"] if price_only else ["price", "delta", "gamma"]
    if settings.levels >= 3 and not price_only:
        names.append("change")
    best, change_weights = extrapolation_weights(settings.levels)
    weights = np.broadcast_to(best[:, None, None], (settings.levels, *grid.spacing.shape))
    if price_only:
        weights = bump_weights(settings.levels, pack(unit.is_american))
    solved = [solve(unit, grid, settings, level, keep=True) for level in range(settings.levels)]
    nodes, surfaces = zip(*solved, strict=True)
    fields = {name: np.empty(shape) for name in names}
    unwanted = np.empty((0, 0, 0))
    read_fields(
        nodes,
        surfaces,
        unit.is_call,
        np.ascontiguousarray(weights),
        change_weights,
        *(fields.get(name, unwanted) for name in ("price", "delta", "gamma", "change")),
    )
    return fields


def boundary_at_expiry(unit: Options) -> FloatArray:
    """Return the limit of S*/K as expiry nears: put min(1, r/q), call max(1, r/q).

    One where the other leg earns nothing; NaN where early exercise never pays.
    """
    r, q = unit.rate, unit.dividend_yield
    with np.errstate(divide="ignore", invalid="ignore"):
        put = np.where(q > 0, np.minimum(1.0, r / q), 1.0)
        call = np.where(r > 0, np.maximum(1.0, r / q), 1.0)
    never = bounds.never_exercised_early(r, q, unit.is_call)
    boundary = np.where(unit.is_call, call, put)
    return np.where(unit.is_american & ~never, boundary, np.nan)

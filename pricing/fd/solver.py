"""Solving the Black–Scholes equation on nested grids, and extrapolating between them.

Everything is solved per unit strike on grids of S/K; prices scale back exactly. A solve runs on
``levels`` nested grids, each with twice the space and time steps of the one before. Richardson
extrapolation on the nodes they share removes the leading error, and with three levels the change
between the last two extrapolations states what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pricing import limits
from pricing.contracts import BoolArray, FloatArray, Options
from pricing.fd.grid import GridKind, SpaceGrid, StrikePlacement, build_grid, pack, unpack
from pricing.fd.kernels import march
from pricing.fd.schemes import CRANK_NICOLSON, Scheme

MAX_DEVIATION = 5.0  # of σ√T: beyond, S/K spans more than the grid resolves
MAX_DRIFT = 30.0  # of |r - q|√T / σ: beyond, drift crosses the grid faster than diffusion
WIDTH = 5.0  # how far the grid reaches beyond spot, strike and forward, in σ√T


@dataclass(frozen=True, kw_only=True)
class FDSettings:
    """How finely to solve.

    Attributes
    ----------
    n_space, n_time
        Intervals and time levels of the coarsest grid.
    levels
        Nested grids: 1 plain, 2 extrapolated, 3 extrapolated with an error estimate.
    grid, placement
        See :mod:`pricing.fd.grid`. ``average`` puts the strike on a node and the payoff's cell
        average there; ``midpoint`` puts it between two nodes, which refinement does not keep.
    """

    n_space: int = 100
    n_time: int = 50
    levels: int = 3
    grid: GridKind = "sinh"
    scheme: Scheme = CRANK_NICOLSON
    placement: StrikePlacement = "average"

    def __post_init__(self) -> None:
        if self.n_space < 16 or self.n_time < 4 or not 1 <= self.levels <= 4:
            raise ValueError(
                "FDSettings needs n_space >= 16, n_time >= 4 and levels in 1..4, got "
                f"{self.n_space}, {self.n_time}, {self.levels}"
            )
        if self.placement == "midpoint" and self.levels > 1:
            raise ValueError("midpoint placement moves under refinement: use levels=1 with it")


ACCURATE = FDSettings()
FAST = FDSettings(levels=1)


def refusals(options: Options) -> list[tuple[BoolArray, str]]:
    """Return the rows this solver does not take, with the reason and the way out."""
    root = np.sqrt(options.expiry)
    drift = np.abs(options.rate - options.dividend_yield) * root / options.volatility
    is_double = options.is_american & limits.has_double_boundary(
        options.rate, options.dividend_yield, options.is_call
    )
    way_out = 'use engine="quantlib"'
    return [
        (
            is_double,
            (
                "fd does not price Americans with two exercise boundaries (put: dividend_yield < "
                'rate < 0; call: rate < dividend_yield < 0): use engine="quantlib-fd"'
            ),
        ),
        (
            options.volatility * root > MAX_DEVIATION,
            f"fd needs volatility x sqrt(expiry) <= {MAX_DEVIATION:g}: {way_out}",
        ),
        (
            drift > MAX_DRIFT,
            (
                "fd needs |rate - dividend_yield| x sqrt(expiry) / volatility <= "
                f"{MAX_DRIFT:g}: {way_out}"
            ),
        ),
    ]


def per_unit_strike(options: Options) -> Options:
    """Return the same options with spot and strike divided by the strike."""
    return options.with_values(
        spot=options.spot / options.strike, strike=np.ones_like(options.strike)
    )


def grid_for(
    options: Options, settings: FDSettings, cover: tuple[float, float] | None = None
) -> SpaceGrid:
    """Build the grids on which options of unit strike are solved.

    Parameters
    ----------
    cover
        The range of ln(S/K) that must lie inside; by default each option's own spot.
    """
    x = np.log(options.spot)
    first, last = (x, x) if cover is None else (np.full_like(x, c) for c in cover)
    deviation = options.volatility * np.sqrt(options.expiry)
    forward = (options.dividend_yield - options.rate) * options.expiry  # where it meets the strike
    margin = WIDTH * deviation + 0.5 * deviation**2
    return build_grid(
        pack(np.minimum(np.minimum(first, forward), 0.0) - margin),
        pack(np.maximum(np.maximum(last, forward), 0.0) + margin),
        pack(deviation),
        pack(options.is_call),
        anchor=None if cover is not None else pack(x),
        n_intervals=settings.n_space,
        kind=settings.grid,
        placement=settings.placement,
    )


def solve(
    options: Options, grid: SpaceGrid, settings: FDSettings, level: int, *, keep: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Solve options of unit strike on one level of their grids.

    Returns
    -------
    nodes
        (contracts, nodes): S/K from the exercise side outwards.
    values
        (contracts, 1, nodes): value/K today; with ``keep``, (contracts, n_time + 1, nodes) at the
        time levels of the coarsest grid, from expiry to today.
    """
    refinement = 2**level
    nodes = grid.nodes(refinement)
    plan = settings.scheme.plan(settings.n_time * refinement)
    expiry, rate, dividend_yield = (
        pack(x) for x in (options.expiry, options.rate, options.dividend_yield)
    )
    is_call, is_american = pack(options.is_call), pack(options.is_american)
    payoff = limits.intrinsic(nodes, np.ones(1), is_call[:, None, :])
    values = np.empty_like(nodes)
    n_blocks, n_nodes, lanes = nodes.shape
    surface = np.empty((n_blocks, settings.n_time + 1 if keep else 0, n_nodes, lanes))
    is_kept = (plan.level >= 0) & (plan.level % refinement == 0)
    march(
        nodes,
        payoff,
        _smoothed(payoff, nodes, grid, refinement) if settings.placement == "average" else payoff,
        is_american,
        rate,
        dividend_yield,
        pack(options.volatility),
        plan.lengths[:, None] * expiry[:, None, :],
        plan.implicitness,
        np.where(is_kept, plan.level // refinement, -1),
        _edge(
            nodes[:, :1],
            plan.ends[:, None] * expiry[:, None, :],
            rate[:, None, :],
            dividend_yield[:, None, :],
            is_call[:, None, :],
            is_american[:, None, :],
        ),
        values,
        surface,
    )
    if keep:
        surface[:, 0] = payoff
        return unpack(nodes, len(options)), unpack(surface, len(options))
    return unpack(nodes, len(options)), unpack(values[:, None], len(options))


def bumped(unit: Options, column: str) -> tuple[Options, Options, FloatArray, FloatArray]:
    """Return options with one market input lowered and raised, and by how much each.

    Europeans are smooth in every input. For Americans the bumps are wide enough to average out how
    the boundary falls between nodes; small rates get small bumps, because the boundary leaves for
    zero or infinity as they vanish, and no downward one where that would open a second boundary.
    """
    value = getattr(unit, column)
    if column == "volatility":
        up = value * np.where(unit.is_american, 2e-2, 2e-3)
    else:
        up = np.where(unit.is_american, np.clip(0.1 * np.abs(value), 2e-4, 1e-3), 1e-4)
    lowered = unit.with_values(**{column: value - up})
    opens = limits.has_double_boundary(lowered.rate, lowered.dividend_yield, unit.is_call)
    down = np.where(unit.is_american & opens, 0.0, up)
    return (
        unit.with_values(**{column: value - down}),
        unit.with_values(**{column: value + up}),
        down,
        up,
    )


def differentiate(nodes: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the first and second derivative at the interior nodes of the last axis, order 2."""
    before, after = nodes[..., 1:-1] - nodes[..., :-2], nodes[..., 2:] - nodes[..., 1:-1]
    backward = (values[..., 1:-1] - values[..., :-2]) / before
    forward = (values[..., 2:] - values[..., 1:-1]) / after
    span = before + after
    return (backward * after + forward * before) / span, 2.0 * (forward - backward) / span


def extrapolate(levels: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Combine values of nested grids on their common nodes.

    Returns
    -------
    value
        (4 fine - coarse) / 3 of the two finest grids; the only grid if there is one.
    error
        A third of the change from the extrapolation before: the error if the extrapolated order
        is 2, which free boundaries may leave, and five times the error where it is 4. NaN below
        three levels.
    """
    if len(levels) == 1:
        return levels[0], np.full_like(levels[0], np.nan)
    best = (4.0 * levels[-1] - levels[-2]) / 3.0
    if len(levels) == 2:
        return best, np.full_like(best, np.nan)
    before = (4.0 * levels[-2] - levels[-3]) / 3.0
    return best, np.abs(best - before) / 3.0


def exercise_boundary(nodes: FloatArray, values: FloatArray, options: Options) -> FloatArray:
    """Return S*/K for every slice of options of unit strike, NaN where none is on the grid.

    Near the boundary the excess over the payoff is quadratic in S - S*, so its square root is
    nearly linear: S* is where it vanishes, by inverse quadratic interpolation in three nodes. The
    first held node is left out, for the sweep puts the boundary on a node and errs most there.

    Parameters
    ----------
    nodes, values
        (contracts, nodes) and (contracts, times, nodes), extrapolated if possible.
    """
    payoff = limits.intrinsic(nodes, np.ones(1), options.is_call[:, None])[:, None, :]
    excess = np.maximum(values - payoff, 0.0)
    is_stopped = (excess < 1e-13) & options.is_american[:, None, None]
    first_held = np.argmin(is_stopped, axis=2)[..., None]
    has_boundary = (first_held[..., 0] > 0) & (first_held[..., 0] < nodes.shape[1] - 4)
    first_held = np.clip(first_held, 2, nodes.shape[1] - 5)
    tiled = np.broadcast_to(nodes[:, None, :], values.shape)
    a, b, c = (
        np.sqrt(np.take_along_axis(excess, first_held + k, axis=2)[..., 0]) for k in (1, 2, 3)
    )
    x, y, z = (np.take_along_axis(tiled, first_held + k, axis=2)[..., 0] for k in (1, 2, 3))
    with np.errstate(divide="ignore", invalid="ignore"):
        boundary = (
            x * b * c / ((a - b) * (a - c))
            + y * a * c / ((b - a) * (b - c))
            + z * a * b / ((c - a) * (c - b))
        )
    outer, inner = (np.take_along_axis(tiled, first_held + k, axis=2)[..., 0] for k in (0, -2))
    boundary = np.clip(boundary, np.minimum(inner, outer), np.maximum(inner, outer))
    return np.where(has_boundary, boundary, np.nan)


def _smoothed(
    payoff: FloatArray, nodes: FloatArray, grid: SpaceGrid, refinement: int
) -> FloatArray:
    """Replace the payoff at the strike by its cell average, h/8 on an even grid.

    It cancels the leading error of sampling a kink, and keeps the rest smooth in h, which
    extrapolation needs.
    """
    strike = (grid.strike_position[:, None, :] * refinement).astype(np.intp)
    at, before, after = (np.take_along_axis(nodes, strike + k, axis=1) for k in (0, -1, 1))
    left, right = np.abs(at - before), np.abs(after - at)
    smoothed = payoff.copy()
    np.put_along_axis(smoothed, strike, left * right / (4.0 * (left + right)), axis=1)
    return smoothed


def _edge(
    spot: FloatArray,
    tau: FloatArray,
    rate: FloatArray,
    dividend_yield: FloatArray,
    is_call: BoolArray,
    is_american: BoolArray,
) -> FloatArray:
    """Value at the exercise-side end of the grid, where the outcome is all but certain."""
    one = np.ones(1)
    held = np.where(is_call, 1.0, -1.0) * (
        spot * np.exp(-dividend_yield * tau) - np.exp(-rate * tau)
    )
    if not is_american.any():
        return held
    best = limits.best_fixed_exercise(spot, one, tau, rate, dividend_yield, is_call)
    return np.where(is_american, best, held)

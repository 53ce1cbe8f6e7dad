"""Solving the Black–Scholes equation on nested grids, and extrapolating between them.

Everything is solved per unit strike on grids of S/K; prices scale back exactly. A solve runs on
``levels`` nested grids, each with twice the space and time steps of the one before. Richardson
extrapolation on the nodes they share removes the leading error, and with three levels the change
between the last two extrapolations estimates what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from amo.arrays import BoolArray, FloatArray
from pricing import bounds
from pricing.fd.grid import GridKind, SpaceGrid, StrikePlacement, build_grid, pack
from pricing.fd.kernels import march
from pricing.fd.schemes import CRANK_NICOLSON, Scheme
from pricing.options import Options

MAX_DEVIATION = 5.0  # of σ√T: beyond this, S/K spans more than the grid resolves
MIN_DEVIATION = 1e-6  # below this, rounding swamps the grid
MAX_DRIFT = 30.0  # of |r - q|√T / σ: beyond this, drift crosses the grid faster than diffusion
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


def under_markets(settings: FDSettings) -> FDSettings:
    """Return how finely to solve under dividends, where jumps need more nodes and fewer levels."""
    if settings.levels >= 3:
        return replace(settings, n_space=round(1.6 * settings.n_space))
    return replace(settings, n_space=round(0.6 * settings.n_space), n_time=30, levels=2)


def refusals(options: Options) -> list[tuple[BoolArray, str]]:
    """Return the rows this solver does not take, with the reason and the way out."""
    root = np.sqrt(options.expiry)
    drift = np.abs(options.rate - options.dividend_yield) * root / options.volatility
    is_double = options.is_american & bounds.has_double_boundary(
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
            (options.volatility * root > MAX_DEVIATION)
            | (options.volatility * root < MIN_DEVIATION),
            (
                f"fd needs volatility x sqrt(expiry) in [{MIN_DEVIATION:g}, {MAX_DEVIATION:g}]: "
                f"{way_out}"
            ),
        ),
        (
            drift > MAX_DRIFT,
            (
                "fd needs |rate - dividend_yield| x sqrt(expiry) / volatility <= "
                f"{MAX_DRIFT:g}: {way_out}"
            ),
        ),
    ]


def require_taken(options: Options) -> None:
    """Raise ValueError if any option is refused or expired: engines ask beforehand."""
    if (options.expiry <= 0).any():
        raise ValueError("fd solves positive expiries only; at expiry an option is its payoff")
    for mask, reason in refusals(options):
        if mask.any():
            raise ValueError(f"{int(mask.sum())} of {len(options)} options: {reason}")


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
        (blocks, nodes, lanes): S/K from the exercise side outwards.
    values
        (blocks, nodes, lanes): value/K today; with ``keep``, (blocks, n_time + 1, nodes, lanes) at
        the time levels of the coarsest grid, from expiry to today.
    """
    refinement = 2**level
    nodes = grid.nodes(refinement)
    plan = settings.scheme.plan(settings.n_time * refinement)
    expiry, rate, dividend_yield = (
        pack(x) for x in (options.expiry, options.rate, options.dividend_yield)
    )
    is_call, is_american = pack(options.is_call), pack(options.is_american)
    payoff = bounds.intrinsic(nodes, np.ones(1), is_call[:, None, :])
    values = np.empty_like(nodes)
    n_blocks, n_nodes, lanes = nodes.shape
    surface = np.empty((n_blocks, settings.n_time + 1 if keep else 0, n_nodes, lanes))
    is_kept = (plan.level >= 0) & (plan.level % refinement == 0)
    march(
        nodes,
        payoff,
        smoothed(payoff, nodes, grid, refinement) if settings.placement == "average" else payoff,
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
    if not keep:
        return nodes, values
    surface[:, 0] = payoff
    return nodes, surface


def bumped(unit: Options, column: str) -> tuple[Options, Options, FloatArray, FloatArray]:
    """Return options with one market input lowered and raised, and by how much each.

    European values are smooth in every input. The boundary of an American option moves by about
    dr/r, and the value bends where that reaches σ√T: rates are bumped by a tenth of r σ√T, and not
    to the side where that would open a second boundary.
    """
    value = getattr(unit, column)
    if column == "volatility":
        bump = value * np.where(unit.is_american, 2e-2, 2e-3)
    else:
        deviation = np.minimum(unit.volatility * np.sqrt(unit.expiry), 0.5)
        american = np.clip(0.1 * np.abs(value) * deviation, 2e-5, 4e-3)
        european = np.minimum(1e-4, 0.05 * unit.volatility / np.sqrt(unit.expiry))
        bump = np.where(unit.is_american, american, european)

    def shifted(by: FloatArray) -> tuple[Options, FloatArray]:
        moved = unit.with_values(**{column: value + by})
        opens = bounds.has_double_boundary(moved.rate, moved.dividend_yield, unit.is_call)
        by = np.where(unit.is_american & opens, 0.0, by)
        return unit.with_values(**{column: value + by}), np.abs(by)

    lowered, down = shifted(-bump)
    raised, up = shifted(bump)
    return lowered, raised, down, up


def bump_weights(levels: int, is_american: BoolArray) -> FloatArray:
    """Return the weight of each level (first axis) in values that are to be differenced.

    The sweep moves the boundary of an American option from node to node, an error that differencing
    amplifies and extrapolation adds to: American options use the finest grid alone.
    """
    weights, _ = extrapolation_weights(levels)
    finest = np.eye(levels)[-1]
    shape = (levels, *(1,) * is_american.ndim)
    return np.where(is_american, finest.reshape(shape), weights.reshape(shape))


Triple = tuple[FloatArray, FloatArray, FloatArray]


def differentiate(nodes: Triple, values: Triple) -> tuple[FloatArray, FloatArray]:
    """Return the first and second derivative at the middle of three neighbours, order 2."""
    before, after = nodes[1] - nodes[0], nodes[2] - nodes[1]
    backward, forward = (values[1] - values[0]) / before, (values[2] - values[1]) / after
    span = before + after
    return (backward * after + forward * before) / span, 2.0 * (forward - backward) / span


def extrapolation_weights(levels: int) -> tuple[FloatArray, FloatArray]:
    """Return the weights of nested grids, coarsest first, in Richardson's extrapolation.

    The first row makes (4 fine - coarse) / 3 of the two finest; the second its change from the
    extrapolation one level coarser, NaN below three levels. A third of that change is the stated
    error: correct if the extrapolated order is 2, as it may be with a free boundary, and five times
    too large where it is 4.
    """
    if levels == 1:
        return np.array([1.0]), np.array([np.nan])
    best = np.zeros(levels)
    best[-2:] = -1.0 / 3.0, 4.0 / 3.0
    return best, best - np.roll(best, -1) if levels > 2 else np.full(levels, np.nan)


def extrapolate(levels: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Combine values of nested grids on their common nodes: the value and its stated error."""
    weights, change = extrapolation_weights(len(levels))
    value = sum(w * level for w, level in zip(weights, levels, strict=True))
    error = sum(w * level for w, level in zip(change, levels, strict=True))
    return np.asarray(value), np.abs(np.asarray(error)) / 3.0


def smoothed(payoff: FloatArray, nodes: FloatArray, grid: SpaceGrid, refinement: int) -> FloatArray:
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
    best = bounds.best_fixed_exercise(spot, one, tau, rate, dividend_yield, is_call)
    return np.where(is_american, best, held)

"""Reading solved grids, compiled by numba: extrapolated fields, their layout, the boundary."""

import numba
import numpy as np

from pricing.contracts import BoolArray, FloatArray, Options


@numba.njit(cache=True, nogil=True, error_model="numpy")
def stencils(
    nodes: FloatArray, refinement: int, weights: FloatArray, first: FloatArray, second: FloatArray
) -> None:
    """Write weighted three-point stencils of both derivatives at the coarse nodes of a block."""
    n_coarse = first.shape[1]
    for k in range(n_coarse):
        i = min(max(k, 1), n_coarse - 2) * refinement
        for lane in range(len(weights)):
            before = nodes[i, lane] - nodes[i - 1, lane]
            after = nodes[i + 1, lane] - nodes[i, lane]
            span = before + after
            first[0, k, lane] = -weights[lane] * after / (before * span)
            first[1, k, lane] = weights[lane] * (after - before) / (before * after)
            first[2, k, lane] = weights[lane] * before / (after * span)
            second[0, k, lane] = 2.0 * weights[lane] / (before * span)
            second[1, k, lane] = -2.0 * weights[lane] / (before * after)
            second[2, k, lane] = 2.0 * weights[lane] / (after * span)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def accumulate(
    nodes: FloatArray,
    surface: FloatArray,
    refinement: int,
    weights: FloatArray,
    change_weight: float,
    price: FloatArray,
    delta: FloatArray,
    gamma: FloatArray,
    change: FloatArray,
) -> None:
    """Add one grid's weighted values, slopes and curvatures at the coarse nodes.

    Parameters
    ----------
    nodes, surface
        (blocks, nodes, lanes) and (blocks, times, nodes, lanes) of the grid at hand.
    weights
        (blocks, lanes): of this grid in each contract's answer.
    change_weight
        Of this grid in the extrapolation's change since the one before.
    price, delta, gamma, change
        (blocks, times, coarse nodes, lanes); all but price may be of size 0. Slopes come from
        the neighbours on the grid at hand; the end nodes repeat their neighbour's.
    """
    n_blocks, n_times, n_coarse, lanes = price.shape
    first = np.empty((3, n_coarse, lanes))
    second = np.empty((3, n_coarse, lanes))
    for block in range(n_blocks):
        stencils(nodes[block], refinement, weights[block], first, second)
        for time in range(n_times):
            values = surface[block, time]
            for k in range(n_coarse):
                i = min(max(k, 1), n_coarse - 2) * refinement
                for lane in range(lanes):
                    price[block, time, k, lane] += (
                        weights[block, lane] * values[k * refinement, lane]
                    )
                if change.size > 0:
                    for lane in range(lanes):
                        change[block, time, k, lane] += change_weight * values[k * refinement, lane]
                if delta.size > 0:
                    for lane in range(lanes):
                        before, at = values[i - 1, lane], values[i, lane]
                        after = values[i + 1, lane]
                        delta[block, time, k, lane] += (
                            first[0, k, lane] * before
                            + first[1, k, lane] * at
                            + first[2, k, lane] * after
                        )
                        gamma[block, time, k, lane] += (
                            second[0, k, lane] * before
                            + second[1, k, lane] * at
                            + second[2, k, lane] * after
                        )


@numba.njit(cache=True, nogil=True)
def turn(field: FloatArray, is_call: BoolArray, turned: FloatArray) -> None:
    """Write (blocks, times, nodes, lanes) as (contracts, times, nodes), S rising for all."""
    n_contracts, n_times, n_nodes = turned.shape
    lanes = field.shape[3]
    for start in range(0, n_contracts, lanes):
        for time in range(n_times):
            slab = field[start // lanes, time]
            for contract in range(start, min(start + lanes, n_contracts)):
                row, lane = turned[contract, time], contract - start
                if is_call[contract]:
                    for k in range(n_nodes):
                        row[k] = slab[n_nodes - 1 - k, lane]
                else:
                    for k in range(n_nodes):
                        row[k] = slab[k, lane]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def find_boundary(
    spot: FloatArray, price: FloatArray, is_call: BoolArray, boundary: FloatArray
) -> None:
    """Write S*/K for each contract and time, NaN where no inner node is exercised.

    Near the boundary the excess over the payoff is quadratic in S - S*, so its square root is
    nearly linear: S* is where it vanishes, by inverse quadratic interpolation in three nodes. The
    first held node is left out, for the sweep puts the boundary on a node and errs most there.

    Parameters
    ----------
    spot, price
        (contracts, nodes) and (contracts, times, nodes) of Americans per unit strike, rising in S.
    """
    n_contracts, n_times, n_nodes = price.shape
    for contract in range(n_contracts):
        sign = 1.0 if is_call[contract] else -1.0
        first, way = (n_nodes - 1, -1) if is_call[contract] else (0, 1)
        s = spot[contract]
        for time in range(n_times):
            v = price[contract, time]
            held = 0
            while held < n_nodes - 4:
                i = first + way * held
                if v[i] - max(sign * (s[i] - 1.0), 0.0) > 1e-13:
                    break
                held += 1
            boundary[contract, time] = np.nan
            if held == 0 or held == n_nodes - 4:
                continue
            i = first + way * (held + 1)
            j, k = i + way, i + 2 * way
            a = np.sqrt(max(v[i] - max(sign * (s[i] - 1.0), 0.0), 0.0))
            b = np.sqrt(max(v[j] - max(sign * (s[j] - 1.0), 0.0), 0.0))
            c = np.sqrt(max(v[k] - max(sign * (s[k] - 1.0), 0.0), 0.0))
            found = (
                s[i] * b * c / ((a - b) * (a - c))
                + s[j] * a * c / ((b - a) * (b - c))
                + s[k] * a * b / ((c - a) * (c - b))
            )
            outer, inner = s[first + way * held], s[first + way * max(held - 2, 0)]
            low, high = min(inner, outer), max(inner, outer)
            boundary[contract, time] = min(max(found, low), high)


def exercise_boundary(unit: Options, spot: FloatArray, price: FloatArray) -> FloatArray:
    """Return S*/K, (contracts, times), NaN for Europeans; arguments as in :func:`find_boundary`."""
    american = np.flatnonzero(unit.is_american)
    found = np.empty((len(american), price.shape[1]))
    find_boundary(spot[american], price[american], unit.is_call[american], found)
    boundary = np.full(price.shape[:2], np.nan)
    boundary[american] = found
    return boundary

"""Reading solved grids, compiled by numba: extrapolated fields, their layout, the boundary."""

import numba
import numpy as np

from amo.arrays import BoolArray, FloatArray
from pricing.options import Options


@numba.njit(cache=True, nogil=True, error_model="numpy")
def stencils(
    nodes: FloatArray, refinement: int, weights: FloatArray, first: FloatArray, second: FloatArray
) -> None:
    """Write weighted three-point stencils of both derivatives at the coarse nodes of a block."""
    n_coarse = first.shape[1]
    for k in range(n_coarse):
        i = min(max(k, 1), n_coarse - 2) * refinement
        for lane in range(nodes.shape[1]):
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
def read_fields(
    nodes: tuple[FloatArray, ...],
    surfaces: tuple[FloatArray, ...],
    is_call: BoolArray,
    weights: FloatArray,
    change_weights: FloatArray,
    price: FloatArray,
    delta: FloatArray,
    gamma: FloatArray,
    change: FloatArray,
) -> None:
    """Combine nested grids into fields on the coarse nodes.

    Parameters
    ----------
    nodes, surfaces
        (blocks, nodes, lanes) and (blocks, times, nodes, lanes) of each level, coarsest first, from
        the exercise side outwards.
    is_call
        (contracts,): true where nodes fall in S; these are reversed here.
    weights, change_weights
        (levels, blocks, lanes) of each contract's answer; (levels,) of its last change.
    price, delta, gamma, change
        (contracts, times, coarse nodes), rising in S; all but price may be of size 0. Slopes come
        from the neighbours on each level's own grid; the end nodes repeat their neighbour's.
    """
    n_times, n_coarse = price.shape[1:]
    n_levels, n_blocks, lanes = weights.shape
    first = np.empty((n_levels, 3, n_coarse, lanes))
    second = np.empty((n_levels, 3, n_coarse, lanes))
    sums = np.empty((4, n_coarse, lanes))
    for block in range(n_blocks):
        for level in range(n_levels):
            stencils(
                nodes[level][block], 1 << level, weights[level, block], first[level], second[level]
            )
        contract = block * lanes
        for time in range(n_times):
            sums[:] = 0.0
            for level in range(n_levels):
                values = surfaces[level][block, time]
                add_values(values, 1 << level, weights[level, block], sums[0])
                if change.size > 0:
                    sums[3] += change_weights[level] * values[:: 1 << level]
                if delta.size > 0:
                    add_stencil(values, 1 << level, first[level], sums[1])
                    add_stencil(values, 1 << level, second[level], sums[2])
            turn(sums[0], is_call, contract, price[:, time])
            if delta.size > 0:
                turn(sums[1], is_call, contract, delta[:, time])
                turn(sums[2], is_call, contract, gamma[:, time])
            if change.size > 0:
                turn(sums[3], is_call, contract, change[:, time])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_values(values: FloatArray, refinement: int, weights: FloatArray, total: FloatArray) -> None:
    """Add weighted values at the coarse nodes of one slice."""
    n_coarse, lanes = total.shape
    for k in range(n_coarse):
        for lane in range(lanes):
            total[k, lane] += weights[lane] * values[k * refinement, lane]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_stencil(
    values: FloatArray, refinement: int, weights: FloatArray, total: FloatArray
) -> None:
    """Add a three-point stencil at the coarse nodes of one slice."""
    n_coarse, lanes = total.shape
    for k in range(n_coarse):
        i = min(max(k, 1), n_coarse - 2) * refinement
        for lane in range(lanes):
            total[k, lane] += (
                weights[0, k, lane] * values[i - 1, lane]
                + weights[1, k, lane] * values[i, lane]
                + weights[2, k, lane] * values[i + 1, lane]
            )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def turn(total: FloatArray, is_call: BoolArray, first: int, out: FloatArray) -> None:
    """Write a block's slice (nodes, lanes) to its contracts' rows, S rising for all."""
    n_nodes, lanes = total.shape
    for lane in range(min(lanes, len(is_call) - first)):
        row = out[first + lane]
        if is_call[first + lane]:
            for k in range(n_nodes):
                row[k] = total[n_nodes - 1 - k, lane]
        else:
            for k in range(n_nodes):
                row[k] = total[k, lane]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def find_boundary(
    spot: FloatArray, price: FloatArray, is_call: BoolArray, boundary: FloatArray
) -> None:
    """Write S*/K for each contract and time, NaN where no node is exercised.

    Near the boundary the excess over the payoff is quadratic in S - S*, so its square root is
    nearly linear: S* is where it vanishes, by inverse quadratic interpolation in three nodes. The
    first held node is left out: the sweep puts the boundary on a node and errs most there.

    Parameters
    ----------
    spot, price
        (contracts, nodes) and (contracts, times, nodes) of American options per unit
        strike, rising in S.
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
    """Return S*/K, (contracts, times), NaN if European; arguments as in :func:`find_boundary`."""
    american = np.flatnonzero(unit.is_american)
    found = np.empty((len(american), price.shape[1]))
    find_boundary(spot[american], price[american], unit.is_call[american], found)
    boundary = np.full(price.shape[:2], np.nan)
    boundary[american] = found
    return boundary

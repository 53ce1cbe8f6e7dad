"""Finite differences under curves and dividends: the inner loops, compiled by numba.

As :mod:`pricing.fd.kernels`, with rates that change from step to step, jumps of the spot between
steps, and no value needed at the exercise side: there the solution is straight in S.
"""

import numba
import numpy as np

from amo.arrays import FloatArray, IntArray

_NEGLIGIBLE = 1e-100


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _stencils(nodes: FloatArray, volatility: FloatArray, stencil: FloatArray) -> None:
    """Write the outer weights (4, nodes, lanes) of ½σ²S² ∂²/∂S² and S ∂/∂S on uneven nodes.

    Below and above of the first, then of the second; the middle weight makes their sum zero.
    """
    n_nodes, lanes = nodes.shape
    for i in range(1, n_nodes - 1):
        for lane in range(lanes):
            before = nodes[i, lane] - nodes[i - 1, lane]
            after = nodes[i + 1, lane] - nodes[i, lane]
            span = before + after
            variance = (volatility[lane] * nodes[i, lane]) ** 2
            stencil[0, i, lane] = variance / (before * span)
            stencil[1, i, lane] = variance / (after * span)
            stencil[2, i, lane] = -nodes[i, lane] * after / (before * span)
            stencil[3, i, lane] = nodes[i, lane] * before / (after * span)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _eliminate(
    diffusion_below: FloatArray,
    diffusion_above: FloatArray,
    drift_below: FloatArray,
    drift_above: FloatArray,
    rate: FloatArray,
    borrow: FloatArray,
    implicit: FloatArray,
    explicit: FloatArray,
    v: FloatArray,
    lower: FloatArray,
    inverse: FloatArray,
    rhs: FloatArray,
) -> None:
    """Reduce a step to lower bidiagonal form, from the far end, where the value is zero."""
    n_nodes, lanes = v.shape
    for lane in range(lanes):
        lower[n_nodes - 1, lane] = 0.0
        inverse[n_nodes - 1, lane] = 0.0
        rhs[n_nodes - 1, lane] = 0.0
    for i in range(n_nodes - 2, 0, -1):
        for lane in range(lanes):
            carry = rate[lane] - borrow[lane]
            below = diffusion_below[i, lane] + carry * drift_below[i, lane]
            above = diffusion_above[i, lane] + carry * drift_above[i, lane]
            middle = -below - above - rate[lane]
            known = v[i, lane] + explicit[lane] * (
                below * v[i - 1, lane] + middle * v[i, lane] + above * v[i + 1, lane]
            )
            weight = implicit[lane] * above * inverse[i + 1, lane]
            pivot = 1.0 - implicit[lane] * middle - weight * lower[i + 1, lane]
            lower[i, lane] = implicit[lane] * below
            inverse[i, lane] = 1.0 / pivot
            rhs[i, lane] = known + weight * rhs[i + 1, lane]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _substitute(
    nodes: FloatArray,
    obstacle: FloatArray,
    lower: FloatArray,
    inverse: FloatArray,
    rhs: FloatArray,
    v: FloatArray,
) -> None:
    """Solve the reduced system from the exercise side, above the obstacle.

    The first value follows from the next two: the solution has no curvature there.
    """
    n_nodes, lanes = v.shape
    for lane in range(lanes):
        ratio = (nodes[1, lane] - nodes[0, lane]) / (nodes[2, lane] - nodes[1, lane])
        second = inverse[2, lane]
        slope = 1.0 + ratio - ratio * second * lower[2, lane]
        offset = -ratio * second * rhs[2, lane]
        first = inverse[1, lane] * (rhs[1, lane] + lower[1, lane] * offset)
        first = first / (1.0 - inverse[1, lane] * lower[1, lane] * slope)
        v[0, lane] = max(slope * first + offset, obstacle[0, lane])
        v[n_nodes - 1, lane] = 0.0
    for i in range(1, n_nodes - 1):
        for lane in range(lanes):
            held = (rhs[i, lane] + lower[i, lane] * v[i - 1, lane]) * inverse[i, lane]
            held = max(held, obstacle[i, lane])
            v[i, lane] = held if abs(held) > _NEGLIGIBLE else 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _jump(
    nodes: FloatArray,
    cash: FloatArray,
    proportion: FloatArray,
    ruined: FloatArray,
    v: FloatArray,
    old: FloatArray,
) -> None:
    """Replace V(S) by V((1 - proportion) S - cash), by the cubic through four nodes.

    ``ruined`` is the value at S = 0, reached by a straight line from the lowest node.
    """
    n_nodes, lanes = v.shape
    old[:] = v
    for lane in range(lanes):
        if cash[lane] == 0.0 and proportion[lane] == 0.0:
            continue
        rises = nodes[1, lane] > nodes[0, lane]
        lowest = 0 if rises else n_nodes - 1
        place = 0 if rises else n_nodes - 2
        for count in range(n_nodes):
            i = count if rises else n_nodes - 1 - count  # spots from low to high
            spot = (1.0 - proportion[lane]) * nodes[i, lane] - cash[lane]
            if spot <= nodes[lowest, lane]:
                share = max(spot, 0.0) / nodes[lowest, lane]
                v[i, lane] = (1.0 - share) * ruined[lane] + share * old[lowest, lane]
                continue
            while rises and place < n_nodes - 2 and nodes[place + 1, lane] < spot:
                place += 1
            while not rises and place > 0 and nodes[place, lane] < spot:
                place -= 1
            first = min(max(place - 1, 0), n_nodes - 4)
            v[i, lane] = _cubic(nodes, old, first, lane, spot)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _cubic(nodes: FloatArray, values: FloatArray, first: int, lane: int, spot: float) -> float:
    """Return the cubic through four nodes of a lane, at a spot."""
    total = 0.0
    for j in range(4):
        weight = 1.0
        for k in range(4):
            if k != j:
                a, b = nodes[first + k, lane], nodes[first + j, lane]
                weight *= (spot - a) / (b - a)
        total += weight * values[first + j, lane]
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _exercise_before(
    nodes: FloatArray,
    obstacle: FloatArray,
    cash: FloatArray,
    proportion: FloatArray,
    v: FloatArray,
    gain: FloatArray,
) -> None:
    """Take the better of holding and exercising where something is paid; ``gain`` is scratch.

    Where the two cross, the value has a kink, which is averaged over the cell of its node: that
    keeps the error smooth in the step, as extrapolation needs.
    """
    n_nodes, lanes = v.shape
    for lane in range(lanes):
        if obstacle[0, lane] == -np.inf or (cash[lane] == 0.0 and proportion[lane] == 0.0):
            continue
        for i in range(n_nodes):
            gain[i, lane] = v[i, lane] - obstacle[i, lane]  # of holding over exercising
            v[i, lane] = max(v[i, lane], obstacle[i, lane])
        for i in range(1, n_nodes - 2):
            left, right = gain[i, lane], gain[i + 1, lane]
            if (left < 0.0) == (right < 0.0) or left == right:
                continue
            step = nodes[i + 1, lane] - nodes[i, lane]
            cross = nodes[i, lane] + step * left / (left - right)
            slope = abs((right - left) / step)  # of the kink
            near = i if abs(cross - nodes[i, lane]) <= abs(nodes[i + 1, lane] - cross) else i + 1
            if near < 1 or near > n_nodes - 2:
                continue
            low = 0.5 * (nodes[near - 1, lane] + nodes[near, lane])
            high = 0.5 * (nodes[near, lane] + nodes[near + 1, lane])
            reach = high - cross if left < 0.0 else cross - low  # where holding is better
            mean = 0.5 * slope * reach * reach / abs(high - low)
            v[near, lane] = obstacle[near, lane] + max(mean, 0.0)
            if gain[near, lane] > 0.0:  # the average of a convex kink is above its value
                v[near, lane] = max(v[near, lane], obstacle[near, lane] + gain[near, lane])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def march(
    nodes: FloatArray,
    obstacle: FloatArray,
    initial: FloatArray,
    volatility: FloatArray,
    rate: FloatArray,
    borrow: FloatArray,
    implicit: FloatArray,
    explicit: FloatArray,
    cut: IntArray,
    cash: FloatArray,
    proportion: FloatArray,
    ruined: FloatArray,
    keep: IntArray,
    values: FloatArray,
    surface: FloatArray,
) -> None:
    """Step every block from expiry to today.

    Parameters
    ----------
    nodes, obstacle, initial, values
        (blocks, nodes, lanes): S/K, what exercise pays (minus infinity where there is none), the
        value at expiry, and the answer, all per unit strike.
    volatility
        (blocks, lanes).
    rate, borrow, implicit, explicit
        (blocks, steps, lanes): mean forwards over each step, and the parts of its length, in years,
        that are taken implicitly and explicitly.
    cut
        (steps,): the moment that the step reaches, or -1 on the way to one.
    cash, proportion, ruined
        (blocks, cuts, lanes): what is paid then, per unit strike, and the value at S = 0.
    keep
        (blocks, cuts, lanes): where in ``surface`` to keep the values of that moment, before the
        payment in time; -1 for nowhere.
    surface
        (blocks, kept moments, nodes, lanes).
    """
    n_blocks, n_nodes, lanes = nodes.shape
    stencil = np.zeros((4, n_nodes, lanes))
    work = np.zeros((3, n_nodes, lanes))
    old = np.empty((n_nodes, lanes))
    for block in range(n_blocks):
        _stencils(nodes[block], volatility[block], stencil)
        v = values[block]
        v[:] = initial[block]
        for step in range(len(cut)):
            _eliminate(
                stencil[0],
                stencil[1],
                stencil[2],
                stencil[3],
                rate[block, step],
                borrow[block, step],
                implicit[block, step],
                explicit[block, step],
                v,
                work[0],
                work[1],
                work[2],
            )
            _substitute(nodes[block], obstacle[block], work[0], work[1], work[2], v)
            if cut[step] < 0:
                continue
            paid, share = cash[block, cut[step]], proportion[block, cut[step]]
            _jump(nodes[block], paid, share, ruined[block, cut[step]], v, old)
            _exercise_before(nodes[block], obstacle[block], paid, share, v, old)
            for lane in range(lanes):
                if keep[block, cut[step], lane] >= 0:
                    surface[block, keep[block, cut[step], lane], :, lane] = v[:, lane]

"""The inner loops, compiled by numba: assembly, theta steps and the Brennan–Schwartz sweep.

Arrays have the lanes of a block last, so that each innermost loop is one vector operation over
contracts. The kernels release the GIL and share no state: run them from as many threads as there
are cores.
"""

import numba
import numpy as np

from amo.arrays import BoolArray, FloatArray

_NEGLIGIBLE = 1e-100  # far values fade through denormal numbers, which stall the processor


@numba.njit(cache=True, nogil=True, error_model="numpy")
def assemble(
    nodes: FloatArray,
    rate: FloatArray,
    dividend_yield: FloatArray,
    volatility: FloatArray,
    lower: FloatArray,
    diagonal: FloatArray,
    upper: FloatArray,
) -> None:
    """Write the three-point stencil of ½σ²S² ∂²/∂S² + (r - q)S ∂/∂S - r on uneven nodes.

    Exact for quadratics in S; steps may be negative (falling nodes of a call).
    """
    n_nodes, lanes = nodes.shape
    for i in range(1, n_nodes - 1):
        for lane in range(lanes):
            before = nodes[i, lane] - nodes[i - 1, lane]
            after = nodes[i + 1, lane] - nodes[i, lane]
            diffusion = (volatility[lane] * nodes[i, lane]) ** 2
            drift = (rate[lane] - dividend_yield[lane]) * nodes[i, lane]
            lower[i, lane] = (diffusion - drift * after) / (before * (before + after))
            upper[i, lane] = (diffusion + drift * before) / (after * (before + after))
            diagonal[i, lane] = -lower[i, lane] - upper[i, lane] - rate[lane]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def eliminate(
    lower: FloatArray,
    diagonal: FloatArray,
    upper: FloatArray,
    implicit: FloatArray,
    explicit: FloatArray,
    values: FloatArray,
    inverse: FloatArray,
    rhs: FloatArray,
) -> None:
    """Reduce (1 - implicit L) V⁺ = (1 + explicit L) V to lower bidiagonal form, far end first.

    Writes the inverse pivots and the reduced right-hand side; the far end's value is zero, so its
    entries stay zero.
    """
    n_nodes, lanes = values.shape
    for i in range(n_nodes - 2, 0, -1):
        for lane in range(lanes):
            known = values[i, lane] + explicit[lane] * (
                lower[i, lane] * values[i - 1, lane]
                + diagonal[i, lane] * values[i, lane]
                + upper[i, lane] * values[i + 1, lane]
            )
            weight = implicit[lane] * upper[i, lane] * inverse[i + 1, lane]
            pivot = 1.0 - implicit[lane] * (diagonal[i, lane] + weight * lower[i + 1, lane])
            inverse[i, lane] = 1.0 / pivot
            rhs[i, lane] = known + weight * rhs[i + 1, lane]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def march(
    nodes: FloatArray,
    payoff: FloatArray,
    initial: FloatArray,
    is_american: BoolArray,
    rate: FloatArray,
    dividend_yield: FloatArray,
    volatility: FloatArray,
    step_lengths: FloatArray,
    implicitness: FloatArray,
    level: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    edge: FloatArray,
    values: FloatArray,
    surface: FloatArray,
) -> None:
    """Step every block from the payoff at expiry to today.

    Parameters
    ----------
    nodes, payoff, initial, values
        (blocks, nodes, lanes): S/K, payoff/K, value/K at expiry (the payoff, smoothed or not), and
        the answer value/K today.
    rate, dividend_yield, volatility, is_american
        (blocks, lanes).
    step_lengths
        (blocks, substeps, lanes), years.
    implicitness, level
        (substeps,), see :class:`pricing.fd.schemes.StepPlan`.
    edge
        (blocks, substeps, lanes): value/K at the first node; the last node's value is zero.
    surface
        (blocks, levels + 1, nodes, lanes) to keep every time level, or of size 0.

    Notes
    -----
    The tridiagonal system is eliminated from the far side and substituted from the exercise side.
    An American option takes the larger of continuation and payoff during the substitution, which
    solves the discrete obstacle problem exactly when exercise is optimal on one side of one
    boundary.

    References
    ----------
    M. Brennan, E. Schwartz, The valuation of American put options, J. Finance 32 (1977).
    """
    n_blocks, n_nodes, lanes = nodes.shape
    lower = np.zeros((n_nodes, lanes))
    diagonal = np.zeros((n_nodes, lanes))
    upper = np.zeros((n_nodes, lanes))
    inverse = np.zeros((n_nodes, lanes))
    rhs = np.zeros((n_nodes, lanes))
    obstacle = np.empty((n_nodes, lanes))
    implicit = np.empty(lanes)
    explicit = np.empty(lanes)
    for block in range(n_blocks):
        assemble(
            nodes[block],
            rate[block],
            dividend_yield[block],
            volatility[block],
            lower,
            diagonal,
            upper,
        )
        v = values[block]
        v[:] = initial[block]
        for i in range(n_nodes):
            for lane in range(lanes):
                obstacle[i, lane] = payoff[block, i, lane] if is_american[block, lane] else -np.inf
        for step in range(len(implicitness)):
            for lane in range(lanes):
                implicit[lane] = implicitness[step] * step_lengths[block, step, lane]
                explicit[lane] = step_lengths[block, step, lane] - implicit[lane]
            eliminate(lower, diagonal, upper, implicit, explicit, v, inverse, rhs)
            v[0] = edge[block, step]
            v[n_nodes - 1] = 0.0
            for i in range(1, n_nodes - 1):
                for lane in range(lanes):
                    known = rhs[i, lane] + implicit[lane] * lower[i, lane] * v[i - 1, lane]
                    held = max(known * inverse[i, lane], obstacle[i, lane])
                    v[i, lane] = held if abs(held) > _NEGLIGIBLE else 0.0
            if surface.size > 0 and level[step] >= 0:
                surface[block, level[step]] = v

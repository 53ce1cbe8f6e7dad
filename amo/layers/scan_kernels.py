"""Compiled loops of the selective scan on a CPU: one pass over memory each way, without the GIL.

The caller computes the factors exp(Δ A), where its vectorised exponential wins. Arrays are
(batch, length[, state], channels): the long channel axis is innermost, and every inner loop is
simple enough to become vector instructions.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_MATH = {"reassoc", "contract", "nsz"}  # sums in any order; infinities and NaN stay what they are


@numba.njit(cache=True, nogil=True, fastmath=_MATH, error_model="numpy")
def scan(drive: Array, factors: Array, into: Array, out: Array, y: Array, states: Array) -> None:
    """Fill ``y`` and ``states`` with ``drive`` = Δ x; the state before the first step is zero."""
    n_batch, length, n_state, n_channels = factors.shape
    for i in range(n_batch):
        for t in range(length):
            push, total = drive[i, t], y[i, t]
            total[:] = 0.0
            for n in range(n_state):
                state, b, c = states[i, t, n], into[i, t, n], out[i, t, n]
                if t == 0:
                    for e in range(n_channels):
                        state[e] = push[e] * b
                else:
                    factor, before = factors[i, t, n], states[i, t - 1, n]
                    for e in range(n_channels):
                        state[e] = factor[e] * before[e] + push[e] * b
                for e in range(n_channels):
                    total[e] += state[e] * c


@numba.njit(cache=True, nogil=True, fastmath=_MATH, error_model="numpy")
def scan_forgetful(drive: Array, factors: Array, into: Array, out: Array, y: Array) -> None:
    """Fill ``y`` alone: without an adjoint to come, one state after the other will do."""
    n_batch, length, n_state, n_channels = factors.shape
    states = np.empty((n_state, n_channels), dtype=factors.dtype)
    for i in range(n_batch):
        states[:] = 0.0
        for t in range(length):
            push, total = drive[i, t], y[i, t]
            total[:] = 0.0
            for n in range(n_state):
                state, factor, b, c = states[n], factors[i, t, n], into[i, t, n], out[i, t, n]
                for e in range(n_channels):
                    state[e] = factor[e] * state[e] + push[e] * b
                    total[e] += state[e] * c


@numba.njit(cache=True, nogil=True, fastmath=_MATH, error_model="numpy")
def adjoint(  # noqa: C901  # loops, not branches
    gradient: Array,
    step: Array,
    drive: Array,
    decay: Array,
    into: Array,
    out: Array,
    states: Array,
    factors: Array,
    grad_exponent: Array,
    grad_drive: Array,
    grad_decay: Array,
    grad_into: Array,
    grad_out: Array,
) -> None:
    """Run the recurrence backwards and fill the gradients.

    ``grad_exponent`` is that of Δ through exp(Δ A) alone; ``grad_decay`` is added to.
    """
    n_batch, length, n_state, n_channels = factors.shape
    carried = np.empty((n_state, n_channels), dtype=states.dtype)
    exponent = np.empty(n_channels, dtype=states.dtype)
    for i in range(n_batch):
        carried[:] = 0.0
        for t in range(length - 1, -1, -1):
            g, delta, push = gradient[i, t], step[i, t], drive[i, t]
            to_step, to_drive = grad_exponent[i, t], grad_drive[i, t]
            to_step[:] = 0.0
            to_drive[:] = 0.0
            for n in range(n_state):
                held, state, factor = carried[n], states[i, t, n], factors[i, t, n]
                b, c = into[i, t, n], out[i, t, n]
                total = states.dtype.type(0.0)
                for e in range(n_channels):
                    total += g[e] * state[e]
                grad_out[i, t, n] = total
                for e in range(n_channels):
                    held[e] += g[e] * c
                total = states.dtype.type(0.0)
                for e in range(n_channels):
                    total += push[e] * held[e]
                grad_into[i, t, n] = total
                for e in range(n_channels):
                    to_drive[e] += held[e] * b
                for e in range(n_channels):
                    held[e] *= factor[e]
                if t > 0:
                    before, rate, to_rate = states[i, t - 1, n], decay[n], grad_decay[n]
                    for e in range(n_channels):
                        exponent[e] = held[e] * before[e]
                    for e in range(n_channels):
                        to_step[e] += exponent[e] * rate[e]
                    for e in range(n_channels):
                        to_rate[e] += exponent[e] * delta[e]

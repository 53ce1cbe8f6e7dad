"""Roots of many scalar equations at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import elementwise

from amo.arrays import FloatArray

Rows = npt.NDArray[np.intp]
Bracket = tuple[FloatArray, FloatArray]
_APART = 1e-4  # relatively: two points nearer than this say nothing of the slope but noise


def find_roots(
    function: Callable[[FloatArray, Rows], FloatArray],
    narrow: Bracket,
    wide: Bracket,
    *,
    tolerance: float,
    residual: float,
    progress: Callable[[int], None] | None = None,
) -> FloatArray:
    """Solve function(x, rows) = 0 for every row; NaN where there is no root.

    Parameters
    ----------
    function
        Takes trial values and the numbers of their rows; called only for rows not solved yet.
    narrow, wide
        Where the root probably is, and where to look if it is not there.
    tolerance, residual
        A row is solved when x is known to the first, or the function is below the second.
    progress
        Called with the number of rows just done.
    """
    rows = np.arange(len(narrow[0]))
    found = _solve(function, narrow, rows, tolerance, residual, progress)
    lost = rows[np.isnan(found)]
    if len(lost):
        again = (wide[0][lost], wide[1][lost])
        found[lost] = _solve(function, again, lost, tolerance, residual, progress)
        if progress is not None:
            progress(int(np.isnan(found[lost]).sum()))
    return found


def secant_roots(
    function: Callable[[FloatArray, Rows], FloatArray],
    start: FloatArray,
    slope: FloatArray,
    limits: Bracket,
    *,
    tolerance: float,
    residual: float,
    n_calls: int = 8,
) -> FloatArray:
    """Solve function(x, rows) = 0 by the secant method; NaN where that did not end in a few calls.

    It needs about half the calls of a bracketed search, and promises nothing: look for the rest
    with :func:`find_roots`. ``slope`` is a guess of the derivative, for the first step.
    """
    found = np.full(len(start), np.nan)
    rows = np.arange(len(start))
    x, gradient = start.copy(), slope.copy()
    before, value_before = np.full(len(start), np.nan), np.full(len(start), np.nan)
    for _ in range(n_calls):
        value = function(x[rows], rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = (value - value_before[rows]) / (x[rows] - before[rows])
            is_apart = np.abs(x[rows] - before[rows]) > _APART * np.abs(x[rows])
            is_better = is_apart & np.isfinite(secant) & (secant > 0)
            gradient[rows] = np.where(is_better, secant, gradient[rows])
            step = -value / gradient[rows]
        is_exact = np.abs(value) <= residual
        after = np.clip(x[rows] + step, limits[0][rows], limits[1][rows])
        is_solved = is_exact | (np.abs(step) <= tolerance)  # a step cut short at a limit is no end
        found[rows[is_solved]] = np.where(is_exact, x[rows], after)[is_solved]
        before[rows], value_before[rows] = x[rows], value
        x[rows] = after
        rows = rows[~is_solved & np.isfinite(after)]
        if len(rows) == 0:
            break
    return found


def _solve(
    function: Callable[[FloatArray, Rows], FloatArray],
    bracket: Bracket,
    rows: Rows,
    tolerance: float,
    residual: float,
    progress: Callable[[int], None] | None,
) -> FloatArray:
    n_done = 0

    def report(state: Any) -> None:  # noqa: ANN401  # scipy's result object has no public type
        nonlocal n_done
        n_now = int(np.sum(state.status == 0))
        if progress is not None and n_now > n_done:
            progress(n_now - n_done)
        n_done = n_now

    root = elementwise.find_root(
        function,
        bracket,
        args=(rows,),
        tolerances={"xatol": tolerance, "xrtol": 0.0, "fatol": residual, "frtol": 0.0},
        maxiter=100,
        callback=report,
    )
    report(root)
    return np.where(root.success, root.x, np.nan)

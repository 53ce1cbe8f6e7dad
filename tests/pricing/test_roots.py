"""Many equations at once."""

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray
from pricing.roots import find_roots, secant_roots

TARGETS = np.array([0.2, 0.9, 3.5, -1.0])  # near, elsewhere in the wide bracket, and nowhere


def solve(asked: list[int], done: list[int]) -> FloatArray:
    def cube(x: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        asked.append(len(rows))
        return np.asarray(x**3 - TARGETS[rows] ** 3)

    n = len(TARGETS)
    return find_roots(
        cube,
        (np.full(n, 0.1), np.full(n, 0.3)),
        (np.zeros(n), np.full(n, 2.0)),
        tolerance=1e-10,
        residual=0.0,
        progress=done.append,
    )


def test_find_roots_looks_wide_where_narrow_fails_and_says_nan_where_there_is_none() -> None:
    found = solve([], [])
    np.testing.assert_allclose(found[:2], TARGETS[:2], atol=1e-10)
    assert np.isnan(found[2:]).all()


def test_find_roots_asks_only_for_rows_that_are_left_and_counts_each_once() -> None:
    asked: list[int] = []
    done: list[int] = []
    solve(asked, done)
    assert asked[:2] == [4, 4]  # the two ends of the narrow bracket
    assert max(asked[2:]) <= 3  # then the one that is in it, then the three that are not
    assert sum(done) == len(TARGETS)


def test_secants_find_smooth_roots_in_a_few_calls_and_leave_the_others() -> None:
    target = np.array([0.3, 2.0, 50.0, np.nan])
    calls: list[int] = []

    def function(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        calls.append(len(rows))
        return x + 0.1 * x**3 - target[rows]

    limits = (np.full(4, 1e-3), np.full(4, 3.0))
    found = secant_roots(function, np.ones(4), np.ones(4), limits, tolerance=1e-6, residual=1e-12)
    np.testing.assert_allclose(found[:2] + 0.1 * found[:2] ** 3, target[:2], atol=1e-9)
    assert np.isnan(found[3]), "NaN is no root"
    assert np.isnan(found[2]), "a limit is no root"
    assert len(calls) <= 8

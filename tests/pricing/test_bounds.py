"""Payoffs, bounds and the value at zero volatility."""

from collections.abc import Callable

import numpy as np
import pytest

from pricing import bounds
from pricing.options import Options


def test_best_fixed_exercise_is_the_maximum_over_time(
    random_options: Callable[..., Options],
) -> None:
    o = random_options(300, seed=40, rate=(-0.1, 0.3), dividend_yield=(-0.1, 0.3), expiry=(0, 20))
    times = np.linspace(0, 1, 2001)[:, None] * o.expiry
    sign = np.where(o.is_call, 1.0, -1.0)
    exercised = sign * (
        o.spot * np.exp(-o.dividend_yield * times) - o.strike * np.exp(-o.rate * times)
    )
    brute = np.maximum(exercised.max(axis=0), 0.0)
    found = bounds.best_fixed_exercise(
        o.spot, o.strike, o.expiry, o.rate, o.dividend_yield, o.is_call
    )
    assert (found >= brute - 1e-12).all()
    assert np.abs(found - brute).max() < 1e-3


@pytest.mark.parametrize(
    ("rate", "dividend_yield", "is_call", "never", "double"),
    [
        (0.05, 0.0, True, True, False),
        (0.05, 0.02, True, False, False),
        (0.0, 0.02, False, True, False),
        (0.02, 0.0, False, False, False),
        (-0.01, 0.0, False, True, False),
        (-0.01, -0.02, False, False, True),
        (-0.02, -0.01, True, False, True),
        (0.0, -0.02, False, False, False),
    ],
)
def test_early_exercise_is_classified(
    rate: float, dividend_yield: float, is_call: bool, never: bool, double: bool
) -> None:
    r, q = np.array([rate]), np.array([dividend_yield])
    assert bounds.never_exercised_early(r, q, is_call).item() is never
    assert bounds.has_double_boundary(r, q, is_call).item() is double


def test_bounds_contain_intrinsic_and_are_ordered(random_options: Callable[..., Options]) -> None:
    for is_american in (False, True):
        o = random_options(300, seed=41, is_american=is_american, rate=(-0.1, 0.1))
        low, high = bounds.bounds(o)
        assert (low <= high).all()
        if is_american:
            assert (low >= bounds.intrinsic(o.spot, o.strike, o.is_call)).all()

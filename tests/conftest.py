"""Fixtures and assertions shared by all tests."""

import os
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # one test process a core, so one thread each
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from pricing.options import Options  # torch reads the variable when it is loaded

hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)  # no clock judges an example
hypothesis.settings.load_profile("any machine")


def _describe(options: Options, row: int) -> str:
    kind = f"{'American' if options.is_american[row] else 'European'} "
    kind += "call" if options.is_call[row] else "put"
    names = ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility")
    return kind + ", " + ", ".join(f"{n} {getattr(options, n)[row]:.10g}" for n in names)


@pytest.fixture
def assert_close() -> Callable[..., None]:
    """Compare two arrays; a failure prints the whole worst contract."""

    def check(found: Any, expected: Any, options: Options, tolerance: Any, what: str = "") -> None:
        found, expected, tolerance = np.broadcast_arrays(found, expected, tolerance)
        assert np.isfinite(found).all(), f"{what}: {np.sum(~np.isfinite(found))} values not finite"
        excess = np.abs(found - expected) - tolerance
        row = int(np.argmax(excess))
        assert excess[row] <= 0, (
            f"{what} {found[row]:.12g}, expected {expected[row]:.12g} ± {tolerance[row]:.1e}; "
            f"{np.sum(excess > 0)} of {len(excess)} off, the worst: {_describe(options, row)}"
        )

    return check


def draw(
    n: int,
    seed: int,
    *,
    is_american: bool = False,
    moneyness: float = 0.4,
    expiry: tuple[float, float] = (0.05, 2.0),
    volatility: tuple[float, float] = (0.1, 0.6),
    rate: tuple[float, float] = (0.0, 0.1),
    dividend_yield: tuple[float, float] = (0.0, 0.08),
    strike: float = 100.0,
) -> Options:
    rng = np.random.default_rng(seed)
    return Options.of(
        spot=strike * np.exp(rng.uniform(-moneyness, moneyness, n)),
        strike=strike,
        expiry=rng.uniform(*expiry, n),
        rate=rng.uniform(*rate, n),
        dividend_yield=rng.uniform(*dividend_yield, n),
        volatility=rng.uniform(*volatility, n),
        is_call=rng.random(n) < 0.5,
        is_american=is_american,
    )


@pytest.fixture
def random_options() -> Callable[..., Options]:
    """Draw contracts of the reference box by seed."""
    return draw

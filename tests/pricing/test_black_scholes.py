"""The closed form: identities, limits and its inverse."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing import black_scholes as bs
from pricing.options import Options


def call_with(function: Callable[..., Any], o: Options, **moved: Any) -> Any:
    names = ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility", "is_call")
    return function(*(moved.get(name, getattr(o, name)) for name in names))


@pytest.fixture
def options(random_options: Callable[..., Options]) -> Options:
    return random_options(400, seed=1, rate=(-0.05, 0.15), dividend_yield=(-0.05, 0.15))


STEPS = {
    "delta": ("price", "spot", 1.0, 1e-3),
    "gamma": ("delta", "spot", 1.0, 1e-3),
    "vega": ("price", "volatility", 1.0, 1e-5),
    "theta": ("price", "expiry", -1.0, 1e-5),
    "rho": ("price", "rate", 1.0, 1e-5),
    "dividend_rho": ("price", "dividend_yield", 1.0, 1e-5),
    "vanna": ("delta", "volatility", 1.0, 1e-5),
    "volga": ("vega", "volatility", 1.0, 1e-5),
    "charm": ("delta", "expiry", -1.0, 1e-5),
}


@pytest.mark.parametrize("greek", list(STEPS))
def test_greek_is_the_derivative_it_names(greek: str, options: Options) -> None:
    parent, column, sign, h = STEPS[greek]
    base = getattr(options, column)
    up, down = (call_with(bs.evaluate, options, **{column: base + d})[parent] for d in (h, -h))
    found = call_with(bs.evaluate, options)[greek]
    assert np.allclose(found, sign * (up - down) / (2 * h), rtol=2e-6, atol=2e-6)


def test_price_satisfies_the_equation(options: Options) -> None:
    v = call_with(bs.evaluate, options)
    o = options
    residual = (
        v["theta"]
        + (o.rate - o.dividend_yield) * o.spot * v["delta"]
        + 0.5 * (o.volatility * o.spot) ** 2 * v["gamma"]
        - o.rate * v["price"]
    )
    assert np.abs(residual).max() < 1e-11


def test_put_call_parity(options: Options) -> None:
    call = call_with(bs.price, options, is_call=True)
    put = call_with(bs.price, options, is_call=False)
    forward = options.spot * np.exp(-options.dividend_yield * options.expiry)
    cash = options.strike * np.exp(-options.rate * options.expiry)
    assert np.abs(call - put - forward + cash).max() < 1e-12 * 100


@pytest.mark.parametrize("quantity", bs.QUANTITIES)
def test_limits_are_finite_and_right(quantity: str) -> None:
    tiny = [0.0, 1e-300, 1e-12]
    spot = np.array([50.0, 100.0, 200.0])
    for is_call in (True, False):
        for expiry in tiny:
            at_expiry = bs.evaluate(spot, 100.0, expiry, 0.05, 0.02, 0.2, is_call)
            assert np.isfinite(at_expiry[quantity]).all()
        for volatility in (1e-12, 1e-6, 100.0):
            values = bs.evaluate(spot, 100.0, 1.0, 0.05, 0.02, volatility, is_call)
            assert np.isfinite(values[quantity]).all()


def test_at_expiry_values_are_intrinsic_and_limits() -> None:
    v = bs.evaluate(np.array([80.0, 100.0, 120.0]), 100.0, 0.0, 0.05, 0.02, 0.2, True)
    assert v["price"].tolist() == [0.0, 0.0, 20.0]
    assert v["delta"].tolist() == [0.0, 0.5, 1.0]
    assert np.allclose(v["theta"], [0.0, 0.5 * (2.0 - 5.0), 0.02 * 120 - 5.0])
    for name in ("gamma", "vega", "rho", "dividend_rho", "vanna", "volga"):
        assert v[name].tolist() == [0.0, 0.0, 0.0]


def test_zero_volatility_is_the_forward_payoff() -> None:
    price = bs.price(np.array([80.0, 120.0]), 100.0, 1.0, 0.05, 0.02, 1e-12, True)
    forward = 120 * np.exp(-0.02) - 100 * np.exp(-0.05)
    assert np.allclose(price, [0.0, forward], atol=1e-13)


def test_deep_wings_keep_relative_accuracy() -> None:
    # 12 deviations out of the money; checked against 50-digit arithmetic
    value = bs.price(100.0, 100.0 * np.exp(1.2), 1.0, 0.0, 0.0, 0.1, True)
    assert value == pytest.approx(2.6579607339351545e-33, rel=1e-9)


def test_any_shape_is_kept() -> None:
    out = bs.evaluate(np.full((2, 1, 3), 100.0), 100.0, np.ones((4, 1)), 0.0, 0.0, 0.2, True)
    assert all(value.shape == (2, 4, 3) for value in out.values())
    assert np.ndim(bs.price(100, 100, 1, 0, 0, 0.2, True)) == 0


@settings(max_examples=300, deadline=None)
@given(
    x=st.floats(-1.0, 1.0),
    expiry=st.floats(0.01, 5.0),
    volatility=st.floats(0.02, 3.0),
    rate=st.floats(-0.05, 0.15),
    dividend_yield=st.floats(-0.05, 0.15),
    is_call=st.booleans(),
)
def test_implied_volatility_reproduces_the_price(
    x: float, expiry: float, volatility: float, rate: float, dividend_yield: float, is_call: bool
) -> None:
    market = (100.0 * np.exp(x), 100.0, expiry, rate, dividend_yield)
    price = bs.price(*market, volatility, is_call)
    found = bs.implied_volatility(price, *market, is_call)
    vega = bs.evaluate(*market, volatility, is_call)["vega"]
    if vega > 1e-6:  # below, a double holds no volatility in its price
        assert abs(found - volatility) < 1e-8 + 1e-12 / vega
        assert abs(bs.price(*market, found, is_call) - price) < 1e-11


def test_implied_volatility_outside_the_bounds_is_nan() -> None:
    market = (100.0, 100.0, 1.0, 0.05, 0.0)
    low, high = 100 - 100 * np.exp(-0.05), 100.0
    prices = np.array([low - 1e-6, low, high, high + 1, -1.0, np.nan])
    assert np.isnan(bs.implied_volatility(prices, *market, True)).all()
    assert np.isnan(bs.implied_volatility(5.0, 100.0, 100.0, 0.0, 0.0, 0.0, True))

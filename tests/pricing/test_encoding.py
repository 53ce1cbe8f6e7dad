"""Coordinates and output forms: the same for numpy and torch, exact where they should be."""

import numpy as np
import pytest
import torch

from amo.operator import smaller_of
from pricing import black_scholes, fd
from pricing.options import Options
from pricing.surrogate.encoding import (
    AMERICAN,
    DIRECTIONS,
    EUROPEAN,
    Coding,
    Put,
    above_limit,
    code_rate,
    mirrored,
    rate_of,
    rate_slope,
    tangents,
)

BOTH = pytest.mark.parametrize("coding", [EUROPEAN, AMERICAN], ids=lambda c: c.name)


def puts(n: int = 200, seed: int = 0) -> Put:
    rng = np.random.default_rng(seed)
    return Put(
        rng.uniform(-1.5, 1.5, n),
        rng.uniform(0.01, 3.0, n),
        rng.uniform(0.0, 0.15, n),
        rng.uniform(0.0, 0.15, n),
        rng.uniform(0.05, 1.5, n),
    )


@BOTH
def test_numpy_and_torch_agree(coding: Coding) -> None:
    put = puts()
    same = Put(*(torch.from_numpy(column) for column in put))
    assert np.allclose(coding.queries(put, np), coding.queries(same, torch).numpy(), atol=1e-13)
    for function in filter(None, (coding.scale, coding.gap)):
        assert np.allclose(function(put, np), function(same, torch).numpy(), atol=1e-13)


@BOTH
def test_tangents_are_derivatives(coding: Coding) -> None:
    put, h = puts(), 1e-6
    turned = coding.query_tangents(put)
    for place, name in enumerate(DIRECTIONS):
        up, down = (put._replace(**{name: getattr(put, name) + by}) for by in (h, -h))
        queries = (coding.queries(up, np) - coding.queries(down, np)) / (2 * h)
        assert np.allclose(turned[:, place], queries, atol=1e-5, rtol=1e-5), name
        for function in filter(None, (coding.scale, coding.gap)):
            slope = (function(up, np) - function(down, np)) / (2 * h)
            assert np.allclose(tangents(function, put)[:, place], slope, atol=1e-7, rtol=1e-6), name


@BOTH
def test_tangents_are_those_of_automatic_differentiation(coding: Coding) -> None:
    put = Put(*(torch.from_numpy(column).requires_grad_() for column in puts()))
    turned = coding.query_tangents(puts())
    for axis in range(turned.shape[-1]):
        slopes = torch.autograd.grad(
            coding.queries(put, torch)[:, axis].sum(),
            [getattr(put, name) for name in DIRECTIONS],
            allow_unused=True,
        )
        for place, slope in enumerate(slopes):
            expected = 0.0 if slope is None else slope.numpy()
            assert np.allclose(turned[:, place, axis], expected, atol=1e-10)


def european(put: Put) -> np.ndarray:
    return black_scholes.price(*put.terms)


def output(coding: Coding, put: Put, price: np.ndarray) -> np.ndarray:
    """Return what an operator would have to answer to give these prices."""
    above = price - coding.offset(*put.terms, ("price",))["price"]
    if coding.gap is not None:
        above = np.sqrt(above * (above + coding.gap(put, np)))
    return above / coding.scale(put, np)


def test_identity_the_gap_is_put_call_parity() -> None:
    put = puts()
    call = black_scholes.price(*put.terms[:-1], True)
    assert EUROPEAN.gap is not None
    assert np.allclose(EUROPEAN.gap(put, np), call - european(put), atol=1e-14)


def test_identity_the_smaller_of_two_numbers_is_found_from_mean_and_gap() -> None:
    rng = np.random.default_rng(0)
    small, gap = 10 ** rng.uniform(-12, 1, 500), rng.choice([1.0, 1e-6, 0.0], 500)
    mean = np.sqrt(small * (small + gap))
    for sign in (1.0, -1.0):  # from the smaller one up, and from the larger one down
        given = [torch.from_numpy(x) for x in (mean, sign * gap)]
        expected = small if sign > 0 else small + gap
        assert np.allclose(smaller_of(*given).numpy(), expected, rtol=1e-12)


def test_the_european_put_is_smooth_on_the_forward() -> None:
    """At no gap the slope is that of both sides, -1/2, and the curvature is not lost."""
    gap = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    mean = torch.full((1,), 0.1, dtype=torch.float64)
    (slope,) = torch.autograd.grad(smaller_of(mean, gap).sum(), gap, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), gap)
    assert slope.item() == -0.5
    assert np.isclose(curvature.item(), 1 / (4 * 0.1))


def test_identity_a_european_s_output_depends_on_its_two_coordinates_alone() -> None:
    """Other rates, the same ln F and σ√τ, on either side of the forward: the same output."""
    put = puts()
    carry = (put.rate - put.dividend_yield) * put.time_to_expiry
    forward = put.log_moneyness + carry
    longer = 1.7 * put.time_to_expiry
    other = Put(
        -forward - (0.03 - 0.11) * longer,
        longer,
        np.full(200, 0.03),
        np.full(200, 0.11),
        put.volatility / np.sqrt(1.7),
    )
    assert np.allclose(EUROPEAN.queries(put, np), EUROPEAN.queries(other, np), atol=1e-12)
    a, b = (output(EUROPEAN, p, european(p)) for p in (put, other))
    assert np.allclose(a, b, atol=4e-6)  # a price's rounding of 4e-16, under a root, over the scale
    assert a.min() >= 0
    assert a.max() < 0.4


def test_an_american_s_premium_is_between_nothing_and_the_interest() -> None:
    put = puts(60, seed=1)
    options = Options.of(
        spot=np.exp(put.log_moneyness),
        strike=1.0,
        expiry=put.time_to_expiry,
        rate=put.rate,
        dividend_yield=put.dividend_yield,
        volatility=put.volatility,
        is_call=False,
        is_american=True,
    )
    y = output(AMERICAN, put, fd.evaluate(options, ("price",))["price"])
    assert y.min() > -1e-3
    assert y.max() <= 1.0 + 1e-6


def test_the_exercise_boundary_tends_to_its_limit_at_expiry() -> None:
    """The limit is min(1, r/q): there, what exercise earns is what it costs."""
    rate, dividend_yield = np.array([0.01, 0.03, 0.02]), np.array([0.04, 0.05, 0.03])
    options = Options.of(
        spot=1.0,
        strike=1.0,
        expiry=np.full(3, 0.01),
        rate=rate,
        dividend_yield=dividend_yield,
        volatility=0.2,
        is_call=False,
        is_american=True,
    )
    boundary = fd.solve_surface(options, log_moneyness=(-1.6, 0.1)).boundary[:, -1]
    here = Put(np.log(boundary), options.expiry, rate, dividend_yield, options.volatility)
    assert np.allclose(above_limit(here), 0.0, atol=0.04)  # it moves by about σ√τ = 0.02


def test_identity_what_exercise_pays_is_a_hyperbolic_tangent() -> None:
    put = puts()._replace(rate=np.full(200, 0.02), dividend_yield=np.full(200, 0.03))
    least = 2.5e-4
    earned, paid = 0.02 + least, (0.03 + least) * np.exp(put.log_moneyness)
    assert np.allclose(np.tanh(0.5 * above_limit(put)), (paid - earned) / (paid + earned))


def test_coordinates_are_finite_without_rates() -> None:
    put = puts()._replace(rate=np.zeros(200), dividend_yield=np.zeros(200))
    assert np.isfinite(AMERICAN.queries(put, np)).all()
    assert np.isfinite(AMERICAN.query_tangents(put)).all()
    assert np.allclose(above_limit(put), put.log_moneyness)


def test_mirrored_puts_have_the_value_of_the_call() -> None:
    rng = np.random.default_rng(0)
    n = 100
    options = Options.of(
        spot=rng.uniform(50, 150, n),
        strike=rng.uniform(50, 150, n),
        expiry=rng.uniform(0.1, 3, n),
        rate=rng.uniform(0, 0.1, n),
        dividend_yield=rng.uniform(0, 0.1, n),
        volatility=rng.uniform(0.1, 0.9, n),
        is_call=rng.random(n) < 0.5,
    )
    put, unit = mirrored(*options.terms)
    assert np.allclose(unit * european(put), black_scholes.price(*options.terms), atol=1e-10)


def test_rates_come_back() -> None:
    rate = np.linspace(0.0, 0.15, 31)
    assert np.allclose(rate_of(code_rate(rate)), rate, atol=1e-15)
    h = 1e-7
    assert np.allclose(rate_slope(rate), (code_rate(rate + h) - code_rate(rate - h)) / (2 * h))

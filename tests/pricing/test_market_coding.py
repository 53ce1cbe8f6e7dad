"""The coding of American options under markets: floors, coordinates, input function."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pricing import cash_dividends, fd
from pricing.options import Options
from pricing.random_schedules import random_schedules
from pricing.surrogate.market_coding import (
    COORDINATES,
    FEATURES,
    code,
    european,
    input_function,
    plans,
    terms_of,
)
from pricing.surrogate.market_domain import MarketDomain

N, CONTRACTS = 48, 4


@pytest.fixture(scope="module")
def options() -> Options:
    return random_schedules(MarketDomain(), N, np.random.default_rng(3), n_contracts=CONTRACTS)


def rows_of(options: Options) -> "np.ndarray[tuple[int, int], np.dtype[np.intp]]":
    """Every row its own slice: rows of a draw may be missing."""
    return np.arange(len(options))[:, None]


def test_european_values_are_those_of_the_formula(options: Options) -> None:
    found = european(terms_of(options, rows_of(options))).numpy()[:, 0] * options.strike
    names = ("price", "delta", "gamma")
    truth = cash_dividends.evaluate(options, options.market_slices, names)
    np.testing.assert_allclose(found, truth["price"], rtol=0, atol=1e-10)


def test_derivatives_of_european_values_are_its_greeks(options: Options) -> None:
    terms = terms_of(options, rows_of(options))
    leaves = {
        name: torch.zeros_like(terms.log_moneyness, requires_grad=True)
        for name in ("log_spot", "volatility", "rate", "borrow")
    }
    slopes = torch.autograd.grad(european(terms.moved(**leaves)).sum(), list(leaves.values()))
    found = {
        name: slope.numpy()[:, 0] * options.strike
        for name, slope in zip(leaves, slopes, strict=True)
    }
    names = ("delta", "vega", "rho", "dividend_rho")
    truth = cash_dividends.evaluate(options, options.market_slices, names)
    # the referee differences the formula: its steps leave some 1e-6 of a strike of 100
    np.testing.assert_allclose(found["log_spot"] / options.spot, truth["delta"], atol=2e-5)
    np.testing.assert_allclose(found["volatility"], truth["vega"], atol=1e-3)
    np.testing.assert_allclose(found["rate"], truth["rho"], atol=1e-3)
    np.testing.assert_allclose(found["borrow"], truth["dividend_rho"], atol=1e-3)


def test_no_american_value_lies_below_the_floor(options: Options) -> None:
    coded = code(terms_of(options, rows_of(options)))
    found = fd.evaluate_under_markets(
        options, options.market_slices, ("price", "price_error"), fd.under_markets(fd.ACCURATE)
    )
    floor = coded.floor.numpy()[:, 0] * options.strike
    assert (found["price"] + found["price_error"] + 1e-4 >= floor).all()
    assert (coded.offset <= coded.floor + 1e-15).all(), "a mean is never above the best"
    above = (found["price"] / options.strike) - coded.offset.numpy()[:, 0]
    scale = coded.scale.numpy()[:, 0]
    assert (above <= 4.0 * scale + 1e-5).all(), "the scale is of the size of what is learned"


def test_without_dividends_and_rates_there_is_nothing_to_learn(options: Options) -> None:
    terms = terms_of(options, rows_of(options))
    zero = {
        name: torch.zeros_like(getattr(terms, name))
        for name in ("cash", "rate", "rate_to", "rate_along", "borrow", "borrow_to", "borrow_along")
    }
    still = terms._replace(**zero)
    coded = code(still)
    assert torch.equal(coded.scale, torch.zeros_like(coded.scale))
    assert torch.allclose(coded.offset, european(still), atol=1e-15)
    assert not plans(still).any()


def test_the_input_function_has_real_points_only_and_finite_numbers(options: Options) -> None:
    terms = terms_of(options, rows_of(options))
    points, features, mask = input_function(terms)
    count = options.market_slices.n_payments
    assert features.shape == (*points.shape[:2], FEATURES)
    assert (mask.sum(1).numpy() == count + 4).all()
    assert ((points >= 0) & (points <= 1)).all()
    coded = code(terms)
    assert coded.queries.shape == (N, 1, COORDINATES)
    assert torch.isfinite(features).all()
    assert torch.isfinite(coded.queries).all()
    assert coded.queries.abs().max() < 6


def test_similar_options_have_the_same_code(options: Options) -> None:
    """Years enter through integrals and σ√T alone: twice the time, half the rates, is the same."""
    terms = terms_of(options, rows_of(options))
    slow = terms._replace(
        expiry=2.0 * terms.expiry,
        time=2.0 * terms.time,
        volatility=terms.volatility / np.sqrt(2.0),
    )
    for one, other in zip(code(terms), code(slow), strict=True):
        assert torch.allclose(one, other, atol=1e-9)
    for one, other in zip(input_function(terms), input_function(slow), strict=True):
        assert torch.allclose(one.double(), other.double(), atol=1e-12)


def test_moves_are_those_of_the_market(options: Options) -> None:
    slices = options.market_slices
    terms = terms_of(options, rows_of(options))
    shifted = terms_of(
        options.with_slices(slices.shifted(rate=0.01, borrow=0.002)), rows_of(options)
    )
    richer = terms_of(
        options.with_values(spot=1.1 * options.spot).with_slices(
            replace(slices, cash=1.5 * slices.cash)
        ),
        rows_of(options),
    )
    for wanted, moved in (
        (shifted, terms.moved(rate=0.01, borrow=0.002)),
        (richer, terms.moved(log_spot=float(np.log(1.1)), dividends=0.5)),
    ):
        for one, other in zip(wanted, moved, strict=True):
            assert torch.allclose(one.double(), other.double(), atol=1e-12)


def test_the_domain_says_what_is_unusual(options: Options) -> None:
    domain, slices = MarketDomain(), options.market_slices

    def said(some: Options) -> str:
        return "; ".join(reason for mask, reason in domain.outside(some) if mask.any())

    assert said(options) == ""
    assert "proportion" in said(
        options.with_slices(replace(slices, proportion=np.where(slices.cash > 0, 0.01, 0.0)))
    )
    assert "% of the spot" in said(options.with_slices(replace(slices, cash=20.0 * slices.cash)))
    assert "rate leaves" in said(options.with_slices(slices.shifted(rate=0.2)))
    assert "borrow leaves" in said(options.with_slices(slices.shifted(borrow=-0.1)))
    assert "volatility" in said(options.with_values(volatility=9.0 * options.volatility))
    assert "apart" in said(options.with_slices(replace(slices, time=0.1 * slices.time)))
    assert MarketDomain.from_dict(domain.as_dict()) == domain

"""Finite differences, formula and QuantLib's grid under curves and dividends."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pricing import Market, Options, evaluate, get_engine, price_frame
from pricing import black_scholes as bs
from pricing.cash_dividends import evaluate as formula
from pricing.fd import ACCURATE, FAST, FDSettings, evaluate_under_markets, under_markets
from pricing.fd.dividends import grid_under, solve
from pricing.markets.curve import Curve, Curves
from pricing.markets.slices import Slices
from pricing.random_books import random_markets

REFERENCE = Path(__file__).parents[1] / "reference"


def published(name: str) -> tuple[Options, Slices, np.ndarray, np.ndarray]:
    table = pd.read_csv(REFERENCE / f"dividends_{name}.csv")
    table = table[table["model"].isin(["spot", "spot_proportional"])]
    markets = []
    for row in table.itertuples():
        paid: list[tuple[float, float, float]] = []
        for payment in str(row.dividends).split(";"):
            time, size = payment.split(":")
            share = float(size[:-1]) if size.endswith("p") else 0.0
            paid.append((float(time), 0.0 if share else float(size), share))
        markets.append(Market(spot=row.S, rate=row.r, borrow=row.q, dividends=paid))
    options = Options.of(
        spot=table["S"], strike=table["K"], expiry=table["T"], rate=table["r"],
        dividend_yield=table["q"], volatility=table["vol"],
        is_call=table["option_type"] == "call", is_american=table["exercise"] == "american",
    )  # fmt: skip
    slices = Slices.of(markets, np.arange(len(markets)), options.expiry)
    return options, slices, table["expected"].to_numpy(), table["tolerance"].to_numpy()


def solved(options: Options, settings: FDSettings, *names: str) -> dict[str, Any]:
    assert options.slices is not None
    return evaluate_under_markets(options, options.slices, ("price", *names), settings)


@pytest.mark.parametrize("name", ["cash_european", "proportional_european"])
def test_the_formula_is_within_its_stated_error_of_published_values(name: str) -> None:
    options, slices, expected, tolerance = published(name)
    found = formula(options, slices, ("price", "price_error"))
    assert (np.abs(found["price"] - expected) <= found["price_error"] + tolerance).all()


@pytest.mark.parametrize(
    "name",
    ["cash_european", "cash_american", "computed_american_cash", "proportional_european",
     "proportional_american"],
)  # fmt: skip
def test_finite_differences_agree_with_published_values(name: str) -> None:
    options, slices, expected, tolerance = published(name)
    found = evaluate_under_markets(options, slices, ("price",), under_markets(ACCURATE))["price"]
    error = np.maximum(np.abs(found - expected) - tolerance, 0.0)
    assert np.sqrt(np.mean(error**2)) <= 1e-4
    assert error.max() <= 5e-4


def test_random_american_options_agree_with_a_grid_four_times_finer() -> None:
    options = random_markets(16, seed=5, is_american=True)
    truth = solved(options, FDSettings(n_space=400, n_time=200))["price"]
    found = solved(options, under_markets(ACCURATE), "price_error")
    error = np.abs(found["price"] - truth)
    assert np.sqrt(np.mean(error**2)) <= 3e-4
    assert np.mean(error <= found["price_error"]) >= 0.98  # of 64, one may be outside
    fast = solved(options, under_markets(FAST))["price"]
    assert np.sqrt(np.mean((fast - truth) ** 2)) <= 2e-3


def test_the_formula_agrees_with_finite_differences_under_random_markets() -> None:
    options = random_markets(30, seed=7, is_american=False)
    assert options.slices is not None
    names = ("price_error", "delta", "gamma", "vega", "rho")
    found = formula(options, options.slices, ("price", *names))
    grid = solved(options, under_markets(ACCURATE), *names)
    error = np.abs(found["price"] - grid["price"])
    assert np.mean(error <= found["price_error"] + grid["price_error"]) >= 0.99
    for name, tolerance in (("delta", 1e-3), ("gamma", 1e-3), ("vega", 0.05), ("rho", 0.05)):
        assert np.abs(found[name] - grid[name]).max() < tolerance, name


@pytest.mark.parametrize("is_american", [False, True])
def test_measured_order_of_convergence_with_dividends(*, is_american: bool) -> None:
    """Differences between nested grids fall by 2² when all steps are halved."""
    options = random_markets(6, seed=9, is_american=is_american)
    unit = options.with_values(spot=options.spot / options.strike, strike=np.ones(len(options)))
    assert options.slices is not None
    slices = replace(options.slices, cash=options.slices.cash / options.strike[:, None])
    size = FDSettings(n_space=80, n_time=60)
    grid = grid_under(unit, slices, size)
    on_coarse = [solve(unit, slices, grid, size, level)[1][:, :: 2**level] for level in range(4)]
    changes = [
        np.sqrt(np.mean((after - before) ** 2)) for before, after in itertools.pairwise(on_coarse)
    ]
    assert np.log2(changes[1] / changes[2]) >= 1.9


@pytest.mark.parametrize("engine", ["analytic", "fd"])
def test_without_dividends_and_with_flat_curves_nothing_changes(engine: str) -> None:
    style = "european" if engine == "analytic" else "american"
    book = pd.DataFrame({"strike": [90.0, 100.0, 110.0], "expiry": [0.1, 0.5, 2.0]})
    book = book.assign(volatility=0.3, option_type=["call", "put", "put"], exercise=style)
    flat = price_frame(book.assign(spot=100.0, rate=0.04, dividend_yield=0.01), engine)
    market = Market(spot=100.0, rate={0.5: 0.04, 1.0: 0.04}, borrow=0.01)
    later = replace_dividends(market, [(3.0, 5.0)])
    for each in (market, later):
        found = price_frame(book, engine, markets={"X": each})
        for name in ("price", "delta", "gamma", "vega", "theta", "rho"):
            np.testing.assert_allclose(found[name], flat[name], atol=1e-7, rtol=1e-6, err_msg=name)


def replace_dividends(market: Market, dividends: list[tuple[float, float]]) -> Market:
    return Market(spot=market.spot, rate=market.rate, borrow=market.borrow, dividends=dividends)


def test_a_dividend_now_is_a_lower_spot_and_proportions_are_a_smaller_one() -> None:
    book = pd.DataFrame({"strike": [90.0, 110.0], "expiry": 1.0, "volatility": 0.25})
    book = book.assign(option_type=["call", "put"], exercise="european")
    terms = {"rate": 0.03, "dividend_yield": 0.01}
    lower = price_frame(book.assign(spot=95.0, **terms), "analytic")["price"]
    now = Market(spot=100.0, rate=0.03, borrow=0.01, dividends=[(0.0, 5.0)])
    found = price_frame(book, "analytic", markets={"X": now})["price"]
    np.testing.assert_allclose(found, lower, atol=1e-9)
    shares = Market(spot=100.0, rate=0.03, borrow=0.01, dividends=[(0.2, 0, 0.02), (0.7, 0, 0.03)])
    smaller = price_frame(book.assign(spot=100 * 0.98 * 0.97, **terms), "analytic")["price"]
    for engine, tolerance in (("analytic", 1e-9), ("fd", 1e-4)):
        found = price_frame(book, engine, markets={"X": shares})["price"]
        np.testing.assert_allclose(found, smaller, atol=tolerance)


def check_flat_formula(evaluate: Callable[..., Any]) -> None:
    """The formula without payments is Black–Scholes to rounding."""
    options = random_markets(3, seed=1, is_american=False)
    slices = options.slices
    assert slices is not None
    none = replace(slices, n_payments=np.zeros_like(slices.n_payments))
    found = evaluate(options, none, ("price",))["price"]
    rate = slices.rate_integral(options.expiry) / options.expiry
    borrow = slices.borrow_integral(options.expiry) / options.expiry
    truth = bs.price(
        options.spot, options.strike, options.expiry, rate, borrow, options.volatility,
        options.is_call,
    )  # fmt: skip
    np.testing.assert_allclose(found, truth, atol=1e-10)


def test_identity_without_payments_the_formula_is_black_scholes() -> None:
    check_flat_formula(formula)


def test_quantlibs_grid_is_a_referee_for_price_and_greeks() -> None:
    options = random_markets(4, seed=3, is_american=True, n_contracts=2, n_payments=3)
    names = ("price", "delta", "gamma", "vega", "theta", "rho", "dividend_rho")
    ours, _ = evaluate(get_engine("fd"), options, names)
    theirs, failed = evaluate(get_engine("quantlib-fd"), options, names, workers=1)
    assert failed == {}
    # Its error is of order 1e-2 for a spot of 100 on 200 x 400 points; rates are bumped by 1e-3.
    limits = (1.5e-2, 3e-3, 1e-3, 0.5, 0.2, 2.0, 2.0)
    for name, limit in zip(names, limits, strict=True):
        assert np.abs(ours[name] - theirs[name]).max() < limit, name


def test_quantlibs_traps_are_handled() -> None:
    book = pd.DataFrame({"strike": [100.0], "expiry": 1.0, "volatility": 0.3, "option_type": "put"})
    book = book.assign(exercise="american")
    twice = Market(spot=100.0, rate=0.05, dividends=[(0.5, 1.0), (0.5 + 1e-6, 1.0)])
    once = Market(spot=100.0, rate=0.05, dividends=[(0.5, 2.0)])
    both = [
        price_frame(book, "quantlib-fd", greeks=False, markets={"X": market})["price"].item()
        for market in (twice, once)
    ]
    assert both[0] == pytest.approx(both[1], abs=1e-9), "payments of one of its days are added up"
    share = Market(spot=100.0, rate=0.05, dividends=[(0.5, 0.0, 0.02)])
    found = price_frame(book, "quantlib-fd", errors="coerce", markets={"X": share})
    assert "in proportion" in found["error"].item()


def test_a_call_without_borrow_is_exercised_at_ex_dates_only() -> None:
    market = Market(spot=100.0, rate=0.04, dividends=[(0.5, 4.0)])
    option = Options.of(
        spot=100.0, strike=80.0, expiry=1.0, rate=0.0, dividend_yield=0.0, volatility=0.2,
        is_call=[True, False], is_american=True,
    )  # fmt: skip
    options = option.with_slices(Slices.of([market], np.zeros(2, dtype=np.intp), option.expiry))
    times = np.tile([0.0, 0.25, 0.5, 0.75], (2, 1))
    spots = np.full((2, 1), 100.0)
    engine = get_engine("fd")
    boundary = engine.surface(options, spots, times, ("boundary",))["boundary"]  # type: ignore[attr-defined]
    assert np.isfinite(boundary[0]).tolist() == [False, False, True, False]
    assert 80.0 < boundary[0, 2] < 200.0
    assert (boundary[1][np.isfinite(boundary[1])] < 80.0).all(), "a put's region lies below"
    assert np.isfinite(boundary[1, 3]), "nothing is paid after that: a put is exercised"
    now = engine.exercise_boundary(options)  # type: ignore[attr-defined]
    assert np.isnan(now[0])


def test_what_is_exercised_is_worth_what_it_pays() -> None:
    market = Market(spot=40.0, rate={0.5: 0.05, 1.0: 0.06}, dividends=[(2.0, 1.0)])
    book = pd.DataFrame({"strike": [100.0], "expiry": 1.0, "volatility": 0.2, "option_type": "put"})
    found = price_frame(book.assign(exercise="american"), "fd", markets={"X": market}).iloc[0]
    assert found["price"] == 60.0
    assert found["delta"] == -1.0
    assert (found[["gamma", "vega", "theta", "rho"]] == 0.0).all()


def test_identity_curves_of_many_markets_are_the_curves_one_by_one() -> None:
    curves = [Curve((0.5, 1.0, 3.0), (0.03, 0.04, 0.035)), Curve((1.0,), (0.02,))]
    stacked = Curves.of(curves)
    times = np.array([[0.0, 0.25, 0.5, 2.0, 9.0], [0.0, 0.5, 1.0, 3.0, 9.0]])
    found = stacked.integral(times, np.array([0, 1]))
    for row, curve in enumerate(curves):
        np.testing.assert_allclose(found[row], curve.integral(times[row]), rtol=1e-14)
    assert stacked.is_flat.tolist() == [False, True]
    assert stacked.forward(np.array([[0.6], [0.6]]), np.array([0, 1])) == pytest.approx(
        np.array([[0.05], [0.02]])
    )


def test_identity_a_market_seen_later_prices_what_the_surface_says() -> None:
    market = Market(
        spot=100.0, rate={0.25: 0.03, 1.5: 0.05}, borrow=0.01,
        dividends=[(0.2, 1.0), (0.7, 1.5), (1.1, 0.0, 0.02)],
    )  # fmt: skip
    later = market.after(0.5, spot=95.0)
    assert [round(p.time, 12) for p in later.dividends] == [0.2, 0.6]
    forward = market.rate.integral(1.3) - market.rate.integral(0.5)
    assert later.rate.integral(0.8) == pytest.approx(forward)
    number, expiry = np.zeros(1, dtype=np.intp), np.array([1.3])
    moved = Slices.of([market], number, expiry).after(np.array([0.5]), expiry - 0.5)
    anew = Slices.of([later], number, expiry - 0.5)
    assert moved.n_payments.tolist() == anew.n_payments.tolist()
    np.testing.assert_allclose(moved.time[:, :2], anew.time, atol=1e-12)
    at = np.array([[0.1, 0.3, 0.8]])
    np.testing.assert_allclose(moved.rate_integral(at), anew.rate_integral(at), atol=1e-14)
    np.testing.assert_allclose(moved.rate_now, anew.rate_now)

"""Markets: curves, dates, dividends; formula and finite differences under them.

One long file on purpose: all tests share the same few markets.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amo.errors import AMOError, SettingsError
from pricing import (
    Curve,
    Market,
    OptionFrameError,
    Options,
    implied_vol_frame,
    ladder_frame,
    markets_from_frames,
    price_frame,
    read_markets,
    write_markets,
)
from pricing import black_scholes as bs
from pricing.__main__ import main
from pricing.cash_dividends import evaluate as formula
from pricing.fd import ACCURATE, FAST, FDSettings, evaluate_under_markets, under_markets
from pricing.markets.slices import Slices

REFERENCE = Path(__file__).parents[1] / "reference"
AS_OF = "2025-10-06 16:00"
QUARTERLY = [("2025-11-10", 0.26), ("2026-02-09", 0.26), ("2026-05-11", 0.27)]
AAPL = Market(
    spot=256.7,
    rate={0.1: 0.041, 0.5: 0.039, 1.0: 0.037},
    borrow=0.002,
    dividends=QUARTERLY,
    as_of=AS_OF,
)


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


def random_markets(n: int, seed: int, *, is_american: bool) -> tuple[Options, Slices]:
    """Draw markets with up to eight payments and sloped curves, four contracts each."""
    rng = np.random.default_rng(seed)
    markets = []
    for _ in range(n):
        count = int(rng.integers(0, 9))
        level, slope = rng.uniform(0.01, 0.08), rng.uniform(-0.004, 0.01)
        cash = 100.0 * rng.uniform(0.0, 0.06) * 2.0 / max(count, 1)
        times = np.sort(rng.uniform(0.005, 2.0, count))
        markets.append(
            Market(
                spot=100.0,
                rate={0.25: level, 1.0: level + slope, 2.0: level + 1.3 * slope},
                borrow={0.5: 0.01, 2.0: 0.01 + rng.uniform(0.0, 0.005)},
                dividends=[(float(time), cash) for time in times],
            )
        )
    m = 4 * n
    options = Options.of(
        spot=100.0, strike=100.0 * np.exp(rng.uniform(-0.35, 0.35, m)),
        expiry=rng.uniform(0.02, 2.0, m), rate=0.0, dividend_yield=0.0,
        volatility=rng.uniform(0.1, 0.6, m), is_call=rng.random(m) < 0.5, is_american=is_american,
    )  # fmt: skip
    return options, Slices.of(markets, np.repeat(np.arange(n), 4), options.expiry)


def test_identity_the_integral_of_a_curve_is_its_zero_rate_times_time() -> None:
    curve = Curve((0.5, 1.0, 3.0), (0.03, 0.04, 0.035))
    assert np.allclose(curve.integral(curve.times), np.array(curve.rates) * curve.times, rtol=1e-15)
    forward = (0.04 * 1.0 - 0.03 * 0.5) / 0.5
    assert curve.integral(0.75) == pytest.approx(0.015 + 0.25 * forward)
    assert curve.integral(0.0) == 0.0
    beyond = curve.integral([3.0, 4.0, 5.0])
    assert np.diff(beyond) == pytest.approx([(0.105 - 0.04) / 2.0] * 2), "the last forward goes on"
    assert Curve.of(0.05).integral(7.0) == pytest.approx(0.35)


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
    options, slices = random_markets(16, seed=5, is_american=True)
    fine = FDSettings(n_space=400, n_time=200)
    truth = evaluate_under_markets(options, slices, ("price",), fine)["price"]
    found = evaluate_under_markets(
        options, slices, ("price", "price_error"), under_markets(ACCURATE)
    )
    error = np.abs(found["price"] - truth)
    assert np.sqrt(np.mean(error**2)) <= 3e-4
    assert np.mean(error <= found["price_error"]) >= 0.98  # of 64, one may be outside
    fast = evaluate_under_markets(options, slices, ("price",), under_markets(FAST))["price"]
    assert np.sqrt(np.mean((fast - truth) ** 2)) <= 2e-3


def test_the_formula_agrees_with_finite_differences_under_random_markets() -> None:
    options, slices = random_markets(30, seed=7, is_american=False)
    found = formula(options, slices, ("price", "price_error", "delta", "gamma", "vega", "rho"))
    names = ("price", "price_error", "delta", "gamma", "vega", "rho")
    grid = evaluate_under_markets(options, slices, names, under_markets(ACCURATE))
    error = np.abs(found["price"] - grid["price"])
    assert np.mean(error <= found["price_error"] + grid["price_error"]) >= 0.99
    for name, tolerance in (("delta", 1e-3), ("gamma", 1e-3), ("vega", 0.05), ("rho", 0.05)):
        assert np.abs(found[name] - grid[name]).max() < tolerance, name


def test_measured_order_of_convergence_with_dividends() -> None:
    options, slices = random_markets(6, seed=9, is_american=False)
    settings_of = [FDSettings(n_space=40 * k, n_time=40 * k, levels=1) for k in (1, 2, 4)]
    prices = [evaluate_under_markets(options, slices, ("price",), s)["price"] for s in settings_of]
    fine = FDSettings(n_space=320, n_time=320, levels=2)
    truth = evaluate_under_markets(options, slices, ("price",), fine)["price"]
    errors = [np.sqrt(np.mean((price - truth) ** 2)) for price in prices]
    assert np.log2(errors[1] / errors[2]) > 1.8
    assert np.log2(errors[0] / errors[2]) / 2 > 1.8


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


def test_put_call_parity_holds_with_the_forward_of_the_schedule() -> None:
    book = pd.DataFrame({"strike": 250.0, "expiry": [0.2, 0.6, 1.5] * 2, "volatility": 0.3})
    book = book.assign(option_type=["call"] * 3 + ["put"] * 3, exercise="european")
    for engine, tolerance in (("analytic", 1e-9), ("fd", 1e-3)):
        price = price_frame(book, engine, markets={"AAPL": AAPL})["price"].to_numpy()
        for i, expiry in enumerate((0.2, 0.6, 1.5)):
            discount = np.exp(-AAPL.rate.integral(expiry))
            parity = discount * (AAPL.forward(expiry) - 250.0)
            assert price[i] - price[i + 3] == pytest.approx(parity, abs=tolerance)


def test_dates_are_years_to_the_close_in_new_york() -> None:
    assert AAPL.years_to("2025-10-07") == pytest.approx(1 / 365)
    assert AAPL.years_to("2025-11-03") == pytest.approx((28 + 1 / 24) / 365), "clocks go back"
    assert AAPL.dividends[0].time == pytest.approx((32 + 1 / 24) / 365), "Friday's close before"
    book = pd.DataFrame({"strike": 250.0, "volatility": 0.3, "option_type": "put"}, index=[0, 1])
    book = book.assign(exercise="american", expiry=["2025-12-19", "2026-06-18"])
    years = [AAPL.years_to(text) for text in book["expiry"]]
    by_date = price_frame(book, "fd", markets={"AAPL": AAPL})
    by_years = price_frame(book.assign(expiry=years), "fd", markets={"AAPL": AAPL})
    np.testing.assert_array_equal(by_date["price"], by_years["price"])
    stamps = price_frame(book.assign(expiry=pd.to_datetime(book["expiry"]) + pd.Timedelta("16h")),
                         "fd", markets={"AAPL": AAPL})  # fmt: skip
    np.testing.assert_allclose(stamps["price"], by_date["price"], rtol=1e-12)


def test_rows_are_kept_in_order_and_bad_ones_have_reasons() -> None:
    book = pd.DataFrame(
        {
            "underlying": ["B", "A", "nobody", None, "A"],
            "strike": 100.0,
            "expiry": ["0.5", "2026-01-16", "0.5", "0.5", "soon"],
            "volatility": 0.2,
            "option_type": "put",
            "exercise": "american",
        },
        index=list("vwxyz"),
    )
    markets = {"A": Market(spot=100.0, as_of=AS_OF), "B": Market(spot=90.0, rate=0.05)}
    found = price_frame(book, "fd", markets=markets, errors="coerce")
    assert list(found.index) == list("vwxyz")
    assert found["price"].notna().tolist() == [True, True, False, False, False]
    assert "no market for 'nobody'" in found["error"].iloc[2]
    assert "underlying is missing" in found["error"].iloc[3]
    assert "no date" in found["error"].iloc[4]
    assert found["price"].iloc[0] > 10.0
    overridden = price_frame(book.iloc[:1].assign(spot=120.0), "fd", markets=markets)
    assert overridden["price"].iloc[0] < 2.0
    with pytest.raises(OptionFrameError, match="no column says which market"):
        price_frame(book.drop(columns="underlying"), "fd", markets=markets)


def test_engines_that_know_no_markets_say_so_and_the_surrogate_falls_back() -> None:
    book = pd.DataFrame({"strike": 250.0, "expiry": 0.6, "volatility": 0.3, "option_type": "put"},
                        index=[0, 1]).assign(exercise=["american", "european"])  # fmt: skip
    with pytest.raises(OptionFrameError, match="does not price under markets"):
        price_frame(book, "quantlib", markets={"AAPL": AAPL})
    found = price_frame(book, "amo", markets={"AAPL": AAPL})
    assert found["engine"].tolist() == ["fd", "analytic"]
    assert not found["in_domain"].any()


def test_implied_volatilities_under_a_market_come_back() -> None:
    book = pd.DataFrame(
        {"strike": [230.0, 260.0, 260.0, 280.0], "expiry": "2026-03-20", "volatility": 0.31}
    ).assign(option_type=["put", "put", "call", "call"],
             exercise=["american", "american", "american", "european"])  # fmt: skip
    priced = price_frame(book, "fd", greeks=False, markets={"AAPL": AAPL})
    quotes = priced.drop(columns=["volatility", "engine"])
    found = implied_vol_frame(quotes, engine="fd", markets={"AAPL": AAPL})
    np.testing.assert_allclose(found["implied_volatility"], 0.31, atol=1e-6)


def test_a_ladder_adds_up_to_rho_and_knows_every_dividend() -> None:
    book = pd.DataFrame(
        {"underlying": "AAPL", "strike": [240.0, 260.0], "volatility": 0.3, "size": [3.0, -2.0]}
    ).assign(option_type=["put", "call"], exercise=["european", "american"], expiry=0.6)
    ladder = ladder_frame(book, "fd", {"AAPL": AAPL}, quantity="size")
    assert ladder["kind"].tolist() == ["rate"] * 3 + ["borrow"] + ["dividend"] * 3
    priced = price_frame(book, "fd", greeks=["rho", "dividend_rho"], markets={"AAPL": AAPL})
    by_kind = ladder.groupby("kind")["sensitivity"].sum()
    for kind, greek in (("rate", "rho"), ("borrow", "dividend_rho")):
        parallel = float((priced[greek] * book["size"]).sum()) * 1e-4
        assert by_kind[kind] == pytest.approx(parallel, rel=1e-2, abs=1e-4)
    assert ladder["sensitivity"].iloc[-1] != 0.0, "the payment of May is before expiry"
    short = ladder_frame(book.assign(expiry=0.05), "fd", {"AAPL": AAPL}, quantity="size")
    assert (short["sensitivity"].tail(3) == 0.0).all(), "no payment is before expiry"


def test_markets_go_to_a_file_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "markets.json"
    write_markets({"AAPL": AAPL}, path)
    assert read_markets(path) == {"AAPL": AAPL}
    book = tmp_path / "book.csv"
    book.write_text("underlying,K,expiry,sigma,type,style\nAAPL,250,2026-01-16,0.3,put,american\n")
    out = tmp_path / "priced.csv"
    assert main(["price", str(book), "-o", str(out), "--engine", "fd", "--markets", str(path)]) == 0
    assert pd.read_csv(out)["price"].iloc[0] > 5.0
    path.write_text(json.dumps({"markets": {"X": {"spot": -1}}}))
    assert main(["price", str(book), "-o", str(out), "--engine", "fd", "--markets", str(path)]) == 2
    path.write_text("[")
    assert main(["price", str(book), "-o", str(out), "--engine", "fd", "--markets", str(path)]) == 1


def test_markets_from_tables() -> None:
    spots = pd.DataFrame({"underlying": ["AAPL", "MSFT"], "spot": [256.7, 520.0]})
    rates = pd.DataFrame({"when": ["2026-01-06", "2026-10-06"], "rate": [0.041, 0.037]})
    paid = pd.DataFrame({"underlying": "AAPL", "when": ["2025-11-10"], "cash": [0.26]})
    found = markets_from_frames(spots, rates, paid, as_of=AS_OF)
    assert found["AAPL"].dividends[0].cash == 0.26
    assert found["MSFT"].dividends == ()
    assert len(found["MSFT"].rate.times) == 2
    with pytest.raises(SettingsError, match="rates has no column rate"):
        markets_from_frames(spots, rates.drop(columns="rate"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"spot": -1.0}, "spot must be a number > 0"),
        ({"spot": 1.0, "rate": {-1.0: 0.1}}, "rate: the times of a curve must be positive"),
        ({"spot": 1.0, "rate": {"2026-01-01": 0.1}}, "give the market as_of"),
        ({"spot": 1.0, "borrow": "much"}, "borrow: a curve is a number"),
        ({"spot": 1.0, "dividends": [(0.5, -1.0)]}, "cash of a dividend must be >= 0"),
        ({"spot": 1.0, "dividends": [(0.5, 0.0, 1.0)]}, "proportion of a dividend must be in"),
        ({"spot": 1.0, "dividends": [("2025-01-01", 1.0)]}, "give the market as_of"),
        ({"spot": 1.0, "dividends": [("2025-01-01", 1.0)], "as_of": AS_OF}, "is not after as_of"),
        ({"spot": 1.0, "dividends": [5]}, "a dividend is"),
        ({"spot": 1.0, "as_of": "someday"}, "as_of is no date"),
    ],
)
def test_nonsense_is_refused_with_its_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Market(**given)


def test_payments_of_one_moment_add_up() -> None:
    both = Market(spot=100.0, dividends=[(0.5, 1.0), (0.5, 2.0, 0.1)])
    assert len(both.dividends) == 1
    assert both.dividends[0].cash == 3.0
    assert both.dividends[0].proportion == pytest.approx(0.1)


anything = st.one_of(
    st.none(), st.floats(), st.text(max_size=12), st.integers(-5, 5), st.booleans()
)


@settings(max_examples=150, deadline=None)
@given(
    spot=anything,
    rate=st.one_of(anything, st.dictionaries(anything, anything, max_size=3)),
    dividends=st.lists(st.tuples(anything, anything, anything), max_size=3),
    as_of=st.one_of(st.none(), st.just(AS_OF), st.text(max_size=10)),
)
def test_no_market_crashes_but_by_the_named_error(
    spot: Any, rate: Any, dividends: Any, as_of: Any
) -> None:
    try:
        market = Market(spot=spot, rate=rate, dividends=dividends, as_of=as_of)
    except AMOError:
        return
    assert Market.from_dict(market.to_dict()) == market


def check_flat_formula(evaluate: Callable[..., Any]) -> None:
    """The formula without payments is Black–Scholes to rounding."""
    options, slices = random_markets(3, seed=1, is_american=False)
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

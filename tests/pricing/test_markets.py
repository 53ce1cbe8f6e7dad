"""Markets: curves, dates, frames and files."""

import datetime as dt
import json
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
    compare_frame,
    exposure,
    implied_vol_frame,
    ladder_frame,
    markets_from_frames,
    price_frame,
    read_markets,
    sample_listed_book,
    sample_markets,
    scenario_grid,
    write_markets,
)
from pricing.__main__ import main

AS_OF = "2025-10-06 16:00"
QUARTERLY = [("2025-11-10", 0.26), ("2026-02-09", 0.26), ("2026-05-11", 0.27)]
AAPL = Market(
    spot=256.7,
    rate={0.1: 0.041, 0.5: 0.039, 1.0: 0.037},
    borrow=0.002,
    dividends=QUARTERLY,
    as_of=AS_OF,
)


def test_identity_the_integral_of_a_curve_is_its_zero_rate_times_time() -> None:
    curve = Curve((0.5, 1.0, 3.0), (0.03, 0.04, 0.035))
    assert np.allclose(curve.integral(curve.times), np.array(curve.rates) * curve.times, rtol=1e-15)
    forward = (0.04 * 1.0 - 0.03 * 0.5) / 0.5
    assert curve.integral(0.75) == pytest.approx(0.015 + 0.25 * forward)
    assert curve.integral(0.0) == 0.0
    beyond = curve.integral([3.0, 4.0, 5.0])
    assert np.diff(beyond) == pytest.approx([(0.105 - 0.04) / 2.0] * 2), "the last forward goes on"
    assert Curve.of(0.05).integral(7.0) == pytest.approx(0.35)


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
    assert found["engine"].tolist() == ["amo", "analytic"]
    assert found["in_domain"].tolist() == [True, False]
    daily = AAPL.replaced(dividends=[(k / 365, 0.01) for k in range(1, 60)])
    found = price_frame(book, "amo", markets={"AAPL": daily})
    assert found["engine"].tolist() == ["fd-fast", "analytic"]


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


def test_a_book_without_markets_may_have_dates_if_it_says_from_when() -> None:
    book = pd.DataFrame({"S": 100.0, "K": 100.0, "r": 0.03, "q": 0.0, "sigma": 0.2}, index=[0, 1])
    book = book.assign(type="put", style="american", expiry=["2026-01-16", "2026-06-18"])
    dated = price_frame(book, "fd-fast", as_of=AS_OF)
    years = [AAPL.years_to(text) for text in book["expiry"]]
    plain = price_frame(book.assign(expiry=years), "fd-fast")
    np.testing.assert_array_equal(dated["price"], plain["price"])
    early = price_frame(book, "fd-fast", as_of=AS_OF, expiry_time=dt.time(9, 30))
    assert (early["price"] < dated["price"]).all()
    with pytest.raises(OptionFrameError, match="expiry"):
        price_frame(book, "fd-fast")
    with pytest.raises(OptionFrameError, match="no date"):
        price_frame(book.assign(expiry="soon"), "fd-fast", as_of=AS_OF)


def test_comparison_scenarios_and_exposure_take_markets() -> None:
    book, markets = sample_listed_book().iloc[:6], sample_markets()
    compared = compare_frame(book, ["fd", "fd-fast", "quantlib"], markets=markets, warm_up=False)
    assert compared.summary.loc["fd-fast", "price_max"] < 5e-2
    assert compared.summary.loc["quantlib", "priced"] == 0
    priced = price_frame(book, "fd-fast", markets=markets)
    table = exposure(priced, quantity="quantity", markets=markets)
    assert table["value"].sum() == pytest.approx((priced["price"] * book["quantity"]).sum())
    grid = scenario_grid(
        book, "fd-fast", spot_moves=[-0.1, 0.0], volatility_moves=[0.0], quantity="quantity",
        markets=markets,
    )  # fmt: skip
    assert grid.loc[0.0, 0.0] == 0.0
    fallen = price_frame(book.assign(spot=0.9 * 256.7), "fd-fast", markets=markets, greeks=False)
    loss = ((fallen["price"] - priced["price"]) * book["quantity"]).sum()
    assert grid.loc[-0.1, 0.0] == pytest.approx(loss, rel=1e-9)


cells = st.one_of(anything, st.sampled_from(["2026-01-16", "0.5", "AAPL", "put", 100.0]))


@pytest.mark.filterwarnings("ignore::pricing.AssumptionWarning")
@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(cells, cells, cells, cells), min_size=1, max_size=4),
    names=st.sampled_from([("underlying", "strike"), ("ticker", "K"), ("strike", "strike")]),
)
def test_no_frame_crashes_but_by_the_named_error_and_no_row_is_lost(
    rows: list[tuple[Any, ...]], names: tuple[str, str]
) -> None:
    columns = [names[0], names[1], "expiry", "volatility"]
    book = pd.DataFrame([list(row) for row in rows], columns=columns, dtype=object)
    book = book.assign(option_type="put", exercise="european")
    try:
        found = price_frame(book, "analytic", errors="coerce", markets={"AAPL": AAPL})
    except AMOError:
        return
    assert list(found.index) == list(book.index)
    assert (found["price"].isna() == (found["error"] != "")).all()

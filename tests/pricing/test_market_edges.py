"""Edges of books under markets: each test is named for what once went wrong."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pricing import (
    Market,
    OptionFrameError,
    SettingsError,
    check_frame,
    compare_frame,
    exposure,
    implied_vol_frame,
    ladder_frame,
    markets_from_frames,
    price_frame,
    sample_listed_book,
    sample_markets,
    scenario_grid,
    surface_frame,
)

PAYING = Market(spot=100.0, rate=0.05, dividends=[(0.5, 3.0)])


def book(**columns: Any) -> pd.DataFrame:
    terms = {"strike": [100.0], "expiry": 1.0, "volatility": 0.3, "option_type": "put"}
    return pd.DataFrame({**terms, "exercise": "american", **columns})


@pytest.mark.parametrize("exercise", ["american", "european"])
@pytest.mark.parametrize("out_of_domain", ["fallback", "nan"])
def test_the_surrogate_does_not_invert_quotes_as_if_dividends_were_a_yield(
    exercise: str, out_of_domain: Any
) -> None:
    priced = price_frame(book(exercise=exercise), "fd", greeks=False, markets={"X": PAYING})
    quotes = priced.drop(columns=["volatility", "engine"])
    found = implied_vol_frame(
        quotes, engine="amo", markets={"X": PAYING}, out_of_domain=out_of_domain
    ).iloc[0]
    if exercise == "american":  # the market model knows it, up to its own error
        assert found["implied_volatility"] == pytest.approx(0.3, abs=2e-3)
        assert found["engine"] == "amo"
    elif out_of_domain == "fallback":
        assert found["implied_volatility"] == pytest.approx(0.3, abs=1e-4)
        assert found["engine"] == "analytic"
    else:
        assert np.isnan(found["implied_volatility"])
        assert "no volatility in the domain" in found["error"]


def test_quotes_outside_of_the_market_model_are_inverted_by_the_grid() -> None:
    odd = Market(spot=100.0, rate=0.05, dividends=[(0.5, 0.0, 0.03)])
    priced = price_frame(book(), "fd", greeks=False, markets={"X": odd})
    quotes = priced.drop(columns=["volatility", "engine"])
    found = implied_vol_frame(quotes, engine="amo", markets={"X": odd}).iloc[0]
    assert found["engine"] == "fd-fast"
    assert found["implied_volatility"] == pytest.approx(0.3, abs=2e-3)


def test_a_quote_beyond_what_is_searched_has_no_volatility() -> None:
    quotes = book(strike=[100.0, 120.0], expiry=0.3).drop(columns="volatility")
    quotes = quotes.assign(spot=100.0, rate=0.02, dividend_yield=0.0, price=[99.9, 119.9])
    found = implied_vol_frame(quotes, engine="fd-fast")
    assert found["implied_volatility"].isna().all()
    assert found["error"].str.contains("no volatility in").all()


def test_a_stock_that_earns_its_holder_may_make_a_call_worth_more_than_the_spot() -> None:
    market = Market(spot=100.0, rate={0.5: 0.0, 2.0: 0.01}, borrow=-0.10)
    calls = book(strike=[1.0, 50.0], option_type="call", exercise="european")
    exact, grid = (
        price_frame(calls, engine, markets={"X": market}) for engine in ("analytic", "fd")
    )
    np.testing.assert_allclose(grid["price"], exact["price"], atol=1e-3)
    np.testing.assert_allclose(grid["delta"], exact["delta"], atol=1e-4)
    assert exact["price"].iloc[0] > 100.0


@pytest.mark.parametrize("engine", ["fd", "fd-fast"])
@pytest.mark.parametrize("kept", [[0.0], [0.0, 0.1], [0.0, 0.09999999]])
def test_a_moment_on_an_ex_date_leaves_the_damping_where_it_was(
    engine: str, kept: list[float]
) -> None:
    market = Market(spot=100.0, rate=0.02, dividends=[(0.1, 3.0)])
    call = book(option_type="call", volatility=0.05)
    found = surface_frame(
        call, engine, spot=[1.0, 1.03], time=kept, time_unit="years", greeks=["gamma"],
        markets={"X": market}, as_arrays=True,
    )  # fmt: skip
    alone = price_frame(call.assign(spot=103.0), "fd", markets={"X": market}).iloc[0]
    assert found["gamma"][0, 0, 1] == pytest.approx(alone["gamma"], rel=0.03)
    assert found["price"][0, 0, 1] == pytest.approx(alone["price"], abs=1e-3)


def test_what_is_paid_at_expiry_is_paid_before_the_payoff() -> None:
    market = Market(spot=100.0, rate=0.05, borrow=0.02, dividends=[(0.5, 10.0)])
    calls = book(strike=[90.0, 90.0], expiry=0.5, option_type="call",
                 exercise=["european", "american"])  # fmt: skip
    found = surface_frame(
        calls, "fd", spot=[1.05], time=[1.0], markets={"X": market}, as_arrays=True
    )
    assert found["price"][:, 0, 0].tolist() == pytest.approx([5.0, 15.0])


def test_theta_at_expiry_is_that_of_the_rates_now() -> None:
    options = book(strike=[90.0, 100.0], expiry=0.0, option_type="call", exercise="european")
    flat = price_frame(options.assign(spot=100.0, rate=0.05, dividend_yield=0.02), "fd")
    under = price_frame(options, "fd", markets={"X": Market(spot=100.0, rate=0.05, borrow=0.02)})
    np.testing.assert_allclose(under["theta"], flat["theta"])


def test_the_formula_refuses_spots_below_the_dividends_and_states_what_it_misses() -> None:
    market = Market(spot=100.0, rate=0.03, dividends=[(0.2, 20.0), (0.4, 20.0)])
    put = book(strike=[95.0], expiry=0.5, exercise="european")
    with pytest.raises(OptionFrameError, match="worth more than the spot"):
        surface_frame(put, "analytic", spot=[0.05, 1.0], time=[0.0], markets={"X": market})
    low = put.assign(spot=45.0)
    exact, grid = (
        price_frame(low, engine, error_bars=True, markets={"X": market}).iloc[0]
        for engine in ("analytic", "fd")
    )
    assert abs(exact["price"] - grid["price"]) <= exact["price_error"] + grid["price_error"]


def test_a_ladder_loses_no_row() -> None:
    markets = {"7": PAYING, "B": PAYING}
    rows = book(strike=[90.0, 100.0, 110.0])
    with pytest.raises(OptionFrameError, match="no market for 'ZZ'"):
        ladder_frame(rows.assign(underlying=["7", "ZZ", None]), "fd-fast", markets)
    by_number = ladder_frame(rows.assign(ticker=7), "fd-fast", markets)
    assert set(by_number["underlying"]) == {"7"}
    for wrong in (None, {"A": 1}, {}):
        with pytest.raises(SettingsError, match="markets= takes"):
            ladder_frame(rows, "fd-fast", wrong)  # type: ignore[arg-type]


def test_a_date_is_its_close_however_a_table_holds_it() -> None:
    rows = book(spot=100.0, rate=0.02, dividend_yield=0.0)
    given = ["2025-11-21", dt.date(2025, 11, 21), pd.Timestamp("2025-11-21"), "11/21/2025",
             "21-Nov-2025", "Nov 21, 2025"]  # fmt: skip
    prices = [
        price_frame(rows.assign(expiry=pd.Series([day], dtype=object)), "fd-fast",
                    as_of="2025-10-06")["price"].item()
        for day in given
    ]  # fmt: skip
    assert len(set(prices)) == 1
    column = rows.assign(expiry=pd.to_datetime(["2025-11-21"]))
    assert price_frame(column, "fd-fast", as_of="2025-10-06")["price"].item() == prices[0]
    for nonsense in ("16:00", "today", "2025-11-02 01:30"):
        with pytest.raises(SettingsError, match="as_of is no date"):
            Market(spot=1.0, as_of=nonsense)
    with pytest.raises(SettingsError, match="as_of is no date"):
        Market(spot=1.0, as_of=5)  # type: ignore[arg-type]


def test_a_spot_column_that_is_not_clear_is_not_ignored() -> None:
    with pytest.raises(OptionFrameError, match="spot"):
        price_frame(book(spot_price=80.0, underlying_price=85.0), "fd", markets={"X": PAYING})
    with pytest.raises(OptionFrameError, match="Px"):
        price_frame(book(), "fd", columns={"spot": "Px"}, markets={"X": PAYING})


def test_engines_that_price_nothing_say_so() -> None:
    with pytest.raises(OptionFrameError, match="does not price under markets"):
        compare_frame(book(), markets={"X": PAYING})
    with pytest.raises(OptionFrameError, match="does not price under markets"):
        scenario_grid(book(), spot_moves=[-0.1], volatility_moves=[0.0], markets={"X": PAYING})


def test_tables_with_two_rows_for_one_thing_are_refused() -> None:
    spots = pd.DataFrame({"underlying": ["A", "A"], "spot": [1.0, 2.0]})
    with pytest.raises(SettingsError, match="several rows of underlying 'A'"):
        markets_from_frames(spots)
    with pytest.raises(SettingsError, match="several rows of when"):
        markets_from_frames(spots[:1], pd.DataFrame({"when": [1.0, 1.0], "rate": [0.1, 0.2]}))
    with pytest.raises(SettingsError, match="market 'A'"):
        markets_from_frames(spots[:1].assign(spot="x"))


def test_books_without_rows_come_back_without_rows() -> None:
    none, markets = sample_listed_book()[:0], sample_markets()
    for engine in ("fd", "fd-fast", "amo", "quantlib-fd"):
        assert len(price_frame(none, engine, markets=markets)) == 0
        assert len(surface_frame(none, engine, markets=markets)) == 0
    priced = price_frame(none, "fd", markets=markets)
    assert len(exposure(priced, markets=markets)) == 0
    assert len(implied_vol_frame(none.assign(price=[]), engine="fd", markets=markets)) == 0
    assert len(check_frame(none, markets=markets)) == 0


def test_surfaces_with_every_greek_that_prices_have() -> None:
    found = surface_frame(
        book(), "fd", spot=[1.0], time=[0.0], greeks="second", markets={"X": PAYING}, as_arrays=True
    )
    alone = price_frame(book(), "fd", greeks="second", markets={"X": PAYING}).iloc[0]
    for name in ("vanna", "volga", "charm"):
        assert found[name].item() == pytest.approx(alone[name])


@pytest.mark.parametrize(
    "given",
    [
        {"expiry": pd.Series([[1, 2]], dtype=object)},
        {"expiry": [1j]},
        {"expiry": pd.Series([np.int64(1)], dtype=object)},
    ],
)
def test_strange_expiries_are_read_or_refused(given: dict[str, Any]) -> None:
    found = price_frame(book(**given), "fd-fast", errors="coerce", markets={"X": PAYING}).iloc[0]
    is_number = isinstance(given["expiry"], pd.Series) and given["expiry"][0] == 1
    assert (found["error"] == "") == is_number


def test_numpy_numbers_are_numbers() -> None:
    market = Market(spot=np.float32(100), dividends=[(np.int64(1), np.float64(2.0))])
    assert market.spot == 100.0
    assert market.dividends[0].time == 1.0
    assert market.years_to(np.float32(0.5)) == 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Market(spot=1.0, dividends=None), "dividends= takes"),  # type: ignore[arg-type]
        (lambda: PAYING.after(-1.0), "a later moment"),
        (lambda: price_frame(book(expiry="2026-01-16"), "fd", as_of="2025-10-06",
                             markets={"X": PAYING}, expiry_time="16:00"), "expiry_time= takes"),
        (lambda: price_frame(book(), "fd", markets={7: PAYING}), "markets= takes"),
    ],
)  # fmt: skip
def test_other_nonsense_is_refused_by_name(call: Any, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        call()


def test_books_that_lack_columns_say_which() -> None:
    with pytest.raises(OptionFrameError, match="no column 'nope'"):
        check_frame(book(), quantity="nope", markets={"X": PAYING})
    with pytest.raises(OptionFrameError, match="exposure needs"):
        exposure(book(), markets={"X": PAYING})
    twice = pd.concat([book(), book()[["strike"]].rename(columns={"strike": "underlying"})], axis=1)
    twice = pd.concat([twice, twice[["underlying"]]], axis=1)
    with pytest.raises(OptionFrameError, match="underlying"):
        price_frame(twice, "fd", markets={"X": PAYING})

"""Pages under markets, run without a browser: chains, listed books, contracts with dividends."""

import datetime as dt
import json
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from app.resources import engine
from pricing import (
    MarkedChain,
    Market,
    implied_vol_frame,
    mark_chain,
    price_frame,
    profit_over_time,
    read_chain,
)
from pricing.analysis.examples import (
    sample_chain,
    sample_listed_book,
    sample_markets,
    sample_quotes,
)
from tests.pages import checked, field, run, upload

DIVIDENDS = "Dividends: lines of ex-date and cash"


def test_market_page_inverts_plain_quotes_as_the_library_does() -> None:
    app = upload("market", sample_chain().to_csv(index=False).encode(), "quotes.csv")
    shown = app.dataframe[-1].value
    expected = implied_vol_frame(sample_chain())
    np.testing.assert_allclose(
        shown["implied_volatility"], expected["implied_volatility"], rtol=1e-12
    )
    failed = app.dataframe[0].value
    assert len(failed) == expected["implied_volatility"].isna().sum()
    assert (failed["error"] != "").all()


def marked_sample(dividends: Sequence[tuple[str, float]] = ()) -> MarkedChain:
    chain = read_chain(sample_quotes(), as_of="2025-10-06")
    return mark_chain(chain, rate=0.04, dividends=dividends, workers=1)


def test_market_page_marks_a_chain_as_the_library_does() -> None:
    app = run("market", view="quotes")
    expected = marked_sample()
    found = expected.summary()
    assert field(app, "metric", "Spot").value == f"{expected.fit.market.spot:,.2f}"
    assert field(app, "metric", "Surface inside bid–ask").value == f"{found['inside']:.1%}"
    shown = app.dataframe[-1].value
    np.testing.assert_array_equal(shown["mid_vol"], expected.marks["mid_vol"])
    np.testing.assert_array_equal(shown["model_vol"], expected.marks["model_vol"])
    field(app, "toggle", "Liquid quotes only").set_value(True)
    checked(app.run())
    assert len(app.dataframe[-1].value) == found["liquid"]


def test_market_page_takes_dividends_and_refuses_nonsense() -> None:
    app = run("market", view="quotes")
    lines = "2025-11-10 0.26\n2026-02-09 0.26"
    dividends = app.text_area[[area.label for area in app.text_area].index(DIVIDENDS)]
    dividends.set_value(lines)
    field(app, "button", "Apply").click()
    checked(app.run())
    expected = marked_sample([("2025-11-10", 0.26), ("2026-02-09", 0.26)])
    np.testing.assert_array_equal(app.dataframe[-1].value["mid_vol"], expected.marks["mid_vol"])
    for text, said in (("2025-11-10", "line 1"), ("2025-11-10 0.26\nmuch 1 2", "line 2"),
                       ("2024-11-10 0.26", "not after as")):  # fmt: skip
        dividends = app.text_area[[area.label for area in app.text_area].index(DIVIDENDS)]
        dividends.set_value(text)
        field(app, "button", "Apply").click()
        checked(app.run())
        assert any(said in error.value.replace("\\", "") for error in app.error)
        assert not app.metric, "no old number stands beside a refused input"
        assert not app.dataframe


def test_market_page_waits_for_what_an_uploaded_chain_does_not_say() -> None:
    app = upload("market", sample_quotes().to_csv(index=False).encode(), "aapl.csv")
    assert not app.metric
    assert any("press Apply" in info.value for info in app.info)
    field(app, "button", "Apply").click()
    checked(app.run())
    assert any("does not say when" in error.value for error in app.error)
    app.text_input[[box.label for box in app.text_input].index("As of")].set_value("2025-10-06")
    field(app, "button", "Apply").click()
    checked(app.run())
    assert field(app, "metric", "Arbitrage").value == "0 places"


@pytest.mark.filterwarnings("ignore::pricing.columns.AssumptionWarning")
def test_market_page_asks_whether_a_rate_is_per_cent() -> None:
    app = run("market")
    app.session_state["chain source"] = "paste"
    app.session_state["chain exercise"] = "european"
    checked(app.run())
    app.text_area[0].set_value("\nstrike\texpiry\ttype\tprice\trate\n100\t1\tcall\t9\t4.1\n")
    checked(app.run())
    assert any("if it holds per cent" in warning.value for warning in app.warning)


def test_pasted_quotes_need_only_what_differs() -> None:
    app = run("market")
    app.session_state["chain source"] = "paste"
    checked(app.run())
    app.text_area[0].set_value("strike\texpiry\ttype\tprice\n100\t1\tcall\t9.0\n110\t1\tcall\t5.0")
    checked(app.run())
    assert not app.dataframe, "nothing is assumed about exercise"
    assert any("choose american or european" in warning.value for warning in app.warning)
    app.session_state["chain exercise"] = "european"
    checked(app.run())
    vols = app.dataframe[-1].value["implied_volatility"]
    assert vols.between(0.1, 0.4).all()
    field(app, "number_input", "spot").set_value(95.0)
    checked(app.run())
    assert (app.dataframe[-1].value["implied_volatility"] > vols).all()


def test_listed_book_is_priced_under_its_markets() -> None:
    app = run("book")
    app.session_state["book source"] = "listed"
    checked(app.run())
    book, markets = sample_listed_book(), sample_markets()
    priced = price_frame(book, engine("amo"), markets=markets, workers=1)
    value = (100.0 * book["quantity"] * priced["price"]).sum()
    assert field(app, "metric", "value").value == f"{value:,.0f}"
    shown = app.dataframe[-1].value
    np.testing.assert_allclose(shown["price"], priced["price"], rtol=1e-6)
    ladder = next(t.value for t in app.dataframe if "sensitivity" in t.value.columns)
    assert set(ladder["kind"]) == {"rate", "borrow", "dividend"}
    field(app, "text_input", "Spots move by, %").set_value("-10 0 ten")
    field(app, "button", "Run scenarios").click()
    checked(app.run())
    assert any("numbers in per cent" in error.value for error in app.error)


def test_uploaded_book_with_a_market_file_is_listed() -> None:
    app = upload("book", sample_listed_book().to_csv().encode(), "listed.csv")
    content = {"markets": {name: each.to_dict() for name, each in sample_markets().items()}}
    app.file_uploader[1].upload("market.json", json.dumps(content).encode())
    checked(app.run())
    assert {"value", "delta 1pct"} <= {metric.label for metric in app.metric}
    app.file_uploader[1].upload("other.json", b"[1, 2]")
    checked(app.run())
    assert any("no file of markets" in error.value for error in app.error)
    assert not app.metric


TERMS = {
    "carry": "market",
    "as_of": "2026-11-18",
    "until": "2027-06-18",
    "dividends": "2027-02-08 0.8 0,2027-05-10 0.9 0",
    "curves": "0.25 4 0.3,1 3.5 0.5",
}
MARKET = Market(
    spot=100.0,
    rate={0.25: 0.04, 1.0: 0.035},
    borrow={0.25: 0.003, 1.0: 0.005},
    dividends=[("2027-02-08", 0.8), ("2027-05-10", 0.9)],
    as_of="2026-11-18",
)


@pytest.mark.parametrize("exercise", ["american", "european"])
def test_price_page_under_a_market_shows_what_price_frame_returns(exercise: str) -> None:
    app = run("price", **TERMS, exercise=exercise)
    prices, greeks = (table.value for table in app.dataframe[-2:])
    contract = pd.DataFrame(
        {"underlying": ["stock"], "strike": 100.0, "expiry": "2027-06-18", "volatility": 0.2,
         "option_type": "put", "exercise": exercise}
    )  # fmt: skip
    assert len(prices) == 4
    for name in prices.index:
        expected = price_frame(contract, engine(str(name)), markets={"stock": MARKET}).iloc[0]
        assert prices.loc[name, "price"] == pytest.approx(expected["price"], rel=1e-12)
        assert greeks.loc[name, "vega"] == pytest.approx(expected["vega"], rel=1e-12)
    forward = MARKET.forward(MARKET.years_to("2027-06-18"))
    assert field(app, "metric", "Forward").value == f"{forward:,.4f}"
    assert app.query_params["dividends"] == TERMS["dividends"]


def test_surface_and_greeks_pages_are_drawn_under_a_market() -> None:
    app = run("surface", **TERMS)
    (said,) = (text.value for text in app.markdown if "RMSE" in text.value)
    assert "amo − fd" in said
    for axis, label in (("spot", "spot"), ("date", "date, the spot as it is"),
                        ("volatility", "volatility, %")):  # fmt: skip
        app = run("greeks", **TERMS, **{"market along": axis})
        assert not app.warning
        charts = app.get("plotly_chart")
        assert len(charts) == 6
        assert all(f'"text":"{label}"' in chart.proto.spec for chart in charts)


def test_what_a_market_cannot_be_is_refused_and_leaves_no_number() -> None:
    for changes, words in (
        ({"until": "2026-11-01"}, "not after 2026-11-18"),
        ({"curves": ""}, "at least one line"),
        ({"curves": "1 nan 0"}, "years and a rate"),
        ({"curves": "1 4 0,1 5 0"}, "two lines for the same years"),
        ({"dividends": "2027-02-08 nan 0"}, "needs an ex-date and cash"),
        ({"dividends": "2027-02-08 -1 0"}, "must be >= 0"),
    ):
        for view in ("price", "surface"):
            app = run(view, **{**TERMS, **changes})
            assert any(words in error.value.replace("\\", "") for error in app.error)
            assert not any(panel.error for panel in app.expander), "a folded panel would hide it"
            assert not app.metric
            assert not app.get("plotly_chart")


def test_an_address_that_was_mistyped_and_past_dividends_do_no_harm() -> None:
    app = run("price", **{**TERMS, "dividends": "next week", "as_of": "soon"})
    assert not app.error
    app = run("price", **{**TERMS, "dividends": "2026-11-18 5 0,2027-02-08 0.8 0"})
    assert any("1 of 2 dividends went ex on or before" in text.value for text in app.caption)
    assert not run("price", **{**TERMS, "as_of": "1985-01-01", "until": "2200-01-01"}).exception


def test_what_was_edited_is_there_again_after_a_look_at_flat_terms() -> None:
    app = run("price", **TERMS)
    field(app, "date_input", "As of").set_value(dt.date(2026, 12, 1))
    checked(app.run())
    for carry in ("flat", "market"):
        app.segmented_control[0].set_value(carry)
        checked(app.run())
    assert field(app, "date_input", "As of").value == dt.date(2026, 12, 1)
    assert app.query_params["as_of"] == "2026-12-01"


def test_engines_that_do_not_take_a_contract_say_why() -> None:
    app = run("price", **{**TERMS, "dividends": "2027-02-08 0 0.5"})
    prices = app.dataframe[-2].value["price"]
    assert list(prices.index[prices.isna()]) == ["amo", "quantlib-fd"]
    assert any("amo gives no number here" in text.value for text in app.caption)
    assert any("in proportion" in warning.value for warning in app.warning)


def test_listed_book_over_time_is_what_the_library_returns() -> None:
    app = run("book")
    app.session_state["book source"] = "listed"
    checked(app.run())
    field(app, "button", "Let time pass").click()
    checked(app.run())
    shown = next(t.value for t in app.dataframe if "settled" in t.value.columns)
    book = sample_listed_book()
    expected = profit_over_time(
        book.assign(units=100.0 * book["quantity"]), engine("amo"), quantity="units",
        markets=sample_markets(),
    )  # fmt: skip
    np.testing.assert_allclose(shown["time"], expected["time"])
    # both sum thousands of units of prices that float32 holds to 1e-7
    slack = 1e-6 * float((100.0 * book["quantity"].abs()).sum()) * float(book["strike"].max())
    np.testing.assert_allclose(shown["profit"], expected["profit"], rtol=0, atol=slack)

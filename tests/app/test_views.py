"""The logic of each page, run without a browser."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app import inputs
from app.resources import engine
from pricing import price_frame
from pricing.analysis.examples import sample_book
from pricing.columns import ALIASES
from pricing.engines import registry
from pricing.engines.base import MARKET_UNITS
from pricing.engines.surrogate import SurrogateEngine
from tests.pages import APP, checked, field, run, upload

VIEWS = sorted(path.stem for path in (APP / "views").glob("[!_]*.py"))
NEED_MODELS = ("surface", "greeks", "model")


def asked(app: AppTest) -> dict[str, float | str]:
    """Return the contract that the widgets ask for."""
    numbers = {
        name: f.unit * field(app, "number_input", f.label).value
        for name, f in inputs.FIELDS.items()
    }
    return {**numbers, **{name: app.session_state[name] for name in inputs.CHOICES}}


def check_price_page(app: AppTest) -> None:
    contract = pd.DataFrame([asked(app)])
    prices, greeks = (table.value for table in app.dataframe[:2])
    for name in prices.index:
        expected = price_frame(
            contract, engine(str(name)), greeks="second", errors="coerce", out_of_domain="nan"
        ).iloc[0]
        np.testing.assert_equal(prices.loc[name, "price"], expected["price"])
        for greek in greeks.columns:
            np.testing.assert_equal(greeks.loc[name, greek], expected[greek])


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_draws_without_error_or_warning(view: str) -> None:
    app = run(view)
    assert len(app.title) == 1
    assert not app.error
    assert not app.warning


def test_the_navigation_holds_every_view() -> None:
    app = checked(AppTest.from_file(APP / "main.py", default_timeout=120).run())
    assert app.title[0].value == "Price"
    source = (APP / "main.py").read_text("utf-8")
    assert all(f'"views/{view}.py"' in source for view in VIEWS)


def test_price_page_shows_what_price_frame_returns() -> None:
    check_price_page(run("price"))


def test_changed_inputs_change_the_prices() -> None:
    app = run("price")
    before = app.dataframe[0].value["price"].to_numpy()
    field(app, "number_input", "Spot").set_value(120.0)
    app.session_state["option_type"] = "call"
    checked(app.run())
    assert asked(app)["option_type"] == "call"
    assert not np.allclose(app.dataframe[0].value["price"], before)
    check_price_page(app)
    app.session_state["exercise"] = "european"
    checked(app.run())
    assert app.dataframe[0].value.index[0] == "analytic"
    check_price_page(app)


def test_slider_and_typed_number_follow_each_other() -> None:
    app = run("price")
    field(app, "slider", "Spot, slider").set_value(140.0)
    checked(app.run())
    assert field(app, "number_input", "Spot").value == 140.0
    field(app, "number_input", "Spot").set_value(77.5)
    checked(app.run())
    assert field(app, "slider", "Spot, slider").value == pytest.approx(77.5, abs=0.5)
    assert field(app, "number_input", "Spot").value == 77.5


@pytest.mark.parametrize("preset", inputs.PRESETS)
def test_presets_are_priced_by_every_engine(preset: str) -> None:
    app = run("price")
    field(app, "button", preset).click()
    checked(app.run())
    assert app.dataframe[0].value["price"].notna().all()
    for name, value in inputs.PRESETS[preset].items():
        assert app.session_state[name] == value


def test_link_reproduces_the_contract() -> None:
    contract: dict[str, float | str] = {
        "spot": 91.25,
        "strike": 105.0,
        "expiry": 0.4,
        "rate": 0.0123,
        "dividend_yield": 0.031,
        "volatility": 0.275,
        "option_type": "call",
        "exercise": "european",
    }
    query = dict(part.split("=") for part in inputs.link_to(contract)[2:].split("&"))
    found = asked(run("price", **query))
    assert {k: v for k, v in found.items() if isinstance(v, str)} == {
        "option_type": "call",
        "exercise": "european",
    }
    for name in inputs.FIELDS:
        assert found[name] == pytest.approx(contract[name], rel=1e-9)


def test_units_of_greeks_are_the_library_s() -> None:
    app = run("price")
    natural = app.dataframe[1].value
    app.session_state["units"] = "market"
    checked(app.run())
    scaled = app.dataframe[1].value
    for name in natural.columns:
        np.testing.assert_allclose(scaled[name], natural[name] * MARKET_UNITS.get(str(name), 1.0))


def test_contract_outside_of_the_domain_has_no_number_by_amo_and_says_why() -> None:
    app = run("price", expiry="5")
    prices = app.dataframe[0].value["price"]
    assert np.isnan(prices["amo"])
    assert np.isfinite(prices["quantlib"])
    assert any("AMO gives no number here" in text.value for text in app.caption)


def test_contract_an_engine_refuses_gets_the_reason() -> None:
    app = run("price", rate="-1", dividend_yield="-3")
    assert any("two exercise boundaries" in warning.value for warning in app.warning)


def test_expired_contract_is_its_payoff() -> None:
    app = run("price", spot="80", expiry="0")
    assert (app.dataframe[0].value["price"] == 20.0).all()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"spot": "-5"}, "Spot must be from 0.01 to 1,000,000, not -5"),
        ({"volatility": "0"}, "Volatility, % must be from 0.1 to 300, not 0"),
        ({"expiry": "99"}, "Expiry, years must be from 0 to 30, not 99"),
    ],
)
@pytest.mark.parametrize("view", ["price", "surface", "greeks"])
def test_an_input_that_is_refused_leaves_no_price_beside_it(
    view: str, query: dict[str, str], words: str
) -> None:
    app = run(view, **query)
    assert [error.value for error in app.error] == [f"{words}."]
    assert not any(panel.error for panel in app.expander), "a folded panel would hide it"
    assert not app.dataframe
    assert not app.metric


def test_a_refused_number_takes_the_price_away_and_a_good_one_brings_it_back() -> None:
    app = run("price")
    assert app.dataframe
    field(app, "number_input", "Strike").set_value(-1.0)
    checked(app.run())
    assert app.error
    assert not app.dataframe
    field(app, "number_input", "Strike").set_value(90.0)
    checked(app.run())
    assert not app.error
    check_price_page(app)


def test_surface_page_measures_the_difference_it_draws() -> None:
    for query in ({}, {"exercise": "european", "quantity": "gamma", "field": "AMO"}):
        app = run("surface", **query)
        assert any("RMSE" in text.value for text in app.markdown)
    assert any("no surface" in info.value for info in run("surface", expiry="0").info)


def test_greeks_page_runs_along_every_axis() -> None:
    for along in ("spot", "time to expiry", "volatility"):
        assert not run("greeks", along=along).warning


def test_sample_book_is_priced_summed_and_moved() -> None:
    app = run("book")
    field(app, "button", "Price the book").click()
    checked(app.run())
    expected = price_frame(sample_book().reset_index(drop=True), engine("amo"))
    value = float((expected["price"] * expected["quantity"]).sum())
    assert field(app, "metric", "Value").value == f"{value:,.2f}"
    field(app, "button", "Run scenarios").click()
    checked(app.run())
    assert app.session_state["scenarios"].loc[0.0, 0.0] == 0.0
    app.selectbox[[box.label for box in app.selectbox].index("Engine")].set_value("quantlib")
    checked(app.run())
    assert "priced" not in app.session_state  # those numbers were another engine's


def test_uploaded_book_with_other_names_and_bad_cells_is_read_with_a_report() -> None:
    book = sample_book().rename(columns={"spot": "S", "volatility": "IV", "quantity": "Qty"})
    text = book.astype({"strike": object})
    text.loc[4, "strike"] = "n/a?"
    app = upload("book", text.to_csv(index=False).encode(), "mine.csv")
    assert any("1 of 60 rows cannot be priced" in warning.value for warning in app.warning)
    report = app.dataframe[1].value  # the first is the grid
    assert report[["row", "column"]].to_numpy().tolist() == [[4, "strike"]]
    field(app, "button", "Price the book").click()
    checked(app.run())
    priced = app.session_state["priced"]["frame"]
    assert priced["price"].isna().sum() == 1


def test_markdown_in_a_reader_s_file_is_shown_and_not_obeyed() -> None:
    evil = "![x](http://elsewhere/x.png)"
    for view in ("book", "market"):
        app = upload(view, f"{evil},b\n1,2\n".encode(), "e.csv")
        (error,) = (element.value for element in app.error)
        assert evil not in error
        assert evil in error.replace("\\", "")
    bad = sample_book().assign(option_type=evil)
    app = upload("book", bad.to_csv(index=False).encode(), f"{evil.replace('/', '')}.csv")
    for element in (*app.error, *app.warning, *app.markdown, *app.caption):
        assert evil not in element.value


def test_a_book_without_a_style_is_priced_as_the_reader_chooses() -> None:
    book = sample_book().reset_index(drop=True).drop(columns="exercise")
    app = upload("book", book.to_csv(index=False).encode(), "mine.csv")
    assert any("choose american or european" in warning.value for warning in app.warning)
    assert not [button for button in app.button if button.label == "Price the book"]
    for style in ("american", "european"):
        app.session_state["book exercise"] = style
        checked(app.run())
        field(app, "button", "Price the book").click()
        checked(app.run())
        priced = app.session_state["priced"]["frame"]
        expected = price_frame(book, engine("amo"), exercise=style)  # type: ignore[arg-type]
        np.testing.assert_allclose(priced["price"], expected["price"], atol=1e-5)


def test_a_column_in_per_cent_is_told_on_the_page() -> None:
    book = sample_book().assign(volatility=25.0)
    app = upload("book", book.to_csv(index=False).encode(), "mine.csv")
    told = [warning.value.replace("\\", "") for warning in app.warning]
    assert any("divide it by 100" in text for text in told)


def test_uploaded_parquet_with_quotes_gets_implied_volatilities() -> None:
    book = sample_book().reset_index(drop=True)
    book["mid"] = price_frame(book, "quantlib", greeks=False)["price"]
    out = io.BytesIO()
    book.to_parquet(out)
    app = upload("book", out.getvalue(), "mine.parquet")
    field(app, "button", "Price the book").click()
    checked(app.run())
    priced = app.session_state["priced"]["frame"]
    known = priced["implied_volatility"].notna() & (priced["price"] - priced["mid"] < 0.01)
    assert known.sum() > 50
    off = (priced["implied_volatility"] - priced["volatility"]).abs()
    assert off[known].median() < 1e-3


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (b"a,b\n1,2\n", "columns.csv", "No column for spot"),
        (b"", "empty.csv", "empty"),
        (b"\x00\xff\xfe\x01" * 99, "binary.csv", "cannot read binary.csv"),
        (b"PAR1 no", "b.parquet", "cannot read b.parquet"),
        (b"spot,strike\n", "header.csv", "no rows"),
    ],
)
@pytest.mark.parametrize("view", ["book", "market"])
def test_bad_uploads_get_a_clear_message(view: str, data: bytes, name: str, words: str) -> None:
    app = upload(view, data, name)
    said = [element.value.replace("\\", "") for element in (*app.error, *app.warning)]
    expected = "No column for strike" if view == "market" and "spot" in words else words
    assert any(expected in text for text in said), said


def test_result_columns_of_an_uploaded_book_are_kept_beside_the_new_ones() -> None:
    book = sample_book().reset_index(drop=True).assign(price=1.0, delta=2.0)
    app = upload("book", book.to_csv(index=False).encode(), "again.csv")
    field(app, "button", "Price the book").click()
    checked(app.run())
    priced = app.session_state["priced"]["frame"]
    assert (priced["price (uploaded)"] == 1.0).all()
    assert (priced["delta (uploaded)"] == 2.0).all()
    assert not (priced["price"] == 1.0).any()


def test_attack_shows_the_worst_with_links() -> None:
    app = run("accuracy")
    field(app, "number_input", "Contracts").set_value(200)
    field(app, "button", "Draw and price").click()
    checked(app.run())
    worst = app.dataframe[-1].value
    assert worst["error"].abs().is_monotonic_decreasing
    assert worst["open"].str.startswith("/?spot=").all()
    known = price_frame(worst[[*ALIASES]], engine("amo"), greeks=False)
    np.testing.assert_allclose(known["price"], worst["amo"], atol=1e-4)


def test_accuracy_page_quotes_the_metrics_of_the_chosen_model() -> None:
    for style in ("american", "european"):
        app = run("accuracy")
        if style == "european":
            app.segmented_control[0].set_value(style)
            checked(app.run())
        expected = SurrogateEngine.load()
        model = expected.american if style == "american" else expected.european
        rmse = model.metrics["box"]["price"]["rmse"]
        assert field(app, "metric", "Price RMSE, box").value == f"{rmse:.1e}"


@pytest.mark.parametrize("view", VIEWS)
def test_without_models_pages_say_how_to_get_them(
    view: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = SurrogateEngine.load.__func__  # type: ignore[attr-defined]  # the class method
    monkeypatch.setattr(
        SurrogateEngine, "load", classmethod(lambda cls: missing(cls, tmp_path / "nothing"))
    )
    monkeypatch.setattr(registry, "_loaded", {})
    st.cache_resource.clear()
    try:
        app = run(view)
        said = [info.value for info in app.info]
        if view != "benchmarks":
            is_told = any("make models" in text for text in said)
            assert is_told == (view in (*NEED_MODELS, "price", "book", "accuracy"))
    finally:
        st.cache_resource.clear()

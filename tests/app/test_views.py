"""The logic of each page, run without a browser."""

from pathlib import Path

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

from pricing import price_frame

MAIN = Path(__file__).parents[2] / "app/main.py"


def run() -> AppTest:
    app = AppTest.from_file(MAIN, default_timeout=60).run()
    assert not app.exception
    return app


def contract(app: AppTest) -> dict[str, float | str]:
    number = {field.label: field.value for field in app.number_input}
    return {
        "spot": number["Spot"],
        "strike": number["Strike"],
        "expiry": number["Expiry, years"],
        "rate": number["Rate, %"] / 100,
        "dividend_yield": number["Dividend yield, %"] / 100,
        "volatility": number["Volatility, %"] / 100,
        "option_type": app.radio[0].value,
    }


def check_tables(app: AppTest) -> None:
    for exercise, table in zip(("european", "american"), app.dataframe, strict=True):
        frame = pd.DataFrame([{**contract(app), "exercise": exercise}])
        for engine, row in table.value.iterrows():
            expected = price_frame(frame, str(engine)).iloc[0]
            assert row["price"] == expected["price"]
            assert row["delta"] == expected["delta"]


def test_price_page_shows_what_price_frame_returns() -> None:
    app = run()
    check_tables(app)
    tables = [table.value for table in app.dataframe]
    assert "analytic" in tables[0].index
    assert (tables[1]["price"] > 0).all()


def test_changed_inputs_change_the_prices() -> None:
    app = run()
    before = app.dataframe[0].value["price"].to_numpy()
    app.number_input[0].set_value(120.0)
    app.radio[0].set_value("call")
    app.button[0].click().run()
    assert not app.exception
    assert not np.allclose(app.dataframe[0].value["price"], before)
    check_tables(app)


def test_contract_an_engine_refuses_gets_the_reason() -> None:
    app = run()
    for field in app.number_input:
        if field.label in ("Rate, %", "Dividend yield, %"):
            field.set_value(-1.0 if field.label == "Rate, %" else -3.0)
    app.button[0].click().run()
    assert not app.exception
    assert any("two exercise boundaries" in warning.value for warning in app.warning)


def test_expired_contract_is_its_payoff() -> None:
    app = run()
    app.number_input[0].set_value(80.0)
    next(f for f in app.number_input if f.label.startswith("Expiry")).set_value(0.0)
    app.button[0].click().run()
    assert not app.exception
    assert (app.dataframe[1].value["price"] == 20.0).all()

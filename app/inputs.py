"""Widgets that ask for a contract."""

import streamlit as st


def contract_form() -> dict[str, float | str]:
    """Ask for one contract; seven inputs, one rerun."""
    with st.form("contract"):
        left, middle, right = st.columns(3)
        spot = left.number_input("Spot", 0.01, 1e6, 100.0, 1.0)
        strike = left.number_input("Strike", 0.01, 1e6, 100.0, 1.0)
        expiry = middle.number_input(
            "Expiry, years", 0.0, 30.0, 1.0, 0.25, help="act/365; 0.25 is three months"
        )
        volatility = middle.number_input("Volatility, %", 0.1, 300.0, 20.0, 1.0)
        rate = right.number_input(
            "Rate, %", -10.0, 50.0, 5.0, 0.25, help="continuously compounded, per year"
        )
        dividend_yield = right.number_input(
            "Dividend yield, %", -10.0, 50.0, 2.0, 0.25, help="continuous, per year"
        )
        option_type = st.radio("Type", ["put", "call"], horizontal=True)
        st.form_submit_button("Price", type="primary")
    return {
        "spot": spot,
        "strike": strike,
        "expiry": expiry,
        "rate": rate / 100,
        "dividend_yield": dividend_yield / 100,
        "volatility": volatility / 100,
        "option_type": option_type,
    }

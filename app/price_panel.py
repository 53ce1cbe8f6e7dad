"""Every engine's answers for one contract, side by side."""

import numpy as np
import pandas as pd
import streamlit as st

from app import charts, formats, inputs, resources
from pricing import price_frame
from pricing.bounds import intrinsic
from pricing.engines.base import FIVE_GREEKS, MARKET_UNITS, MORE_GREEKS

_SHOWN = {
    "european": ("analytic", "amo", "quantlib", "fd"),
    "american": ("quantlib", "amo", "fd", "quantlib-fast"),
}
_TERMS = ("price", "difference", "iv_points", "microseconds")


def _engines(exercise: str, *, has_surrogate: bool) -> tuple[str, ...]:
    return tuple(name for name in _SHOWN[exercise] if has_surrogate or name != "amo")


def _show_standing(contract: inputs.Contract) -> None:
    """Say whether the contract lies in the surrogate's domain, and how wrong the price may be."""
    frame = pd.DataFrame([contract])
    stated = price_frame(
        frame,
        resources.engine("amo"),
        greeks=False,
        out_of_domain="nan",
        error_bars=True,
        errors="coerce",
    ).iloc[0]
    if stated["in_domain"] and np.isfinite(stated["price"]):
        st.badge(
            f"in domain · AMO's stated error here: {stated['price_error']:.1e}",
            icon=":material/verified:",
            color="green",
            help="99 of 100 contracts measured around this one stayed below it",
        )
        return
    if contract["expiry"] == 0:
        return
    st.badge("outside of AMO's domain", icon=":material/block:", color="orange")
    st.caption(f"AMO gives no number here: {_reason(contract, 'amo')}. The other engines do.")


def _reason(contract: inputs.Contract, name: str) -> str:
    """Return why an engine does not price a contract."""
    refused = price_frame(
        pd.DataFrame([contract]),
        resources.engine(name),
        greeks=False,
        out_of_domain="raise",
        errors="coerce",
    )
    return str(refused["error"].iloc[0])


def _show_prices(found: pd.DataFrame) -> None:
    st.dataframe(
        found[list(_TERMS)],
        width="stretch",
        column_config=formats.columns(_TERMS),
        alt="price, difference to the reference and time, one row per engine",
    )
    st.caption(
        f"Reference: {found.index[0]}. Times are for this one option with nine Greeks and "
        "mostly overhead; a row of a book costs far less (see the Accuracy page)."
    )


def _show_parts(contract: inputs.Contract, found: pd.DataFrame) -> None:
    """Split the price into intrinsic, time value and early-exercise premium."""
    prices = found["price"].dropna()
    if prices.empty:
        return
    shown = "amo" if "amo" in prices.index else str(prices.index[0])
    price = float(prices[shown])
    exercised = float(
        intrinsic(
            np.array([contract["spot"]], dtype=float),
            np.array([contract["strike"]], dtype=float),
            contract["option_type"] == "call",
        )[0]
    )
    parts = {f"Price, {shown}": price, "Intrinsic": exercised, "Time value": price - exercised}
    if contract["exercise"] == "american":
        european = resources.compared({**contract, "exercise": "european"}, ("analytic",))
        parts["Early-exercise premium"] = price - float(european["price"].iloc[0])
    with st.container(horizontal=True):
        for label, value in parts.items():
            st.metric(label, f"{value:,.4f}", width="content")


def _show_greeks(found: pd.DataFrame) -> None:
    units = formats.units_choice()
    names = (*FIVE_GREEKS, *MORE_GREEKS)
    table = found[list(names)].copy()
    if units == "market":
        for name, unit in MARKET_UNITS.items():
            table[name] *= unit
    st.dataframe(
        table,
        width="stretch",
        column_config=formats.columns(names, units),
        alt="Greeks, one row per engine",
    )


def _show_curve(contract: inputs.Contract, engines: tuple[str, ...]) -> None:
    spot, strike = float(contract["spot"]), float(contract["strike"])
    low, high = min(0.5 * strike, 0.9 * spot), max(1.5 * strike, 1.1 * spot)
    at = np.linspace(low, high, resources.N_LINE)
    curves = {
        name: resources.line(contract, name, "spot", tuple(at), "price")
        for name in ("amo", engines[0])
        if name in engines
    }
    payoff = intrinsic(at, np.full_like(at, strike), contract["option_type"] == "call")
    st.plotly_chart(
        charts.values_against_spot(at, curves, payoff, spot),
        alt=f"value of the {inputs.contract_in_short(contract)} and its payoff against spot",
    )


def show(contract: inputs.Contract) -> None:
    """Draw prices, Greeks and the value against spot."""
    has_surrogate = resources.surrogates() is not None
    engines = _engines(str(contract["exercise"]), has_surrogate=has_surrogate)
    fast = resources.compared(contract, tuple(name for name in engines if name != "fd"))
    _show_parts(contract, fast)
    if has_surrogate:
        _show_standing(contract)
    slow = resources.compared(contract, (engines[0], "fd"))  # while the price is already shown
    found = pd.concat([fast, slow.loc[["fd"]]]).loc[list(engines)]
    _show_prices(found)
    for name in found.index[found["price"].isna()]:
        if name != "amo":
            st.warning(f"{name}: {_reason(contract, str(name))}")
    _show_greeks(found)
    _show_curve(contract, engines)

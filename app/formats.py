"""How numbers are written: headers with units, digits, thousands."""

import re
from collections.abc import Iterable
from typing import Any, Literal

import streamlit as st

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
Units = Literal["natural", "market"]

_HEADERS: dict[str, dict[Units, str]] = {
    "delta": {"natural": "delta", "market": "delta"},
    "gamma": {"natural": "gamma", "market": "gamma"},
    "vega": {"natural": "vega / 1.00", "market": "vega / 1 %"},
    "theta": {"natural": "theta / year", "market": "theta / day"},
    "rho": {"natural": "rho / 1.00", "market": "rho / 1 %"},
    "dividend_rho": {"natural": "dividend rho / 1.00", "market": "dividend rho / 1 %"},
    "vanna": {"natural": "vanna / 1.00", "market": "vanna / 1 %"},
    "volga": {"natural": "volga / 1.00²", "market": "volga / 1 %²"},
    "charm": {"natural": "charm / year", "market": "charm / day"},
}
GREEKS = tuple(_HEADERS)  # first order, then the rest
_OTHERS = {
    "price": "price",
    "difference": "− reference",
    "iv_points": "in vol points",
    "microseconds": "time, µs",
    "implied_volatility": "implied vol",
}
_FORMATS = {"difference": "%.1e", "iv_points": "%.1e", "microseconds": "%,.0f"}


def plain(text: object) -> str:
    """Return text that Markdown shows as it is: names in a reader's file must not act as markup."""
    return _PUNCTUATION.sub(r"\\\1", str(text)).replace("\n", "  \n")


def header(name: str, units: Units = "natural") -> str:
    """Return a column's header with its unit."""
    return _HEADERS[name][units] if name in _HEADERS else _OTHERS.get(name, name)


def columns(names: Iterable[str], units: Units = "natural") -> dict[str, Any]:
    """Return Streamlit's configuration of numeric columns: header and digits."""
    return {
        name: st.column_config.NumberColumn(header(name, units), format=_FORMATS.get(name, "%.6f"))
        for name in names
    }


def units_choice() -> Units:
    """Ask for the units of Greeks."""
    return st.segmented_control(
        "Units of Greeks",
        ("natural", "market"),
        default="natural",
        required=True,
        key="units",
        bind="query-params",
        help="natural: theta and charm per year, the others per 1.00 of volatility or rate; "
        "market: per day and per 1 %",
    )

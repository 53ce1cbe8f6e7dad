"""Widgets that ask for a contract. Its terms live in the URL, so a link reproduces a page."""

import math
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

import streamlit as st

from app.formats import GREEKS

Contract = dict[str, float | str]


class _Field(NamedTuple):
    """One number of a contract: how it is shown, and how the library takes it."""

    label: str
    default: float
    slider: tuple[float, float]  # the usual range
    typed: tuple[float, float]  # the range that may be typed
    step: float
    unit: float  # of what is shown, for the library
    help: str


FIELDS: Mapping[str, _Field] = {
    "spot": _Field("Spot", 100.0, (1.0, 300.0), (0.01, 1e6), 1.0, 1.0, "price of the underlying"),
    "strike": _Field("Strike", 100.0, (1.0, 300.0), (0.01, 1e6), 1.0, 1.0, "same currency as spot"),
    "expiry": _Field(
        "Expiry, years", 1.0, (0.0, 3.0), (0.0, 30.0), 0.05, 1.0, "act/365; 0.25 is three months"
    ),
    "volatility": _Field(
        "Volatility, %", 20.0, (1.0, 150.0), (0.1, 300.0), 1.0, 0.01, "per year; 20 is 20 %"
    ),
    "rate": _Field(
        "Rate, %", 5.0, (0.0, 15.0), (-10.0, 50.0), 0.25, 0.01, "continuously compounded, per year"
    ),
    "dividend_yield": _Field(
        "Dividend yield, %", 2.0, (0.0, 15.0), (-10.0, 50.0), 0.25, 0.01, "continuous, per year"
    ),
}
CHOICES: Mapping[str, tuple[str, tuple[str, str]]] = {
    "option_type": ("Type", ("put", "call")),
    "exercise": ("Exercise", ("american", "european")),
}
CARRIES = ("flat", "market")
MARKET_TERMS = ("as_of", "until", "dividends", "curves")  # in the address, under a market
PRESETS: Mapping[str, Mapping[str, float | str]] = {
    "ATM 1Y": {},
    "Deep ITM put": {"spot": 70.0, "option_type": "put"},
    "OTM call": {"spot": 85.0, "option_type": "call"},
    "Short-dated": {"expiry": 0.02, "volatility": 30.0},
    "High yield call": {"option_type": "call", "rate": 2.0, "dividend_yield": 8.0},
    "Low vol": {"volatility": 6.0},
}


def _ask() -> Contract:
    """Ask for one contract; any change is answered at once."""
    with st.container(horizontal=True, gap="small"):
        for name in PRESETS:
            st.button(name, on_click=_apply, args=(name,), key=f"preset {name}")
    return {**choices(), **numbers(tuple(FIELDS))}


def choices() -> Contract:
    """Ask for put or call, American or European."""
    with st.container(horizontal=True):
        return {
            name: st.segmented_control(
                label, options, default=options[0], required=True, key=name, bind="query-params"
            )
            for name, (label, options) in CHOICES.items()
        }


def numbers(names: tuple[str, ...]) -> Contract:
    """Ask for numbers of a contract, two beside each other."""
    found: Contract = {}
    for start in range(0, len(names), 2):
        for column, name in zip(st.columns(2), names[start : start + 2], strict=False):
            with column:
                found[name] = FIELDS[name].unit * _number(name, FIELDS[name])
    return found


def carry_choice() -> str:
    """Ask what carries the spot: a flat rate and yield, or a market with dates and dividends."""
    return st.segmented_control(
        "Carry",
        CARRIES,
        default=CARRIES[0],
        required=True,
        key="carry",
        bind="query-params",
        on_change=_new_visit,  # widgets that were not drawn start anew, from what was last
        help="flat: one rate, one dividend yield, years; "
        "market: dates, curves, dividends in cash at their ex-dates",
    )


def contract_inputs() -> Contract:
    """Ask for one contract in plain view."""
    contract = _ask()
    refuse(contract)
    return contract


def refuse(contract: Contract) -> None:
    """Say which numbers cannot be priced, and stop before any price is shown."""
    refused = []
    for name, field in FIELDS.items():
        if name not in contract:
            continue
        low, high = field.typed
        value = float(contract[name]) / field.unit
        slack = 1e-12 * (high - low)  # for rounding by the unit
        if not low - slack <= value <= high + slack:  # NaN compares false
            refused.append(
                f"{field.label} must be from {low:,.10g} to {high:,.10g}, not {value:,.10g}."
            )
    if refused:
        st.error("  \n".join(refused), icon=":material/block:")
        st.stop()


def contract_folded() -> Contract:
    """Ask for one contract in a folded panel, and show it in one line."""
    with st.expander("Contract", icon=":material/tune:"):
        contract = _ask()
    refuse(contract)  # outside the panel: a folded one would hide it
    st.markdown(f"**{contract_in_short(contract)}**")
    return contract


def carry_contract(to: str) -> None:
    """Carry the contract from page to page, and keep it in every page's address.

    Otherwise a new page's widgets would start afresh and its address would be bare: after a
    reload, the contract would be gone.
    """
    state = st.session_state
    if state.get("page") == to:
        return
    state["page"] = to
    _new_visit()
    defaults: Contract = {name: field.default for name, field in FIELDS.items()}
    defaults |= {name: options[0] for name, (_, options) in CHOICES.items()}
    for name, default in defaults.items():
        value = state.get(name, _in_address(name))
        if value is None:
            continue
        state[name] = value
        if value != default:
            st.query_params[name] = value if isinstance(value, str) else f"{value:.12g}"
    if state.get("carry", st.query_params.get("carry")) == CARRIES[1]:
        state["carry"] = st.query_params["carry"] = CARRIES[1]
        for name in MARKET_TERMS:
            text = state.get(f"{name} text", st.query_params.get(name))
            if text is not None:
                state[f"{name} text"] = st.query_params[name] = text


def _new_visit() -> None:
    st.session_state["visits"] = st.session_state.get("visits", 0) + 1


def _in_address(name: str) -> float | str | None:
    """Return what a page's address says about a term; None if that is missing or invalid."""
    text = st.query_params.get(name)
    if text is None or name in CHOICES:
        return text if name in CHOICES and text in CHOICES[name][1] else None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def contract_in_short(contract: Contract) -> str:
    """Return the contract in one line."""
    return (
        f"{str(contract['exercise']).capitalize()} {contract['option_type']}, "
        f"S {contract['spot']:g}, K {contract['strike']:g}, T {contract['expiry']:g} y, "
        f"vol {contract['volatility']:.4g}, r {contract['rate']:.4g}, "
        f"q {contract['dividend_yield']:.4g}"
    )


def link_to(contract: Mapping[str, float | str]) -> str:
    """Return the address of the Price page that shows a contract."""
    shown = {name: f"{float(contract[name]) / field.unit:.12g}" for name, field in FIELDS.items()}
    return "/?" + urlencode({**shown, **{name: contract[name] for name in CHOICES}})


def quantity_choice() -> str:
    """Ask for price or a Greek."""
    return str(st.selectbox("Quantity", ("price", *GREEKS), key="quantity", bind="query-params"))


def _number(name: str, field: _Field) -> float:
    """Draw a slider and a typed number that follow each other; return the number."""
    state, slider = st.session_state, f"{name} slider"
    value = st.number_input(
        field.label,
        value=field.default,
        step=field.step,
        key=name,
        help=field.help,
        bind="query-params",
        format="%.6g",
    )
    state[slider] = min(max(value, field.slider[0]), field.slider[1])
    st.slider(
        f"{field.label}, slider",
        *field.slider,
        step=field.step,
        key=slider,
        format=" ",
        label_visibility="collapsed",
        on_change=_follow,
        args=(name,),
    )
    return float(value)


def _follow(name: str) -> None:
    st.session_state[name] = st.session_state[f"{name} slider"]


def _apply(preset: str) -> None:
    for name, field in FIELDS.items():
        st.session_state[name] = PRESETS[preset].get(name, field.default)
    for name, (_, options) in CHOICES.items():
        if name in PRESETS[preset]:
            st.session_state[name] = PRESETS[preset][name]
        elif name == "exercise":
            st.session_state[name] = options[0]

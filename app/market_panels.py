"""The Price, Surface and Greeks pages under a market: dates, with the ex-dates marked."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from amo.arrays import FloatArray
from app import charts, date_charts, differences, formats, market_resources, moments, resources
from app.market_inputs import NAME, Listed
from pricing.bounds import intrinsic
from pricing.engines.base import FIVE_GREEKS, MARKET_UNITS

_JUST_AFTER = 1e-6  # years: half a minute, so that a picture shows the fall at an ex-date


def price(listed: Listed) -> None:
    """Show every engine's price and Greeks, and pictures over spot and time."""
    exercise = str(listed.contract["exercise"])
    names = _engines(exercise)
    found = market_resources.prices(listed, names)
    _parts(listed, found)
    reference = names[0]
    shown = found[["price"]].assign(
        difference=found["price"] - float(found["price"].iloc[0]),
        stated=found["price_error"],
    )
    st.dataframe(
        shown,
        width="stretch",
        column_config={
            **formats.columns(("price", "difference")),
            "stated": st.column_config.NumberColumn("stated error", format="%.1e"),
        },
        alt="price, difference to the reference and stated error, one row per engine",
    )
    st.caption(f"Reference: {reference}.")
    for name in found.index[found["price"].isna()]:
        if name != "amo":  # said below
            st.warning(formats.plain(f"{name}: {market_resources.reason(listed, str(name))}"))
    _greeks(found)
    two = _two(listed)
    _against_spot(listed, two)
    _against_time(listed, two)


def surface(listed: Listed) -> None:
    """Show a quantity over spot and date by AMO, by a referee, and their difference."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        what = str(
            st.selectbox("Quantity", market_resources.FIRST, key="what", bind="query-params")
        )
        field = differences.field_choice()
    player, reference = _two(listed)
    strike = float(listed.contract["strike"])
    spots = np.linspace(0.5 * strike, 1.5 * strike, resources.N_SPOTS)
    times = _times(listed, resources.N_EXPIRIES)[:-1]  # at expiry there is nothing to compare
    found, truth = (
        market_resources.over(listed, name, (what,), spots, times)[what]
        for name in (player, reference)
    )
    shown = differences.shown(field, found, truth, (player, reference), formats.header(what))
    boundaries = {}
    if listed.contract["exercise"] == "american":
        boundaries = {"fd": market_resources.boundary(listed, "fd", times)}
    st.plotly_chart(
        date_charts.heat_map_by_date(
            spots, _dates(listed, times), shown.values, shown.title, _ex_dates(listed),
            is_signed=shown.is_signed, boundaries=boundaries,
        ),
        alt=f"{shown.title} over spot and date, with ex-dates and the exercise boundary",
    )  # fmt: skip
    differences.say(found, truth, (player, reference))
    st.caption(
        "Dashed lines are ex-dates. Just before one, an American call in the money may be worth "
        "exercising; its boundary is drawn where there is one."
    )


def greeks(listed: Listed) -> None:
    """Show price and Greeks along spot, date or volatility, with the error beneath."""
    against = st.segmented_control(
        "Against", ("spot", "date", "volatility"), default="spot", required=True,
        key="market along", bind="query-params",
    )  # fmt: skip
    player, reference = _two(listed)
    strike, volatility = (float(listed.contract[name]) for name in ("strike", "volatility"))
    axis = {"date": "time"}.get(against, against)
    at = {
        "spot": np.linspace(0.5 * strike, 1.5 * strike, resources.N_LINE),
        "time": _times(listed, resources.N_LINE)[:-1],
        "volatility": np.linspace(0.06, max(2.0 * volatility, 0.6), resources.N_LINE),
    }[axis]
    found = {
        name: market_resources.along(listed, name, market_resources.FIRST, axis, at)
        for name in (player, reference)
    }
    x = {"time": _dates(listed, at), "volatility": 100.0 * at}.get(axis, at)
    label = {"time": "date, the spot as it is", "volatility": "volatility, %"}.get(axis, axis)
    left, right = st.columns(2)
    for number, name in enumerate(market_resources.FIRST):
        title = formats.header(name)
        figure = charts.lines_with_errors(
            x, {engine: values[name] for engine, values in found.items()}, reference, (label, title)
        )
        if axis == "time":
            date_charts.mark_dates(figure, _ex_dates(listed), "x")
        with (left, right)[number % 2]:
            st.plotly_chart(
                figure,
                key=f"market greek {name}",
                alt=f"{title} against {label}: {player} and {reference}, with the error beneath",
            )


def _engines(exercise: str) -> tuple[str, ...]:
    """Return the engines to show; without its models, all but the surrogate."""
    known = market_resources.ENGINES[exercise]
    return known if resources.surrogates() is not None else tuple(n for n in known if n != "amo")


def _two(listed: Listed) -> tuple[str, str]:
    """Return who is looked at and who judges: the surrogate, where it prices the contract."""
    names = _engines(str(listed.contract["exercise"]))
    if "amo" not in names:
        return names[1], names[0]
    if np.isfinite(market_resources.prices(listed, ("amo",))["price"].iloc[0]):
        return "amo", names[0]
    st.caption(formats.plain(f"amo gives no number here: {market_resources.reason(listed, 'amo')}"))
    return "fd-fast", names[0]


def _parts(listed: Listed, found: pd.DataFrame) -> None:
    """Split the price into intrinsic, time value and early-exercise premium."""
    best = float(found["price"].iloc[0])
    is_call = listed.contract["option_type"] == "call"
    strike = float(listed.contract["strike"])
    exercised = float(intrinsic(np.array([listed.spot]), np.array([strike]), is_call)[0])
    forward = listed.market.forward(listed.years)
    parts = {"Price": best, "Forward": forward, "Intrinsic": exercised}
    if listed.contract["exercise"] == "american":
        held = listed._replace(contract={**listed.contract, "exercise": "european"})
        european = float(market_resources.prices(held, ("fd",))["price"].iloc[0])
        parts["Early-exercise premium"] = best - european
    with st.container(horizontal=True):
        for label, value in parts.items():
            st.metric(label, f"{value:,.4f}", width="content")


def _greeks(found: pd.DataFrame) -> None:
    units = formats.units_choice()
    table = found[list(FIVE_GREEKS)].copy()
    if units == "market":
        for name in FIVE_GREEKS:
            table[name] *= MARKET_UNITS.get(name, 1.0)
    st.dataframe(
        table,
        width="stretch",
        column_config=formats.columns(FIVE_GREEKS, units),
        alt="Greeks, one row per engine",
    )


def _against_spot(listed: Listed, names: tuple[str, str]) -> None:
    strike = float(listed.contract["strike"])
    low, high = min(0.5 * strike, 0.9 * listed.spot), max(1.5 * strike, 1.1 * listed.spot)
    at = np.linspace(low, high, resources.N_LINE)
    curves = {
        name: market_resources.along(listed, name, ("price",), "spot", at)["price"]
        for name in names
    }
    payoff = intrinsic(at, np.full_like(at, strike), listed.contract["option_type"] == "call")
    st.plotly_chart(
        charts.values_against_spot(at, curves, payoff, listed.spot),
        alt="value today and payoff against spot",
    )


def _against_time(listed: Listed, names: tuple[str, str]) -> None:
    """Draw value and exercise boundary against the date."""
    times = _times(listed, resources.N_LINE)
    days = _dates(listed, times)
    curves = {
        name: market_resources.along(listed, name, ("price",), "time", times)["price"]
        for name in names
    }
    figure = date_charts.values_by_date(
        days, curves, "Value if the spot stays where it is", "value"
    )
    date_charts.mark_dates(figure, _ex_dates(listed), "x")
    st.plotly_chart(figure, alt="value at a constant spot against the date, ex-dates marked")
    if listed.contract["exercise"] != "american":
        return
    before = times[:-1]
    edge = market_resources.boundary(listed, "fd", before)
    if not np.isfinite(edge).any():
        st.caption("Early exercise never pays here: there is no boundary to draw.")
        return
    figure = date_charts.values_by_date(days[:-1], {"fd": edge}, "Exercise boundary", "spot")
    date_charts.mark_dates(figure, _ex_dates(listed), "x")
    st.plotly_chart(figure, alt="spot at which exercise begins against the date, ex-dates marked")


def _times(listed: Listed, number: int) -> FloatArray:
    """Return moments from now to expiry, those before and after each ex-date among them."""
    ex = np.array([payment.time for payment in listed.market.before(listed.years)])
    ex = ex[ex < listed.years - _JUST_AFTER]
    even = np.linspace(0.0, listed.years, number)
    return np.unique(np.concatenate([even, ex, ex + _JUST_AFTER]))


def _dates(listed: Listed, times: FloatArray) -> npt.NDArray[Any]:
    return moments.dates({NAME: listed.market}, times)


def _ex_dates(listed: Listed) -> dict[Any, str]:
    return moments.ex_dates({NAME: listed.market}, listed.years)

"""Caches of what was computed for one contract under a market."""

import json

import numpy as np
import pandas as pd
import streamlit as st

from amo.arrays import FloatArray
from app import resources
from app.inputs import Contract
from app.market_inputs import NAME, Listed
from pricing import Market, Options, price_frame, surface_frame
from pricing.engines.base import FIVE_GREEKS, HasBoundary
from pricing.options import Values

ENGINES = {
    "american": ("fd", "amo", "fd-fast", "quantlib-fd"),
    "european": ("analytic", "fd", "fd-fast", "quantlib-fd"),
}
FIRST = ("price", *FIVE_GREEKS)


def prices(listed: Listed, names: tuple[str, ...]) -> pd.DataFrame:
    """Return one row per engine: price, Greeks, stated error, reason where there is no price."""
    text = _text(listed)
    return pd.concat([_price(text, listed.contract, name) for name in names])


@st.cache_data(max_entries=300, show_spinner=False)
def _price(market: str, contract: Contract, name: str) -> pd.DataFrame:
    found = price_frame(
        pd.DataFrame([contract]),
        resources.engine(name),
        markets={NAME: _read(market)},
        greeks=True,
        out_of_domain="nan",
        errors="coerce",
        error_bars=name in ("amo", "fd"),
        workers=1,
    )
    wanted = [*FIRST, "price_error", "error"]
    return found.reindex(columns=wanted).set_axis([name]).rename_axis("engine")


def reason(listed: Listed, name: str) -> str:
    """Return why an engine does not price a contract."""
    refused = price_frame(
        listed.frame, resources.engine(name), markets={NAME: listed.market}, greeks=False,
        out_of_domain="raise", errors="coerce", workers=1,
    )  # fmt: skip
    return str(refused["error"].iloc[0])


def over(
    listed: Listed, name: str, quantities: tuple[str, ...], spots: FloatArray, times: FloatArray
) -> Values:
    """Return quantities over moments and spots, each (moments, spots), NaN where there are none."""
    at = tuple(spots.tolist()), tuple(times.tolist())
    return _over(_text(listed), listed.contract, name, quantities, *at)


@st.cache_data(max_entries=60, show_spinner="Pricing the surface …")
def _over(
    market: str,
    contract: Contract,
    name: str,
    quantities: tuple[str, ...],
    spots: tuple[float, ...],
    times: tuple[float, ...],
) -> Values:
    found = surface_frame(
        pd.DataFrame([contract]),
        resources.engine(name),
        markets={NAME: _read(market)},
        spot=list(spots),
        spot_unit="absolute",
        time=list(times),
        time_unit="years",
        greeks=[quantity for quantity in quantities if quantity != "price"],
        out_of_domain="nan",
        errors="coerce",
        as_arrays=True,
        workers=1,
        progress=False,
    )
    if isinstance(found, pd.DataFrame):
        raise TypeError("arrays were asked for")
    return {quantity: found[quantity][0] for quantity in quantities}


@st.cache_data(max_entries=60, show_spinner=False)
def _along_volatility(
    market: str,
    contract: Contract,
    name: str,
    quantities: tuple[str, ...],
    volatilities: tuple[float, ...],
) -> Values:
    rows = pd.DataFrame([{**contract, "volatility": volatility} for volatility in volatilities])
    found = price_frame(
        rows, resources.engine(name), markets={NAME: _read(market)}, out_of_domain="nan",
        greeks=[quantity for quantity in quantities if quantity != "price"], errors="coerce",
        workers=1, progress=False,
    )  # fmt: skip
    return {quantity: found[quantity].to_numpy(np.float64) for quantity in quantities}


def along(
    listed: Listed, name: str, quantities: tuple[str, ...], axis: str, at: FloatArray
) -> Values:
    """Return quantities along "spot", "time" (years from now) or "volatility"."""
    if axis == "volatility":
        given = tuple(at.tolist())
        return _along_volatility(_text(listed), listed.contract, name, quantities, given)
    here = np.array([listed.spot]), np.zeros(1)
    spots, times = (at, here[1]) if axis == "spot" else (here[0], at)
    found = over(listed, name, quantities, spots, times)
    return {quantity: values.ravel() for quantity, values in found.items()}


def boundary(listed: Listed, name: str, times: FloatArray) -> FloatArray:
    """Return the spot at which an American option is exercised, at moments from now."""
    return _boundary(_text(listed), listed.contract, name, tuple(times.tolist()))


@st.cache_data(max_entries=60, show_spinner=False)
def _boundary(market: str, contract: Contract, name: str, times: tuple[float, ...]) -> FloatArray:
    engine = resources.engine(name)
    if not isinstance(engine, HasBoundary):
        raise TypeError(f"engine {name} finds no boundary")
    options = Options.under(
        _read(market),
        strike=np.full(len(times), contract["strike"], dtype=float),
        expiry=float(contract["expiry"]),
        volatility=float(contract["volatility"]),
        is_call=contract["option_type"] == "call",
        is_american=True,
    )
    at = np.array(times)
    found = np.full(len(at), np.nan)
    live = at < options.expiry
    later = options.after(at, options.spot).take(live)
    found[live] = engine.exercise_boundary(later)
    return found


def _text(listed: Listed) -> str:
    return json.dumps(listed.market.to_dict())


def _read(text: str) -> Market:
    return Market.from_dict(json.loads(text))

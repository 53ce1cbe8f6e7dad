"""One contract, priced by every engine, European and American side by side."""

import pandas as pd
import streamlit as st

from app.inputs import contract_form
from pricing import ENGINES, compare_frame, price_frame
from pricing.engines import FIRST_GREEKS, Engine, get_engine

_SHOWN = {
    "European": ("analytic", "amo", "quantlib", "fd", "fd-fast"),
    "American": ("quantlib", "amo", "fd", "fd-fast", "quantlib-fast"),
}
_HEADERS = {
    "price": "price",
    "difference": "− reference",
    "delta": "delta",
    "gamma": "gamma",
    "vega": "vega / 1.00",
    "theta": "theta / year",
    "rho": "rho / 1.00",
    "microseconds": "time, µs",
}
_FORMATS = {"difference": "%.1e", "microseconds": "%.0f"}


@st.cache_resource(show_spinner=False)
def _engine(name: str) -> Engine:
    """Return an engine that all sessions share; models are loaded once."""
    return get_engine(name)


@st.cache_data(max_entries=500, show_spinner=False)
def _prices(contract: dict[str, float | str], engines: tuple[str, ...]) -> pd.DataFrame:
    """Return one row an engine: price, difference to the first, Greeks and time."""
    found = compare_frame(pd.DataFrame([contract]), [_engine(name) for name in engines])
    row = found.rows.iloc[0]
    table = pd.DataFrame(
        {
            name: {
                "price": row[f"price_{name}"],
                "difference": row[f"price_{name}"] - row[f"price_{found.reference}"],
                **{greek: row[f"{greek}_{name}"] for greek in FIRST_GREEKS},
                "microseconds": found.summary.loc[name, "microseconds"],
            }
            for name in engines
        }
    ).T
    return table.rename_axis("engine")


@st.cache_data(max_entries=500, show_spinner=False)
def _reason(contract: dict[str, float | str], engine: str) -> str:
    """Return why an engine does not price a contract."""
    priced = price_frame(
        pd.DataFrame([contract]), _engine(engine), out_of_domain="raise", errors="coerce"
    )
    return str(priced["error"].iloc[0])


st.title("Price")
st.caption("One contract, every engine. The first engine of each table is its reference.")
contract = contract_form()
for exercise, engines in _SHOWN.items():
    st.subheader(exercise)
    priced = _prices({**contract, "exercise": exercise.lower()}, engines)
    st.dataframe(
        priced.rename(columns=_HEADERS),
        width="stretch",
        column_config={
            _HEADERS[name]: st.column_config.NumberColumn(format=_FORMATS.get(name, "%.6f"))
            for name in priced.columns
        },
    )
    for engine in priced.index[priced["price"].isna()]:
        st.warning(_reason({**contract, "exercise": exercise.lower()}, str(engine)))
st.caption(
    f"{len(ENGINES)} engines are installed: {', '.join(ENGINES)}. Times are for one option and "
    "mostly overhead: books are priced far faster a row."
)

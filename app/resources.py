"""What sessions share: engines, models and bounded caches of what was computed."""

import gc
import json
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from amo import checkpoint
from amo.arrays import FloatArray
from amo.errors import CheckpointError
from amo.results import RESULTS, read
from app.inputs import Contract
from pricing import compare_frame, price_frame
from pricing.analysis import sweeps
from pricing.analysis.examples import sample_book
from pricing.engines.base import FIVE_GREEKS, MORE_GREEKS, Engine
from pricing.engines.registry import get_engine
from pricing.engines.surrogate import SurrogateEngine
from pricing.surrogate.store import models_folder

_Results = TypeVar("_Results")
REFERENCES = {"european": ("analytic", "quantlib", "fd"), "american": ("quantlib", "fd")}
N_SPOTS, N_EXPIRIES, N_LINE = 49, 29, 81


@st.cache_resource(show_spinner="Loading the engines …")
def engine(name: str) -> Engine:
    """Return an engine that all sessions share, loaded and compiled once."""
    found = get_engine(name)
    style = "european" if name == "analytic" else "american"
    price_frame(sample_book().head(1).assign(exercise=style), found, greeks="second", workers=1)
    # Streamlit collects garbage after every run of a page: exempt what stays for good
    gc.collect()
    gc.freeze()
    return found


def surrogates() -> SurrogateEngine | None:
    """Return the surrogates, or None after saying how to get them."""
    try:
        found = engine("amo")
    except CheckpointError as error:
        st.info(f"No surrogate to show. {error}", icon=":material/info:")
        return None
    if not isinstance(found, SurrogateEngine):
        raise TypeError(f"engine amo is {type(found).__name__}")
    return found


@st.cache_data(max_entries=500, show_spinner=False)
def compared(contract: Contract, names: tuple[str, ...]) -> pd.DataFrame:
    """Return one row per engine: price, its error against the first, time and all Greeks."""
    greeks = (*FIVE_GREEKS, *MORE_GREEKS)
    found = compare_frame(
        pd.DataFrame([contract]),
        [engine(name) for name in names],
        greeks=greeks,
        workers=1,
        warm_up=False,  # engines are warm already
    )
    row = found.rows.iloc[0]
    return pd.DataFrame(
        {
            name: {
                "price": row[f"price_{name}"],
                "difference": row[f"price_{name}"] - row[f"price_{found.reference}"],
                "iv_points": row[f"iv_points_{name}"],
                "microseconds": found.summary.loc[name, "microseconds"],
                **{greek: row[f"{greek}_{name}"] for greek in greeks},
            }
            for name in names
        }
    ).T.rename_axis("engine")


@st.cache_data(max_entries=200, show_spinner=False)
def line(contract: Contract, name: str, along: str, at: tuple[float, ...], what: str) -> FloatArray:
    """Return a quantity along one term of a contract."""
    return sweeps.line(contract, engine(name), along, np.array(at), what)


@st.cache_data(max_entries=60, show_spinner="Pricing the surface …")
def surface(
    contract: Contract, name: str, what: str, spots: tuple[float, ...], expiries: tuple[float, ...]
) -> FloatArray:
    """Return a quantity over time to expiry and spot."""
    return sweeps.surface(contract, engine(name), what, np.array(spots), np.array(expiries))


@st.cache_data(max_entries=60, show_spinner=False)
def boundary(contract: Contract, name: str, expiries: tuple[float, ...]) -> FloatArray:
    """Return the exercise boundary of an American option."""
    return sweeps.exercise_boundary(contract, engine(name), np.array(expiries))


@st.cache_data(max_entries=8, show_spinner=False)
def metrics(model: str) -> dict[str, Any]:
    """Return what a shipped model's metrics.json holds."""
    return checkpoint.read_metrics(models_folder() / model)


@st.cache_data(max_entries=8, show_spinner=False)
def training_log(model: str) -> pd.DataFrame:
    """Return the training log of a shipped model, empty where it has none."""
    path = models_folder() / model / "log.jsonl"
    if not path.is_file():
        return pd.DataFrame()
    return pd.DataFrame([json.loads(line) for line in path.read_text("utf-8").splitlines()])


def results(name: str, kind: type[_Results]) -> _Results | None:
    """Return a results file, None where it has not been measured yet."""
    path = RESULTS / f"{name}.json"
    return read(path, kind) if path.is_file() else None

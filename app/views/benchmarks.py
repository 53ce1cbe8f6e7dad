"""Tables from the results files that have been measured."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from amo.results import LearningResults, ScalingResults, Table
from app import resources
from app.documents.engine_tables import data_table, engine_table
from app.documents.model_tables import (
    ablations_table,
    learning_table,
    physics_table,
    quoted_table,
    rivals_table,
    scaling_table,
)
from data_gen.bench import DataResults
from pricing.bench import EngineResults

# Of each results file: its title, what it holds, and what writes it as a table.
_TABLES: dict[str, tuple[str, type[Any], Callable[[Any], str]]] = {
    "options": ("The paper's option problem: AMO and its rivals", Table, rivals_table),
    "ablations": ("What each part of AMO is worth", Table, ablations_table),
    "physics": ("The paper's physics problems", Table, physics_table),
    "engines": ("American options: every engine", EngineResults, engine_table),
    "learning": ("First lessons: easy operators", LearningResults, learning_table),
    "scaling": ("Cost against size", ScalingResults, scaling_table),
    "data_gen": ("Making the training data", DataResults, data_table),
}


def main() -> None:
    """Draw the page."""
    st.title("Benchmarks")
    st.caption("Written from the files in docs/results: what came out, whoever wins.")
    for name, (title, kind, as_text) in _TABLES.items():
        st.subheader(title)
        results = resources.results(name, kind)
        if results is None:
            st.info(f"Not measured yet: there is no docs/results/{name}.json.")
            continue
        st.markdown(as_text(results))
        if name == "physics":
            st.caption("Quoted from the paper: other data, other hardware.")
            st.markdown(quoted_table(results))


main()

"""Tables of results files, as they arrive."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from amo.report import (
    ablations_table,
    learning_table,
    physics_table,
    quoted_table,
    rivals_table,
    scaling_table,
)
from app import resources
from pricing.report import data_table, engine_table

_TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "options": ("The paper's option problem: AMO and its rivals", rivals_table),
    "ablations": ("What each part of AMO is worth", ablations_table),
    "physics": ("The paper's physics problems", physics_table),
    "engines": ("American options: every engine", engine_table),
    "learning": ("First lessons: easy operators", learning_table),
    "scaling": ("Cost against size", scaling_table),
    "data_gen": ("Making the training data", data_table),
}


def main() -> None:
    """Draw the page."""
    st.title("Benchmarks")
    st.caption("Written from the files in docs/results: what came out, whoever wins.")
    for name, (title, table) in _TABLES.items():
        st.subheader(title)
        results = resources.results(name)
        if results is None:
            st.info(f"Not measured yet: there is no docs/results/{name}.json.")
        else:
            st.markdown(table(results))
            if name == "physics":
                st.caption("Quoted from the paper: other data, other hardware.")
                st.markdown(quoted_table(results))


main()

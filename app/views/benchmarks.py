"""Tables from the results files that have been measured."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from amo.results import Table
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

_MODELS: dict[str, tuple[str, Callable[[Table], str]]] = {
    "options": ("The paper's option problem: AMO and its rivals", rivals_table),
    "ablations": ("What each part of AMO is worth", ablations_table),
    "physics": ("The paper's physics problems", physics_table),
}
_OTHERS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "engines": ("American options: every engine", engine_table),
    "learning": ("First lessons: easy operators", learning_table),
    "scaling": ("Cost against size", scaling_table),
    "data_gen": ("Making the training data", data_table),
}


def _show(name: str, title: str, text: str | None) -> None:
    st.subheader(title)
    if text is None:
        st.info(f"Not measured yet: there is no docs/results/{name}.json.")
    else:
        st.markdown(text)


def main() -> None:
    """Draw the page."""
    st.title("Benchmarks")
    st.caption("Written from the files in docs/results, whichever model wins.")
    for name, (title, as_text) in _MODELS.items():
        table = resources.model_table(name)
        _show(name, title, None if table is None else as_text(table))
        if name == "physics" and table is not None:
            st.caption("Quoted from the paper: other data, other hardware.")
            st.markdown(quoted_table(table))
    for name, (title, as_words) in _OTHERS.items():
        results = resources.results(name)
        _show(name, title, None if results is None else as_words(results))


main()

"""Pictures and tables from the results files that have been measured."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from amo.results import LearningResults, ScalingResults, Table
from app import benchmark_charts as charts
from app import formats, resources
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

_PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
# Of each results file: its title, what it holds, and what writes it as a table.
_TABLES: dict[str, tuple[str, type[Any], Callable[[Any], str]]] = {
    "options": ("The paper's option problem: AMO and its rivals", Table, rivals_table),
    "physics": ("The paper's physics problems", Table, physics_table),
    "grids": (
        "AMO at full resolution: transfer functions on grids and clouds",
        Table,
        physics_table,
    ),
    "ablations": ("What each part of AMO is worth", Table, ablations_table),
    "engines": ("American options: every engine", EngineResults, engine_table),
    "learning": ("First lessons: easy operators", LearningResults, learning_table),
    "scaling": ("Cost against size", ScalingResults, scaling_table),
    "data_gen": ("Making the training data", DataResults, data_table),
}


def _problem(name: str, table: Table) -> None:
    """Draw one problem of a table: who is how far off, and at which cost."""
    problem = st.selectbox(
        "Problem",
        list(table.problems),
        format_func=lambda key: f"{key}: {table.problems[key].title}",
        key=f"{name} problem",
        bind="query-params",
    )
    rows = charts.rows_of(table)
    rows = rows[rows["problem"] == problem]
    if rows.empty:
        st.info("No model has been scored on this problem yet.")
        return
    means = rows.groupby("model")["error"].mean().sort_values()
    best, forms = str(means.index[0]), means[means.index.str.startswith("amo")]
    said = f"Lowest mean error: {best}, {means.iloc[0]:.2e}."
    if len(forms) and best not in forms.index:
        said += f" AMO has {forms.iloc[0] / means.iloc[0]:.2f} times as much."
    st.markdown(formats.plain(said))
    st.plotly_chart(
        charts.errors_by_model(rows, "Error by model; AMO in red, a diamond is the mean of seeds"),
        alt=f"error of every model on {problem}; table below",
    )
    left, right = st.columns(2)
    left.plotly_chart(
        charts.errors_against(rows, "parameters", "parameters", "Error against size"),
        alt=f"error against parameters on {problem}; table below",
    )
    right.plotly_chart(
        charts.errors_against(rows, "milliseconds", "ms per sample", "Error against time"),
        alt=f"error against time per sample on {problem}; table below",
    )
    picture = _PICTURES / f"{f'options-{problem}' if name == 'options' else problem}.png"
    if picture.is_file() and name != "grids":  # pictures are of the other tables' models
        st.image(str(picture), caption="truth, prediction and error on a sample of the test set")


def _pictured(name: str, results: Any) -> None:  # noqa: ANN401  # of any kind of results file
    """Draw what people would rather look at."""
    if name in ("options", "physics", "grids"):
        _problem(name, results)
    elif name == "ablations":
        rows = charts.rows_of(results)
        whole = next(model for model in rows["model"] if str(model).startswith("AMO"))
        st.plotly_chart(
            charts.ablation_bars(rows, str(whole), "A longer bar: the part is missed"),
            alt="error of each ablation over that of the whole model; table below",
        )


def main() -> None:
    """Draw the page."""
    st.title("Benchmarks")
    st.caption("Drawn from the files in docs/results: what came out, whoever wins.")
    for name, (title, kind, as_text) in _TABLES.items():
        st.subheader(title)
        results = resources.results(name, kind)
        if results is None:
            st.info(f"Not measured yet: there is no docs/results/{name}.json.")
            continue
        _pictured(name, results)
        with st.expander("Table", icon=":material/table_rows:"):
            st.markdown(as_text(results))
            if name == "physics":
                st.caption("Quoted from the paper: other data, other hardware.")
                st.markdown(quoted_table(results))


main()

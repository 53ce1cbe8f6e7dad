"""Tables from the reader: uploaded, pasted or ours. Nothing is written to disk."""

from collections.abc import Callable, Hashable, Sequence

import pandas as pd
import streamlit as st

from amo.errors import FileError
from app import formats
from pricing.columns import ALIASES, guess_columns
from pricing.engines.base import FIVE_GREEKS
from pricing.options import Exercise
from pricing.tables import csv_bytes, parquet_bytes, parse_table

MAX_MEGABYTES = 50
KEPT = " (uploaded)"  # appended to the name of a column that the result also has
_NONE = "(none)"
_ALIASES = {
    "quantity": ("quantity", "qty", "position", "contracts", "size"),
    "price": ("price", "quote", "mid", "market_price", "last"),
    "quote": ("quote", "mid", "market_price", "last", f"price{KEPT}"),
}


def uploaded_table(key: str) -> pd.DataFrame | None:
    """Ask for a CSV or Parquet file; None until there is a readable one."""
    file = st.file_uploader(
        "CSV, TSV or Parquet, one option per row",
        type=["csv", "tsv", "txt", "gz", "parquet", "pq"],
        key=f"{key} file",
        max_upload_size=MAX_MEGABYTES,
        help=f"at most {MAX_MEGABYTES} MB; it stays in memory and is gone with this session",
    )
    if file is None:
        return None
    kept = st.session_state.get(f"{key} parsed")
    if kept is None or kept[0] != file.file_id:  # read once, not at every rerun
        try:
            table = parse_table(file.getvalue(), file.name, max_bytes=MAX_MEGABYTES << 23)
            kept = (file.file_id, table)
        except FileError as error:
            kept = (file.file_id, str(error))
        st.session_state[f"{key} parsed"] = kept
    found = kept[1]
    if isinstance(found, str):
        told = formats.plain(found)
        st.error(f"{told}. Save the table as CSV with a line of column names, or as Parquet.")
        return None
    if found.empty:
        st.warning(f"{formats.plain(file.name)} has no rows.")
        return None
    return pd.DataFrame(found)


def map_columns(
    frame: pd.DataFrame,
    key: str,
    *,
    without: Sequence[str] = (),
    also: Sequence[str] = (),
    optional: Sequence[str] = ("exercise",),
) -> dict[str, Hashable]:
    """Ask which column is which, with a guess; ``also`` names columns besides those of a contract.

    Returns what was chosen; a needed column without a label is missing from it.
    """
    labels = list(frame.columns)
    guess = {**guess_columns(frame), **{name: _named(name, labels) for name in also}}
    names = [*(name for name in ALIASES if name not in without), *also]
    is_clear = all(guess[name] is not None for name in names if name not in optional)
    chosen: dict[str, Hashable] = {}
    with st.expander("Columns", icon=":material/view_column:", expanded=not is_clear):
        st.caption("Guessed from the names; change what is wrong.")
        for column, group in zip(st.columns(3), _thirds(names), strict=True):
            for name in group:
                options: list[Hashable] = [_NONE, *labels]
                index = 0 if guess[name] is None else options.index(guess[name])
                label = column.selectbox(
                    name, options, index=index, key=f"{key} column {name} {hash(tuple(labels))}"
                )
                if label != _NONE:
                    chosen[name] = label
    return chosen


def exercise_choice(columns: dict[str, Hashable], key: str) -> Exercise | None:
    """Ask how the options are exercised where no column says it; None where one does.

    Nothing is assumed: the page goes on once the reader has chosen.
    """
    if "exercise" in columns:
        return None
    chosen: Exercise | None = st.segmented_control(
        "Exercise of all rows", ("american", "european"), default=None, key=f"{key} exercise"
    )
    if chosen is None:
        st.warning(
            "No column says how these options are exercised: choose american or european above. "
            "Options on US stocks and funds are American, those on most indices European.",
            icon=":material/warning:",
        )
        st.stop()
    return chosen


def say_assumed(assumed: Sequence[str]) -> None:
    """Show what the library assumed about a table, or found odd."""
    for text in assumed:
        st.warning(formats.plain(text), icon=":material/percent:")


def say_missing(missing: Sequence[str], frame: pd.DataFrame) -> None:
    """Say which needed columns were not chosen, and which columns there are."""
    there = formats.plain(", ".join(map(str, frame.columns[:30])))
    st.error(
        f"No column for {formats.plain(', '.join(missing))}: choose one above under Columns. The "
        f"table has {there}."
    )


def missing_columns(chosen: dict[str, Hashable], without: Sequence[str] = ()) -> list[str]:
    """Return the needed columns that were not chosen; exercise may be chosen for all rows."""
    return [n for n in ALIASES if n not in chosen and n != "exercise" and n not in without]


def priced_rows(priced: pd.DataFrame, name: str) -> None:
    """Show the rows of a priced book, and offer them as files."""
    st.subheader("Rows")
    st.dataframe(
        priced,
        lazy=True,
        height=320,
        column_config=formats.columns(("price", *FIVE_GREEKS)),
        alt="the priced book",
    )
    download_buttons(priced, name)


def download_buttons(frame: pd.DataFrame, name: str) -> None:
    """Offer a table as CSV and as Parquet; the files are made on demand."""
    makers: dict[str, tuple[Callable[[], bytes], str]] = {
        "csv": (lambda: csv_bytes(frame), "text/csv"),
        "parquet": (lambda: parquet_bytes(frame), "application/vnd.apache.parquet"),
    }
    with st.container(horizontal=True):
        for suffix, (make, mime) in makers.items():
            st.download_button(
                f"Download {suffix.upper() if suffix == 'csv' else 'Parquet'}",
                make,
                f"{name}.{suffix}",
                mime,
                on_click="ignore",
                icon=":material/download:",
                key=f"{name} {suffix}",
            )


def _named(name: str, labels: Sequence[Hashable]) -> Hashable | None:
    aliases = _ALIASES.get(name, (name,))
    found = [label for label in labels if str(label).strip().lower() in aliases]
    return found[0] if len(found) == 1 else None


def _thirds(names: Sequence[str]) -> list[list[str]]:
    return [list(names[start::3]) for start in range(3)]

"""Tables from the reader: uploaded, pasted or ours. Nothing is written to disk."""

from collections.abc import Callable, Hashable, Sequence

import pandas as pd
import streamlit as st

from amo.files import FileError
from pricing.contracts import ALIASES
from pricing.files import csv_bytes, parquet_bytes, parse_table
from pricing.reading import guess_columns

MAX_MEGABYTES = 50
KEPT = " (uploaded)"  # after the name of a column that the result has, too
_NONE = "(none)"
_ALIASES = {
    "quantity": ("quantity", "qty", "position", "contracts", "size"),
    "price": ("price", "quote", "mid", "market_price", "last"),
    "quote": ("quote", "mid", "market_price", "last", f"price{KEPT}"),
}


def uploaded_table(key: str) -> pd.DataFrame | None:
    """Ask for a CSV or Parquet file; None until there is a readable one."""
    file = st.file_uploader(
        "CSV or Parquet, one option a row",
        type=["csv", "txt", "parquet", "pq"],
        key=f"{key} file",
        max_upload_size=MAX_MEGABYTES,
        help=f"at most {MAX_MEGABYTES} MB; it stays in memory and is gone with this session",
    )
    if file is None:
        return None
    kept = st.session_state.get(f"{key} parsed")
    if kept is None or kept[0] != file.file_id:  # read once, not at every rerun
        try:
            kept = (file.file_id, parse_table(file.getvalue(), file.name))
        except FileError as error:
            kept = (file.file_id, str(error))
        st.session_state[f"{key} parsed"] = kept
    found = kept[1]
    if isinstance(found, str):
        st.error(f"{found}. Save the table as CSV with a line of column names, or as Parquet.")
        return None
    if found.empty:
        st.warning(f"{file.name} has no rows.")
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
    """Ask which column is which, with a guess; ``also`` names columns beside those of a contract.

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


def missing_columns(chosen: dict[str, Hashable], without: Sequence[str] = ()) -> list[str]:
    """Return the needed columns nobody pointed at; exercise has a default."""
    return [n for n in ALIASES if n not in chosen and n != "exercise" and n not in without]


def download_buttons(frame: pd.DataFrame, name: str) -> None:
    """Offer a table as CSV and as Parquet; the files are made when asked for."""
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

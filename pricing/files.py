"""Tables on disk: CSV and Parquet by suffix; nothing is ever half written."""

import io
import os
from pathlib import Path

import pandas as pd

from amo.files import FileError, replacing


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV or Parquet file."""
    try:
        if _format(path) == "parquet":
            return pd.read_parquet(path)
        return pd.read_csv(path)
    except FileNotFoundError:
        raise FileError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:  # pandas' and pyarrow's parse errors are ValueErrors
        raise FileError(f"cannot read {path}: {error}") from error


def parse_table(data: bytes, name: str) -> pd.DataFrame:
    """Read the bytes of a CSV or Parquet file of that name, without touching a disk."""
    if not data:
        raise FileError(f"{name} is empty")
    try:
        if _format(Path(name)) == "parquet":
            return pd.read_parquet(io.BytesIO(data))
        return pd.read_csv(io.BytesIO(data))
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {name}: {error}") from error


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Return a CSV file that is safe to open in a spreadsheet.

    A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    safe = frame.copy(deep=False)
    for number, dtype in enumerate(frame.dtypes):
        if not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)):
            cells = [_without_formula(cell) for cell in frame.iloc[:, number]]
            safe.isetitem(number, pd.array(cells, dtype=object))
    safe.columns = pd.Index([_without_formula(label) for label in frame.columns])
    return safe.to_csv(index=not isinstance(frame.index, pd.RangeIndex)).encode()


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """Return a Parquet file."""
    out = io.BytesIO()
    named = frame.set_axis(frame.columns.map(str), axis=1)  # all that Parquet takes
    named.to_parquet(out, index=not isinstance(frame.index, pd.RangeIndex))
    return out.getvalue()


def _without_formula(cell: object) -> object:
    is_formula = isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{cell}" if is_formula else cell


def check_writable(path: Path) -> None:
    """Raise FileError if a table could not be written there: ask before hours of work."""
    _format(path)
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"cannot write {path}: {path.parent} is missing or not writable")


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a CSV or Parquet file, whole or not at all; an index that says something is kept."""
    form = _format(path)
    index = not isinstance(frame.index, pd.RangeIndex)
    with replacing(path) as beside:
        if form == "parquet":
            frame.to_parquet(beside, index=index)
        else:
            frame.to_csv(beside, index=index)


def _format(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        return "parquet"
    if suffix in (".csv", ".txt"):
        return "csv"
    raise FileError(f"cannot tell the format of {path}: name it .csv or .parquet")

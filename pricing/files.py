"""Tables on disk: CSV and Parquet by suffix; nothing is ever half written."""

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

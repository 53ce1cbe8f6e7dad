"""Tables on disk: CSV and Parquet by suffix; nothing is ever half written."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd


class FileError(Exception):
    """A file cannot be read or written; the message says which and why."""


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


def write_text(text: str, path: Path) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a fresh name beside ``path`` and rename it there if the block succeeds."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from error
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error}") from error
    finally:
        beside.unlink(missing_ok=True)


def _format(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        return "parquet"
    if suffix in (".csv", ".txt"):
        return "csv"
    raise FileError(f"cannot tell the format of {path}: name it .csv or .parquet")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

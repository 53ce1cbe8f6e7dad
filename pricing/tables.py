"""Tables on disk and on standard input and output: CSV, TSV and Parquet; never half written.

Files come from anywhere, so whatever would be expensive to parse is refused beforehand: a header
of very many columns (pandas makes equal names unique one by one), or more rows or memory
than a book can have (compressed files hold a thousand times their size).
"""

import csv
import glob
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import pandas as pd

from amo.errors import FileError
from amo.files import replacing

if TYPE_CHECKING:
    import pyarrow as pa

STANDARD = Path("-")  # standard input or output, as CSV
MAX_COLUMNS = 2_000
MAX_ROWS = 50_000_000
MAX_BYTES = 4 << 30  # of a table before it is compressed
_HEAD = 1 << 20  # bytes of a text from which its layout is recognised
_SEPARATORS = (",", ";", "\t", "|")
_SUFFIXES = {".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}


def is_in_parts(source: str | Path) -> bool:
    """Tell whether a source is a folder or a pattern, rather than a file."""
    return Path(source).is_dir() or (glob.has_magic(str(source)) and not Path(source).exists())


def read_table(path: Path, *, max_bytes: int = MAX_BYTES) -> pd.DataFrame:
    """Read a CSV, TSV or Parquet file, or CSV from standard input."""
    if path == STANDARD:
        return parse_table(sys.stdin.buffer.read(), "standard input.csv", max_bytes=max_bytes)
    _format(path)
    try:
        with path.open("rb") as file:
            return _parse(file, path.name, max_bytes)
    except FileNotFoundError:
        raise FileError(f"no such file: {path}") from None
    except OSError as error:
        raise FileError(f"cannot read {path}: {error}") from error


def parse_table(data: bytes, name: str, *, max_bytes: int = MAX_BYTES) -> pd.DataFrame:
    """Read the bytes of a file of that name, without touching a disk."""
    if not data:
        raise FileError(f"{name} is empty")
    return _parse(io.BytesIO(data), name, max_bytes)


def _parse(file: IO[bytes], name: str, max_bytes: int) -> pd.DataFrame:
    form, is_compressed = _format(Path(name))
    try:
        if form == "parquet":
            return _read_parquet(file, name, max_bytes)
        data = _decompressed(file, name, max_bytes) if is_compressed else file
        head = data.read(_HEAD).decode("utf-8-sig", errors="replace").lstrip("\r\n")
        data.seek(0)
        separator = "\t" if form == "tsv" else _separator(head.partition("\n")[0])
        records = list(islice(csv.reader(head.splitlines(keepends=True), delimiter=separator), 30))
        _check_width(records, name)
        decimal = _decimal(records[1:], name) if separator == ";" else "."
        return pd.read_csv(data, sep=separator, decimal=decimal, encoding="utf-8-sig")
    # pandas' parse errors are ValueErrors; a header of over a hundred kilobytes is a csv.Error
    except (OSError, ValueError, EOFError, zlib.error, csv.Error, OverflowError) as error:
        raise FileError(f"cannot read {name}: {_first_line(error)}") from error


def _separator(first: str) -> str:
    """Return the separator of a header: the usual one that occurs most often."""
    return max(_SEPARATORS, key=first.count)


def _check_width(records: list[list[str]], name: str) -> None:
    """Refuse a table that is too wide, or whose rows are wider than its header."""
    if (n_columns := max(map(len, records), default=0)) > MAX_COLUMNS:
        raise FileError(f"{name} has {n_columns:,} columns; a table has at most {MAX_COLUMNS:,}")
    n_named = len(records[0]) if records else 0
    if n_columns > n_named + 1:  # one more may be the index, or a separator at the end of lines
        raise FileError(f"{name} has {n_named:,} columns in its header and {n_columns:,} below it")


def _decimal(records: list[list[str]], name: str) -> str:
    """Return the decimal sign of a table whose columns are separated by semicolons."""
    fields = [field.strip() for record in records for field in record]
    has_comma = any(re.fullmatch(r"[-+]?\d*,\d+", field) for field in fields)
    if has_comma and any(re.fullmatch(r"[-+]?\d*\.\d+", field) for field in fields):
        raise FileError(
            f"{name} has numbers with a comma and numbers with a point: write one decimal sign, "
            "and no sign between thousands"
        )
    return "," if has_comma else "."


def _decompressed(file: IO[bytes], name: str, max_bytes: int) -> IO[bytes]:
    with gzip.open(file) as whole:
        data = whole.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise FileError(f"{name} holds more than {max_bytes >> 20:,} MB: cut it into parts")
    return io.BytesIO(data)


def _read_parquet(file: IO[bytes], name: str, max_bytes: int) -> pd.DataFrame:
    return read_columns(file, name, max_bytes=max_bytes).frame(name)


class Columns(NamedTuple):
    """A Parquet table as it was read.

    Attributes
    ----------
    table
        Its columns, texts in the file's own dictionary, however often each is repeated.
    stored
        The types that the file gives them.
    texts
        The names of those with texts.
    """

    table: "pa.Table"
    stored: "pa.Schema"
    texts: list[str]

    def frame(self, name: str) -> pd.DataFrame:
        """Return it as a frame, in which equal texts share one object."""
        import pyarrow as pa  # noqa: PLC0415  # slow to load, and most tables are CSV

        try:
            frame = _as_frame(self.table)
        except pa.ArrowException as error:
            raise FileError(f"cannot read {name}: {_first_line(error)}") from error
        for label in frame.columns[frame.dtypes == "category"]:
            if label in self.texts:
                frame[label] = frame[label].astype(object)
        return frame


def read_columns(
    file: IO[bytes],
    name: str,
    groups: Sequence[int] | None = None,
    *,
    max_bytes: int = MAX_BYTES,
) -> Columns:
    """Read a Parquet file, or some of its row groups, if its metadata describe a usable size."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    def check(what: str, n: int, most: int) -> None:
        if n > most:
            raise FileError(f"{name} holds {n:,} {what}; it may hold {most:,}")

    try:
        described = pq.read_metadata(file)
        numbers = list(range(described.num_row_groups) if groups is None else groups)
        wanted = [described.row_group(number) for number in numbers]
        n_rows = sum(group.num_rows for group in wanted)
        check("rows", n_rows, MAX_ROWS)
        check("columns", described.num_columns, MAX_COLUMNS)
        size = sum(group.total_byte_size for group in wanted)
        check("bytes", max(size, 8 * n_rows * described.num_columns), max_bytes)
        schema = described.schema.to_arrow_schema()
        texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_binary(f.type)]
        content = pq.ParquetFile(file, read_dictionary=texts)
        batches, held = [], 0
        for batch in content.iter_batches(batch_size=1 << 14, row_groups=numbers):
            held += batch.nbytes
            check("bytes", held, max_bytes)
            batches.append(batch)
        table = pa.Table.from_batches(batches, content.schema_arrow).unify_dictionaries()
        return Columns(table, pq.ParquetFile(file).schema_arrow, texts)
    except pa.ArrowException as error:
        raise FileError(f"cannot read {name}: {_first_line(error)}") from error


def _as_frame(table: "pa.Table") -> pd.DataFrame:
    """Return an Arrow table as pandas wrote it; the metadata of pandas may be damaged."""
    try:
        frame: pd.DataFrame = table.to_pandas()
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        frame = table.replace_schema_metadata(None).to_pandas()
    return frame


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Return a CSV file that is safe to open in a spreadsheet."""
    return _csv(frame, ",").encode()


def _csv(frame: pd.DataFrame, separator: str) -> str:
    """Return CSV; a text that a spreadsheet would run as a formula gets an apostrophe before it."""
    safe = frame.copy(deep=False)
    for number, dtype in enumerate(frame.dtypes):
        if not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)):
            cells = [_without_formula(cell) for cell in frame.iloc[:, number]]
            safe.isetitem(number, pd.array(cells, dtype=object))
    safe.columns = pd.Index([_without_formula(label) for label in frame.columns])
    if _has_index(frame):
        names = [_without_formula(name) for name in frame.index.names]
        safe.index = frame.index.map(_without_formula_in).set_names(names)
    return safe.to_csv(index=_has_index(frame), sep=separator)


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """Return a Parquet file."""
    out = io.BytesIO()
    _write_parquet(frame, out)
    return out.getvalue()


def _write_parquet(frame: pd.DataFrame, out: IO[bytes] | Path) -> None:
    named = frame.set_axis(frame.columns.map(str), axis=1)  # Parquet takes no other labels
    named.to_parquet(out, index=_has_index(frame))


def _has_index(frame: pd.DataFrame) -> bool:
    """Tell whether the index carries information."""
    return not isinstance(frame.index, pd.RangeIndex)


def _without_formula_in(label: object) -> object:
    """Defuse a label of an index with one or several levels."""
    return (
        tuple(map(_without_formula, label)) if isinstance(label, tuple) else _without_formula(label)
    )


def _without_formula(cell: object) -> object:
    is_formula = isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{cell}" if is_formula and not _is_number(str(cell)) else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_writable(path: Path) -> None:
    """Raise FileError if a table could not be written there: to be called before hours of work."""
    if path == STANDARD:
        return
    _format(path)
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"cannot write {path}: {path.parent} is missing or not writable")


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, whole or not at all; an index that carries information is kept."""
    if path == STANDARD:
        sys.stdout.write(_csv(frame, ","))
        return
    form, is_compressed = _format(path)
    with replacing(path) as beside:
        if form == "parquet":
            _write_parquet(frame, beside)
        else:
            data = _csv(frame, "\t" if form == "tsv" else ",").encode()
            beside.write_bytes(gzip.compress(data, mtime=0) if is_compressed else data)


def _format(path: Path) -> tuple[str, bool]:
    """Return csv, tsv or parquet, and whether it is compressed by gzip."""
    if path.suffix.lower() == ".gz" and (form := _SUFFIXES.get(Path(path.stem).suffix.lower())):
        if form != "parquet":
            return form, True
    elif form := _SUFFIXES.get(path.suffix.lower()):
        return form, False
    raise FileError(
        f"cannot tell the format of {path}: name it .csv, .tsv, .csv.gz, .tsv.gz or .parquet, or "
        "give - for CSV on standard input and output"
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__

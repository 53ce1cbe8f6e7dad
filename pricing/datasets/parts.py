"""The parts of a book: the Parquet files of a folder, or row groups of one large file."""

import glob
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from amo.errors import FileError
from amo.files import replacing, sha256_of
from pricing.tables import Columns, is_in_parts, read_columns

SUFFIXES = (".parquet", ".pq")
ROWS = 100_000  # in a part of one large file, at least, if it has as many
_HASHED = 1 << 20  # bytes at a time


@dataclass(frozen=True, kw_only=True)
class Part:
    """A piece of a book.

    Attributes
    ----------
    path
        The Parquet file, absolute.
    name
        What the piece is called in messages and manifests; it does not say where the book lies.
    groups
        The first of its row groups and the one after the last, or None for the whole file.
    first_row
        How many rows of the file come before it.
    """

    path: str
    name: str
    groups: tuple[int, int] | None = None
    first_row: int = 0


def parts_of(source: str | Path, rows: int = ROWS) -> list[Part]:
    """Return the parts of a book, in its order.

    A folder holds one part in each Parquet file, as does a pattern such as ``books/*.parquet``;
    numbers in their names count as numbers, so that ``part.10`` comes after ``part.2``. Names
    that begin with a dot or an underscore are left out. One file is cut between row groups, into
    parts of at least ``rows`` rows.
    """
    if not is_in_parts(source):
        return _cut(Path(source), rows)
    if Path(source).is_dir():
        found = [path for path in Path(source).iterdir() if path.suffix.lower() in SUFFIXES]
    else:
        found = [Path(name) for name in glob.glob(str(source))]  # noqa: PTH207  # absolute, too
        if other := sorted(p.name for p in found if p.suffix.lower() not in SUFFIXES):
            raise FileError(f"{source} matches {other[0]}: the parts of a book are Parquet files")
    paths = [path.absolute() for path in found if not path.name.startswith((".", "_"))]
    if not paths:
        raise FileError(f"{source} holds no Parquet file: a book is cut into .parquet files")
    common = os.path.commonpath([path.parent for path in paths])
    names = {path: path.relative_to(common).as_posix() for path in paths}
    paths.sort(key=lambda path: _natural(names[path]))
    return [Part(path=str(path), name=names[path]) for path in paths]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return what sorts names by the numbers in them."""
    pieces = re.split(r"(\d+)", name)
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces]


def _cut(path: Path, rows: int) -> list[Part]:
    """Cut a file between row groups."""
    if path.suffix.lower() not in SUFFIXES:
        raise FileError(f"{path} is no folder and no .parquet file: a book of parts is one of them")
    described = _described(path)
    counts = [described.row_group(i).num_rows for i in range(described.num_row_groups)]
    parts: list[Part] = []
    begin = before = held = 0
    for number, count in enumerate(counts, start=1):
        held += count
        if held < rows and number < len(counts):
            continue
        name = f"{path.name}[{begin}:{number}]"
        groups = begin, number
        parts.append(Part(path=str(path.absolute()), name=name, groups=groups, first_row=before))
        begin, before, held = number, before + held, 0
    return parts or [Part(path=str(path.absolute()), name=path.name)]


def _described(path: Path) -> "pq.FileMetaData":
    try:
        return pq.read_metadata(path)
    except FileNotFoundError:
        raise FileError(f"no such file: {path}") from None
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"cannot read {path}: {error}") from error


def read_part(part: Part) -> tuple[Columns, pd.DataFrame]:
    """Return a part as Arrow has it and as a frame, whose index is that of the whole book."""
    try:
        with Path(part.path).open("rb") as file:
            groups = None if part.groups is None else range(*part.groups)
            columns = read_columns(file, part.name, groups)
    except FileNotFoundError:
        raise FileError(f"no such file: {part.path}") from None
    except OSError as error:
        raise FileError(f"cannot read {part.name}: {error}") from error
    if part.groups is not None:
        table = _counted_on(columns.table, part.first_row)
        columns = columns._replace(
            table=table, stored=columns.stored.with_metadata(table.schema.metadata)
        )
    return columns, columns.frame(part.name)


def _counted_on(table: pa.Table, first_row: int) -> pa.Table:
    """Return rows out of the middle of a table; where their index counts rows, it goes on."""
    metadata = dict(table.schema.metadata or {})
    described: dict[str, Any] = json.loads(metadata.get(b"pandas", b"{}"))
    for level in described.get("index_columns", []):
        if isinstance(level, dict) and level.get("kind") == "range":
            level["start"] += first_row * level["step"]
            level["stop"] = level["start"] + table.num_rows * level["step"]
    if described:
        metadata[b"pandas"] = json.dumps(described).encode()
    return table.replace_schema_metadata(metadata)


def with_columns(columns: Columns, added: pd.DataFrame) -> pa.Table:
    """Return the stored columns as they were, and more behind them."""
    table = columns.table.cast(columns.stored)
    for label in added.columns:
        table = table.append_column(str(label), _arrow(added[label]))
    return table


def as_table(frame: pd.DataFrame) -> pa.Table:
    """Return a frame as an Arrow table whose types do not depend on its rows."""
    fixed = frame.copy(deep=False)
    for label in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[label]):
            fixed[label] = frame[label].astype("str")
    return pa.Table.from_pandas(fixed)


def _arrow(column: "pd.Series[Any]") -> pa.Array:
    """Return numbers and flags as they are, all else as texts, even if none is there."""
    if pd.api.types.is_numeric_dtype(column):
        return pa.array(column.to_numpy())
    texts = column.astype(object)
    return pa.array(texts.where(texts.notna(), None), type=pa.string())


def write_part(table: pa.Table, path: Path) -> tuple[int, str]:
    """Write a part, whole or not at all; return its size and SHA-256.

    The same table is the same bytes wherever it is written with the same version of Arrow.
    """
    with replacing(path) as beside:
        pq.write_table(table.combine_chunks(), beside)
        return beside.stat().st_size, sha256_of(beside)


def hash_of(part: Part) -> str:
    """Return the SHA-256 of a part's bytes, of those of its row groups in a large file."""
    path = Path(part.path)
    if part.groups is None:
        try:
            return sha256_of(path)
        except OSError as error:
            raise FileError(f"cannot read {part.name}: {error.strerror}") from error
    described, digest = _described(path), hashlib.sha256()
    with path.open("rb") as file:
        for number in range(*part.groups):
            group = described.row_group(number)
            for place in range(group.num_columns):
                begin, size = _extent(group.column(place))
                file.seek(begin)
                while size > 0 and (data := file.read(min(size, _HASHED))):
                    digest.update(data)
                    size -= len(data)
    return digest.hexdigest()


def _extent(chunk: "pq.ColumnChunkMetaData") -> tuple[int, int]:
    """Return where the bytes of a column of a row group begin, and how many they are."""
    begins: Sequence[int | None] = (chunk.dictionary_page_offset, chunk.data_page_offset)
    return min(begin for begin in begins if begin), chunk.total_compressed_size

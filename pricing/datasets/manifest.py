"""What a folder of finished parts says about itself: the request, and each part with its hash."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from amo.errors import AMOError, CheckpointError, FileError
from amo.files import make_folder, sha256_of, write_text
from amo.results import read, write
from pricing.books import check_markets
from pricing.datasets.parts import Part, hash_of
from pricing.markets.files import markets_from_json, markets_to_json
from pricing.markets.market import Market
from pricing.surrogate.store import models_folder, models_hash

FORMAT = 1
MANIFEST = "_manifest.json"  # readers of Parquet folders skip names with an underscore
MARKETS = "_markets.json"
_MODELLED = ("amo",)  # the engines whose numbers depend on the models


class DatasetError(AMOError):
    """A dataset cannot be made there, or used; the message says why and the way out."""


class FailedPartsError(DatasetError):
    """Some parts failed, and all others are finished; the message names them with their errors.

    Attributes
    ----------
    failed
        The reason by the name of the part in the source.
    """

    def __init__(self, message: str, failed: Mapping[str, str]) -> None:
        super().__init__(message)
        self.failed = dict(failed)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked of every part: with the part, it decides the bytes.

    Attributes
    ----------
    operation, engine
        What was done, and by which engine, if by one.
    options
        The arguments, in JSON form.
    markets, models
        SHA-256 of the markets and of the trained models, where they matter.
    project
        The version of this package.
    """

    operation: str
    engine: str | None
    options: dict[str, Any]
    markets: str | None
    models: str | None
    project: str

    @classmethod
    def of(
        cls,
        operation: str,
        engine: str | None,
        options: Mapping[str, Any],
        markets: Mapping[str, Market] | None,
    ) -> "Request":
        """Return a request made here, by this version and these models."""
        if markets is not None:
            check_markets(markets)
        return cls(
            operation=operation,
            engine=engine,
            options={name: _plain(value) for name, value in options.items()},
            markets=None if markets is None else _hash(markets_to_json(markets)),
            models=models_hash() if engine in _MODELLED else None,
            project=version("amo-pricing"),
        )

    def check_worker(self) -> None:
        """Raise CheckpointError where the bytes would be others: on a worker set up differently."""
        if self.project != version("amo-pricing"):
            raise CheckpointError(
                f"this worker has version {version('amo-pricing')} of amo-pricing, and the request "
                f"comes from {self.project}: install the same on all machines"
            )
        if self.models is not None and self.models != models_hash():
            raise CheckpointError(
                f"this worker has other models in {models_folder()} than the request: copy them, "
                "and let AMO_MODELS name their folder"
            )


@dataclass(frozen=True, kw_only=True)
class PartLine:
    """A finished part.

    Attributes
    ----------
    file, sha256, bytes, rows
        The file written, and how many rows it has.
    source, source_sha256, source_rows
        The part of the book it was made of.
    engines
        How many rows each engine priced.
    """

    file: str
    sha256: str
    bytes: int
    rows: int
    source: str
    source_sha256: str
    source_rows: int
    engines: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A folder of parts, as its manifest describes it; complete or not."""

    format: int
    request: Request
    n_parts: int
    is_complete: bool
    parts: tuple[PartLine, ...]

    @property
    def source_rows(self) -> int:
        """How many rows of the book are done."""
        return sum(line.source_rows for line in self.parts)


def file_name(number: int, n_parts: int) -> str:
    """Return the name of a part; names sort as the parts do."""
    return f"part-{number:0{max(5, len(str(n_parts - 1)))}d}.parquet"


def read_dataset(folder: Path | str) -> Dataset:
    """Read the manifest of a folder of parts."""
    found = read(Path(folder) / MANIFEST, Dataset)
    if found.format != FORMAT:
        raise DatasetError(f"{folder} has format {found.format}; this version reads {FORMAT}")
    return found


def write_dataset(dataset: Dataset, folder: Path) -> None:
    """Write the manifest of a folder of parts, whole or not at all."""
    write(dataset, folder / MANIFEST)


def open_folder(
    out: Path, request: Request, parts: list[Part], *, overwrite: bool
) -> dict[int, PartLine]:
    """Return the lines of the parts that are finished there, after checking that they fit.

    A folder of another request, or of something else, is refused. A part counts as finished if
    its bytes and those of its source are what the manifest says.
    """
    make_folder(out)
    present = [path for path in out.iterdir() if not path.name.endswith(".part")]
    if not present:
        return {}
    if not (out / MANIFEST).exists():
        raise DatasetError(
            f"{out} holds other files and no dataset: choose another folder for the parts"
        )
    there = read_dataset(out)
    if overwrite:
        for file in (*out.glob("part-*.parquet"), out / MANIFEST, out / MARKETS):
            file.unlink(missing_ok=True)
        return {}
    if there.request != request:
        raise DatasetError(
            f"{out} holds the parts of another request ({_difference(there.request, request)}): "
            "choose another folder, or say overwrite=True"
        )
    wanted = {file_name(number, len(parts)): number for number in range(len(parts))}
    done = {}
    for line in there.parts:
        number = wanted.get(line.file)
        if number is None:  # the book had more parts then
            (out / Path(line.file).name).unlink(missing_ok=True)
        elif _is_whole(line, parts[number], out / line.file):
            done[number] = line
    return done


def remove_strays(out: Path) -> None:
    """Remove what workers left half written when they were killed."""
    for stray in out.glob(".part-*.part"):
        stray.unlink(missing_ok=True)


def _is_whole(line: PartLine, part: Part, path: Path) -> bool:
    try:
        is_same = line.source == part.name and line.source_sha256 == hash_of(part)
    except FileError:  # it will be named when it is tried again
        return False
    return is_same and path.is_file() and sha256_of(path) == line.sha256


def _difference(there: Request, wanted: Request) -> str:
    pairs = []
    for name in ("operation", "engine", "options", "markets", "models", "project"):
        old, new = getattr(there, name), getattr(wanted, name)
        if name == "options" and old != new:
            keys = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
            pairs += [f"{key} {old.get(key)} there, {new.get(key)} asked" for key in keys]
        elif name in {"markets", "models"} and old != new:
            pairs.append(f"other {name}")
        elif old != new:
            pairs.append(f"{name} {old} there, {new} asked")
    return ", ".join(pairs)


def keep_markets(markets: Mapping[str, Market] | None, out: Path) -> None:
    """Write the markets beside the parts: workers read them there, once each."""
    if markets is not None:
        write_text(markets_to_json(markets), out / MARKETS)


@lru_cache(maxsize=2)
def kept_markets(path: Path, sha256: str) -> Mapping[str, Market]:
    """Read the markets of a request, once in each process."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(
            f"cannot read {path} ({error.strerror}): a worker sees the folder at the same path"
        ) from error
    if _hash(text) != sha256:
        raise DatasetError(f"{path} has changed since the request was made: start it again")
    return markets_from_json(text, str(path))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object) -> Any:  # noqa: ANN401  # whatever JSON can hold
    """Return a setting as JSON has it, so that it compares equal after it was read again."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return msgspec.json.decode(msgspec.json.encode(value))
    return str(value)

"""The format of training sets, read and written: a folder with manifest.json and npz shards.

The format, version 1. ``manifest.json`` names the set, its settings, the meaning of each array,
and every shard with its split, number of samples and SHA-256; each shard is an uncompressed npz of
equally long arrays, one sample per row. A manifest whose ``complete`` is false belongs to a run
that was stopped.
"""

import json
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from amo.errors import DataError
from amo.files import replacing, sha256_of, write_text

FORMAT = 1
MANIFEST = "manifest.json"
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class ShardInfo:
    """One shard as its manifest describes it."""

    file: str
    split: str
    samples: int
    dropped: int
    worst_error: float
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A data set's description."""

    name: str
    project: str
    settings: dict[str, Any]
    units: dict[str, str]
    shards: tuple[ShardInfo, ...]
    is_complete: bool


def read_manifest(folder: Path) -> Manifest:
    """Read a folder's manifest, complete or not."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("format") != FORMAT:
            raise DataError(
                f"{path} has format {content.get('format')!r}; this version reads {FORMAT}"
            )
        return Manifest(
            name=content["set"],
            project=content["project"],
            settings=content["settings"],
            units=content["units"],
            shards=tuple(ShardInfo(**shard) for shard in content["shards"]),
            is_complete=content["complete"],
        )
    except FileNotFoundError:
        raise DataError(f"no data set in {folder}: {MANIFEST} is missing") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is no manifest of a data set: {error}") from error


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write a folder's manifest, whole or not at all."""
    content = {
        "format": FORMAT,
        "project": manifest.project,
        "set": manifest.name,
        "settings": manifest.settings,
        "units": manifest.units,
        "complete": manifest.is_complete,
        "counts": {
            "samples": sum(shard.samples for shard in manifest.shards),
            "dropped": sum(shard.dropped for shard in manifest.shards),
        },
        "shards": [asdict(shard) for shard in manifest.shards],
    }
    write_text(json.dumps(content, indent=1) + "\n", folder / MANIFEST)


def save_shard(arrays: Arrays, path: Path) -> str:
    """Write one shard, whole or not at all; return its SHA-256."""
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle
    return sha256_of(path)


def load_shard(folder: Path, shard: ShardInfo, *, verify: bool = False) -> Arrays:
    """Load one shard whole; ``verify`` also compares its hash."""
    path = folder / shard.file
    try:
        if verify and sha256_of(path) != shard.sha256:
            raise DataError(f"{path} is not the file its manifest describes: make the set again")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
    except FileNotFoundError:
        raise DataError(f"{path} is missing: run data_gen again to make it") from None
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path} cannot be read ({error}): make the set again") from error
    if any(len(values) != shard.samples for values in arrays.values()):
        raise DataError(f"{path} does not hold {shard.samples} samples: make the set again")
    return arrays

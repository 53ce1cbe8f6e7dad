"""Reading training sets: a folder with manifest.json and npz shards.

The format, version 1. ``manifest.json`` names the set, its settings, the meaning of each array,
and every shard with its split, number of samples and SHA-256; each shard is an uncompressed npz of
equally long arrays, one sample a row. A manifest whose ``complete`` is false belongs to a run that
was stopped.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from amo.errors import DataError

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


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


class ShardedDataset:
    """One split of a data set, read a shard at a time.

    Memory holds one shard; the order of shards and of samples in them is shuffled by seed.

    Parameters
    ----------
    folder
        Where manifest.json lies.
    split
        "train", "validation" or "test".
    """

    def __init__(self, folder: Path, split: str) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        if not self.manifest.is_complete:
            raise DataError(f"{folder} is unfinished: run data_gen again with the same settings")
        self.shards = tuple(shard for shard in self.manifest.shards if shard.split == split)
        if not self.shards:
            known = sorted({shard.split for shard in self.manifest.shards})
            raise DataError(f"{folder} has no split {split!r}; it has {', '.join(known)}")
        for shard in self.shards:  # before training starts, not hours into it
            if not (folder / shard.file).is_file():
                raise DataError(f"{folder / shard.file} is missing: run data_gen again to make it")

    def __len__(self) -> int:
        return sum(shard.samples for shard in self.shards)

    def batches(self, size: int, seed: int | None = None) -> Iterator[Arrays]:
        """Yield batches of at most ``size`` samples, in file order or shuffled by ``seed``.

        A batch never crosses a shard, so a shard's last batch may be smaller.
        """
        rng = np.random.default_rng(seed)
        order = np.arange(len(self.shards))
        if seed is not None:
            rng.shuffle(order)
        for index in order:
            arrays = load_shard(self.folder, self.shards[index])
            n = self.shards[index].samples
            rows = rng.permutation(n) if seed is not None else np.arange(n)
            for start in range(0, n, size):
                chosen = rows[start : start + size]
                yield {name: values[chosen] for name, values in arrays.items()}


class ArrayDataset:
    """One split held in memory, with the same batches as a sharded one."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        lengths = {len(values) for values in arrays.values()}
        if len(lengths) != 1:
            raise DataError(f"arrays of one split must be equally long, got {sorted(lengths)}")

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def batches(self, size: int, seed: int | None = None) -> Iterator[Arrays]:
        """Yield batches of at most ``size`` samples, in order or shuffled by ``seed``."""
        n = len(self)
        rows = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
        for start in range(0, n, size):
            chosen = rows[start : start + size]
            yield {name: values[chosen] for name, values in self.arrays.items()}


def fingerprint(dataset: Any) -> dict[str, Any]:  # noqa: ANN401  # any split
    """Return what says that a data set is the same one at the next start."""
    manifest = getattr(dataset, "manifest", None)
    if manifest is None:
        first = next(dataset.batches(4))
        content = b"".join(first[name].tobytes() for name in sorted(first))
        return {"samples": len(dataset), "sha256": hashlib.sha256(content).hexdigest()}
    shards = "".join(shard.sha256 for shard in manifest.shards)
    return {
        "set": manifest.name,
        "settings": manifest.settings,
        "project": manifest.project,
        "sha256": hashlib.sha256(shards.encode()).hexdigest(),  # of the shards' own
    }

"""Splits of training sets: read from shards, or held in memory."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from amo.data.batch import Batch
from amo.data.format import Arrays, load_shard, read_manifest
from amo.errors import DataError

Read = Callable[[Arrays], Batch]
_HELD = 1 << 29  # bytes of files: a split of no more stays in memory


class Dataset(Protocol):
    """One split."""

    def __len__(self) -> int:
        """Return the number of samples that batches are made of."""

    @property
    def n_samples(self) -> int:
        """The number of independent samples: of films, not of their windows."""

    def fingerprint(self) -> dict[str, Any]:
        """Return what identifies a data set when a run is started again."""

    def batches(self, size: int, seed: int | None = None) -> Iterator[Arrays]:
        """Yield batches of arrays, shuffled by seed."""


class ShardedDataset:
    """One split of a data set, read a shard at a time.

    Memory holds one shard, or a small split as a whole once it was read; the order of shards and of
    samples in them is shuffled by seed.

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
        n_bytes = sum((folder / shard.file).stat().st_size for shard in self.shards)
        self._held: dict[int, Arrays] | None = {} if n_bytes <= _HELD else None

    def __len__(self) -> int:
        return sum(shard.samples for shard in self.shards)

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return len(self)

    def fingerprint(self) -> dict[str, Any]:
        """Return name, settings and maker of the set, and a hash of the hashes of its shards."""
        shards = "".join(shard.sha256 for shard in self.manifest.shards)
        return {
            "set": self.manifest.name,
            "settings": self.manifest.settings,
            "project": self.manifest.project,
            "sha256": hashlib.sha256(shards.encode()).hexdigest(),
        }

    def batches(self, size: int, seed: int | None = None) -> Iterator[Arrays]:
        """Yield batches of at most ``size`` samples, in file order or shuffled by ``seed``.

        A batch never crosses a shard, so a shard's last batch may be smaller.
        """
        rng = np.random.default_rng(seed)
        order = np.arange(len(self.shards))
        if seed is not None:
            rng.shuffle(order)
        for index in order:
            arrays = self._shard(int(index))
            n = self.shards[index].samples
            rows = rng.permutation(n) if seed is not None else np.arange(n)
            for start in range(0, n, size):
                chosen = rows[start : start + size]
                yield {name: values[chosen] for name, values in arrays.items()}

    def _shard(self, index: int) -> Arrays:
        if self._held is None:
            return load_shard(self.folder, self.shards[index])
        if index not in self._held:
            self._held[index] = load_shard(self.folder, self.shards[index])
        return self._held[index]


class ArrayDataset:
    """One split held in memory, with the same batches as a sharded one."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        lengths = {len(values) for values in arrays.values()}
        if len(lengths) != 1:
            raise DataError(f"arrays of one split must be equally long, got {sorted(lengths)}")

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return len(self)

    def fingerprint(self) -> dict[str, Any]:
        """Return the number of samples, and a hash of the first few."""
        first = next(self.batches(4))
        content = b"".join(first[name].tobytes() for name in sorted(first))
        return {"samples": len(self), "sha256": hashlib.sha256(content).hexdigest()}

    def batches(self, size: int, seed: int | None = None) -> Iterator[Arrays]:
        """Yield batches of at most ``size`` samples, in order or shuffled by ``seed``."""
        n = len(self)
        rows = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
        for start in range(0, n, size):
            chosen = rows[start : start + size]
            yield {name: values[chosen] for name, values in self.arrays.items()}

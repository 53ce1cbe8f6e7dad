"""Making a set: shards in any order by any number of workers, always the same bytes."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from amo.data.format import (
    MANIFEST,
    Manifest,
    ShardInfo,
    read_manifest,
    save_shard,
    write_manifest,
)
from amo.errors import AMOError, ClusterError, DataError, FileError
from amo.files import sha256_of
from amo.jobs import Failed, Where, run_jobs
from data_gen.dataset import DataSet

Progress = Callable[[int, int], None]


class BuildError(AMOError):
    """A set cannot be made there; the message says why and the way out."""


@dataclass(frozen=True)
class Report:
    """What a build did."""

    name: str
    samples: int
    dropped: int
    worst_error: float
    seconds: float
    size: int
    path: Path


def build(
    dataset: DataSet,
    name: str,
    out: Path,
    *,
    workers: int = 1,
    executor: Where = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Make a set in ``out``, or finish one that was interrupted there.

    Shards are made by that many processes on this machine, or where ``executor`` says, as
    :func:`amo.jobs.run_jobs` takes it; workers elsewhere need ``out`` at the same path. They are
    written under another name and renamed, and the manifest after each, so every listed shard is
    whole. A folder with other settings is refused unless ``overwrite``.
    """
    start = time.perf_counter()
    done = _open(dataset, name, out, overwrite=overwrite)
    missing = [i for i in range(dataset.n_shards) if i not in done]
    if progress is not None:
        progress(len(done), dataset.n_shards)
    try:
        _write_manifest(dataset, name, out, done)  # marks the folder before the first shard
        for index, shard in _made(dataset, out, missing, executor, workers):
            done[index] = shard
            _write_manifest(dataset, name, out, done)
            if progress is not None:
                progress(len(done), dataset.n_shards)
    except (FileError, ClusterError) as error:
        raise BuildError(
            f"{error}; {len(done)} of {dataset.n_shards} shards are whole: mend that and run the "
            "same command again, without --overwrite"
        ) from error
    return Report(
        name=name,
        samples=sum(shard.samples for shard in done.values()),
        dropped=sum(shard.dropped for shard in done.values()),
        worst_error=max(shard.worst_error for shard in done.values()),
        seconds=time.perf_counter() - start,
        size=sum((out / shard.file).stat().st_size for shard in done.values()),
        path=out,
    )


def _open(dataset: DataSet, name: str, out: Path, *, overwrite: bool) -> dict[int, ShardInfo]:
    """Return the shards that are there already, after checking that they belong to this set."""
    try:
        if overwrite and out.exists() and any(out.iterdir()):
            _remove(out)
        out.mkdir(parents=True, exist_ok=True)
        for stray in out.glob(".*.part"):  # of a run that was killed
            stray.unlink(missing_ok=True)
        present = list(out.iterdir())
    except OSError as error:
        raise BuildError(f"cannot write {out}: {error.strerror or error}") from error
    if overwrite or not present:
        return {}
    try:
        manifest = read_manifest(out)
    except DataError as error:
        raise BuildError(f"{error}; choose another --out, or --overwrite") from error
    wanted = json.loads(json.dumps(_identity(dataset, name)))
    there = {"set": manifest.name, "project": manifest.project, **manifest.settings}
    if there != wanted:
        raise BuildError(
            f"{out} holds a set with other settings ({_difference(there, wanted)}): "
            "choose another --out, or --overwrite"
        )
    by_file = {_file_name(i): i for i in range(dataset.n_shards)}
    whole = {}
    for shard in manifest.shards:
        path = out / shard.file
        if path.is_file() and sha256_of(path) == shard.sha256:
            whole[by_file[shard.file]] = shard
    return whole


def _remove(out: Path) -> None:
    """Remove a data set's own files from its folder, and nothing else."""
    try:
        read_manifest(out)
    except DataError as error:
        raise BuildError(f"{out} holds something else than a data set: {error}") from error
    for file in (*out.glob("shard-*.npz"), *out.glob(".*.part"), out / MANIFEST):
        file.unlink(missing_ok=True)


def _identity(dataset: DataSet, name: str) -> dict[str, Any]:
    return {"set": name, "project": version("amo-pricing"), **dataset.settings()}


def _difference(there: dict[str, Any], wanted: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {there.get(key)} there, {wanted.get(key)} asked"
        for key in sorted(set(there) | set(wanted))
        if there.get(key) != wanted.get(key)
    )


def _made(
    dataset: DataSet, out: Path, missing: list[int], executor: Where, workers: int
) -> Iterator[tuple[int, ShardInfo]]:
    """Yield shards as they are finished."""
    make = partial(_make, dataset, out.absolute())
    for number, shard in run_jobs(make, missing, executor, workers=workers):
        if isinstance(shard, Failed):
            raise shard.error
        yield missing[number], shard


def _file_name(index: int) -> str:
    return f"shard-{index:05d}.npz"


def _make(dataset: DataSet, out: Path, index: int) -> ShardInfo:
    shard = dataset.make(index)
    path = out / _file_name(index)
    digest = save_shard(shard.arrays, path)
    return ShardInfo(
        file=path.name,
        split=dataset.split(index),
        samples=len(next(iter(shard.arrays.values()))),
        dropped=shard.n_dropped,
        worst_error=shard.worst_error,
        sha256=digest,
    )


def _write_manifest(dataset: DataSet, name: str, out: Path, done: dict[int, ShardInfo]) -> None:
    manifest = Manifest(
        name=name,
        project=version("amo-pricing"),
        settings=dataset.settings(),
        units=dict(dataset.units),
        shards=tuple(done[index] for index in sorted(done)),
        is_complete=len(done) == dataset.n_shards,
    )
    write_manifest(manifest, out)

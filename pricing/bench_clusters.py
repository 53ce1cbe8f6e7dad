"""A book in parts on a local Dask cluster against one process: bytes, time a core, memory."""

import os
import platform
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np

from amo.cluster import local_cluster
from amo.results import Machine
from amo.system import peak_megabytes
from pricing.bench_market_model import book_of
from pricing.datasets.frames import price_dataset
from pricing.datasets.manifest import Dataset
from pricing.random_books import random_book
from pricing.tables import write_table

if TYPE_CHECKING:
    from distributed import Client

    from amo.jobs import Where

WORKERS = 2
_EXPIRIES, _CONTRACTS = 20, 300  # of an underlying: those listed in the US have 300 on average


class Listed(TypedDict):
    """Options under markets, as many of each underlying as are listed, by one process."""

    underlyings: int
    rows: int
    slices: int
    microseconds: float


class ClusterResults(TypedDict):
    """What was measured: docs/results/clusters.json.

    ``overhead`` is how much more core time the cluster takes than one process: the time it took
    with all its workers, over the serial one, less one. ``processor_overhead`` compares the
    processor time of both instead, which other programs on the machine do not change as much.
    """

    command: str
    machine: Machine
    rows: int
    parts: int
    workers: int
    has_same_bytes: bool
    serial_seconds: float
    cluster_seconds: float
    overhead: float
    processor_overhead: float
    start_seconds: float
    worker_megabytes: list[float]
    listed: Listed


def run(n_rows: int = 2_000_000, n_parts: int = 40, n_underlyings: int = 100) -> ClusterResults:
    """Price American options with five Greeks by ``amo``, first alone, then on the cluster.

    The engine is loaded before the clock starts, here and by the workers; ``start_seconds`` is
    what it takes to start the cluster and load it there.
    """
    with tempfile.TemporaryDirectory(prefix="clusters-") as name:
        folder = Path(name)
        _write_book(folder / "book", n_rows, n_parts)
        _write_book(folder / "few", 1_000, 1)
        _priced(folder, "few")
        alone = _timed(folder, "book", "alone", None)
        start = time.perf_counter()
        with local_cluster(WORKERS) as client:
            client.run(_priced, folder, "few")
            started = time.perf_counter() - start
            before = _processor_seconds(client)
            spread = _timed(folder, "book", "spread", client)
            used = _processor_seconds(client) - before
            megabytes = list(client.run(peak_megabytes).values())
        listed = _listed(folder, n_underlyings)
    return {
        "command": f"python -m pricing bench clusters --rows {n_rows} --parts {n_parts}",
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count() or 1,
            "python": platform.python_version(),
        },
        "rows": n_rows,
        "parts": n_parts,
        "workers": WORKERS,
        "has_same_bytes": alone.made == spread.made,
        "serial_seconds": alone.seconds,
        "cluster_seconds": spread.seconds,
        "overhead": WORKERS * spread.seconds / alone.seconds - 1.0,
        "processor_overhead": used / alone.processor_seconds - 1.0,
        "start_seconds": started,
        "worker_megabytes": megabytes,
        "listed": listed,
    }


class _Timed(NamedTuple):
    made: Dataset
    seconds: float
    processor_seconds: float


def _timed(folder: Path, book: str, out: str, executor: "Where") -> _Timed:
    begin = time.perf_counter(), time.process_time()
    made = price_dataset(folder / book, folder / out, "amo", executor=executor, progress=False)
    return _Timed(made, time.perf_counter() - begin[0], time.process_time() - begin[1])


def _priced(folder: Path, book: str) -> None:
    """Price a small book in this process, so that all it needs is loaded and compiled."""
    with tempfile.TemporaryDirectory() as out:
        price_dataset(folder / book, out, "amo", progress=False)


def _processor_seconds(client: "Client") -> float:
    return float(sum(client.run(time.process_time).values()))


def _write_book(folder: Path, n_rows: int, n_parts: int) -> None:
    """Write a book of American options that share market states."""
    folder.mkdir()
    frame = random_book(n_rows).to_frame()
    for number, rows in enumerate(np.array_split(np.arange(n_rows), n_parts)):
        write_table(frame.iloc[rows], folder / f"part-{number:05d}.parquet")


def _listed(folder: Path, n_underlyings: int) -> Listed:
    """Measure a book with as many contracts of an underlying as are listed, under markets."""
    n_slices = n_underlyings * _EXPIRIES
    frame, markets = book_of(n_underlyings * _CONTRACTS, n_slices)
    (folder / "listed").mkdir()
    write_table(frame, folder / "listed" / "part-00000.parquet")
    start = time.perf_counter()
    made = price_dataset(
        folder / "listed", folder / "marked", "amo", markets=markets, progress=False
    )
    return {
        "underlyings": n_underlyings,
        "rows": made.source_rows,
        "slices": n_slices,
        "microseconds": 1e6 * (time.perf_counter() - start) / made.source_rows,
    }


def as_text(results: ClusterResults) -> str:
    """Return the results in plain text."""
    same = "the same bytes" if results["has_same_bytes"] else "OTHER BYTES"
    most = max(results["worker_megabytes"])
    listed = results["listed"]
    return "\n".join(
        [
            f"{results['rows']:,} rows in {results['parts']} parts, five Greeks, by amo: {same}",
            f"  one process: {results['serial_seconds']:.1f} s",
            (
                f"  {results['workers']} workers: {results['cluster_seconds']:.1f} s, "
                f"{results['overhead']:.0%} more a core, {results['processor_overhead']:.0%} more "
                f"processor time, {most:,.0f} MB a worker, {results['start_seconds']:.1f} s until "
                "they are ready"
            ),
            f"  under markets, as listed: {listed['microseconds']:.0f} µs a row",
        ]
    )

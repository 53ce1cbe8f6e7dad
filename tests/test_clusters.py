"""Work on a real Dask cluster of two workers on this machine, some of which are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from distributed import Client

from amo.cluster import connected, local_cluster
from amo.errors import ClusterError, SettingsError
from amo.files import sha256_of
from amo.jobs import Failed, run_jobs
from data_gen.__main__ import main as data_gen
from data_gen.builder import build
from data_gen.options.surrogate_sets import EuropeanSet
from pricing import FailedPartsError, price_dataset, read_dataset
from pricing.__main__ import main as pricing
from tests import jobs

SMALL = EuropeanSet(states=8, vols=2, points=4)
SLOW = {"engine": "quantlib-high-precision", "greeks": False}  # 20 ms a row: a part takes a while


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with local_cluster(2) as client:
        yield client


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of American options in eight parts."""
    rng, rows = np.random.default_rng(3), 20
    folder = tmp_path / "book"
    folder.mkdir()
    for number in range(8):
        frame = pd.DataFrame(
            {
                "S": rng.uniform(80.0, 120.0, rows),
                "K": 100.0,
                "T": rng.uniform(0.1, 2.0, rows),
                "r": 0.04,
                "q": 0.01,
                "sigma": rng.uniform(0.1, 0.5, rows),
                "type": rng.choice(["call", "put"], rows),
                "style": "american",
            },
            index=pd.RangeIndex(number * rows, (number + 1) * rows),
        )
        frame.to_parquet(folder / f"part.{number + 3}.parquet")  # 10 comes after 9
    return folder


def scheduler_of(client: Client) -> str:
    assert client.scheduler is not None
    return str(client.scheduler.address)


def at_part(number: int, act: Callable[[], object]) -> Callable[[int, int], None]:
    """Return a progress that acts once when so many parts are done."""

    def progress(done: int, _: int) -> None:
        if done == number:
            act()

    return progress


def test_cluster_answers_as_one_process_does(cluster: Client) -> None:
    found = dict(run_jobs(jobs.squared_but_not_three, range(6), cluster))
    failed = found.pop(3)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, SettingsError)
    assert found == {0: 0, 1: 1, 2: 4, 4: 16, 5: 25}


def test_priced_parts_have_the_same_bytes_from_a_cluster(
    cluster: Client, book: Path, tmp_path: Path
) -> None:
    alone = price_dataset(book, tmp_path / "alone", "fd-fast")
    spread = price_dataset(book, tmp_path / "spread", "fd-fast", executor=cluster)
    assert spread == alone
    priced = pd.read_parquet(tmp_path / "spread")
    assert priced.index.equals(pd.RangeIndex(160))
    assert priced["price"].notna().all()


def test_killed_worker_costs_its_part_another_try(
    cluster: Client, book: Path, tmp_path: Path
) -> None:
    victim = next(iter(cluster.run(os.getpid).values()))
    out = tmp_path / "priced"
    kill = at_part(1, lambda: os.kill(victim, signal.SIGKILL))  # it works on another one now
    found = price_dataset(book, out, **SLOW, executor=cluster, progress=kill)
    assert found.is_complete
    assert [sha256_of(out / line.file) for line in found.parts] == [x.sha256 for x in found.parts]


def test_bad_parts_are_named_and_the_others_delivered(
    cluster: Client, book: Path, tmp_path: Path
) -> None:
    (book / "part.4.parquet").write_bytes(b"PAR1 and nothing else")
    pd.read_parquet(book / "part.7.parquet").assign(sigma=-1.0).to_parquet(book / "part.7.parquet")
    out = tmp_path / "priced"
    with pytest.raises(FailedPartsError, match="2 of 8 parts failed") as failed:
        price_dataset(book, out, "fd-fast", executor=cluster)
    assert list(failed.value.failed) == ["part.4.parquet", "part.7.parquet"]
    assert "cannot read part.4.parquet" in failed.value.failed["part.4.parquet"]
    assert "volatility must be > 0" in failed.value.failed["part.7.parquet"]
    there = read_dataset(out)
    assert not there.is_complete
    assert len(there.parts) == 6


def test_shards_of_a_cluster_are_those_made_alone(cluster: Client, tmp_path: Path) -> None:
    build(SMALL, "european", tmp_path / "alone")
    sizes = ["--states", "8", "--vols", "2", "--points", "4"]
    where = ["--dask", scheduler_of(cluster), "--out", str(tmp_path / "spread")]
    assert data_gen(["european", *sizes, *where]) == 0
    alone, spread = (
        json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("alone", "spread")
    )
    assert len(alone["shards"]) > 1
    assert spread == alone  # with the hash of each shard


def test_command_line_prices_on_the_cluster_it_is_told(
    cluster: Client, book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "priced"
    where = ["--dask", scheduler_of(cluster)]
    assert pricing(["price", str(book), "-o", str(out), "--engine", "fd-fast", *where]) == 0
    assert "160 rows in 8 parts" in capsys.readouterr().err
    assert read_dataset(out).is_complete


@pytest.fixture
def cluster_of_processes(tmp_path: Path) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """A scheduler and one worker, started as on any machine; yield address and scheduler."""
    note = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen(
            [*dask, "scheduler", *here, "--port", "0", "--scheduler-file", str(note)], **quiet
        )
    ]
    try:
        for _ in range(600):
            if note.exists() and note.read_text().endswith("}"):
                break
            assert started[0].poll() is None
            time.sleep(0.1)
        address = json.loads(note.read_text())["address"]
        worker = ["worker", address, *here, "--nthreads", "1", "--no-nanny"]
        started.append(subprocess.Popen([*dask, *worker], **quiet))
        yield address, started[0]
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_lost_scheduler_leaves_finished_parts_good(
    cluster_of_processes: tuple[str, "subprocess.Popen[bytes]"], book: Path, tmp_path: Path
) -> None:
    address, scheduler = cluster_of_processes
    out = tmp_path / "priced"
    with (
        connected(address, timeout=10) as client,
        pytest.raises(ClusterError, match=r"cluster went away.*of 8 parts are finished in"),
    ):
        price_dataset(book, out, **SLOW, executor=client, progress=at_part(2, scheduler.kill))
    there = read_dataset(out)
    assert 2 <= len(there.parts) < 8
    kept = {line.file: (out / line.file).stat().st_mtime_ns for line in there.parts}
    assert price_dataset(book, out, **SLOW).is_complete
    assert kept == {name: (out / name).stat().st_mtime_ns for name in kept}


def test_address_where_nobody_listens_is_an_error_with_the_way_out() -> None:
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler answers at.*do without --dask"),
        connected("tcp://127.0.0.1:9", timeout=0.5),
    ):
        raise AssertionError("connected to nobody")

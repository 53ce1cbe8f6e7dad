"""Making sets: interruption, workers, refusals, the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from amo.data.datasets import ShardedDataset
from amo.data.format import load_shard, read_manifest
from amo.errors import DataError
from data_gen.__main__ import main
from data_gen.builder import BuildError, build
from data_gen.options.surrogate_sets import EuropeanSet

ARGUMENTS = ["european", "--states", "32", "--vols", "8", "--points", "8"]
SMALL = EuropeanSet(states=8, vols=2, points=4)


def start(*arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "data_gen", *arguments]
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # a test run in the background ignores Ctrl-C, and its children would inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def run(*arguments: str) -> None:
    with start(*arguments) as process:
        _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors


def hashes(folder: Path) -> str:
    return (folder / "manifest.json").read_text()


def wait_for_a_shard(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    for _ in range(6000):
        if list(folder.glob("shard-*.npz")):
            return
        assert process.poll() is None, "finished before it could be interrupted"
        time.sleep(0.02)
    raise AssertionError("no shard was made")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set that nobody interrupted."""
    folder = tmp_path_factory.mktemp("sets") / "whole"
    run(*ARGUMENTS, "--workers", "1", "--out", str(folder))
    return folder


@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_run_resumes_to_the_same_bytes(tmp_path: Path, whole: Path, workers: str) -> None:
    killed = tmp_path / "killed"
    with start(*ARGUMENTS, "--workers", workers, "--out", str(killed)) as process:
        wait_for_a_shard(process, killed)
        process.send_signal(signal.SIGKILL)
    time.sleep(1.0)  # orphaned workers may finish a shard
    run(*ARGUMENTS, "--workers", workers, "--out", str(killed))
    assert hashes(killed) == hashes(whole)
    assert sorted(p.name for p in killed.iterdir()) == sorted(p.name for p in whole.iterdir())


def test_interrupt_keeps_shards_says_how_to_go_on_and_exits_130(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    sizes = ["--states", "1024", "--vols", "4", "--points", "16"]
    arguments = ["european", *sizes, "--out", str(folder), "--workers", "2"]
    with start(*arguments) as process:
        wait_for_a_shard(process, folder)
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=240)
        finally:
            process.kill()  # if it hangs, this test does not
    assert process.returncode == 130
    assert b"the same command, without --overwrite, goes on where it stopped" in errors
    assert b"Traceback" not in errors
    assert not read_manifest(folder).is_complete
    with pytest.raises(DataError, match="unfinished"):
        ShardedDataset(folder, "train")


def test_other_settings_in_the_folder_are_refused(tmp_path: Path) -> None:
    build(SMALL, "european", tmp_path / "set")
    other = EuropeanSet(states=8, vols=2, points=4, seed=1)
    with pytest.raises(BuildError, match=r"seed 0 there, 1 asked.*--overwrite"):
        build(other, "european", tmp_path / "set")
    build(other, "european", tmp_path / "set", overwrite=True)
    assert read_manifest(tmp_path / "set").settings["seed"] == 1


def test_a_folder_of_something_else_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    (tmp_path / "manifest.json").write_text('{"name": "a web app"}')
    with pytest.raises(BuildError, match="has format None"):
        build(SMALL, "european", tmp_path)
    with pytest.raises(BuildError, match="something else"):
        build(SMALL, "european", tmp_path, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_overwrite_leaves_what_is_not_the_set_s(tmp_path: Path) -> None:
    build(SMALL, "european", tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    build(EuropeanSet(states=8, vols=2, points=4, seed=1), "european", tmp_path, overwrite=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_other_version_of_the_project_is_refused(tmp_path: Path) -> None:
    build(SMALL, "european", tmp_path)
    content = json.loads(hashes(tmp_path)) | {"project": "0.0.1"}
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(BuildError, match=r"project 0\.0\.1 there"):
        build(SMALL, "european", tmp_path)


def test_damaged_shard_is_named_by_verify_and_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "set"
    build(SMALL, "european", folder)
    before = hashes(folder)
    victim = folder / "shard-00002.npz"
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(bytes(content))
    (folder / "shard-00003.npz").unlink()
    assert main(["verify", str(folder)]) == 1
    printed = capsys.readouterr().out
    assert "shard-00002.npz" in printed
    assert "shard-00003.npz" in printed
    build(SMALL, "european", folder)
    assert hashes(folder) == before
    assert main(["verify", str(folder), "--points", "20"]) == 0


def test_full_disk_is_said_and_finished_shards_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = np.savez, []

    def savez(*args: object, **arrays: object) -> None:
        calls.append(1)
        if len(calls) > 3:
            raise OSError(28, os.strerror(28))
        real(*args, **arrays)  # type: ignore[arg-type]

    monkeypatch.setattr(np, "savez", savez)
    with pytest.raises(BuildError, match=r"No space left on device; 3 of 8 shards are whole"):
        build(SMALL, "european", tmp_path / "set")
    monkeypatch.setattr(np, "savez", real)
    assert len(read_manifest(tmp_path / "set").shards) == 3
    build(SMALL, "european", tmp_path / "set")
    build(SMALL, "european", tmp_path / "fresh")
    assert hashes(tmp_path / "set") == hashes(tmp_path / "fresh")


def test_unwritable_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="cannot write"):
        build(SMALL, "european", tmp_path / "file" / "set")


def test_nonsense_on_the_command_line_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "set")]
    assert main(["american", "--states", "0", *out]) == 2
    assert "states must be at least 3" in capsys.readouterr().err
    for command in (["american"], ["make", "american"]):
        with pytest.raises(SystemExit) as stopped:
            main([*command, "--workers", "0", *out])
        assert stopped.value.code == 2
        assert "takes a number from 1 on" in capsys.readouterr().err
    assert not (tmp_path / "set").exists()
    assert main(["verify", str(tmp_path)]) == 1
    assert main(["american", "--volatility", "0", "1", *out]) == 2
    assert main(["american", "--rate", "0.1", "0.0", *out]) == 2
    assert "rate must rise" in capsys.readouterr().err


def test_domain_can_be_chosen_and_is_verified(tmp_path: Path) -> None:
    arguments = ["european", "--states", "8", "--vols", "2", "--points", "4"]
    out = str(tmp_path / "set")
    assert main(["--workers", "1", *arguments, "--volatility", "0.2", "0.3", "--out", out]) == 0
    manifest = read_manifest(tmp_path / "set")
    assert manifest.settings["domain"]["volatility"] == [0.2, 0.3]
    volatility = load_shard(tmp_path / "set", manifest.shards[0])["volatility"]
    low, high = manifest.settings["drawn_from"]["volatility"]  # a model learns more than it serves
    assert low < 0.2
    assert high > 0.3
    assert ((volatility >= low) & (volatility <= high)).all()
    assert main(["verify", out, "--points", "10"]) == 0


def test_list_and_preview(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    build(SMALL, "european", Path("data/european"))
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert "complete" in printed
    assert "paper-options" in printed
    assert main(["preview", "data/european"]) == 0
    page = Path("data/european/preview.html").read_text(encoding="utf-8")
    assert "exercise boundary" in page
    assert main(["preview", "data/european", "-o", "picture.png"]) == 1
    build(SMALL, "european", Path("data/european"))  # the picture does not disturb the set


def test_manifest_holds_no_time_nor_place(tmp_path: Path) -> None:
    build(SMALL, "european", tmp_path / "set")
    content = json.loads(hashes(tmp_path / "set"))
    assert set(content) == {
        "format",
        "project",
        "set",
        "settings",
        "units",
        "complete",
        "counts",
        "shards",
    }
    assert str(tmp_path) not in hashes(tmp_path / "set")
    shard = read_manifest(tmp_path / "set").shards[0]
    assert len(load_shard(tmp_path / "set", shard, verify=True)["rate"]) == shard.samples


def test_cluster_without_its_extra_says_which_one_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)  # as if it were not there
    where = ["--dask", "tcp://127.0.0.1:9", "--out", str(tmp_path / "set")]
    assert main(["european", *where]) == 1
    assert 'this needs distributed: pip install "amo-pricing[cluster]"' in capsys.readouterr().err
    assert not (tmp_path / "set").exists()

"""Reading training sets: lazily, by split, shuffled by seed, never a damaged one."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from amo.data import datasets
from amo.data.datasets import ShardedDataset
from amo.data.format import FORMAT, Arrays, ShardInfo, load_shard, read_manifest
from amo.errors import DataError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of five shards with seven samples each, numbered."""
    shards = []
    for index in range(5):
        path = tmp_path / f"shard-{index}.npz"
        np.savez(path, x=np.arange(7) + 7 * index, y=np.ones((7, 2), np.float32))
        shards.append(
            {
                "file": path.name,
                "split": "train" if index < 4 else "test",
                "samples": 7,
                "dropped": 0,
                "worst_error": 0.0,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        )
    write(tmp_path, shards=shards)
    return tmp_path


def write(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    content = json.loads(path.read_text()) if path.exists() else {}
    default = {"format": FORMAT, "project": "0", "set": "s", "settings": {}, "units": {}}
    path.write_text(json.dumps({**default, "complete": True, **content, **changes}))


def test_split_is_read_in_file_order_without_a_seed(folder: Path) -> None:
    dataset = ShardedDataset(folder, "train")
    assert len(dataset) == 28
    batches = list(dataset.batches(4))
    assert [len(batch["x"]) for batch in batches] == [4, 3] * 4
    assert np.concatenate([batch["x"] for batch in batches]).tolist() == list(range(28))


def test_seed_shuffles_and_repeats(folder: Path) -> None:
    dataset = ShardedDataset(folder, "train")
    one, two, other = (
        np.concatenate([batch["x"] for batch in dataset.batches(4, seed)]).tolist()
        for seed in (1, 1, 2)
    )
    assert one == two
    assert one != other
    assert sorted(one) == list(range(28))


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of shards, in the order in which they are loaded."""
    names: list[str] = []

    def noting(where: Path, shard: ShardInfo) -> Arrays:
        names.append(shard.file)
        return load_shard(where, shard)

    monkeypatch.setattr(datasets, "load_shard", noting)
    return names


def test_shards_are_loaded_one_at_a_time(folder: Path, loaded: list[str]) -> None:
    next(ShardedDataset(folder, "train").batches(7))
    assert len(loaded) == 1


@pytest.mark.parametrize("is_small", [True, False])
def test_a_small_split_is_loaded_once_and_a_large_one_every_time(
    folder: Path, loaded: list[str], monkeypatch: pytest.MonkeyPatch, *, is_small: bool
) -> None:
    if not is_small:
        monkeypatch.setattr(datasets, "_HELD", 1)
    dataset = ShardedDataset(folder, "train")
    first, second = ([b["x"].tolist() for b in dataset.batches(4, seed=1)] for _ in range(2))
    assert first == second
    assert len(loaded) == (4 if is_small else 8)


def test_unknown_split_names_the_known(folder: Path) -> None:
    with pytest.raises(DataError, match="no split 'dev'; it has test, train"):
        ShardedDataset(folder, "dev")


def test_missing_shard_is_named_before_reading_starts(folder: Path) -> None:
    (folder / "shard-2.npz").unlink()
    with pytest.raises(DataError, match=r"shard-2\.npz is missing"):
        ShardedDataset(folder, "train")


def test_damaged_shards_are_named(folder: Path) -> None:
    shard = read_manifest(folder).shards[0]
    (folder / "shard-0.npz").write_bytes((folder / "shard-0.npz").read_bytes()[:100])
    with pytest.raises(DataError, match=r"shard-0\.npz cannot be read"):
        load_shard(folder, shard)
    with pytest.raises(DataError, match="not the file its manifest describes"):
        load_shard(folder, shard, verify=True)
    np.savez(folder / "shard-0.npz", x=np.arange(3))
    with pytest.raises(DataError, match="does not hold 7 samples"):
        load_shard(folder, shard)


def test_pickles_are_never_loaded(folder: Path) -> None:
    np.savez(folder / "shard-0.npz", x=np.array([{"code": 1}] * 7, dtype=object))
    with pytest.raises(DataError, match="cannot be read"):
        load_shard(folder, read_manifest(folder).shards[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no manifest"),
        ("[]", "no manifest"),
        ('{"format": 99}', "has format 99"),
        (f'{{"format": {FORMAT}}}', "no manifest"),
    ],
)
def test_foreign_manifests_are_refused(folder: Path, text: str, message: str) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read_manifest(folder)


def test_unfinished_set_is_refused(folder: Path) -> None:
    write(folder, complete=False)
    with pytest.raises(DataError, match="unfinished"):
        ShardedDataset(folder, "train")
    with pytest.raises(DataError, match=r"manifest\.json is missing"):
        read_manifest(folder / "nowhere")

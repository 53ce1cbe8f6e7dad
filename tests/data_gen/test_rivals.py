"""The surrogate and its rivals: one small table, and what it says when it is read again."""

import json
from pathlib import Path

import pytest

from amo.benchmarks import budget
from data_gen.__main__ import main as make
from pricing.__main__ import main
from pricing.analysis.rivals import rivals


def test_rivals_under_markets_learn_from_padded_schedules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "_TIMED", 0.1)
    data, out, file = tmp_path / "market", tmp_path / "runs", tmp_path / "rivals.json"
    size = ["--markets", "16", "--contracts", "4", "--moments", "2", "--spots", "2"]
    assert make(["american-market", *size, "--out", str(data)]) == 0
    command = ["bench", "rivals", "--problem", "american-market", "--minutes", "0.001"]
    folders = ["--data", str(data), "--out", str(out), "--json", str(file)]
    assert main([*command, "--seeds", "1", *folders]) == 0
    found = json.loads(file.read_text())
    assert [row["model"] for row in found["rows"]] == list(rivals("american-market"))
    assert found["problem"] == "american-market"
    assert all(row["rmse"] > 0 for row in found["rows"])


def test_rivals_learn_the_same_labels_for_the_same_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "_TIMED", 0.1)  # seconds over which a pace is measured
    data, out, file = tmp_path / "american", tmp_path / "runs", tmp_path / "rivals.json"
    size = ["--states", "24", "--vols", "2", "--points", "16"]
    assert make(["american", *size, "--out", str(data)]) == 0
    command = ["bench", "rivals", "--minutes", "0.001", "--seeds", "1"]
    folders = ["--data", str(data), "--out", str(out), "--json", str(file)]
    assert main([*command, *folders]) == 0
    found = json.loads(file.read_text())
    assert [(row["model"], row["seed"]) for row in found["rows"]] == [
        (name, 0) for name in rivals()
    ]
    assert all(row["rmse"] > 0 and row["steps"] >= 1 for row in found["rows"])
    assert main([*command, *folders]) == 0, "what is finished is not trained again"
    assert json.loads(file.read_text())["rows"][0]["rmse"] == found["rows"][0]["rmse"]

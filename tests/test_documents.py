"""What the documents say is what the code does."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pricing import report

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def python_blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_readme_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(README)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # our own README
    assert isinstance(names["priced"], pd.DataFrame)
    assert names["priced"]["price"].notna().all()


def test_readme_tables_are_what_the_results_files_say() -> None:
    assert report.fill(README) == README, "run `python -m pricing report`"


def test_report_refuses_a_text_without_its_marks() -> None:
    with pytest.raises(ValueError, match="results:engines"):
        report.fill("nothing here")


def test_results_meet_the_ground_floor_s_bars() -> None:
    results = json.loads((ROOT / "docs/results/engines.json").read_text())
    assert results["fd_fast_over_quantlib_fd"] >= 15
    rivals = results["american"]
    assert rivals["fd-fast"]["price_rmse"] <= 5e-3 <= rivals["quantlib-fd"]["price_rmse"]
    assert results["frame"]["time_ratio"] <= 2.5
    assert results["frame"]["memory_ratio"] <= 8


def test_results_meet_the_bars_of_data_gen() -> None:
    results = json.loads((ROOT / "docs/results/data_gen.json").read_text())
    assert results["ratio"] >= 10
    assert results["surface_price_rmse"] < results["quantlib_fd_100x200_price_rmse"]
    assert max(results["peak_megabytes_with_two_workers"].values()) < 1024
    assert sum(row["seconds"] for row in results["sets"].values()) < 600


def test_every_dependency_is_pinned_in_constraints_and_justified_in_the_readme() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().split()
    }
    names = [
        re.split("[><=]", text)[0].lower()
        for text in project["dependencies"] + project["optional-dependencies"]["dev"]
    ]
    assert "torch" in pinned
    assert set(names) <= pinned
    for name in names:
        assert f"`{name}`" in README.lower(), name

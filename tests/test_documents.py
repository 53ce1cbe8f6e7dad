"""What the documents say is what the code does."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from amo.benchmarks.contestants import ABLATIONS
from amo.benchmarks.physics import PROBLEMS
from amo.results import Budget, Origin, ProblemData, Row, Scores, Table
from app.documents import claims, cluster_tables, matrix
from app.documents.fill import fill
from app.documents.report import DOCUMENTS
from pricing.bench_clusters import ClusterResults

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def python_blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_readme_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named = ("markets", "chains", "clusters")
    guides = [(ROOT / f"docs/{name}.md").read_text("utf-8") for name in named]
    blocks = [block for text in (README, *guides) for block in python_blocks(text)]
    assert len(blocks) > 1
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # our own README
    assert isinstance(names["priced"], pd.DataFrame)
    assert names["priced"]["price"].notna().all()


def test_links_of_the_guides_lead_to_files_that_are_published_with_them() -> None:
    guides = ROOT / "docs"
    targets = {
        (guide.name, target)
        for guide in guides.glob("*.md")
        for target in re.findall(r"\]\(([^)#:\s]+)[^)]*\)", guide.read_text(encoding="utf-8"))
    }
    assert targets
    astray = [
        (name, target)
        for name, target in targets
        if not (guides / target).resolve().is_relative_to(guides) or not (guides / target).exists()
    ]
    assert not astray, astray


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_say_what_the_results_files_say(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert fill(text, DOCUMENTS[name]) == text, "run `python -m app report`"


def test_cluster_tables_follow_from_what_was_measured() -> None:
    measured: ClusterResults = {
        "command": "python -m pricing bench clusters",
        "machine": {"processor": "x86_64", "cores": 2, "python": "3.11"},
        "rows": 1_000_000,
        "parts": 20,
        "workers": 2,
        "has_same_bytes": True,
        "serial_seconds": 40.0,
        "cluster_seconds": 22.0,
        "overhead": 0.1,
        "processor_overhead": 0.05,
        "start_seconds": 6.0,
        "worker_megabytes": [500.0, 600.0],
        "listed": {"underlyings": 100, "rows": 30_000, "slices": 2_000, "microseconds": 100.0},
    }
    table = cluster_tables.clusters_table(measured)
    assert "| one process | 40 | 40 | 40 |" in table
    assert "| Dask, 2 workers on loopback | 22 | 44 | 44 |" in table
    assert "the same bytes" in table
    assert "600 MB at most" in table
    # 1.5 million rows of 100 µs and a tenth more are 165 s on one core
    assert "| seconds | 165 | 82 | 21 | 5 | 1 |" in cluster_tables.universe_table(measured)
    assert "other bytes" in cluster_tables.clusters_table({**measured, "has_same_bytes": False})


def test_architecture_names_files_that_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    files = re.findall(r"`((?:amo|pricing|data_gen|app)/[\w/]+\.py)`", text)
    assert len(set(files)) > 25
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_operator_document_names_code_that_exists() -> None:
    text = (ROOT / "docs/operator.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`(amo/[a-z_/]+\.py)`", text))
    assert len(files) > 10
    assert all((ROOT / file).is_file() for file in files)
    for module, name in re.findall(r"`(amo/[a-z_/]+\.py)`:? `([A-Za-z_.]+)`", text):
        assert re.search(rf"(def|class) {name.split('.')[-1]}\b", (ROOT / module).read_text()), name
    for picture in re.findall(r"\]\((pictures/[a-z.]+)\)", text):
        assert (ROOT / "docs" / picture).is_file()


def test_report_refuses_a_text_without_its_marks() -> None:
    with pytest.raises(ValueError, match="no <!-- results:"):
        fill("nothing here", DOCUMENTS["README.md"])


def test_every_dependency_is_pinned_and_justified() -> None:
    reasons = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").lower()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().split()
    }
    extras = [text for extra in project["optional-dependencies"].values() for text in extra]
    names = [
        re.split("[><=]", text)[0].lower()
        for text in project["dependencies"] + extras
        if not text.startswith("amo-pricing[")
    ]
    assert "torch" in pinned
    assert set(names) <= pinned
    for name in names:
        assert f"`{name}`" in reasons, name


def test_benchmark_document_shows_pictures_that_exist() -> None:
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    pictures = re.findall(r"\]\((pictures/[a-z.-]+)\)", text)
    assert len(pictures) > 8
    assert all((ROOT / "docs" / picture).is_file() for picture in pictures)


@pytest.mark.parametrize(
    ("better", "worse", "said"),
    [
        ((1.0, 2.0), (3.0, 2.5), "seen"),
        ((4.0, 3.5), (3.0, 2.5), "refuted"),
        ((1.0, 2.6), (3.0, 2.5), "not seen"),
        ((1.0,), (1.0,), "not seen"),
    ],
)
def test_a_claim_is_judged_by_all_its_seeds(
    better: tuple[float, ...], worse: tuple[float, ...], said: str
) -> None:
    assert claims.verdict(better, worse) == said


def scored(error: float) -> Row:
    """Return a row of a table with that error."""
    origin = Origin(command="bench", commit="", date="", hardware="", versions={})
    scores = Scores(
        relative_l2=error, pooled_relative_l2=error, rmse=1.0, largest_error=1.0, samples=1.0
    )
    return Row(parameters=1, model={}, origin=origin, scores=scores)


def test_claims_are_races_of_amo_against_its_best_rival() -> None:
    rows = {
        "sea/amo/0": scored(0.3), "sea/amo-grid/0": scored(0.2), "sea/fno/0": scored(0.1),
        "sea/lno/0": scored(0.4), "land/fno/0": scored(0.1),
    }  # fmt: skip
    names = {name for claim in claims.ABLATED for name in (claim.better, claim.worse)}
    assert names <= set(ABLATIONS)
    ablations = {f"scaled/{name}/{seed}": scored(0.1) for name in names for seed in (0, 1)}
    budget = Budget(steps=1)
    text = claims.claims_table(
        Table(budget=budget, rows=ablations), {"nature": Table(budget=budget, rows=rows)}
    )
    assert text.count("learned nothing") == len(claims.ABLATED)
    (race,) = [line for line in text.splitlines() if "(nature)" in line]
    assert "amo-grid 2.00e-01 against fno 1.00e-01" in race
    assert "refuted, one seed" in race


def test_matrix_has_a_mean_a_dash_or_nothing_for_every_model() -> None:
    """A mean of 0.3 and 0.5 against 0.1: the least is bold, and grids are no place for clouds."""
    rows = {
        "elasticity/amo/0": scored(0.3), "elasticity/amo/1": scored(0.5),
        "elasticity/lno/0": scored(0.1),
        "elasticity/lamo/0": replace(scored(0.1), diverged="at step 3", scores=None),
    }  # fmt: skip
    data = ProblemData(title="", origin="regenerated", samples={}, data={})
    tables = [
        Table(budget=Budget(minutes=2.0), problems={"elasticity": data}, rows=rows),
        Table(budget=Budget(steps=7, further_rates=(3e-3,)), problems={"elasticity": data}),
    ]
    problems = {name: PROBLEMS[name] for name in ("elasticity", "glove")}
    head, _, *lines = matrix.matrix(problems, tables).splitlines()
    names = [name.strip() for name in head.strip("|").split("|")]
    found = [
        dict(zip(names, (cell.strip() for cell in line.strip("|").split("|")), strict=True))
        for line in lines
    ]
    assert [row["problem"] for row in found] == ["elasticity", "elasticity", "glove"]
    assert [row["budget"] for row in found] == [
        "2 minutes of steps, rate 0.001", "7 steps, rate 0.001 or 0.003", "none yet",
    ]  # fmt: skip
    assert found[0]["amo"] == "4.0e-01 (2)"
    assert found[0]["lno"] == "**1.0e-01 (1)**"
    assert found[0]["lamo"] == "diverged"
    assert found[0]["transolver"] == ""
    assert found[0]["fno"] == "–"

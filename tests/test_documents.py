"""What the documents say is what the code does."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from amo import report as operator_report
from amo.benchmarks.contestants import ABLATIONS, RIVALS
from amo.data import sha256_of
from amo.report import fill
from pricing import fuzz
from pricing.report import README_TABLES

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
    assert fill(README, README_TABLES) == README, "run `python -m pricing report`"


@pytest.mark.parametrize("name", operator_report.DOCUMENTS)
def test_documents_say_what_the_results_files_say(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert fill(text, operator_report.DOCUMENTS[name]) == text, "run `python -m amo report`"


def test_operator_document_names_code_that_exists() -> None:
    text = (ROOT / "docs/operator.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`(amo/[a-z_/]+\.py)`", text))
    assert len(files) > 10
    assert all((ROOT / file).is_file() for file in files)
    for module, name in re.findall(r"`(amo/[a-z_/]+\.py)`:? `([A-Za-z_.]+)`", text):
        assert re.search(rf"(def|class) {name.split('.')[-1]}\b", (ROOT / module).read_text()), name
    for picture in re.findall(r"\]\((pictures/[a-z.]+)\)", text):
        assert (ROOT / "docs" / picture).is_file()


def test_results_meet_the_bars_of_the_operator() -> None:
    scaling = json.loads((ROOT / "docs/results/scaling.json").read_text())
    assert max(scaling["train_growth"] + scaling["inference_growth"]) <= 4.4
    assert scaling["memory_growth"] <= 1.3
    runs = json.loads((ROOT / "docs/results/learning.json").read_text())["runs"]
    for name in ("antiderivative", "diffusion"):
        assert runs[name]["scores"]["test"]["relative_l2"] <= 1e-2
        assert runs[name]["minutes"] < 3.0
    assert {"test", "test-32"} <= set(runs["darcy-small"]["scores"])


def test_report_refuses_a_text_without_its_marks() -> None:
    with pytest.raises(ValueError, match="no <!-- results:"):
        fill("nothing here", README_TABLES)


def test_results_meet_the_ground_floor_s_bars() -> None:
    results = json.loads((ROOT / "docs/results/engines.json").read_text())
    assert results["fd_fast_over_quantlib_fd"] >= 15
    rivals = results["american"]
    assert rivals["fd-fast"]["price_rmse"] <= 5e-3 <= rivals["quantlib-fd"]["price_rmse"]
    assert results["frame"]["time_ratio"] <= 2.5
    assert results["frame"]["memory_ratio"] <= 8


def test_results_meet_the_bars_of_the_surrogates() -> None:
    results = json.loads((ROOT / "docs/results/engines.json").read_text())
    book = results["book"]
    assert book["rows"] == 100_000
    assert book["states"] == 200
    for name in ("price", "five_greeks", "implied_vol"):  # core for core
        assert book[f"{name}_times_faster"] > 1
    assert book["busy_throughput_share"] >= 1 / 6
    assert book["large_rows"] == 1_000_000
    assert book["large_peak_megabytes"] < 2048
    assert {"amo", "mlp", "quantlib-fast"} <= set(results["american"])


def test_the_shipped_weights_passed_the_fuzzer() -> None:
    results = json.loads((ROOT / "docs/results/fuzz.json").read_text())
    assert sum(row["rows"] for row in results["regions"].values()) >= 199_990
    assert fuzz.faults(results) == []
    for style, digest in results["weights_sha256"].items():
        assert digest == sha256_of(ROOT / "models" / style / "weights.safetensors")
    assert fuzz.faults(json.loads((ROOT / "docs/results/fuzz_fd.json").read_text())) == []


def test_results_meet_the_bars_of_the_dashboard() -> None:
    results = json.loads((ROOT / "docs/results/dashboard.json").read_text())
    many = results["sessions"]
    assert many["sessions"] >= 20
    assert many["seconds"] >= 120
    assert many["faults"] == 0
    assert many["memory_growth_megabytes"] < 200
    assert results["tracebacks_in_the_log"] == 0
    assert results["browser"]["first_paint_milliseconds"] < 3000
    assert results["browser"]["change_median_milliseconds"] < 300


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
    extras = [text for extra in project["optional-dependencies"].values() for text in extra]
    names = [
        re.split("[><=]", text)[0].lower()
        for text in project["dependencies"] + extras
        if not text.startswith("amo-pricing[")
    ]
    assert "torch" in pinned
    assert set(names) <= pinned
    for name in names:
        assert f"`{name}`" in README.lower(), name


def rows_of(name: str) -> dict[str, Any]:
    content = json.loads((ROOT / f"docs/results/{name}.json").read_text(encoding="utf-8"))
    return dict(content["rows"])


def test_option_table_is_complete_and_meets_its_bar() -> None:
    rows = rows_of("options")
    five = ("amo", "fno", "lno", "transolver", "lamo")
    wanted = {f"raw/{model}/{seed}" for model in five for seed in range(3)}
    wanted |= {f"{coding}/{model}/0" for coding in ("raw", "scaled") for model in RIVALS}
    assert wanted <= rows.keys()
    scored = {key: row for key, row in rows.items() if key.startswith("scaled")}
    assert scored["scaled/amo/0"]["relative_l2"] <= 6e-4
    weighed = {key: row["relative_l2"] * row["parameters"] for key, row in scored.items()}
    assert min(weighed, key=lambda key: weighed[key]) == "scaled/amo/0"


def test_ablations_are_complete_with_two_seeds() -> None:
    assert rows_of("ablations").keys() == {
        f"scaled/{name}/{seed}" for name in ABLATIONS for seed in range(2)
    }


def test_physics_table_is_complete() -> None:
    models: dict[str, set[str]] = {}
    for key in rows_of("physics"):
        problem, model, _ = key.split("/")
        models.setdefault(problem, set()).add(model)
    five = {"amo", "fno", "lno", "transolver", "lamo"}
    for problem in ("darcy-small", "reaction-diffusion-official", "reaction-diffusion-inside"):
        assert models[problem] == five
    for problem in ("darcy", "elasticity", "advection", "brusselator"):
        assert "amo" in models[problem]
        assert len(models[problem] - {"amo"}) >= 3
    for problem in ("navier-stokes", "fractal-darcy"):
        assert "amo" in models[problem]
        assert models[problem] & {"fno", "transolver"}
    known = json.loads((ROOT / "docs/results/physics.json").read_text())["problems"]
    assert known["navier-stokes"]["samples"]["test"] >= 30
    assert {known[name]["origin"] for name in models} == {"official", "regenerated"}


def test_benchmark_document_shows_pictures_that_exist() -> None:
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    pictures = re.findall(r"\]\((pictures/[a-z.-]+)\)", text)
    assert len(pictures) > 8
    assert all((ROOT / "docs" / picture).is_file() for picture in pictures)

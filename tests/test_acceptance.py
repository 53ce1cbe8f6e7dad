"""Acceptance: what the committed results must show. These judge measurements, not code.

A figure in docs/results that misses its bar is a finding: measure again, mend what it measures, or
say in the documents that the bar is missed. No test of code depends on these files.
"""

import json
from pathlib import Path

from amo import results
from amo.benchmarks.contestants import ABLATIONS
from amo.files import sha256_of
from amo.results import Row, Table
from pricing.analysis import fuzz

ROOT = Path(__file__).parents[1]


def test_results_meet_the_bars_of_the_operator() -> None:
    scaling = json.loads((ROOT / "docs/results/scaling.json").read_text())
    assert max(scaling["train_growth"] + scaling["inference_growth"]) <= 4.4
    assert scaling["memory_growth"] <= 1.3
    runs = json.loads((ROOT / "docs/results/learning.json").read_text())["runs"]
    for name in ("antiderivative", "diffusion"):
        assert runs[name]["scores"]["test"]["relative_l2"] <= 1e-2
        assert runs[name]["minutes"] < 3.0
    assert {"test", "test-32"} <= set(runs["darcy-small"]["scores"])


def test_results_meet_the_bars_of_finite_differences_and_frames() -> None:
    found = json.loads((ROOT / "docs/results/engines.json").read_text())
    assert found["fd_fast_over_quantlib_fd"] >= 15
    rivals = found["american"]
    assert rivals["fd-fast"]["price_rmse"] <= 5e-3 <= rivals["quantlib-fd"]["price_rmse"]
    assert found["frame"]["time_ratio"] <= 2.5
    assert found["frame"]["memory_ratio"] <= 8


def test_results_meet_the_bars_of_the_surrogates() -> None:
    found = json.loads((ROOT / "docs/results/engines.json").read_text())
    book = found["book"]
    assert book["rows"] == 100_000
    assert book["states"] == 200
    for name, least in {"price": 10, "five_greeks": 40, "implied_vol": 15}.items():  # core for core
        assert book[f"{name}_times_faster"] >= least
    assert book["busy_throughput_share"] >= 1 / 6
    assert book["large_rows"] == 1_000_000
    assert book["large_peak_megabytes"] < 2048
    ours, mlp = found["american"]["amo"], found["american"]["mlp"]
    for quantity in ("microseconds_price", "microseconds_five_greeks"):
        assert ours[quantity] <= 2.0 * mlp[quantity]  # a trunk of the same size, weights by state
    assert "quantlib-fast" in found["american"]


def test_results_meet_the_bars_under_markets() -> None:
    found = json.loads((ROOT / "docs/results/markets.json").read_text())
    assert found["n_contracts"] == 2_000
    errors = found["errors"]
    assert errors["fd"]["rmse"] <= 3e-4
    assert errors["fd"]["covered"] >= 0.99
    assert errors["fd-fast"]["rmse"] <= 2e-3
    for row in errors.values():  # errors do not grow with the number of payments
        few, many = (
            [row["rmse_by_payments"][str(n)] for n in counts] for counts in ((1, 2, 3), (6, 7, 8))
        )
        assert max(many) <= 2.0 * max(few)
    assert found["fd_fast_over_quantlib_grid"] >= 60
    assert found["analytic_microseconds"] <= 2.0
    assert found["chain_rows"] == 2_000
    assert found["chain_seconds"] < 2.0
    assert found["surface_over_quantlib_grid"] >= 500
    for surface in found["surfaces"].values():
        assert surface["points"] == 1_000 * 64 * 64
        assert surface["megabytes"] < 2048


def test_the_shipped_weights_passed_the_fuzzer() -> None:
    found = json.loads((ROOT / "docs/results/fuzz.json").read_text())
    assert sum(row["rows"] for row in found["regions"].values()) >= 199_990
    assert fuzz.faults(found) == []
    for style, digest in found["weights_sha256"].items():
        assert digest == sha256_of(ROOT / "models" / style / "weights.safetensors")
    assert fuzz.faults(json.loads((ROOT / "docs/results/fuzz_fd.json").read_text())) == []


def test_the_market_model_passed_the_fuzzer_and_its_ladder_is_fast() -> None:
    found = json.loads((ROOT / "docs/results/fuzz_markets.json").read_text())
    assert sum(row["rows"] for row in found["regions"].values()) >= 100_000
    assert fuzz.faults(found) == []
    weights = ROOT / "models" / "american-market" / "weights.safetensors"
    assert found["weights_sha256"] == {"american-market": sha256_of(weights)}
    speed = json.loads((ROOT / "docs/results/market_model.json").read_text())
    assert (speed["rows"], speed["slices"]) == (100_000, 500)
    assert speed["bumped_ladder_seconds"] / speed["ladder_seconds"] >= 1_000
    metrics = json.loads((weights.parent / "metrics.json").read_text())
    errors = metrics["domain"]
    assert errors["delta"]["rmse"] <= 2e-3
    assert errors["vega"]["rmse"] <= 0.15
    assert errors["price"]["rmse"] <= 5e-3  # the whole domain; 3e-3 is for realistic schedules
    assert errors["price"]["max"] <= 0.1
    realistic = speed["engines"]["amo"]
    assert realistic["rmse"] <= 3e-3
    assert realistic["p99"] <= 1.2e-2
    assert realistic["largest"] <= 0.1
    assert not any(metrics["bounds"][k] for k in ("below_intrinsic", "above_upper"))


def test_a_cluster_gives_the_same_bytes_for_little_more() -> None:
    found = json.loads((ROOT / "docs/results/clusters.json").read_text())
    assert (found["rows"], found["parts"], found["workers"]) == (2_000_000, 40, 2)
    assert found["has_same_bytes"]
    assert found["overhead"] <= 0.25
    assert max(found["worker_megabytes"]) < 1.5 * 2**30 / 1e6


def test_results_meet_the_bars_of_the_dashboard() -> None:
    found = json.loads((ROOT / "docs/results/dashboard.json").read_text())
    many = found["sessions"]
    assert many["sessions"] >= 20
    assert many["seconds"] >= 120
    assert many["faults"] == 0
    assert many["memory_growth_megabytes"] < 200
    assert found["tracebacks_in_the_log"] == 0
    assert found["browser"]["first_paint_milliseconds"] < 3000
    assert found["browser"]["change_median_milliseconds"] < 300


def test_results_meet_the_bars_of_data_gen() -> None:
    found = json.loads((ROOT / "docs/results/data_gen.json").read_text())
    assert found["ratio"] >= 10
    assert found["surface_price_rmse"] < found["quantlib_fd_100x200_price_rmse"]
    assert max(found["peak_megabytes_with_two_workers"].values()) < 1024
    flat = [row for name, row in found["sets"].items() if name != "american-market"]
    assert sum(row["seconds"] for row in flat) < 600


def rows_of(name: str) -> dict[str, Row]:
    return results.read(ROOT / f"docs/results/{name}.json", Table).rows


def test_option_table_is_complete_and_meets_its_bar() -> None:
    rows = rows_of("options")
    five = ("amo", "fno", "lno", "transolver", "lamo")
    wanted = {f"raw/{model}/{seed}" for model in five for seed in range(3)}
    nine = (*five, "f-fno", "u-fno", "transolver++", "galerkin")
    wanted |= {f"{coding}/{model}/0" for coding in ("raw", "scaled") for model in nine}
    assert wanted <= rows.keys()
    scored = {key: row for key, row in rows.items() if key.startswith("scaled")}
    assert scored["scaled/amo/0"].relative_l2 <= 6e-4
    weighed = {key: row.relative_l2 * row.parameters for key, row in scored.items()}
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
    known = results.read(ROOT / "docs/results/physics.json", Table).problems
    assert known["navier-stokes"].samples["test"] >= 30
    assert {known[name].origin for name in models} == {"official", "regenerated"}

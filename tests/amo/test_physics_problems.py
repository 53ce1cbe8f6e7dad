"""The physics problems as values: readers, windows in time, other resolutions, the command line."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from amo.__main__ import main
from amo.benchmarks import physics
from amo.benchmarks.contestants import is_possible, recipe_for
from amo.benchmarks.physics import OFFICIAL, PROBLEMS, QUOTED, REGENERATED
from amo.benchmarks.plots import draw_problem
from amo.benchmarks.readers import InTime, OnCloud, OnGrid, Windows, roll_out
from amo.benchmarks.table import Entry, moved, run
from amo.checkpoint import build
from amo.data.batch import Batch
from amo.data.datasets import ArrayDataset
from amo.data.format import Arrays
from amo.experiment import Problem
from amo.results import Budget, Table, read
from amo.training import metrics

BUDGET = Budget(steps=2, batch_size=2, n_points=16)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


EXAMPLES: dict[str, Arrays] = {  # two samples of each problem, smaller than in truth
    "darcy": {"coefficient": numbers(2, 5, 5), "solution": numbers(2, 5, 5)},
    "elasticity": {"points": numbers(2, 9, 2), "stress": numbers(2, 9)},
    "navier-stokes": {"vorticity": numbers(2, 4, 4, 11)},
    "advection": {"initial": numbers(2, 8), "final": numbers(2, 8)},
    "advection-speeds": {
        "initial": numbers(2, 8),
        "speed": numbers(2, 8),
        "final": numbers(2, 8),
    },
    "helmholtz": {
        "source": numbers(2, 8),
        "wavenumber": numbers(2, 8),
        "field": numbers(2, 8),
    },
    "fractal-darcy": {
        "points": numbers(2, 9, 2),
        "log_permeability": numbers(2, 9),
        "source": numbers(2, 9),
        "solution": numbers(2, 9),
    },
    "reaction-diffusion": {"source": numbers(2, 4, 3), "solution": numbers(2, 4, 3)},
    "brusselator": {"force": numbers(2, 3), "field": numbers(2, 3, 8, 8)},
    "plasticity": {"die": numbers(2, 5), "field": numbers(2, 5, 3, 2, 4)},
    "airfoil": {name: numbers(2, 4, 3) for name in ("x", "y", "mach")},
    "airfoil-official": {"points": numbers(2, 4, 3, 2), "mach": numbers(2, 4, 3)},
    "pipe": {name: numbers(2, 4, 3) for name in ("x", "y", "u_x")},
    "pipe-official": {"points": numbers(2, 4, 3, 2), "velocity": numbers(2, 4, 3)},
    "glove-official": {
        "points": numbers(2, 9, 2),
        "previous": numbers(2, 9, 2),
        "displacement": numbers(2, 9, 2),
    },
    "glove": {
        "points": numbers(2, 9, 2),
        "previous": numbers(2, 9, 2),
        "displacement": numbers(2, 9, 2),
    },
    "darcy-small": {
        "points": numbers(2, 9, 2),
        "features": numbers(2, 9, 1),
        "values": numbers(2, 9, 1),
    },
}


def example(problem: Problem) -> Arrays:
    name = problem.name
    if name in EXAMPLES:
        return EXAMPLES[name]
    for ending in ("-official", "-inside", "-hidden"):
        name = name.removesuffix(ending)
    return EXAMPLES[name]


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_problem_reads_what_it_says(problem: Problem) -> None:
    batch = problem.read(example(problem))
    n_points = batch.points.shape[1]
    assert batch.points.shape == (2, n_points, problem.n_dimensions)
    assert batch.features.shape == (2, n_points, problem.n_features)
    assert batch.values.shape == (2, n_points, problem.n_outputs)
    assert all(t.dtype == torch.float32 for t in (batch.points, batch.features, batch.values))
    for region in problem.regions.values():
        assert batch.values[region(example(problem))].numel() > 0


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_every_model_that_can_has_a_recipe(problem: Problem) -> None:
    for model in ("amo", "lno", "transolver", "lamo", "fno"):
        assert is_possible(model, problem) == (model != "fno" or problem.grid is not None)
        if is_possible(model, problem):
            assert recipe_for(model, problem).config.n_dimensions == problem.n_dimensions


def test_problems_have_names_of_their_own_and_an_origin() -> None:
    assert len(PROBLEMS) == len(REGENERATED) + len(OFFICIAL)
    assert all(problem.origin == "regenerated" for problem in REGENERATED)
    assert all(problem.origin == "official" for problem in OFFICIAL)
    assert set(QUOTED) <= set(PROBLEMS)
    assert not any(problem.quoted for problem in PROBLEMS.values())  # they stand apart


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_problem_travels_to_another_process(problem: Problem) -> None:
    assert pickle.loads(pickle.dumps(problem)).title == problem.title  # noqa: S301  # our own


def test_fourier_models_are_padded_unless_the_problem_is_periodic() -> None:
    assert recipe_for("fno", PROBLEMS["darcy"]).config.padding > 0
    for name in ("advection", "navier-stokes"):
        assert recipe_for("fno", PROBLEMS[name]).config.padding == 0


def test_fourier_model_answers_alike_on_a_finer_grid() -> None:
    """On nodes that two grids share, the same smooth function has nearly the same image."""
    problem = replace(PROBLEMS["darcy"], grid=(16, 16))
    recipe = recipe_for("fno", problem)
    torch.manual_seed(0)
    operator = build(recipe).eval()
    images = []
    for side in (16, 32):
        x = np.arange(side, dtype=np.float32) / side
        a = np.sin(3.0 * x)[:, None] * np.cos(2.0 * x)
        points = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(1, -1, 2)
        batch = Batch(
            points=torch.from_numpy(points),
            features=torch.from_numpy(a.reshape(1, -1, 1)),
            values=torch.zeros(1, side * side, 1),
        )
        image = moved(operator, recipe, (side, side)).predict(batch).reshape(side, side)
        images.append(image[:: side // 16, :: side // 16])
    coarse, fine = images
    assert float((coarse - fine).norm() / coarse.norm()) < 0.2  # 0.57 with the padding unscaled


def test_grid_points_come_in_the_order_of_the_field() -> None:
    field = np.arange(6, dtype=np.float32).reshape(1, 3, 2)  # f = 2 i + j
    batch = OnGrid(("f",), ("f",), (4.0, 1.0))({"f": field})
    torch.testing.assert_close(batch.values[..., 0], batch.points[..., 0] + batch.points[..., 1])
    line = OnGrid(("f",), ("f",), (1.0,), is_periodic=True)({"f": field[:, :, 0]})
    torch.testing.assert_close(line.points[0, :, 0], torch.tensor([0.0, 1 / 3, 2 / 3]))


def test_cloud_without_inputs_is_told_its_coordinates() -> None:
    batch = OnCloud((), ("stress",))(EXAMPLES["elasticity"])
    assert torch.equal(batch.features, batch.points)


def test_windows_are_all_runs_of_frames() -> None:
    film = np.arange(2 * 3 * 3 * 13, dtype=np.float32).reshape(2, 3, 3, 13)
    windows = Windows(ArrayDataset({"w": film}), "w", 11)
    assert len(windows) == 2 * 3
    found = np.concatenate([arrays["w"] for arrays in windows.batches(4)])
    expected = np.concatenate([film[i : i + 1, ..., s : s + 11] for i in (0, 1) for s in (0, 1, 2)])
    assert np.array_equal(found, expected)
    shuffled = np.concatenate([arrays["w"] for arrays in windows.batches(4, seed=1)])
    assert not np.array_equal(shuffled, expected)
    assert sorted(shuffled[:, 0, 0, 0]) == sorted(expected[:, 0, 0, 0])


def test_rolling_out_uses_predictions_only() -> None:
    class Doubling:
        """Answers twice the last frame it is given."""

        def predict(self, batch: Batch, chunk: int | None = None) -> torch.Tensor:
            del chunk
            return 2.0 * batch.features[..., -1:]

    film = np.ones((1, 2, 2, 14), dtype=np.float32)
    film[..., 10:] = np.nan  # the future is not looked at
    batch = InTime("w")({"w": film})
    frames = roll_out(Doubling(), batch)  # type: ignore[arg-type]
    assert torch.equal(frames[0, 0], torch.tensor([2.0, 4.0, 8.0, 16.0]))


def test_films_are_learned_in_windows_and_tested_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    films = ArrayDataset({"vorticity": numbers(3, 4, 4, 20)})
    monkeypatch.setattr(physics, "ShardedDataset", lambda _, __: films)
    assert len(physics.open_films(tmp_path, "train")) == 30
    assert physics.open_films(tmp_path, "test") is films


def test_phase_error_is_the_angle_of_a_shift() -> None:
    x = torch.arange(64) / 64
    waves = [3, 7]
    truth = torch.stack([sum(torch.sin(2 * torch.pi * k * x) for k in waves)])  # type: ignore[arg-type]
    moved = torch.stack([sum(torch.sin(2 * torch.pi * k * (x - 0.01)) for k in waves)])  # type: ignore[arg-type]
    error = metrics.phase_errors(moved, truth)
    seen = torch.isfinite(error).nonzero().flatten().tolist()
    assert seen == waves
    for k in waves:
        assert float(error[k]) == pytest.approx(2.0 * np.pi * k * 0.01, rel=1e-4)


def darcy_like(monkeypatch: pytest.MonkeyPatch) -> Problem:
    """Return a small problem with a test split at twice the resolution."""

    def open_split(_: Path, split: str) -> ArrayDataset:
        side = 16 if split == "test-16" else 8
        line = np.linspace(0.0, 1.0, side)
        a = numbers(4, side, side)
        return ArrayDataset({"coefficient": a, "solution": np.sin(a) * line.astype(np.float32)})

    monkeypatch.setattr("amo.benchmarks.table.in_a_process", lambda work, *rest: work(*rest))
    return replace(PROBLEMS["darcy"], grid=(8, 8), open=open_split, further={"test-16": (16, 16)})


def test_table_scores_other_resolutions_with_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = darcy_like(monkeypatch)
    models = ["amo", "fno"]
    results = run(
        [Entry(problem, model, 0) for model in models], BUDGET, data=tmp_path,
        out=tmp_path / "runs", file=tmp_path / "t.json", command="bench", device="cpu",
    )  # fmt: skip
    for row in results.rows.values():
        assert row.further["test-16"].samples == 4
        assert 0.0 < row.further["test-16"].relative_l2 < 3.0
    assert results.problems["darcy"].samples["test-16"] == 4
    files = draw_problem(problem, models, tmp_path, tmp_path / "runs", tmp_path / "pictures")
    assert [file.name for file in files] == ["darcy.png", "darcy-poles.png"]
    assert all(file.stat().st_size > 1000 for file in files)


@pytest.mark.parametrize("name", ["advection", "fractal-darcy", "brusselator"])
def test_every_kind_of_problem_is_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grids = {"advection": (8,), "fractal-darcy": None, "brusselator": (3, 4, 4)}
    arrays = EXAMPLES[name]
    problem = replace(PROBLEMS[name], grid=grids[name], open=lambda *_: ArrayDataset(arrays))
    operator = build(recipe_for("lno", problem))
    monkeypatch.setattr("amo.checkpoint.load", lambda _: (operator.eval(), None))
    files = draw_problem(problem, ["lno"], tmp_path, tmp_path, tmp_path)
    assert len(files) == (2 if name == "fractal-darcy" else 1)
    assert all(file.stat().st_size > 1000 for file in files)


def test_command_line_lists_the_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.partition("problems, for")[2].splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(PROBLEMS)
    assert all("official" in line or "regenerated" in line for line in lines)


def test_command_line_refuses_an_unknown_problem(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["bench", "physics", "--minutes", "1", "--json", str(tmp_path / "t.json")]
    assert main([*arguments, "--problems", "darcy,soup"]) == 2
    assert "no problem soup; there are darcy" in capsys.readouterr().err


def test_command_line_says_what_is_missing_and_how_to_make_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["bench", "physics", "--minutes", "1", "--json", str(tmp_path / "t.json")]
    assert main([*arguments, "--problems", "elasticity", "--data", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "elasticity has no grid: without amo-grid, fno" in said
    assert "no data set in" in said
    assert not (tmp_path / "t.json").exists()


def test_command_line_runs_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = darcy_like(monkeypatch)
    monkeypatch.setitem(PROBLEMS, "darcy", problem)  # type: ignore[arg-type]
    file = tmp_path / "t.json"
    command = ["bench", "physics", "--problems", "darcy", "--models", "lno", "--steps", "2"]
    paths = ["--data", str(tmp_path), "--out", str(tmp_path / "runs"), "--json", str(file)]
    assert main([*command, *paths, "--device", "cpu"]) == 0
    row = read(file, Table).rows["darcy/lno/0"]
    assert row.origin.command.startswith("python -m amo")
    assert row.origin.hardware
    assert row.origin.date
    assert read(file, Table).quoted["darcy"]["amo"] == 0.0021

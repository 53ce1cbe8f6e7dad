"""Tables of models: the same data and budget for all, rows that resume, regions, reports."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from amo import experiment
from amo.__main__ import main
from amo.benchmarks import options
from amo.benchmarks import table as tables
from amo.benchmarks.contestants import (
    RIVALS,
    n_parameters,
    recipe_for,
)
from amo.benchmarks.estimate import as_text, estimates
from amo.benchmarks.plots import answers
from amo.benchmarks.table import Entry, folder_of, run
from amo.checkpoint import build
from amo.data.datasets import ShardedDataset
from amo.data.format import Arrays
from amo.errors import SettingsError, StoppedError
from amo.experiment import Problem
from amo.results import Budget, Table, read
from amo.training import loop
from amo.training.loop import DivergedError
from app.documents import model_tables
from app.documents.fill import fill_file

SIDE = 8
RAW, SCALED = (replace(problem, grid=(SIDE, SIDE)) for problem in (options.RAW, options.SCALED))
BUDGET = Budget(steps=2, batch_size=2, n_points=20)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from data_gen.builder import build as make
    from data_gen.options.paper_options import PaperOptionsSet

    folder = tmp_path_factory.mktemp("sets") / "paper-options"
    make(PaperOptionsSet(train=4, validation=2, test=2, resolution=SIDE), "paper-options", folder)
    return folder


@pytest.fixture
def arrays(data: Path) -> Arrays:
    return next(ShardedDataset(data, "test").batches(2))


def table(data: Path, tmp_path: Path, entries: list[Entry], **changes: Any) -> Table:
    arguments = {"data": data, "out": tmp_path / "runs", "file": tmp_path / "t.json", **changes}
    return run(entries, BUDGET, command="bench", device="cpu", **arguments)


def test_both_codings_hold_the_same_prices(arrays: Arrays) -> None:
    raw, scaled = options.read_raw(arrays), options.read_scaled(arrays)
    assert torch.equal(raw.values, scaled.values)
    assert torch.equal(raw.features, scaled.features)
    assert raw.points.shape == scaled.points.shape == (2, SIDE * SIDE, 2)
    assert scaled.offset is not None
    assert scaled.scale is not None
    output = (scaled.values - scaled.offset) / scaled.scale
    known = scaled.scale > 1e-3
    assert output[known].min() > -1e-3
    assert output[known].max() < 0.5


def test_raw_points_are_share_of_time_and_spot_in_the_order_of_the_grid(arrays: Arrays) -> None:
    points = options.read_raw(arrays).points.unflatten(1, (SIDE, SIDE)).numpy()
    np.testing.assert_allclose(points[0, :, 3, 0], np.linspace(0.0, 1.0, SIDE), rtol=1e-6)
    np.testing.assert_allclose(points[1, 2, :, 1], arrays["spot"][1])


def test_regions_are_where_they_say(arrays: Arrays) -> None:
    points = options.read_raw(arrays).points
    strike = torch.from_numpy(arrays["inputs"])[:, 3:4]
    kink, small = options.at_the_kink(arrays), options.at_small_spots(arrays)
    distance = (points[..., 1] - strike).abs() / strike
    assert (points[..., 0][kink] >= 0.9).all()
    assert (distance[kink] <= 0.1).all()
    assert (points[..., 1][small] <= 30.0).all()
    assert small.any()


def test_table_trains_scores_and_is_not_run_twice(data: Path, tmp_path: Path) -> None:
    entries = [Entry(RAW, "lno", 0), Entry(SCALED, "fno", 0)]
    said: list[str] = []
    results = table(data, tmp_path, entries, say=said.append)
    assert list(results.rows) == ["raw/lno/0", "scaled/fno/0"]
    for entry in entries:
        row = results.rows[entry.key]
        assert row.steps == 2
        assert 0.0 < row.relative_l2 < 2.0
        assert set(row.regions) == {"kink", "small S"}
        assert row.parameters == n_parameters(recipe_for(entry.model, entry.problem))
        assert row.peak_megabytes > 50
        minutes, errors = zip(*row.curve, strict=True)
        assert minutes == pytest.approx([n * row.seconds_per_step / 60.0 for n in (1, 2)])
        assert min(errors) > 0.0
        assert row.origin.command == "bench"
    assert read(tmp_path / "t.json", Table) == results
    n = len(said)
    assert table(data, tmp_path, entries, say=said.append) == results
    assert len(said) == n

    assert results.problems["raw"].samples == {"train": 4, "validation": 2, "test": 2}
    assert results.problems["raw"].origin == "regenerated"

    found = answers(RAW, ["lno"], data, tmp_path / "runs")
    assert found.truth.shape == found.models["lno"].shape == (1, SIDE * SIDE, 1)

    text = model_tables.rivals_table(replace(results, quoted={"raw": {"lno": 1e-3}}))
    assert "| raw | lno |" in text
    assert text.count("1.0e-03 |") == 1
    with pytest.raises(SettingsError, match="choose another file"):
        run(
            entries, replace(BUDGET, steps=3), data=data, out=tmp_path, file=tmp_path / "t.json",
            command="",
        )  # fmt: skip


def test_a_stopped_table_goes_on_and_ends_in_results_and_document(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tables.in_a_process
    asked: list[int] = []

    def stopped_at_the_second(*arguments: Any) -> Any:
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return known(*arguments)

    monkeypatch.setattr(tables, "in_a_process", stopped_at_the_second)
    entries = [Entry(RAW, "lno", 0), Entry(RAW, "fno", 0)]
    file, document = tmp_path / "docs/results/options.json", tmp_path / "docs/benchmarks.md"
    with pytest.raises(StoppedError, match="the same command goes on"):
        table(data, tmp_path, entries, file=file)
    assert list(read(file, Table).rows) == ["raw/lno/0"]
    table(data, tmp_path, entries, file=file)
    assert len(asked) == 3, "the first row was not run again"
    document.write_text("# Tables\n<!-- results:options -->\n<!-- end -->\n")
    fill_file(document, {"options": lambda: model_tables.rivals_table(read(file, Table))})
    text = document.read_text()
    assert "| raw | lno |" in text
    assert "| raw | fno |" in text


def test_a_row_that_diverges_does_not_stop_the_others(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "in_a_process", lambda work, *rest: work(*rest))  # seen by it

    def fit(operator: Any, *rest: Any, **named: Any) -> Any:
        if named.get("identity") and operator.model.config.width == 20:  # the FNO's training
            raise DivergedError("the loss is nan")
        return loop.fit(operator, *rest, **named)

    monkeypatch.setattr(experiment, "loop", SimpleNamespace(fit=fit))
    entries = [Entry(RAW, "fno", 0), Entry(RAW, "lno", 0)]
    results = table(data, tmp_path, entries)
    assert results.rows["raw/fno/0"].diverged == "the loss is nan"
    assert results.rows["raw/lno/0"].relative_l2 > 0.0
    text = model_tables.rivals_table(results)
    assert "not in the means: raw/fno/0" in text
    assert "| raw | fno |" not in text


def test_a_row_ends_with_the_table_that_was_killed(data: Path, tmp_path: Path) -> None:
    arguments = ["--data", str(data), "--out", str(tmp_path), "--json", str(tmp_path / "t.json")]
    code = (
        "import sys; from dataclasses import replace; from amo.benchmarks import options;"
        f"options.RAW = replace(options.RAW, grid=({SIDE}, {SIDE}));"
        "from amo.__main__ import main; main(sys.argv[1:])"
    )
    table = subprocess.Popen(
        [sys.executable, "-c", code, "bench", "options", "--models", "lno", "--steps", "1000000",
         *arguments],
        start_new_session=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    log = tmp_path / "raw/lno/0/log.jsonl"
    deadline = time.monotonic() + 120.0
    while not log.exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    table.kill()
    table.wait()
    while running(table.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert log.exists()
    assert not running(table.pid)


def running(session: int) -> list[int]:
    """Return the processes of a session, but for those that ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_impossible_rows_are_refused_before_anything_runs(data: Path, tmp_path: Path) -> None:
    no_grid: Problem = replace(RAW, grid=None)
    for entry, words in (
        (Entry(RAW, "perceptron", 0), "no model 'perceptron'"),
        (Entry(no_grid, "fno", 0), "knows grids only"),
    ):
        with pytest.raises(SettingsError, match=words):
            table(data, tmp_path, [Entry(RAW, "lno", 0), entry])
    assert not (tmp_path / "t.json").exists()
    with pytest.raises(SettingsError, match="one of them"):
        Budget()
    with pytest.raises(SettingsError, match="positive"):
        Budget(minutes=-1.0)


@pytest.mark.parametrize("name", RIVALS)
def test_contestants_are_of_the_same_order_of_size(name: str) -> None:
    assert 4e4 < n_parameters(recipe_for(name, RAW)) < 1e6
    assert n_parameters(recipe_for(name, options.RAW, "paper")) > 5e5


def test_epochs_are_passes_over_the_training_split(data: Path, tmp_path: Path) -> None:
    budget = Budget(epochs=3, batch_size=3, n_points=None)
    folders = {"data": data, "out": tmp_path / "runs", "file": tmp_path / "t.json"}
    entry = Entry(RAW, "lno", 0)
    row = run([entry], budget, command="bench", device="cpu", **folders).rows[entry.key]
    assert row.steps == 3 * 2  # four samples, three at a time
    with pytest.raises(SettingsError, match="give one of them"):
        Budget(epochs=3, steps=2)


def test_estimates_count_steps_of_all_rates_and_train_nothing(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(epochs=100, batch_size=2, further_rates=(3e-3,))
    (row,) = estimates([Entry(RAW, "lno", 0)], budget, data, "cpu")
    assert row.steps == 200
    assert row.hours == pytest.approx(2 * 200 * row.seconds_per_step / 3600.0)
    assert row.parameters == n_parameters(recipe_for("lno", RAW))
    assert "raw/lno/0" in as_text([row])
    arguments = ["bench", "options", "--models", "lno", "--data", str(data), "--estimate"]
    out = ["--out", str(tmp_path / "runs"), "--json", str(tmp_path / "t.json")]
    assert main([*arguments, *out, "--epochs", "2", "--size", "paper", "--points", "all"]) == 0
    assert "raw/lno/0" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    table(data, tmp_path, [Entry(RAW, "lno", 0)])  # what is measured is not estimated
    assert main([*arguments, *out, "--epochs", "2"]) == 0
    assert "raw/lno/0" not in capsys.readouterr().err


def test_of_several_rates_validation_chooses(data: Path, tmp_path: Path) -> None:
    budget = replace(BUDGET, learning_rate=1e-9, further_rates=(1e-2, 1e-8))
    folders = {"data": data, "out": tmp_path / "runs", "file": tmp_path / "t.json"}
    entry = Entry(SCALED, "amo-grid", 0)
    row = run([entry], budget, command="bench", device="cpu", **folders).rows[entry.key]
    assert list(row.validation) == ["1e-09", "0.01", "1e-08"]
    assert min(row.validation, key=lambda rate: row.validation[rate]) == "0.01"
    chosen = folder_of(entry, tmp_path / "runs")
    kept, best = (
        (folder / "weights.safetensors").read_bytes() for folder in (chosen, chosen / "rate-0.01")
    )
    assert kept == best
    (tmp_path / "t.json").unlink()  # the table is lost, and one of its runs with it
    shutil.rmtree(chosen / "rate-0.01")
    again = run([entry], budget, command="bench", device="cpu", **folders).rows[entry.key]
    assert again.scores == row.scores
    assert again.validation == row.validation


def test_amo_moves_to_a_finer_grid_with_its_filters() -> None:
    recipe = recipe_for("amo-grid", replace(RAW, is_periodic=True))
    operator = build(recipe)
    other = tables.moved(operator, recipe, (2 * SIDE, 2 * SIDE))
    banks = [cast("Any", one.model).blocks.banks for one in (operator, other)]
    for coarse, fine in zip(*banks, strict=True):
        assert torch.equal(coarse.poles().decay, fine.poles().decay)
        one, two = (
            torch.fft.rfft(bank(n))[..., 0] for bank, n in ((coarse, SIDE), (fine, 2 * SIDE))
        )
        assert torch.allclose(one, two, atol=1e-5)  # the gain of a constant is that on all grids


def test_command_line_refuses_an_unknown_coding(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["bench", "options", "--minutes", "1", "--json", str(tmp_path / "t.json")]
    assert main([*arguments, "--codings", "polar"]) == 2
    assert "raw and scaled" in capsys.readouterr().err


def test_fields_are_drawn(tmp_path: Path) -> None:
    from amo import plots

    rng = np.random.default_rng(0)
    points = rng.uniform(size=(50, 2))
    fields = {"truth": points[:, 0], "amo": points[:, 0] + 0.1}
    few = {name: field[:6] for name, field in fields.items()}
    files = [tmp_path / f"{name}.png" for name in ("grid", "cloud", "slopes", "waves")]
    plots.draw_fields(few, files[0], grid=(2, 3))
    plots.draw_fields(fields, files[1], points=points)
    plots.draw_slopes(fields, points, files[2])
    plots.draw_by_wavenumber({"amo": np.array([np.nan, 0.1, 3.0])}, files[3])
    assert all(file.stat().st_size > 1000 for file in files)
    with pytest.raises(ValueError, match="one of them"):
        plots.draw_fields(few, files[0])


def test_thinning_without_queries_keeps_points_and_values_together(
    samples: Callable[..., Any],
) -> None:
    batch = samples(2, 30)
    thin = batch.thinned(7, None, torch.Generator().manual_seed(0))
    assert thin.queries is None
    assert thin.points.shape[1] == thin.values.shape[1] == 7
    for point, value in zip(thin.points[0], thin.values[0], strict=True):
        where = (batch.points[0] == point).all(-1).nonzero().item()
        assert torch.equal(batch.values[0, where], value)

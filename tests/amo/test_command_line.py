"""python -m amo, as its users run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from amo import plots
from amo.__main__ import main
from amo.benchmarks import darcy_small, scaling
from amo.errors import DataError, FileError
from amo.system import peak_megabytes
from app.documents.model_tables import learning_table

STEPS = "300"


@pytest.fixture(scope="module")
def trained(diffusion: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The diffusion experiment, trained as the documents say but for fewer steps."""
    out = tmp_path_factory.mktemp("runs") / "diffusion"
    command = ["train", "diffusion", "--data", str(diffusion), "--out", str(out)]
    assert main([*command, "--steps", STEPS, "--device", "cpu"]) == 0
    return out


def test_operator_learns_variable_coefficient_diffusion_on_irregular_points(
    trained: Path, diffusion: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(trained), "--data", str(diffusion)]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["relative_l2"] <= 3e-2  # 1e-2 with all its steps: docs/results/learning.json
    assert scores["samples"] == 128
    kept = json.loads((trained / "metrics.json").read_text())
    assert kept["test"] == scores


def test_info_says_what_a_model_is(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(trained)]) == 0
    said = capsys.readouterr().out
    for words in ("parameters", "preset diffusion", f"{STEPS} steps", "validation: relative L2",
                  "block 1: 3 poles", "block 2: 3 poles", "Gram error"):  # fmt: skip
        assert words in said


def test_finished_run_is_not_trained_again(
    trained: Path, diffusion: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (trained / "weights.safetensors").stat().st_mtime_ns
    command = ["train", "diffusion", "--data", str(diffusion), "--out", str(trained)]
    assert main([*command, "--steps", STEPS]) == 0
    assert "finished already" in capsys.readouterr().err
    assert (trained / "weights.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize("form", ["svg", "png"])
def test_pictures_of_poles_and_functions_are_written(
    trained: Path, tmp_path: Path, form: str
) -> None:
    for command in ("plot-poles", "plot-bases"):
        file = tmp_path / f"{command}.{form}"
        assert main([command, str(trained), "-o", str(file)]) == 0
        assert file.stat().st_size > 5000
    with pytest.raises(FileError, match="name it"):
        plots.draw_poles([[[[0.0, 0.0]]]], tmp_path / "poles.xls")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["train"], 2, "say which experiment"),
        (["train", "alchemy"], 2, "no experiment 'alchemy'"),
        (["train", "diffusion", "--data", "nowhere"], 1, "no data set in nowhere"),
        (["train", "darcy-small", "--data", "nowhere"], 1, "neuraloperator"),
        (["info", "nowhere"], 1, "no model in nowhere"),
        (["bench", "scaling", "--device", "abacus"], 2, "device must be"),
        (["plot-poles", "nowhere"], 1, "no model"),
        (["evaluate", "nowhere", "--data", "x", "--device", "cpu"], 1, "no model"),
    ],
)
def test_refusals_name_the_reason(
    arguments: list[str],
    code: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_finished_run_of_other_settings_is_kept(
    trained: Path, diffusion: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (trained / "weights.safetensors").read_bytes()
    command = ["train", "diffusion", "--out", str(trained), "--device", "cpu"]
    assert main([*command, "--data", str(diffusion), "--seed", "1"]) == 1
    assert "another training" in capsys.readouterr().err
    assert main([*command, "--data", "nowhere", "--fresh"]) == 1
    assert (trained / "weights.safetensors").read_bytes() == before


def test_model_is_not_scored_on_another_set(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from data_gen.builder import build
    from data_gen.toys import AntiderivativeSet

    build(AntiderivativeSet(samples=384), "antiderivative", tmp_path)
    assert main(["evaluate", str(trained), "--data", str(tmp_path)]) == 1
    assert "trained on 'diffusion'" in capsys.readouterr().err


def test_record_writes_what_runs_reached(trained: Path, tmp_path: Path) -> None:
    assert main(["record", str(trained), "--json", str(tmp_path / "results.json")]) == 0
    run = json.loads((tmp_path / "results.json").read_text())["runs"]["diffusion"]
    assert (run["preset"], run["steps"], run["seed"]) == ("diffusion", int(STEPS), 0)
    assert run["scores"]["validation"]["relative_l2"] < 2e-2
    assert "`diffusion`" in learning_table({"runs": {"diffusion": run}, "command": "x"})


def test_unknown_split_is_refused(
    trained: Path, diffusion: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(trained), "--data", str(diffusion), "--split", "fresh"]) == 1
    assert "no split 'fresh'" in capsys.readouterr().err


def test_help_and_list_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "antiderivative" in capsys.readouterr().out
    run = subprocess.run(
        [sys.executable, "-m", "amo", "--help"], capture_output=True, text=True, check=True
    )
    assert "torchrun" in run.stdout


def test_scaling_bench_measures_every_size(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scaling, "SIDES", (8, 16))
    monkeypatch.setattr(scaling, "PAPER", {8: {}, 16: {}})
    monkeypatch.setattr(scaling, "GRIDS", (16,))
    assert main(["bench", "scaling", "--json", "--device", "cpu"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert set(results["sizes"]) == {"8x8", "16x16"}
    assert len(results["train_growth"]) == 1
    assert 0.5 < results["memory_growth"] < 2.0
    assert {name: set(costs) for name, costs in results["grids"].items()} == {
        name: {"amo-grid", "fno"} for name in ("16x16",)
    }
    for cost in results["grids"]["16x16"].values():
        assert cost["train_seconds"] > 0.0
        assert cost["megabytes"] > 50.0
    assert "16x16" in scaling.table(results)
    assert peak_megabytes() > 100.0


def darcy_folder() -> Path:
    """Where the real files are, said by whoever has them."""
    folder = os.environ.get("AMO_DARCY_SMALL")
    if not folder:
        pytest.skip("AMO_DARCY_SMALL does not say where the small Darcy set is")
    return Path(folder)


def test_small_darcy_set_is_read_as_it_is() -> None:
    folder = darcy_folder()
    splits = {name: darcy_small.open_split(folder, name) for name in darcy_small._SPLITS}
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 900, "validation": 100, "test": 50, "test-32": 50,
    }  # fmt: skip
    coarse, fine = (
        splits[name].arrays["values"].reshape(50, side, side)
        for name, side in (("test", 16), ("test-32", 32))
    )
    assert np.array_equal(coarse, fine[:, ::2, ::2])
    points = splits["test-32"].arrays["points"]
    assert np.array_equal(splits["test"].arrays["points"][0, 17], points[0, 2 * 32 + 2])


def write_darcy(path: Path, n: int, side: int, values: np.ndarray) -> None:
    """A file in the layout of the real ones, storages only."""
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"never read")
        archive.writestr("archive/data/0", (values > 0.5).transpose(2, 1, 0).tobytes())
        archive.writestr(
            "archive/data/1", np.ascontiguousarray(values.transpose(2, 1, 0), "<f4").tobytes()
        )
    assert values.shape == (n, side, side)


def test_small_darcy_layout_is_checked(tmp_path: Path) -> None:
    i = np.arange(16.0)
    values = np.random.default_rng(0).uniform(1, 2, (120, 1, 1)) * i[:, None] * i
    path = tmp_path / "darcy_train_16.pt"
    write_darcy(path, 120, 16, values)
    split = darcy_small.open_split(tmp_path, "validation")
    assert np.allclose(split.arrays["values"].reshape(100, 16, 16), values[20:])
    write_darcy(path, 120, 16, values + 100.0)
    with pytest.raises(DataError, match="another layout"):
        darcy_small.open_split(tmp_path, "train")
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match="no torch archive"):
        darcy_small.open_split(tmp_path, "train")
    with pytest.raises(DataError, match="no split 'fresh'"):
        darcy_small.open_split(tmp_path, "fresh")


@pytest.mark.parametrize("name", ["european", "american", "american-mlp"])
def test_info_describes_every_shipped_model(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(Path(__file__).parents[2] / "models" / name)]) == 0
    assert "parameters" in capsys.readouterr().out

"""From a run to a shipped model: what does not fit is refused, what fits is copied whole."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from amo import checkpoint
from amo.errors import CheckpointError
from amo.files import write_text
from amo.training.state import LOG, STATE
from pricing import publishing
from pricing.__main__ import main
from pricing.publishing import publish
from pricing.surrogate.domain import Domain
from pricing.surrogate.experiments import EXPERIMENTS, experiment_named

EXPERIMENT = EXPERIMENTS["european"]


def write_run(folder: Path, **changes: Any) -> Path:
    notes = {
        "data": {"set": "european", "settings": {"coding": 2}, "sha256": "0"},
        "training": asdict(EXPERIMENT.training),
    }
    recipe = replace(EXPERIMENT.recipe, domain=Domain().as_dict(), notes=notes, **changes)
    checkpoint.save(checkpoint.build(recipe), recipe, {"validation": {}}, folder)
    write_text("", folder / LOG)
    return folder


def test_a_run_that_fits_is_measured_and_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"box": {"price": {"rmse": 1.0}}, "domain": {"price": {"rmse": 2.0}}}
    monkeypatch.setattr(publishing, "assess", lambda *_: found)
    run = write_run(tmp_path / "run")
    out = publish(run, tmp_path / "models" / "european")
    assert sorted(path.name for path in out.iterdir()) == sorted(
        (checkpoint.WEIGHTS, checkpoint.CONFIG, checkpoint.METRICS, LOG)
    )
    assert checkpoint.read_metrics(out)["box"] == found["box"]


def other_domain() -> dict[str, Any]:
    return {"domain": {**Domain().as_dict(), "expiry": [0.0, 9.0]}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (other_domain(), "has the domain"),
        ({"config": replace(EXPERIMENT.recipe.config, width=64)}, "has the model"),
        ({"link": "identity"}, "has the link"),
        ({"preset": "nobody"}, "no surrogate 'nobody'"),
    ],
)
def test_a_run_that_does_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    notes = {
        "data": {"set": "european", "settings": {"coding": 2}, "sha256": "0"},
        "training": asdict(EXPERIMENT.training),
    }
    whole = {"domain": Domain().as_dict(), "notes": notes, **changes}
    recipe = replace(EXPERIMENT.recipe, **whole)
    checkpoint.save(checkpoint.build(recipe), recipe, {}, tmp_path / "run")
    with pytest.raises((CheckpointError, ValueError), match=words):
        publish(tmp_path / "run", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / STATE).write_bytes(b"")
    with pytest.raises(CheckpointError, match="not finished"):
        publish(run, tmp_path / "out")


@pytest.mark.parametrize("name", ["european", "american", "american-mlp", "american-market"])
def test_shipped_models_are_those_of_their_experiments(name: str) -> None:
    folder = Path(__file__).parents[2] / "models" / name
    _, recipe = checkpoint.load(folder)
    publishing._check(recipe, experiment_named(name), folder)


def test_the_command_line_publishes_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"box": {"price": {"rmse": 1.0}}, "domain": {"price": {"rmse": 2.0}}}
    monkeypatch.setattr(publishing, "assess", lambda *_: found)
    run, out = write_run(tmp_path / "run"), tmp_path / "models" / "european"
    assert main(["publish", str(run), "--out", str(out)]) == 0
    assert checkpoint.read_metrics(out)["box"] == found["box"]
    assert str(out) in capsys.readouterr().err
    assert main(["publish", str(tmp_path / "nothing"), "--out", str(out)]) == 1

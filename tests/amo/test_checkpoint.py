"""A model folder is rebuilt whole or refused with a reason."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amo import checkpoint
from amo.checkpoint import Recipe
from amo.errors import CheckpointError
from amo.model_config import AMOConfig
from amo.operator import Operator


@pytest.fixture
def folder(build: Callable[..., Operator], tiny: AMOConfig, tmp_path: Path) -> Path:
    recipe = Recipe(kind="amo", config=tiny, domain={"x": [0, 1]}, notes={"steps": 3})
    checkpoint.save(build(recipe), recipe, {"validation": {"relative_l2": 0.5}}, tmp_path)
    return tmp_path


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(path.read_text())
    change(content)
    content["sha256"] = checkpoint._digest({k: v for k, v in content.items() if k != "sha256"})
    path.write_text(json.dumps(content))


def test_folder_holds_three_files_and_no_pickle(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert names == {"weights.safetensors", "config.json", "metrics.json"}
    _, recipe = checkpoint.load(folder)
    assert recipe.domain == {"x": [0, 1]}
    assert recipe.notes == {"steps": 3}
    assert checkpoint.read_metrics(folder) == {"validation": {"relative_l2": 0.5}}


def test_truncated_weights_are_refused(folder: Path) -> None:
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="not the file"):
        checkpoint.load(folder)
    with pytest.raises(CheckpointError, match="no whole safetensors"):
        checkpoint.read_tensors(weights)


def test_foreign_weights_are_refused(folder: Path) -> None:
    (folder / "weights.safetensors").write_bytes(b"\x80\x04 a pickle, for instance")
    with pytest.raises(CheckpointError, match="not the file"):
        checkpoint.load(folder)


def test_edited_configuration_is_refused(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"width": 16', '"width": 32'))
    with pytest.raises(CheckpointError, match="checksum"):
        checkpoint.load(folder)


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    edit(folder / "config.json", lambda c: c["model"]["config"].update(width=32))
    with pytest.raises(CheckpointError, match="does not fit"):
        checkpoint.load(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(format=99), "format 99"),
        (lambda c: c["model"].update(kind="oracle"), "unknown model 'oracle'"),
        (lambda c: c["model"]["config"].update(magic=1), "unknown settings"),
        (lambda c: c["model"]["config"].update(poles="wild"), "describes no model"),
        (lambda c: c["model"]["config"].update(width="wide"), "describes no model|does not fit"),
        (lambda c: c["model"]["config"].update(width=1.5), "describes no model|does not fit"),
        (lambda c: c["model"]["config"].update(n_blocks=[2]), "describes no model|does not fit"),
        (lambda c: c["model"].update(config=None), "describes no model"),
        (lambda c: c.update(model=[]), "describes no model"),
        (lambda c: c.update(link=5), "describes no model|does not fit"),
        (lambda c: c.pop("model"), "describes no model"),
    ],
)
def test_configuration_of_another_kind_is_refused(
    folder: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    edit(folder / "config.json", change)
    with pytest.raises(CheckpointError, match=words):
        checkpoint.load(folder)


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors"])
def test_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=name):
        checkpoint.load(folder)


def test_text_that_is_no_json_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="cannot be read"):
        checkpoint.load(folder)
    (folder / "config.json").write_text("[]")
    with pytest.raises(CheckpointError, match="no settings"):
        checkpoint.load(folder)


def test_metrics_of_other_weights_are_refused(folder: Path) -> None:
    edit(folder / "metrics.json", lambda c: c.update(weights_sha256="0"))
    with pytest.raises(CheckpointError, match="other weights"):
        checkpoint.read_metrics(folder)


def test_json_that_is_too_deep_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 200_000)
    with pytest.raises(CheckpointError, match="cannot be read"):
        checkpoint.load(folder)


def test_edited_metrics_are_refused(folder: Path) -> None:
    path = folder / "metrics.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "stated": 1e-9}))
    with pytest.raises(CheckpointError, match="checksum"):
        checkpoint.read_metrics(folder)

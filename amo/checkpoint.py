"""A trained operator as a folder: weights.safetensors, config.json, metrics.json. No pickle.

``config.json`` rebuilds everything and vouches for the weights and for itself by SHA-256, so
truncated, mixed-up or edited weights and configurations are refused with a reason.
``metrics.json`` says which weights its numbers were measured on, and vouches for itself too: stated
errors are read from it.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from amo.configuration import Link
from amo.errors import CheckpointError
from amo.files import make_folder, replacing, sha256_of, write_text
from amo.operator import Operator
from amo.registry import MODELS, kind_of

FORMAT = 1
WEIGHTS, CONFIG, METRICS = "weights.safetensors", "config.json", "metrics.json"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a checkpoint knows besides its weights.

    Attributes
    ----------
    kind
        The name of the model in ``MODELS``.
    config
        Its configuration.
    preset
        The experiment it was trained in, "" for none.
    link
        What bounds the answer; see ``amo.operator.Operator``.
    domain
        Ranges outside which it is not to be used, by name.
    notes
        Data set, training settings, hardware, time: whatever reproduces it.
    """

    kind: str
    config: Any
    preset: str = ""
    link: Link = "identity"
    domain: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


def build(recipe: Recipe) -> Operator:
    """Return an untrained operator; seed torch beforehand for repeatable weights."""
    return Operator(kind_of(recipe.kind).model(recipe.config), recipe.config, recipe.link)


def save(operator: Operator, recipe: Recipe, metrics: Mapping[str, Any], folder: Path) -> None:
    """Write the three files, each whole or not at all."""
    make_folder(folder)
    write_tensors(dict(operator.state_dict()), folder / WEIGHTS)
    digest = sha256_of(folder / WEIGHTS)
    content = {
        "format": FORMAT,
        "model": {"kind": recipe.kind, "config": asdict(recipe.config)},
        "preset": recipe.preset,
        "link": recipe.link,
        "domain": dict(recipe.domain),
        "notes": dict(recipe.notes),
        "weights_sha256": digest,
    }
    content["sha256"] = _digest(content)
    write_text(json.dumps(content, indent=1) + "\n", folder / CONFIG)
    write_metrics(metrics, folder)


def write_metrics(metrics: Mapping[str, Any], folder: Path) -> None:
    """Write metrics.json for the weights in the folder."""
    content = {"weights_sha256": sha256_of(folder / WEIGHTS), **metrics}
    content["sha256"] = _digest(content)
    write_text(json.dumps(content, indent=1) + "\n", folder / METRICS)


def load(folder: Path, device: torch.device | str = "cpu") -> tuple[Operator, Recipe]:
    """Rebuild an operator, ready to evaluate, and what is known about it."""
    content = _read_config(folder)
    recipe = _recipe(content, folder / CONFIG)
    weights = folder / WEIGHTS
    try:
        if sha256_of(weights) != content["weights_sha256"]:
            raise CheckpointError(
                f"{weights} is not the file that {CONFIG} describes: truncated, edited or of "
                "another model; fetch or train it again"
            )
        tensors, _ = read_tensors(weights)
    except FileNotFoundError:
        raise CheckpointError(f"{weights} is missing") from None
    try:
        operator = build(recipe)
        operator.load_state_dict(tensors)
    # torch's reports of impossible sizes, and of names and shapes that do not fit
    except (RuntimeError, TypeError, ValueError, ArithmeticError, MemoryError) as error:
        raise CheckpointError(f"{weights} does not fit {CONFIG}: {error}") from error
    return operator.to(device).eval(), recipe


def read_metrics(folder: Path) -> dict[str, Any]:
    """Read metrics.json, refusing numbers that belong to other weights or were edited."""
    path = folder / METRICS
    content = _read_json(path)
    if content.get("weights_sha256") != _read_config(folder)["weights_sha256"]:
        raise CheckpointError(f"{path} was measured on other weights: run `python -m amo evaluate`")
    _check_seal(content, path)
    del content["weights_sha256"]
    return content


def write_tensors(
    tensors: Mapping[str, Tensor], path: Path, notes: Mapping[str, str] | None = None
) -> None:
    """Write tensors to one safetensors file, whole or not at all."""
    whole = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    with replacing(path) as beside:
        save_file(whole, beside, metadata=dict(notes or {}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file and its notes."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, struct.error) as error:
        raise CheckpointError(f"{path} is no whole safetensors file: {error}") from error


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    content = _read_json(path)
    if content.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has format {content.get('format')!r}; this version reads {FORMAT}"
        )
    _check_seal(content, path)
    return content


def _check_seal(content: dict[str, Any], path: Path) -> None:
    """Take a file's own checksum out of its content, and refuse what does not match it."""
    if "sha256" not in content:
        raise CheckpointError(
            f"{path} has no checksum, as older versions wrote it: measure or train it again"
        )
    if content.pop("sha256") != _digest(content):
        raise CheckpointError(f"{path} was edited or cut: its checksum does not hold")


def _recipe(content: dict[str, Any], path: Path) -> Recipe:
    try:
        kind = content["model"]["kind"]
        if kind not in MODELS:
            raise CheckpointError(f"{path} names the unknown model {kind!r}: {sorted(MODELS)}")
        given = content["model"]["config"]
        unknown = set(given) - {f.name for f in fields(kind_of(kind).config)}
        if unknown:
            raise CheckpointError(f"{path} has unknown settings {sorted(unknown)}")
        return Recipe(
            kind=kind,
            config=kind_of(kind).config(**given),
            preset=content["preset"],
            link=content["link"],
            domain=content["domain"],
            notes=content["notes"],
        )
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise CheckpointError(f"{path} describes no model: {error!r}") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"no model in {path.parent}: {path.name} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds no settings")
    return content


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

"""What a model folder says, as plain text, for results files and for pictures."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from amo import checkpoint
from amo.errors import CheckpointError
from amo.results import RunSummary

_FACTS = {"steps": "steps", "minutes": "minutes", "hardware": ""}
Poles = list[list[list[list[float]]]]  # block, sample, pole, (real, imaginary)


def describe(model: Path) -> str:
    """Return what a model folder says, as plain text."""
    operator, recipe = checkpoint.load(model)
    metrics = checkpoint.read_metrics(model)
    config = asdict(recipe.config)
    n_parameters = sum(parameter.numel() for parameter in operator.parameters())
    lines = [
        f"{recipe.kind}, preset {recipe.preset or 'none'}: {n_parameters:,} parameters",
        "configuration: " + ", ".join(f"{name} {value}" for name, value in config.items()),
        "domain: " + (json.dumps(dict(recipe.domain)) if recipe.domain else "as the training data"),
        "trained: "
        + ", ".join(f"{recipe.notes.get(k, '?')} {unit}".strip() for k, unit in _FACTS.items()),
    ]
    lines += [
        f"{split}: relative L2 {scores['relative_l2']:.2e}, RMSE {scores['rmse']:.2e}, largest "
        f"error {scores['largest_error']:.2e} on {scores['samples']:.0f} samples"
        for split, scores in _scores(metrics).items()
    ]
    for block, poles in enumerate(metrics.get("poles", []), start=1):
        radii = torch.tensor(poles).norm(dim=-1)
        lines.append(
            f"block {block}: {radii.shape[1]} poles at radius {radii.min():.2f} to "
            f"{radii.max():.2f}, captures {metrics['captured_energy'][block - 1]:.0%} of its "
            f"tokens' energy, Gram error {metrics['gram_error'][block - 1]:.1e}"
        )
    return "\n".join(lines)


def summary(model: Path) -> RunSummary:
    """Return the scores and the cost of a run, for a results file."""
    operator, recipe = checkpoint.load(model)
    return {
        "preset": recipe.preset,
        "parameters": sum(parameter.numel() for parameter in operator.parameters()),
        "seed": recipe.notes["training"]["seed"],
        "steps": recipe.notes["steps"],
        "minutes": recipe.notes["minutes"],
        "hardware": recipe.notes["hardware"],
        "versions": recipe.notes["versions"],
        "scores": _scores(checkpoint.read_metrics(model)),
    }


def learned_poles(model: Path) -> Poles:
    """Return the poles that a model chose for a few validation samples, block by block."""
    poles: Poles | None = checkpoint.read_metrics(model).get("poles")
    if poles is None:
        raise CheckpointError(f"{model} has no poles: it is no AMO")
    return poles


def n_tokens(model: Path) -> int:
    """Return the number of latent tokens of a model with orthogonal functions."""
    _, recipe = checkpoint.load(model)
    if recipe.config.basis != "orthogonal":
        raise CheckpointError(f"{model} has plain kernels, no Takenaka–Malmquist functions")
    return int(recipe.config.n_tokens)


def _scores(metrics: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the scores by split among a model's metrics."""
    return {
        name: value
        for name, value in metrics.items()
        if isinstance(value, dict) and {"relative_l2", "rmse", "samples"} <= set(value)
    }

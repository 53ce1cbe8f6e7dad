"""One experiment from its preset to a model folder, and what that folder says afterwards."""

import ctypes
import json
import os
import platform
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from amo import checkpoint, distributed, training
from amo.batch import Batch
from amo.checkpoint import CheckpointError, Recipe
from amo.evaluation import Dataset
from amo.evaluation import evaluate as evaluate_split
from amo.experiments import PRESETS, Preset
from amo.model import AMO
from amo.operator import Operator
from amo.training_state import LOG, STATE

_EXIT_CODES = {"signal": 130}
Poles = list[list[list[list[float]]]]  # block, sample, pole, (real, imaginary)


@dataclass(frozen=True)
class Run:
    """How a training command ended."""

    message: str
    exit_code: int


def train(
    name: str,
    *,
    data: Path,
    out: Path,
    device: str = "auto",
    seed: int = 0,
    steps: int | None = None,
    max_minutes: float | None = None,
    compiled: bool = False,
    fresh: bool = False,
) -> Run:
    """Train a preset, or go on where it stopped, and write the model folder when it is done."""
    preset = _preset(name)
    config = replace(preset.training, seed=seed, compile=compiled)
    config = config if steps is None else replace(config, steps=steps)
    recipe = Recipe(kind=preset.kind, config=preset.model, preset=name)
    if fresh:
        for file in (STATE, LOG, checkpoint.WEIGHTS, checkpoint.CONFIG, checkpoint.METRICS):
            (out / file).unlink(missing_ok=True)
    train_set, validation = preset.open(data, "train"), preset.open(data, "validation")
    if (out / checkpoint.CONFIG).exists() and not (out / STATE).exists():
        return Run(f"{out} is finished already: --fresh trains it anew", 0)
    _keep_freed_memory()
    workers = distributed.join(device)
    try:
        torch.manual_seed(seed)
        operator = checkpoint.build(recipe)
        operator.fit_normalisers(lambda: map(preset.read, train_set.batches(config.batch_size)))
        identity = {"preset": name, "model": asdict(preset.model), "data": _fingerprint(train_set)}
        result = training.fit(
            operator,
            train_set,
            validation,
            config,
            out=out,
            read=preset.read,
            workers=workers,
            loss=preset.loss,
            max_minutes=max_minutes,
            identity=identity,
        )
        scores = evaluate_split(operator, validation, preset.read, workers, config.batch_size)
        if workers.is_first:
            notes = {
                **identity,
                "training": asdict(config),
                "steps": result.steps,
                "minutes": round(result.minutes, 2),
                "hardware": _hardware(workers),
                "versions": {k: version(k) for k in ("amo-pricing", "torch", "numpy")},
            }
            metrics = {"validation": scores, **_diagnose(operator, validation, preset, workers)}
            checkpoint.save(operator, replace(recipe, notes=notes), metrics, out)
            if result.reason in ("finished", "early stop"):
                (out / STATE).unlink()
    finally:
        distributed.leave()
    message = _message(result, scores["relative_l2"], out) if workers.is_first else ""
    return Run(message, _EXIT_CODES.get(result.reason, 0))


def evaluate(model: Path, data: Path, split: str, device: str = "auto") -> dict[str, float]:
    """Score a model on a split and write the scores into its metrics.json."""
    workers = distributed.join(device)
    operator, recipe = checkpoint.load(model, workers.device)
    preset = _preset(recipe.preset)
    scores = evaluate_split(operator, preset.open(data, split), preset.read, workers)
    checkpoint.write_metrics({**checkpoint.read_metrics(model), split: scores}, model)
    return scores


def describe(model: Path) -> str:
    """Return what a model folder says, for people."""
    operator, recipe = checkpoint.load(model)
    metrics = checkpoint.read_metrics(model)
    config = asdict(recipe.config)
    n_parameters = sum(parameter.numel() for parameter in operator.parameters())
    lines = [
        f"{recipe.kind}, preset {recipe.preset or 'none'}: {n_parameters:,} parameters",
        "configuration: " + ", ".join(f"{name} {value}" for name, value in config.items()),
        "domain: " + (json.dumps(dict(recipe.domain)) if recipe.domain else "as the training data"),
        "trained: {steps} steps, {minutes} minutes, {hardware}".format(**recipe.notes),
    ]
    lines += [
        f"{split}: relative L2 {scores['relative_l2']:.2e}, RMSE {scores['rmse']:.2e}, largest "
        f"error {scores['largest_error']:.2e} on {scores['samples']:.0f} samples"
        for split, scores in metrics.items()
        if isinstance(scores, dict) and "relative_l2" in scores
    ]
    for block, poles in enumerate(metrics.get("poles", []), start=1):
        radii = torch.tensor(poles).norm(dim=-1)
        lines.append(
            f"block {block}: {radii.shape[1]} poles at radius {radii.min():.2f} to "
            f"{radii.max():.2f}, captures {metrics['captured_energy'][block - 1]:.0%} of its "
            f"tokens' energy, Gram error {metrics['gram_error'][block - 1]:.1e}"
        )
    return "\n".join(lines)


def learned_poles(model: Path) -> Poles:
    """Return the poles that a model chose for a few validation samples, block by block."""
    poles: Poles | None = checkpoint.read_metrics(model).get("poles")
    if poles is None:
        raise CheckpointError(f"{model} has no poles: it is no AMO")
    return poles


def n_tokens(model: Path) -> int:
    """Return the number of latent tokens of a model."""
    _, recipe = checkpoint.load(model)
    return int(recipe.config.n_tokens)


def _diagnose(
    operator: Operator, dataset: Dataset, preset: Preset, workers: distributed.Workers
) -> dict[str, Any]:
    """Return poles, captured energy and Gram error on a few samples, as JSON holds them."""
    if not isinstance(operator.model, AMO):
        return {}
    batch: Batch = preset.read(next(iter(dataset.batches(16)))).to(workers.device)
    with torch.no_grad():
        rows = operator.model.diagnostics(
            operator.points(batch.points), operator.features(batch.features), batch.mask
        )
    return {
        "poles": [row.poles.double().mul(1e5).round().div(1e5).tolist() for row in rows],
        "captured_energy": [float(row.captured_energy.mean()) for row in rows],
        "gram_error": [float(row.gram_error.max()) for row in rows],
    }


def _preset(name: str) -> Preset:
    if name not in PRESETS:
        raise ValueError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]


def _fingerprint(dataset: Dataset) -> dict[str, Any]:
    """Return what says that a data set is the same one at the next start."""
    manifest = getattr(dataset, "manifest", None)
    if manifest is None:
        return {"samples": len(dataset)}
    return {"set": manifest.name, "settings": manifest.settings, "project": manifest.project}


def _message(result: training.Result, validation: float, out: Path) -> str:
    error = f"validation relative L2 {validation:.2e}"
    if result.reason in ("finished", "early stop"):
        return f"{result.reason} after {result.steps} steps: {error}; the model is in {out}"
    return (
        f"stopped by {result.reason} after {result.steps} steps: {error}; the best weights are in "
        f"{out}, and the same command goes on from here"
    )


def _hardware(workers: distributed.Workers) -> str:
    name = platform.machine()
    if workers.device.type == "cuda":
        name = torch.cuda.get_device_name(workers.device)
    return f"{workers.count} × {name}, {os.cpu_count()} cores"


def _keep_freed_memory() -> None:
    """Ask glibc to keep freed buffers: faulting their pages in again costs as much as the work."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        for parameter in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            libc.mallopt(parameter, 1 << 30)

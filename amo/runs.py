"""One experiment from its preset to a model folder, and what that folder says afterwards."""

import json
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from amo import checkpoint, distributed, training
from amo.checkpoint import Recipe
from amo.data import fingerprint
from amo.diagnosis import diagnose
from amo.errors import CheckpointError, DataError, SettingsError
from amo.evaluation import Dataset
from amo.evaluation import evaluate as evaluate_split
from amo.experiments import PRESETS, Preset
from amo.files import make_folder
from amo.memory import keep_freed_memory
from amo.training_state import LOG, STATE

_EXIT_CODES = {"signal": 130}
_FACTS = {"steps": "steps", "minutes": "minutes", "hardware": ""}
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
    splits = preset.open(data, "train"), preset.open(data, "validation")
    identity = {
        "preset": name,
        "model": asdict(preset.model),
        "data": fingerprint(splits[0]),
        "training": asdict(config),
    }
    make_folder(out)
    keep_freed_memory()
    workers = distributed.join(device)
    try:
        if fresh and workers.is_first:
            for file in (STATE, LOG, checkpoint.WEIGHTS, checkpoint.CONFIG, checkpoint.METRICS):
                (out / file).unlink(missing_ok=True)
        workers.any(flag=False)  # nobody looks before the first has tidied up
        if (out / checkpoint.CONFIG).exists() and not (out / STATE).exists():
            return _finished_already(out, identity)
        return _train(preset, config, splits, identity, out, workers, max_minutes)
    finally:
        distributed.leave()


def _train(
    preset: Preset,
    config: training.TrainingConfig,
    splits: tuple[Dataset, Dataset],
    identity: dict[str, Any],
    out: Path,
    workers: distributed.Workers,
    max_minutes: float | None,
) -> Run:
    train_set, validation = splits
    recipe = Recipe(
        kind=preset.kind,
        config=preset.model,
        preset=identity["preset"],
        link=preset.link,
        domain=identity["data"].get("settings", {}).get("domain", {}),
    )
    torch.manual_seed(config.seed)
    operator = checkpoint.build(recipe)
    operator.fit_normalisers(
        lambda: map(preset.read, train_set.batches(config.batch_size)), is_coded=preset.is_coded
    )
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
    if not workers.is_first:
        return Run("", _EXIT_CODES.get(result.reason, 0))
    notes = {
        **identity,
        "steps": result.steps,
        "minutes": round(result.minutes, 2),
        "hardware": workers.hardware,
        "versions": {k: version(k) for k in ("amo-pricing", "torch", "numpy")},
    }
    few = preset.read(next(iter(validation.batches(16)))).to(workers.device)
    metrics = {"validation": scores, **diagnose(operator, few)}
    checkpoint.save(operator, replace(recipe, notes=notes), metrics, out)
    if result.reason in ("finished", "early stop"):
        (out / STATE).unlink()
    return Run(_message(result, scores["relative_l2"], out), _EXIT_CODES.get(result.reason, 0))


def _finished_already(out: Path, identity: dict[str, Any]) -> Run:
    _, recipe = checkpoint.load(out)
    wanted = json.loads(json.dumps(identity))
    other = [key for key, value in wanted.items() if recipe.notes.get(key) != value]
    if other:
        raise CheckpointError(
            f"{out} holds a finished run with another {', '.join(other)}: choose another --out, "
            "or --fresh to train anew"
        )
    return Run(f"{out} is finished already: --fresh trains it anew", 0)


def evaluate(model: Path, data: Path, split: str, device: str = "auto") -> dict[str, float]:
    """Score a model on a split and write the scores into its metrics.json."""
    workers = distributed.join(device)
    try:
        operator, recipe = checkpoint.load(model, workers.device)
        preset = _preset(recipe.preset)
        dataset = preset.open(data, split)
        there, known = fingerprint(dataset).get("set"), recipe.notes.get("data", {}).get("set")
        if there != known:
            raise DataError(f"{data} holds the set {there!r}; the model was trained on {known!r}")
        scores = evaluate_split(operator, dataset, preset.read, workers)
        if workers.is_first:
            checkpoint.write_metrics({**_known_metrics(model), split: scores}, model)
    finally:
        distributed.leave()
    return scores


def _known_metrics(model: Path) -> dict[str, Any]:
    """Return the metrics of these weights, none where they are missing or of others."""
    try:
        return checkpoint.read_metrics(model)
    except CheckpointError:
        return {}


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


def summary(model: Path) -> dict[str, Any]:
    """Return what a run reached and what it took, for a results file."""
    operator, recipe = checkpoint.load(model)
    return {
        "preset": recipe.preset,
        "parameters": sum(parameter.numel() for parameter in operator.parameters()),
        "seed": recipe.notes["training"]["seed"],
        **{name: recipe.notes[name] for name in ("steps", "minutes", "hardware", "versions")},
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


def _preset(name: str) -> Preset:
    if name not in PRESETS:
        raise SettingsError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]


def _message(result: training.Result, validation: float, out: Path) -> str:
    error = f"validation relative L2 {validation:.2e}"
    if result.reason in ("finished", "early stop"):
        return f"{result.reason} after {result.steps} steps: {error}; the model is in {out}"
    return (
        f"stopped by {result.reason} after {result.steps} steps: {error}; the best weights are in "
        f"{out}, and the same command goes on from here"
    )

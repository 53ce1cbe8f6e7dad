"""One experiment: what is learned, from which data, by which model, for how long.

:func:`train` is the one way from data to a folder with weights. Training by hand, the rows of
benchmark tables and the shipped surrogates all use it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from amo import checkpoint
from amo.checkpoint import Recipe
from amo.configuration import Link, ModelConfig
from amo.data.batch import read_operator_arrays
from amo.data.datasets import Dataset, Read, ShardedDataset
from amo.data.format import Arrays
from amo.errors import CheckpointError, DataError
from amo.files import make_folder
from amo.operator import Operator
from amo.system import keep_freed_memory
from amo.training import distributed, loop
from amo.training.distributed import Workers
from amo.training.evaluation import Predict, at_once
from amo.training.evaluation import evaluate as evaluate_split
from amo.training.loop import TrainingConfig
from amo.training.losses import Loss, relative_l2_loss
from amo.training.state import LOG, STATE


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is learned, from which arrays, and how it is scored.

    Attributes
    ----------
    name, title
        For the command line and for tables.
    folder
        Where its data lie under the folder of all data.
    open
        How a folder and a split's name become a data set.
    read
        How arrays become a batch.
    n_features, n_dimensions, n_outputs
        Channels in, coordinates, channels out.
    grid
        Points along each axis where samples lie on a grid, in the order of the batch; models that
        work on grids only need it.
    input_varies
        Whether the input differs from point to point; then the decoder of AMO sees it.
    is_periodic
        Whether every axis wraps around.
    predict
        How a trained operator answers a batch of the test split: at once, or step by step.
    further
        More test splits, with the grid of each: other resolutions, never trained on.
    link, is_coded
        What bounds the answer, and whether the data come with queries and values of unit size; see
        :class:`amo.operator.Operator`.
    regions
        Parts of the domain whose errors are also stated: masks (batch, n_points) of arrays, or with
        an axis of channels.
    origin
        Whether these are the official files or data recreated from the physics.
    quoted
        The paper's relative L2 by model, on its own data and hardware.
    """

    name: str
    title: str
    n_features: int
    n_dimensions: int
    n_outputs: int = 1
    folder: str = ""
    open: Callable[[Path, str], Dataset] = ShardedDataset
    read: Read = read_operator_arrays
    grid: tuple[int, ...] | None = None
    input_varies: bool = True
    is_periodic: bool = False
    predict: Predict = at_once
    further: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    link: Link = "identity"
    is_coded: bool = False
    regions: Mapping[str, Callable[[Arrays], Tensor]] = field(default_factory=dict)
    origin: Literal["official", "regenerated"] = "regenerated"
    quoted: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A model on a problem, and how it is trained.

    Attributes
    ----------
    name
        Its name on the command line and in the model folder.
    problem
        What is learned.
    kind, model
        The model's name in :data:`amo.registry.MODELS`, and its configuration.
    training, loss
        How it is trained, and what is minimised.
    """

    name: str
    problem: Problem
    kind: str
    model: ModelConfig
    training: TrainingConfig
    loss: Loss = relative_l2_loss

    @property
    def recipe(self) -> Recipe:
        """What a checkpoint needs to build the model again."""
        return Recipe(kind=self.kind, config=self.model, preset=self.name, link=self.problem.link)


@dataclass(frozen=True)
class Trained:
    """A run that has ended, or was stopped.

    ``reason`` is "finished", "finished already", "early stop", "signal" or "time limit";
    ``minutes`` is wall time, validation included; ``validation`` holds scores, as
    :func:`amo.training.evaluation.evaluate` returns them.
    """

    operator: Operator
    recipe: Recipe
    folder: Path
    reason: str
    steps: int
    minutes: float
    validation: Mapping[str, float]

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self.reason in ("finished", "finished already", "early stop")


Plan = Callable[[Operator, Dataset, Workers], TrainingConfig]


def train(
    experiment: Experiment,
    *,
    data: Path,
    out: Path,
    device: str = "auto",
    max_minutes: float | None = None,
    fresh: bool = False,
    plan: Plan | None = None,
) -> Trained:
    """Train an experiment into a model folder, or resume the one that stopped there.

    Parameters
    ----------
    data
        The folder of the problem's own data.
    out
        The model folder. One that holds another experiment is refused; a finished one is returned
        as it is.
    device
        "auto", "cpu", "cuda" or "mps".
    max_minutes
        Save and stop after this long; the same call resumes.
    fresh
        Forget what ``out`` holds.
    plan
        Settles the training once the model is built: how many steps fill a budget.
    """
    problem = experiment.problem
    splits = problem.open(data, "train"), problem.open(data, "validation")  # before files are made
    make_folder(out)
    keep_freed_memory()
    workers = distributed.join(device)
    try:
        if fresh and workers.is_first:
            for file in (STATE, LOG, checkpoint.WEIGHTS, checkpoint.CONFIG, checkpoint.METRICS):
                (out / file).unlink(missing_ok=True)
        workers.meet()  # no process looks before the first has tidied up
        trained = _train(experiment, splits, out, workers, max_minutes, plan)
        workers.meet()  # none leaves while another still talks
        return trained
    finally:
        distributed.leave()


def _train(
    experiment: Experiment,
    splits: tuple[Dataset, Dataset],
    out: Path,
    workers: Workers,
    max_minutes: float | None,
    plan: Plan | None,
) -> Trained:
    problem, config = experiment.problem, experiment.training
    train_set, validation = splits
    fingerprint = train_set.fingerprint()
    domain = fingerprint.get("settings", {}).get("domain", {})
    recipe = replace(experiment.recipe, domain=domain)
    torch.manual_seed(config.seed)
    operator = checkpoint.build(recipe)
    operator.fit_normalisers(
        lambda: map(problem.read, train_set.batches(config.batch_size)), is_coded=problem.is_coded
    )
    if plan is not None:
        config = plan(operator, train_set, workers)
    identity = {
        "preset": experiment.name,
        "model": asdict(experiment.model),
        "data": fingerprint,
        "training": asdict(config),
    }
    if (out / checkpoint.CONFIG).exists() and not (out / STATE).exists():
        return _finished_already(out, identity, workers)
    result = loop.fit(
        operator,
        train_set,
        validation,
        config,
        out=out,
        read=problem.read,
        workers=workers,
        loss=experiment.loss,
        max_minutes=max_minutes,
        identity=identity,
    )
    scores = evaluate_split(operator, validation, problem.read, workers, config.batch_size)
    notes = {
        **identity,
        "steps": result.steps,
        "minutes": round(result.minutes, 2),
        "hardware": workers.hardware,
        "versions": {name: version(name) for name in ("amo-pricing", "torch", "numpy")},
    }
    recipe = replace(recipe, notes=notes)
    if workers.is_first:
        few = problem.read(next(iter(validation.batches(16)))).to(workers.device)
        checkpoint.save(operator, recipe, {"validation": scores, **operator.diagnose(few)}, out)
        if result.reason in ("finished", "early stop"):
            (out / STATE).unlink()
    return Trained(operator, recipe, out, result.reason, result.steps, result.minutes, scores)


def _finished_already(out: Path, identity: dict[str, Any], workers: Workers) -> Trained:
    operator, recipe = checkpoint.load(out, workers.device)
    wanted = json.loads(json.dumps(identity))
    other = [key for key, value in wanted.items() if recipe.notes.get(key) != value]
    if other:
        raise CheckpointError(
            f"{out} holds a finished run with another {', '.join(other)}: choose another --out, "
            "or --fresh to train anew"
        )
    notes, scores = recipe.notes, checkpoint.read_metrics(out)["validation"]
    return Trained(
        operator, recipe, out, "finished already", notes["steps"], notes["minutes"], scores
    )


def evaluate(
    model: Path, data: Path, split: str, device: str = "auto", problem: Problem | None = None
) -> dict[str, float]:
    """Score a model on a split and write the scores into its metrics.json.

    ``problem`` says how the data are read; by default as the shards of data_gen are.
    """
    workers = distributed.join(device)
    try:
        operator, recipe = checkpoint.load(model, workers.device)
        opened = ShardedDataset if problem is None else problem.open
        read = read_operator_arrays if problem is None else problem.read
        dataset = opened(data, split)
        there, known = dataset.fingerprint().get("set"), recipe.notes.get("data", {}).get("set")
        if there != known:
            raise DataError(f"{data} holds the set {there!r}; the model was trained on {known!r}")
        scores = evaluate_split(operator, dataset, read, workers)
        if workers.is_first:
            checkpoint.write_metrics({**_known_metrics(model), split: scores}, model)
        workers.meet()
    finally:
        distributed.leave()
    return scores


def _known_metrics(model: Path) -> dict[str, Any]:
    """Return the metrics of these weights, none if they are missing or belong to others."""
    try:
        return checkpoint.read_metrics(model)
    except CheckpointError:
        return {}

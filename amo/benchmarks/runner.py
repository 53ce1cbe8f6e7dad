"""Train and score contestants under one budget, row by row, into one results file.

A row is one model, one problem, one seed, trained and scored in a process of its own. All models
see the same data, inputs and normalisation, the same optimiser and the same minutes of steps, or
the same number of them. The best weights are chosen on validation and the test split is read once,
at the end. A stopped table goes on with the row, and the step, at which it stopped.
"""

import json
import math
import multiprocessing
import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch

from amo import checkpoint, distributed, training
from amo.benchmarks.contestants import Size, is_grid_only, n_parameters, recipe_for
from amo.benchmarks.pace import plan, seconds_per_step
from amo.benchmarks.problem import Problem, region_errors
from amo.checkpoint import Recipe
from amo.data import fingerprint
from amo.diagnosis import diagnose
from amo.errors import SettingsError, StoppedError
from amo.evaluation import Dataset, evaluate
from amo.files import make_folder, write_text
from amo.memory import keep_freed_memory, peak_megabytes
from amo.operator import Operator
from amo.processes import follow_parent
from amo.training import DivergedError, TrainingConfig

_VALIDATIONS = 5
Results = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What every row is given.

    Attributes
    ----------
    minutes, steps
        One of them: minutes of training steps, validation not counted, or a number of steps.
    size
        Of all models: for two cores, or their papers'.
    batch_size
        Samples a step.
    n_points
        Random points a step of models over points; models on a grid need all of it.
    optimizer, learning_rate
        ``adamw`` or ``soap``, with warm-up and a cosine to zero.
    """

    minutes: float | None = None
    steps: int | None = None
    size: Size = "small"
    batch_size: int = 8
    n_points: int = 1024
    optimizer: Literal["adamw", "soap"] = "adamw"
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if (self.minutes is None) == (self.steps is None):
            raise SettingsError("a budget is minutes or steps: give one of them")
        if (self.minutes or self.steps or 0) <= 0:
            raise SettingsError("a budget must be positive")


@dataclass(frozen=True)
class Entry:
    """One row to be: a model on a problem, with a seed."""

    problem: Problem
    model: str
    seed: int

    @property
    def key(self) -> str:
        """Its name in the results file."""
        return f"{self.problem.name}/{self.model}/{self.seed}"


def run(
    entries: Iterable[Entry],
    budget: Budget,
    *,
    data: Path,
    out: Path,
    file: Path,
    command: str,
    device: str = "auto",
    notes: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Results:
    """Fill the rows that a results file does not have yet, writing it after each.

    Data lie in ``data``, or in the folder below it that a problem names. ``notes`` stand beside
    the rows.
    """
    wanted = list(entries)
    for entry in wanted:  # before hours of training, not after
        recipe_for(entry.model, entry.problem, budget.size)
    problems = {entry.problem.name: entry.problem for entry in wanted}
    sets = {name: _described(problem, data) for name, problem in problems.items()}
    conditions = {
        "budget": asdict(budget),
        "hardware": distributed.join(device).hardware,
        "versions": _versions(),
    }
    results = _begun(file, conditions, sets) | dict(notes or {})
    for number, entry in enumerate(wanted, start=1):
        if entry.key in results["rows"]:
            continue
        say(f"[{number}/{len(wanted)}] {entry.key}")
        try:
            row = _in_a_process(_train_and_score, entry, budget, data, out, device)
        except KeyboardInterrupt:
            raise StoppedError(f"stopped at {entry.key}: the same command goes on") from None
        results["rows"][entry.key] = {**row, "command": command}
        say(f"    {_in_words(row)}")
        write_text(json.dumps(results, indent=1) + "\n", file)
    return results


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("torch", "numpy")}


def _in_words(row: dict[str, Any]) -> str:
    if "diverged" in row:
        return f"diverged: {row['diverged']}"
    return f"relative L2 {row['relative_l2']:.2e} after {row['steps']} steps"


def _described(problem: Problem, data: Path) -> dict[str, Any]:
    """Return what a table says of a problem's data, every split of which is opened."""
    splits = ("train", "validation", "test", *problem.further)
    sets = {split: problem.open(data / problem.folder, split) for split in splits}
    return {
        "title": problem.title,
        "origin": problem.origin,
        "samples": {split: len(getattr(d, "films", d)) for split, d in sets.items()},
        "data": fingerprint(sets["train"]),
    }


def _begun(file: Path, conditions: dict[str, Any], sets: dict[str, Any]) -> Results:
    """Return the results so far, refusing a file that was made under other conditions."""
    conditions, sets = json.loads(json.dumps([conditions, sets]))
    if not file.exists():
        make_folder(file.parent)
        return {**conditions, "problems": sets, "rows": {}}
    found: Results = json.loads(file.read_text(encoding="utf-8"))
    there = found.get("problems", {})
    compared = [(name, found.get(name), wanted) for name, wanted in conditions.items()]
    compared += [(name, there[name], sets[name]) for name in sets if name in there]
    for name, before, wanted in compared:
        if before != wanted:
            raise SettingsError(
                f"{file} was measured with {name} {before}; now it is {wanted}: choose another file"
            )
    return {**found, "problems": {**there, **sets}}


def _in_a_process(work: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """Call a function in a process of its own, so that its peak memory is its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # torch is loaded once for all rows
    with ProcessPoolExecutor(1, mp_context=context, initializer=follow_parent) as pool:
        return pool.submit(work, *arguments).result()


def folder_of(entry: Entry, out: Path) -> Path:
    """Return where the run of an entry lives."""
    return out / re.sub(r"[^\w/+-]+", "-", entry.key)


def _train_and_score(
    entry: Entry, budget: Budget, data: Path, out: Path, device: str
) -> dict[str, Any]:
    keep_freed_memory()
    workers = distributed.join(device)
    problem, folder = entry.problem, folder_of(entry, out)
    make_folder(folder)
    data = data / problem.folder
    train, validation = problem.open(data, "train"), problem.open(data, "validation")
    recipe = recipe_for(entry.model, problem, budget.size)
    config = TrainingConfig(
        steps=1,
        seed=entry.seed,
        batch_size=budget.batch_size,
        learning_rate=budget.learning_rate,
        optimizer=budget.optimizer,
        weight_decay=1e-5 if budget.optimizer == "adamw" else 0.0,
        n_points=None if is_grid_only(recipe.kind) else budget.n_points,
    )

    torch.manual_seed(entry.seed)
    operator = checkpoint.build(recipe)
    operator.fit_normalisers(
        lambda: map(problem.read, train.batches(budget.batch_size)), is_coded=problem.is_coded
    )

    def seconds_of(n: int) -> float:
        return seconds_per_step(operator, train, problem.read, replace(config, steps=n), workers)

    identity = _identity(entry, budget, recipe, train, workers)
    row: dict[str, Any] = {
        "parameters": n_parameters(recipe),
        "model": json.loads(json.dumps(asdict(recipe.config))),  # as the file will hold it
    }
    try:
        steps, pace = plan(seconds_of, folder, identity, minutes=budget.minutes, steps=budget.steps)
        config = replace(
            config,
            steps=steps,
            validate_every=max(1, -(-steps // _VALIDATIONS)),
            save_every=max(1, steps // 10),
        )
        result = training.fit(
            operator,
            train,
            validation,
            config,
            out=folder,
            read=problem.read,
            workers=workers,
            identity=identity,
        )
    except DivergedError as error:  # what happened to this model, and no reason to stop the others
        return {**row, "diverged": str(error).partition(":")[0]}
    if result.reason != "finished":
        raise StoppedError(f"{entry.key} was stopped: the same command goes on from there")
    scores = _scored(operator, problem, problem.open(data, "test"), workers, config)
    if not math.isfinite(scores["relative_l2"]):
        return {**row, "diverged": "the error on the test split is not finite"}
    row |= scores | {
        "further": {
            split: evaluate(
                moved(operator, recipe, grid), problem.open(data, split), problem.read, workers
            )
            for split, grid in problem.further.items()
        },
        "steps": result.steps,
        "seconds_per_step": pace,
        "training_minutes": steps * pace / 60.0,
        "wall_minutes": result.minutes,  # validations too
        "seconds_per_epoch": pace * -(-len(train) // budget.batch_size),
    }
    few = problem.read(next(validation.batches(16))).to(workers.device)
    checkpoint.save(operator, recipe, {"test": row, **diagnose(operator, few)}, folder)
    return row


def _identity(
    entry: Entry, budget: Budget, recipe: Recipe, train: Dataset, workers: distributed.Workers
) -> dict[str, Any]:
    """Return what must be the same for a run to go on."""
    identity = {
        "entry": entry.key,
        "budget": asdict(budget),
        "model": asdict(recipe.config),
        "data": fingerprint(train),
        "hardware": workers.hardware,
        "versions": _versions(),
    }
    return dict(json.loads(json.dumps(identity)))


def moved(operator: Operator, recipe: Recipe, grid: tuple[int, ...]) -> Operator:
    """Return an operator for another grid with the same weights; the padded length stays as well.

    Models over points are what they were.
    """
    if not is_grid_only(recipe.kind):
        return operator
    finer = grid[0] // recipe.config.grid[0]
    config = replace(recipe.config, grid=grid, padding=finer * recipe.config.padding)
    other = checkpoint.build(replace(recipe, config=config))
    other.load_state_dict(operator.state_dict())
    return other.to(operator.points.shift.device).eval()


def _scored(
    operator: Operator,
    problem: Problem,
    test: Dataset,
    workers: distributed.Workers,
    config: TrainingConfig,
) -> dict[str, Any]:
    """Return the scores of the test split, and what the model takes."""
    scores = evaluate(operator, test, problem.read, workers, config.batch_size, problem.predict)
    batch = problem.read(next(test.batches(config.batch_size))).to(workers.device)
    start = time.perf_counter()
    problem.predict(operator, batch)
    seconds = time.perf_counter() - start
    return {
        **scores,
        "regions": region_errors(problem, operator, test, workers, config.batch_size),
        "milliseconds_per_sample": 1e3 * seconds / len(batch),
        "peak_megabytes": peak_megabytes(),
    }

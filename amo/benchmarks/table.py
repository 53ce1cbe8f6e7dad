"""Train and score contestants under one budget, row by row, into one results file.

A row is one model, one problem, one seed, trained and scored in a separate process. All models
see the same data, inputs and normalisation, the same optimiser and the same minutes of steps, or
the same number of them. The best weights are chosen on validation and the test split is read once,
at the end. A stopped table resumes at the row and the step where it stopped.
"""

import json
import math
import multiprocessing
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import torch

from amo import checkpoint, results
from amo.benchmarks.budget import Pace, plan
from amo.benchmarks.contestants import experiment_for, is_grid_only, n_parameters, recipe_for
from amo.checkpoint import Recipe
from amo.data.batch import Batch
from amo.data.datasets import Dataset
from amo.errors import SettingsError, StoppedError
from amo.experiment import Problem, Trained, train
from amo.operator import Operator
from amo.results import Budget, PaperSize, ProblemData, Row, Scores, Table
from amo.system import follow_parent, peak_megabytes
from amo.training import distributed
from amo.training.distributed import Workers
from amo.training.evaluation import evaluate
from amo.training.loop import DivergedError, TrainingConfig
from amo.training.state import LOG

_VALIDATIONS = 5
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Entry:
    """A row to fill: a model on a problem, with a seed."""

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
    quoted: Mapping[str, Mapping[str, float]] | None = None,
    paper_sizes: Mapping[str, PaperSize] | None = None,
    again: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Table:
    """Fill the rows that a results file does not have yet, writing it after each.

    Data lie in ``data``, or in the folder below it that a problem names. ``quoted`` and
    ``paper_sizes`` go beside the rows. ``again`` also measures rows that the file already has.
    """
    wanted = list(entries)
    for entry in wanted:  # before hours of training, not after
        recipe_for(entry.model, entry.problem, budget.size)
    problems = {entry.problem.name: entry.problem for entry in wanted}
    sets = {name: _described(problem, data) for name, problem in problems.items()}
    table = _begun(file, budget, sets)
    table.quoted.update({name: dict(figures) for name, figures in (quoted or {}).items()})
    table.paper_sizes.update(paper_sizes or {})
    for number, entry in enumerate(wanted, start=1):
        if entry.key in table.rows and not again:
            continue
        say(f"[{number}/{len(wanted)}] {entry.key}")
        try:
            row = in_a_process(_train_and_score, entry, budget, data, out, device, command)
        except KeyboardInterrupt:
            raise StoppedError(f"stopped at {entry.key}: the same command goes on") from None
        table.rows[entry.key] = row
        say(f"    {_in_words(row)}")
        results.write(table, file)
    return table


def _in_words(row: Row) -> str:
    if row.diverged:
        return f"diverged: {row.diverged}"
    return f"relative L2 {row.relative_l2:.2e} after {row.steps} steps"


def _described(problem: Problem, data: Path) -> ProblemData:
    """Return what a table says about a problem's data; every split is opened."""
    splits = ("train", "validation", "test", *problem.further)
    sets = {split: problem.open(data / problem.folder, split) for split in splits}
    return ProblemData(
        title=problem.title,
        origin=problem.origin,
        samples={split: dataset.n_samples for split, dataset in sets.items()},
        data=_as_json(sets["train"].fingerprint()),
    )


def _as_json(content: dict[str, Any]) -> dict[str, Any]:
    """Return settings as a file holds them: lists for tuples, names for keys."""
    return dict(msgspec.json.decode(msgspec.json.encode(content)))


def _begun(file: Path, budget: Budget, sets: dict[str, ProblemData]) -> Table:
    """Return the results so far, refusing a file with another budget or other data."""
    if not file.exists():
        return Table(budget=budget, problems=dict(sets))
    table = results.read(file, Table)
    compared: list[tuple[str, object, object]] = [("budget", table.budget, budget)]
    compared += [
        (f"data of {name}", _contents(table.problems[name]), _contents(sets[name]))
        for name in sets
        if name in table.problems
    ]
    for name, before, wanted in compared:
        if before != wanted:
            raise SettingsError(
                f"{file} was measured with {name} {before}; now it is {wanted}: choose another file"
            )
    table.problems.update(sets)
    return table


def _contents(problem: ProblemData) -> dict[str, object]:
    """Return what makes two data sets the same, whichever version of this project made them."""
    return {"sha256": problem.data.get("sha256"), "samples": problem.samples}


def in_a_process(work: Callable[..., Answer], *arguments: object) -> Answer:
    """Call a function in a separate process, so that its peak memory is its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # torch is loaded once for all rows
    with ProcessPoolExecutor(1, mp_context=context, initializer=follow_parent) as pool:
        return pool.submit(work, *arguments).result()


def folder_of(entry: Entry, out: Path) -> Path:
    """Return where the run of an entry lives."""
    return out / re.sub(r"[^\w/+-]+", "-", entry.key)


def _train_and_score(
    entry: Entry, budget: Budget, data: Path, out: Path, device: str, command: str
) -> Row:
    """Train a row at every learning rate, and score the one that is best on validation."""
    folder, rates = folder_of(entry, out), (budget.learning_rate, *budget.further_rates)
    each = [
        _trained(entry, budget, rate, data, _of_rate(folder, rate, rates), device) for rate in rates
    ]
    runs = [run for run in each if isinstance(run, _Run)]
    experiment = experiment_for(entry.model, entry.problem, budget, entry.seed)
    row = Row(
        parameters=n_parameters(experiment.recipe),
        model=_as_json(asdict(experiment.model)),
        origin=results.origin(distributed.join(device).hardware, command),
    )
    if not runs:  # recorded for this model; no reason to stop the others
        return replace(row, diverged=str(each[0]))
    best = min(runs, key=lambda run: run.trained.validation["relative_l2"])
    if len(rates) > 1:
        tried = {f"{run.rate:g}": run.trained.validation["relative_l2"] for run in runs}
        row = replace(row, validation=tried)
        for file in best.trained.folder.iterdir():
            if file.is_file():  # where pictures look for the model
                shutil.copy2(file, folder / file.name)
    return _scored(
        replace(
            row,
            steps=best.trained.steps,
            seconds_per_step=best.pace,
            training_minutes=best.trained.steps * best.pace / 60.0,
            wall_minutes=best.trained.minutes,
            curve=_curve(best.trained.folder, best.pace),
        ),
        best.trained.operator,
        best.trained.recipe,
        entry.problem,
        data / entry.problem.folder,
        budget.batch_size,
        distributed.join(device),
        folder,
    )


class _Run(NamedTuple):
    """A model trained at one learning rate, and the seconds of one of its steps."""

    rate: float
    trained: Trained
    pace: float


def _of_rate(folder: Path, rate: float, rates: tuple[float, ...]) -> Path:
    return folder if len(rates) == 1 else folder / f"rate-{rate:g}"


def _trained(
    entry: Entry, budget: Budget, rate: float, data: Path, folder: Path, device: str
) -> _Run | str:
    """Train one model at one rate; return why it diverged if it did."""
    problem = entry.problem
    experiment = experiment_for(entry.model, problem, budget, entry.seed, rate)
    pace = 0.0

    def settled(operator: Operator, dataset: Dataset, workers: Workers) -> TrainingConfig:
        nonlocal pace
        config = experiment.training

        identity = {
            "entry": entry.key,
            "budget": _as_json(asdict(replace(budget, learning_rate=rate, further_rates=()))),
            "model": _as_json(asdict(experiment.model)),
            "data": _as_json(dataset.fingerprint()),
            "hardware": workers.hardware,
            "torch": torch.__version__,
        }
        steps, pace = plan(
            Pace(operator, dataset, problem.read, config, workers),
            folder,
            identity,
            minutes=budget.minutes,
            steps=steps_of(budget, dataset),
        )
        validate_every = max(1, -(-steps // _VALIDATIONS))
        save_every = max(1, steps // 10)
        return replace(config, steps=steps, validate_every=validate_every, save_every=save_every)

    try:
        trained = train(
            experiment, data=data / problem.folder, out=folder, device=device, plan=settled
        )
    except DivergedError as error:
        return str(error).partition(":")[0]
    if not trained.is_finished:
        raise StoppedError(f"{entry.key} was stopped: the same command goes on from there")
    if not math.isfinite(trained.validation["relative_l2"]):
        return "the error on validation is not finite"
    return _Run(rate, trained, pace)


def steps_of(budget: Budget, train: Dataset) -> int | None:
    """Return how many steps a budget says, None for one of minutes."""
    if budget.epochs is None:
        return budget.steps
    return budget.epochs * -(-train.n_samples // budget.batch_size)


def _curve(folder: Path, pace: float) -> list[tuple[float, float]]:
    """Return minutes of steps and errors on validation, from the log of a run."""
    lines = (json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines())
    return [
        (line["step"] * pace / 60.0, line["validation"]) for line in lines if "validation" in line
    ]


def _scored(
    row: Row,
    operator: Operator,
    recipe: Recipe,
    problem: Problem,
    data: Path,
    size: int,
    workers: Workers,
    folder: Path,
) -> Row:
    """Return a row with the scores on the test splits, and the model's cost."""
    test = problem.open(data, "test")
    scores = Scores(**evaluate(operator, test, problem.read, workers, size, problem.predict))
    if not math.isfinite(scores.relative_l2):
        return replace(row, diverged="the error on the test split is not finite")
    batch = problem.read(next(test.batches(size))).to(workers.device)
    start = time.perf_counter()
    problem.predict(operator, batch)
    seconds = time.perf_counter() - start
    further = {
        split: Scores(
            **evaluate(
                moved(operator, recipe, grid), problem.open(data, split), problem.read, workers
            )
        )
        for split, grid in problem.further.items()
    }
    n_batches = -(-len(problem.open(data, "train")) // size)
    row = replace(
        row,
        scores=scores,
        further=further,
        regions=region_errors(problem, operator, test, workers, size),
        milliseconds_per_sample=1e3 * seconds / len(batch),
        peak_megabytes=peak_megabytes(),
        seconds_per_epoch=row.seconds_per_step * n_batches,
    )
    known: dict[str, Any] = checkpoint.read_metrics(folder)
    checkpoint.write_metrics({**known, "test": msgspec.to_builtins(scores)}, folder)
    return row


def region_errors(
    problem: Problem, operator: Operator, dataset: Dataset, workers: Workers, size: int
) -> dict[str, float]:
    """Return the root mean square error in each region of a problem, over a whole split."""
    sums = {name: torch.zeros(2, dtype=torch.float64) for name in problem.regions}
    for arrays in dataset.batches(size):
        batch: Batch = problem.read(arrays).to(workers.device)
        error = problem.predict(operator, batch) - batch.values
        for name, region in problem.regions.items():
            chosen = error[region(arrays).to(error.device)].double()
            sums[name] += torch.tensor([float(chosen.square().sum()), chosen.numel()])
    return {name: float((total / count) ** 0.5) for name, (total, count) in sums.items()}


def moved(operator: Operator, recipe: Recipe, grid: tuple[int, ...]) -> Operator:
    """Return an operator for another grid with the same weights; the padded length stays as well.

    Models over points are returned as they are.
    """
    if not is_grid_only(recipe.kind):
        return operator
    config = replace(recipe.config, grid=grid)
    if hasattr(config, "padding"):
        finer = grid[0] // recipe.config.grid[0]
        config = replace(config, padding=finer * config.padding)
    other = checkpoint.build(replace(recipe, config=config))
    other.load_state_dict(operator.state_dict())
    return other.to(operator.points.shift.device).eval()

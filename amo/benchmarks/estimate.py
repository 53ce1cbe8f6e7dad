"""What rows of a table would cost: a step or two of each, before hours of training."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch

from amo import checkpoint
from amo.benchmarks.budget import Pace
from amo.benchmarks.contestants import experiment_for
from amo.benchmarks.table import Entry, in_a_process, steps_of
from amo.results import Budget
from amo.system import peak_megabytes
from amo.training import distributed

_STEPS = 2


class Estimate(NamedTuple):
    """What one row costs: training only, at all learning rates together."""

    key: str
    parameters: int
    steps: int
    seconds_per_step: float
    hours: float
    megabytes: float


def estimates(entries: Iterable[Entry], budget: Budget, data: Path, device: str) -> list[Estimate]:
    """Measure a few steps of every row, each in a process of its own for the sake of its memory."""
    return [in_a_process(_estimate, entry, budget, data, device) for entry in entries]


def _estimate(entry: Entry, budget: Budget, data: Path, device: str) -> Estimate:
    problem, workers = entry.problem, distributed.join(device)
    experiment = experiment_for(entry.model, problem, budget, entry.seed)
    train = problem.open(data / problem.folder, "train")
    operator = checkpoint.build(experiment.recipe)
    few = problem.read(next(train.batches(budget.batch_size)))
    operator.fit_normalisers(lambda: [few], is_coded=problem.is_coded)
    pace = Pace(operator, train, problem.read, experiment.training, workers)
    pace(1)  # warms up
    seconds = pace(_STEPS)
    steps = steps_of(budget, train) or max(1, round(60.0 * (budget.minutes or 0.0) / seconds))
    is_cuda = workers.device.type == "cuda"
    held = torch.cuda.max_memory_allocated(workers.device) / 1e6 if is_cuda else peak_megabytes()
    return Estimate(
        key=entry.key,
        parameters=sum(p.numel() for p in operator.parameters()),
        steps=steps,
        seconds_per_step=seconds,
        hours=steps * seconds * (1 + len(budget.further_rates)) / 3600.0,
        megabytes=held,
    )


def as_text(rows: list[Estimate]) -> str:
    """Return the estimates as a table, with the sum of the hours."""
    width = max((len(row.key) for row in rows), default=3)
    lines = [
        f"{'row':<{width}} {'parameters':>12} {'steps':>9} {'s / step':>9} {'hours':>8} {'MB':>8}",
        *(
            f"{row.key:<{width}} {row.parameters:>12,} {row.steps:>9,} "
            f"{row.seconds_per_step:>9.3g} {row.hours:>8.3g} {row.megabytes:>8,.0f}"
            for row in rows
        ),
        f"all together {sum(row.hours for row in rows):.3g} hours of steps",
    ]
    return "\n".join(lines)

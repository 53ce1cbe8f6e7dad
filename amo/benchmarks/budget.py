"""How many steps fill a budget: a model's pace is measured once, and the plan is kept."""

import copy
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from amo.data.datasets import ArrayDataset, Dataset, Read
from amo.errors import StoppedError
from amo.files import write_text
from amo.operator import Operator
from amo.training import loop
from amo.training.distributed import Workers
from amo.training.loop import TrainingConfig
from amo.training.losses import Loss, relative_l2_loss

_PLAN = "plan.json"
_WARM_UP, _TIMED = 4, 8.0  # steps and seconds over which the pace is measured
_TRIALS = 2  # in as many parts: other programs only ever slow a step, so the faster one counts


def plan(
    seconds_of: Callable[[int], float],
    folder: Path,
    identity: dict[str, Any],
    *,
    minutes: float | None,
    steps: int | None,
) -> tuple[int, float]:
    """Return how many steps fill the minutes, or the steps given, and the seconds per step.

    ``seconds_of`` measures the seconds per step over a given number of steps. A plan in ``folder``
    with the same identity is used as it is.
    """
    path = folder / _PLAN
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if known.get("identity") == identity:
        return int(known["steps"]), float(known["seconds_per_step"])
    seconds = seconds_of(min(_WARM_UP, steps or _WARM_UP))  # includes warm-up: an upper bound
    if minutes is not None:
        n = max(_WARM_UP, round(_TIMED / _TRIALS / seconds))
        seconds = min(seconds_of(n) for _ in range(_TRIALS))
    planned = steps or max(1, round(60.0 * (minutes or 0.0) / seconds))
    content = {"identity": identity, "steps": planned, "seconds_per_step": seconds}
    write_text(json.dumps(content) + "\n", path)
    return planned, seconds


def seconds_per_step(
    operator: Operator,
    train: Dataset,
    read: Read,
    config: TrainingConfig,
    workers: Workers,
    loss: Loss = relative_l2_loss,
) -> float:
    """Return the seconds per training step, by training a copy of an operator."""
    trained = copy.deepcopy(operator)
    little = ArrayDataset(next(train.batches(1)))
    with TemporaryDirectory() as scratch:
        start = _clock(workers)
        trial = loop.fit(
            trained,
            train,
            little,
            replace(config, validate_every=config.steps),
            out=Path(scratch),
            read=read,
            workers=workers,
            loss=loss,
        )
        seconds = _clock(workers) - start
    if trial.reason != "finished":
        raise StoppedError("stopped while its pace was measured: the same command goes on")
    return seconds / config.steps


def _clock(workers: Workers) -> float:
    """Return seconds of computing: on a CPU its threads' time, which no other program slows."""
    if workers.device.type == "cpu":
        return time.process_time() / torch.get_num_threads()
    return time.perf_counter()

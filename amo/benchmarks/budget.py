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

    ``seconds_of``, a :class:`Pace` for example, measures the seconds per step over a given number
    of steps. A plan in ``folder`` with the same identity is used as it is.
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


class Pace:
    """Seconds per training step, measured by training a copy of an operator.

    A step that is to be compiled is compiled before the clock starts.
    """

    def __init__(
        self,
        operator: Operator,
        train: Dataset,
        read: Read,
        config: TrainingConfig,
        workers: Workers,
        loss: Loss = relative_l2_loss,
    ) -> None:
        self.operator, self.train, self.read = operator, train, read
        self.config, self.workers, self.loss = config, workers, loss
        self._copy: Operator | None = None

    def __call__(self, n: int) -> float:
        """Return the seconds per step over ``n`` steps."""
        if self._copy is None:
            self._copy = copy.deepcopy(self.operator)
            if self.config.compile:
                self._over(1, self._copy)
        return self._over(n, self._copy)

    def _over(self, n: int, trained: Operator) -> float:
        little = ArrayDataset(next(self.train.batches(1)))
        with TemporaryDirectory() as scratch:
            start = _clock(self.workers)
            trial = loop.fit(
                trained,
                self.train,
                little,
                replace(self.config, steps=n, validate_every=n),
                out=Path(scratch),
                read=self.read,
                workers=self.workers,
                loss=self.loss,
            )
            seconds = _clock(self.workers) - start
        if trial.reason != "finished":
            raise StoppedError("stopped while its pace was measured: the same command goes on")
        return seconds / n


def _clock(workers: Workers) -> float:
    """Return seconds of computing: on a CPU its threads' time, which no other program slows."""
    if workers.device.type == "cpu":
        return time.process_time() / torch.get_num_threads()
    return time.perf_counter()

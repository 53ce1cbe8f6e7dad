"""The only training loop.

A step is a function of the seed and its number alone: the order of samples comes from the seed and
the epoch, the subset of points and any noise from the seed and the step. So a run that was stopped,
or killed, goes on to the very weights it would have reached.
"""

import json
import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from amo.data.batch import Batch
from amo.data.datasets import Dataset, Read
from amo.errors import AMOError, SettingsError
from amo.files import make_folder
from amo.operator import Operator
from amo.system import stop_signals
from amo.training.distributed import Workers
from amo.training.evaluation import evaluate
from amo.training.losses import Loss, relative_l2_loss
from amo.training.objective import Objective
from amo.training.soap import SOAP
from amo.training.state import LOG, Progress, load_state, rewind_log, save_state

Reason = Literal["finished", "early stop", "time", "signal"]


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How to train.

    Attributes
    ----------
    steps, batch_size
        Optimiser steps in all, and samples in each over all processes.
    optimizer
        ``adamw``, or ``soap``, which has no weight decay; see ``amo.training.soap``.
    learning_rate, weight_decay, warmup, clip
        The peak rate, decoupled decay, the share of steps of linear warm-up before the cosine, the
        largest gradient norm.
    accumulate
        Parts in which a batch goes through the model, for memory.
    n_points, n_queries
        Random subsets of points and queries at every step; None takes all.
    validate_every, patience
        Steps between validations, and validations without improvement before an early stop.
    criterion
        Which score of ``amo.training.evaluation.evaluate`` says what is best on validation.
    save_every
        Steps between saved states.
    seed
        Of the order of samples and the subsets.
    bfloat16
        Autocast on CUDA; the scan and the spectral part stay in float32.
    compile
        Whether torch.compile the loss. Where that fails, without a C++ compiler for example,
        training goes on as it is, with a warning.
    """

    steps: int
    batch_size: int = 16
    optimizer: Literal["adamw", "soap"] = "adamw"
    learning_rate: float = 1e-3
    weight_decay: float = 1e-5
    warmup: float = 0.1
    clip: float = 0.5
    accumulate: int = 1
    n_points: int | None = None
    n_queries: int | None = None
    validate_every: int = 200
    patience: int | None = None
    criterion: Literal["relative_l2", "rmse"] = "relative_l2"
    save_every: int = 200
    seed: int = 0
    bfloat16: bool = True
    compile: bool = False

    def __post_init__(self) -> None:
        least = {"steps": 1, "batch_size": 1, "accumulate": 1, "validate_every": 1, "save_every": 1}
        for name, value in {**least, "seed": 0}.items():
            if getattr(self, name) < value:
                raise SettingsError(f"{name} must be at least {value}, got {getattr(self, name)}")
        if self.optimizer == "soap" and self.weight_decay != 0.0:
            raise SettingsError(f"soap takes weight_decay 0, got {self.weight_decay}")

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step: linear warm-up, then a cosine to zero."""
        n_warm = max(1, round(self.warmup * self.steps))
        if step < n_warm:
            return self.learning_rate * (step + 1) / n_warm
        done = (step - n_warm) / max(1, self.steps - n_warm)
        return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * done))


class DivergedError(AMOError):
    """Training left the realm of finite numbers; the message says where."""


class Result(NamedTuple):
    """How a run ended; the operator holds the weights best on validation."""

    reason: Reason
    steps: int
    best: float
    minutes: float


def fit(
    operator: Operator,
    train: Dataset,
    validation: Dataset,
    config: TrainingConfig,
    *,
    out: Path,
    read: Read,
    workers: Workers,
    loss: Loss = relative_l2_loss,
    max_minutes: float | None = None,
    identity: dict[str, Any] | None = None,
) -> Result:
    """Train an operator in place, resuming what is in ``out``.

    It ends with the weights best on validation, or with a saved state where the time ran out or a
    signal came: the same call then goes on. ``identity`` is what must not change between starts,
    beside the configuration.
    """
    run = _Run(operator, config, out, read, workers, loss, identity or {})
    with stop_signals() as signalled, run.bar() as bar:
        reason: Reason = "early stop" if run.is_stale() else "finished"
        deadline = math.inf if max_minutes is None else time.monotonic() + 60.0 * max_minutes
        for batch in run.batches(train) if reason == "finished" else ():
            run.step(batch, bar)
            if run.progress.step % config.validate_every == 0 or run.progress.step == config.steps:
                run.validate(validation, bar)
                if run.is_stale():
                    reason = "early stop"
                    break
            if workers.any(flag=signalled.is_set()):
                reason = "signal"
                break
            if workers.any(flag=time.monotonic() > deadline):
                reason = "time"
                break
            if run.progress.step % config.save_every == 0:
                run.save()
        run.save()  # while signals still wait
    run.finish()
    progress = run.progress
    return Result(reason, progress.step, progress.best, progress.minutes)


class _Run:
    """The moving parts of one training run."""

    def __init__(
        self,
        operator: Operator,
        config: TrainingConfig,
        out: Path,
        read: Read,
        workers: Workers,
        loss: Loss,
        identity: dict[str, Any],
    ) -> None:
        self.operator = operator.to(workers.device).train()
        self.config, self.out, self.read, self.workers = config, out, read, workers
        self.identity = {**identity, "training": asdict(config)}
        self.optimizer = _optimizer(operator, config)
        make_folder(out)
        resumed = load_state(out, self.identity, operator, self.optimizer)
        if resumed is None:
            self.progress, self.best = Progress(), _copy(operator)
        else:
            self.progress, self.best = resumed
        if workers.is_first:
            rewind_log(out, self.progress.step)
        self.objective: nn.Module = Objective(operator, loss, compiled=config.compile)
        if workers.count > 1:
            self.objective = DistributedDataParallel(self.objective)
        self.started = time.monotonic() - 60.0 * self.progress.minutes
        self.losses: list[float] = []

    def bar(self) -> "tqdm[Any]":
        """Return the progress bar of the first process."""
        return tqdm(
            total=self.config.steps,
            initial=self.progress.step,
            unit="step",
            disable=not self.workers.is_first,
        )

    def batches(self, train: Dataset) -> Iterator[Batch]:
        """Yield batches from where the run stands to its last step."""
        while self.progress.step < self.config.steps:
            seed = self.config.seed * 1_000_003 + self.progress.epoch
            for number, arrays in enumerate(train.batches(self.config.batch_size, seed)):
                if number < self.progress.batch:
                    continue
                if self.progress.step == self.config.steps:
                    return
                self.progress = self.progress.advanced(batch=number + 1)
                yield self.read(arrays)
            self.progress = self.progress.advanced(epoch=self.progress.epoch + 1, batch=0)

    def step(self, batch: Batch, bar: "tqdm[Any]") -> None:
        """Do one optimiser step."""
        config, step = self.config, self.progress.step
        generator = torch.Generator().manual_seed(config.seed * 1_000_003 + step)
        torch.manual_seed(config.seed * 1_000_003 + step)  # for models that draw by themselves
        if config.n_points is not None or config.n_queries is not None:
            batch = batch.thinned(config.n_points, config.n_queries, generator)
        rate = config.rate_at(step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        total = 0.0
        shares = list(_shares(batch, self.workers, config.accumulate))
        for number, (share, weight) in enumerate(shares):
            with self._unsynchronised(is_last=number == len(shares) - 1), self._precision():
                value = weight * self.objective(share.to(self.workers.device), generator)
                value.backward()
            total += float(value.detach())
        norm = nn.utils.clip_grad_norm_(self.operator.parameters(), config.clip)
        if not math.isfinite(float(norm)):
            raise DivergedError(
                f"the loss is {total} and its gradient {float(norm)} at step {step + 1}: the state "
                f"in {self.out} is of step {step - step % config.save_every} at the latest; lower "
                "the learning rate, or look for values that are not finite in the data"
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        minutes = (time.monotonic() - self.started) / 60.0
        self.progress = self.progress.advanced(step=step + 1, minutes=minutes)
        self.losses.append(total)
        bar.update()
        if (step + 1) % 20 == 0:
            mean = self.workers.mean(sum(self.losses) / len(self.losses))
            self.losses.clear()
            bar.set_postfix(loss=f"{mean:.2e}", best=f"{self.progress.best:.2e}")
            self._log(loss=mean, learning_rate=rate, gradient_norm=float(norm))

    def validate(self, validation: Dataset, bar: "tqdm[Any]") -> None:
        """Measure the validation split and keep the weights if they are the best so far.

        Running means of a model are those of each process's samples until the next step; the first
        process's are kept, so all processes measure with them.
        """
        self.workers.share(self.operator.buffers())
        scores = evaluate(
            self.operator, validation, self.read, self.workers, self.config.batch_size
        )
        error = scores[self.config.criterion]
        if error < self.progress.best:
            self.progress = self.progress.advanced(best=error, best_step=self.progress.step)
            self.best = _copy(self.operator)
        self._log(validation=error)
        bar.set_postfix(validation=f"{error:.2e}", best=f"{self.progress.best:.2e}")

    def is_stale(self) -> bool:
        """Return whether validation has not improved for too long."""
        if self.config.patience is None:
            return False
        waited = self.progress.step - self.progress.best_step
        return waited >= self.config.patience * self.config.validate_every

    def save(self) -> None:
        """Write the state, from the first process."""
        if self.workers.is_first:
            save_state(
                self.out, self.identity, self.progress, self.operator, self.best, self.optimizer
            )

    def finish(self) -> None:
        """Leave the operator with its best weights, or its last before any validation."""
        if self.progress.best_step > 0:
            self.operator.load_state_dict(self.best)
        self.operator.eval()

    def _unsynchronised(self, *, is_last: bool) -> AbstractContextManager[None]:
        """Let gradients meet only once a step."""
        if isinstance(self.objective, DistributedDataParallel) and not is_last:
            return self.objective.no_sync()
        return nullcontext()

    def _precision(self) -> AbstractContextManager[Any]:
        on = self.config.bfloat16 and self.workers.device.type == "cuda"
        return torch.autocast(self.workers.device.type, dtype=torch.bfloat16, enabled=on)

    def _log(self, **values: float) -> None:
        if self.workers.is_first:
            entry = {"step": self.progress.step, "minutes": round(self.progress.minutes, 3)}
            with (self.out / LOG).open("a", encoding="utf-8") as file:
                file.write(json.dumps({**entry, **values}) + "\n")


def _shares(batch: Batch, workers: Workers, accumulate: int) -> Iterator[tuple[Batch, float]]:
    """Yield this process's parts of a batch with weights whose gradients sum to the batch's mean.

    Parallel training averages over processes, hence the factor. A process without a sample takes
    one at weight zero, since all must take part.
    """
    n = len(batch)
    mine = torch.arange(n)[workers.rank :: workers.count]
    if len(mine) == 0:
        yield batch.rows(slice(0, 1)), 0.0
        return
    for rows in mine.tensor_split(min(accumulate, len(mine))):
        yield batch.rows(rows), len(rows) * workers.count / n


def _optimizer(operator: Operator, config: TrainingConfig) -> torch.optim.Optimizer:
    """Return SOAP, or AdamW with decay on matrices only: not on biases, norms, anchors, rates."""
    if config.optimizer == "soap":
        return SOAP(operator.parameters(), lr=config.learning_rate)
    matrices: list[Tensor] = []
    others: list[Tensor] = []
    for name, parameter in operator.named_parameters():
        is_matrix = name.endswith("weight") and parameter.ndim > 1
        (matrices if is_matrix else others).append(parameter)
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)


def _copy(operator: Operator) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in operator.state_dict().items()}

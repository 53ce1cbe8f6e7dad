"""Losses and scores of an operator on a split."""

import math
from collections.abc import Callable, Iterator
from typing import Protocol

import torch
from torch import Tensor

from amo import metrics
from amo.batch import Batch
from amo.data import Arrays
from amo.distributed import Workers
from amo.operator import Operator

Loss = Callable[[Operator, Batch], Tensor]
Read = Callable[[Arrays], Batch]
_CHUNK = 16384  # points at a time


class Dataset(Protocol):
    """One split."""

    def __len__(self) -> int: ...

    def batches(self, size: int, seed: int | None = None) -> Iterator[Arrays]:
        """Yield batches of arrays, shuffled by seed."""


def relative_l2_loss(operator: Operator, batch: Batch) -> Tensor:
    """Return the mean relative L2 error in physical units."""
    prediction = operator(**batch.inputs)
    return metrics.relative_l2(prediction, batch.values, batch.value_mask).mean()


def evaluate(
    operator: Operator, dataset: Dataset, read: Read, workers: Workers, size: int = 16
) -> dict[str, float]:
    """Return mean relative L2, pooled relative L2, RMSE and largest error over a split.

    The mean over samples is the paper's figure. The pooled one, ‖errors‖ / ‖truths‖ over the whole
    split, does not mind samples that are nearly zero.
    """
    was_training = operator.training
    operator.eval()
    sums, n_samples = torch.zeros(4, dtype=torch.float64), 0
    largest = torch.zeros((), dtype=torch.float64)
    for number, arrays in enumerate(dataset.batches(size)):
        if number % workers.count != workers.rank:
            continue
        batch = read(arrays).to(workers.device)
        prediction = operator.predict(batch, chunk=_CHUNK)
        truth, mask = batch.values, batch.value_mask
        parts = (
            metrics.relative_l2(prediction, truth, mask),
            metrics.squared_norm(prediction - truth, mask),
            metrics.squared_norm(truth, mask),
            metrics.squared_norm(torch.ones_like(truth), mask),  # how many values there are
        )
        sums += torch.stack([part.cpu().double().sum() for part in parts])
        n_samples += len(batch)
        worst = metrics.largest_error(prediction, truth, mask).max()
        largest = torch.maximum(largest, worst.cpu().double())
    operator.train(was_training)
    totals = torch.cat([sums, sums.new_tensor([n_samples])]).to(workers.device)
    error, square, size_squared, n_values, n = workers.sum(totals).tolist()
    return {
        "relative_l2": error / n,
        "pooled_relative_l2": math.sqrt(square / size_squared) if size_squared > 0.0 else math.nan,
        "rmse": math.sqrt(square / n_values),
        "largest_error": workers.largest(float(largest)),
        "samples": n,
    }

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
    sums = torch.zeros(5, dtype=torch.float64)
    largest = torch.zeros((), dtype=torch.float64)
    for number, arrays in enumerate(dataset.batches(size)):
        if number % workers.count != workers.rank:
            continue
        batch = read(arrays).to(workers.device)
        prediction = operator.predict(batch, chunk=_CHUNK)
        pair = (prediction, batch.values, batch.value_mask)
        size_of = metrics.root_mean_square(batch.values, 0.0 * batch.values, batch.value_mask)
        n_values = (
            torch.full_like(size_of, batch.values[0].numel())
            if batch.value_mask is None
            else batch.value_mask.sum(dim=1) * batch.values.shape[-1]
        )
        parts = (
            metrics.relative_l2(*pair),
            metrics.root_mean_square(*pair).square() * n_values,
            size_of.square() * n_values,
            n_values,
            torch.ones_like(size_of),
        )
        sums += torch.stack([part.cpu().double().sum() for part in parts])
        largest = torch.maximum(largest, metrics.largest_error(*pair).cpu().double().max())
    operator.train(was_training)
    error, square, truth, n_values_seen, n = workers.sum(sums.to(workers.device)).tolist()
    return {
        "relative_l2": error / n,
        "pooled_relative_l2": math.sqrt(square / truth) if truth > 0.0 else math.nan,
        "rmse": math.sqrt(square / n_values_seen),
        "largest_error": workers.largest(float(largest)),
        "samples": n,
    }

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
    operator.eval()
    sums = torch.zeros(4, dtype=torch.float64)
    largest = 0.0
    for number, arrays in enumerate(dataset.batches(size)):
        if number % workers.count != workers.rank:
            continue
        batch = read(arrays).to(workers.device)
        prediction = operator.predict(batch)
        pair = (prediction, batch.values, batch.value_mask)
        relative = metrics.relative_l2(*pair).double()
        squares = metrics.root_mean_square(*pair).double().square()
        sizes = metrics.root_mean_square(batch.values, 0.0 * batch.values, batch.value_mask)
        parts = (relative, squares, sizes.double().square(), torch.ones_like(relative))
        sums += torch.stack([part.sum() for part in parts]).cpu()
        largest = max(largest, float(metrics.largest_error(*pair).max()))
    operator.train()
    sums = workers.sum(sums.to(workers.device)).cpu()
    error, square, size, n = sums.tolist()
    return {
        "relative_l2": error / n,
        "pooled_relative_l2": math.sqrt(square / size) if size > 0.0 else math.nan,
        "rmse": math.sqrt(square / n),
        "largest_error": workers.largest(largest),
        "samples": n,
    }

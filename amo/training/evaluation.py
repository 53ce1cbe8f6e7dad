"""Losses and scores of an operator on a split."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from amo.data.batch import Batch
from amo.data.datasets import Dataset, Read
from amo.operator import Operator
from amo.training import metrics
from amo.training.distributed import Workers

Predict = Callable[[Operator, Batch], Tensor]
_CHUNK = 16384  # points at a time


def at_once(operator: Operator, batch: Batch) -> Tensor:
    """Return the answer to a batch, decoded in chunks."""
    return operator.predict(batch, chunk=_CHUNK)


def evaluate(
    operator: Operator,
    dataset: Dataset,
    read: Read,
    workers: Workers,
    size: int = 16,
    predict: Predict = at_once,
) -> dict[str, float]:
    """Return mean relative L2, pooled relative L2, RMSE and largest error over a split.

    The mean over samples is the paper's figure. The pooled one, ‖errors‖ / ‖truths‖ over the whole
    split, is robust to samples that are nearly zero.
    """
    was_training = operator.training
    operator.eval()
    sums, n_samples = torch.zeros(4, dtype=torch.float64), 0
    largest = torch.zeros((), dtype=torch.float64)
    for number, arrays in enumerate(dataset.batches(size)):
        if number % workers.count != workers.rank:
            continue
        batch = read(arrays).to(workers.device)
        prediction = predict(operator, batch)
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

"""Losses and scores of an operator on a split."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from amo import metrics
from amo.batch import Batch
from amo.data import Arrays
from amo.distributed import Workers
from amo.errors import SettingsError
from amo.operator import Operator

Loss = Callable[[Operator, Batch, torch.Generator], Tensor]  # the generator is the step's own
Read = Callable[[Arrays], Batch]
Predict = Callable[[Operator, Batch], Tensor]
_CHUNK = 16384  # points at a time


class Dataset(Protocol):
    """One split."""

    def __len__(self) -> int: ...

    def batches(self, size: int, seed: int | None = None) -> Iterator[Arrays]:
        """Yield batches of arrays, shuffled by seed."""


def at_once(operator: Operator, batch: Batch) -> Tensor:
    """Return the answer to a batch, decoded in chunks."""
    return operator.predict(batch, chunk=_CHUNK)


def relative_l2_loss(operator: Operator, batch: Batch, _: torch.Generator) -> Tensor:
    """Return the mean relative L2 error in physical units."""
    prediction = operator(**batch.inputs)
    return metrics.relative_l2(prediction, batch.values, batch.value_mask).mean()


@dataclass(frozen=True)
class SobolevLoss:
    """ln of the mean squared error of values and of one random derivative of them per sample.

    The derivative is taken along Σ_j ±1/u_j of the data's directions j, with random signs: its
    squared error is on average the sum over directions, each in its unit. It is a central
    difference of the operator itself, two passes for value and derivative together. Data must
    carry a scale and tangents.

    Attributes
    ----------
    value_unit
        An error of values that counts as one.
    direction_units
        Likewise of the derivatives.
    step
        Of the difference, a direction j moving by step / u_j: wide enough for float32.
    """

    value_unit: float
    direction_units: tuple[float, ...]
    step: float

    def __call__(self, operator: Operator, batch: Batch, generator: torch.Generator) -> Tensor:
        """Return the loss of a batch."""
        if batch.queries is None or batch.scale is None or batch.value_tangents is None:
            raise SettingsError("a Sobolev loss needs queries, a scale and tangents in the data")
        n_directions = len(self.direction_units)
        signs = torch.randint(0, 2, (len(batch), 1, n_directions, 1), generator=generator)
        units = torch.tensor(self.direction_units).unsqueeze(-1)
        along = ((2.0 * signs - 1.0) / units).to(batch.values)

        def both_ways(values: Tensor, tangents: Tensor | None) -> Tensor:
            if tangents is None:
                return torch.cat([values, values])
            change = self.step * (along * tangents).sum(-2)
            return torch.cat([values + change, values - change])

        forth, back = operator(
            both_ways(batch.points, None),
            both_ways(batch.features, batch.feature_tangents),
            both_ways(batch.queries, batch.query_tangents),
            None if batch.mask is None else both_ways(batch.mask, None),
            both_ways(batch.scale, batch.scale_tangents),
            None if batch.gap is None else both_ways(batch.gap, batch.gap_tangents),
        ).chunk(2)
        value_error = (0.5 * (forth + back) - batch.values) / self.value_unit
        if batch.weights is not None:
            value_error = value_error * batch.weights
        slope = (along * batch.value_tangents).sum(-2)
        slope_error = (forth - back) / (2.0 * self.step) - slope
        squared = value_error.square() + slope_error.square()
        return (squared if batch.query_mask is None else squared[batch.query_mask]).mean().log()


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

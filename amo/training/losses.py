"""What training minimises."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from amo.data.batch import Batch
from amo.errors import SettingsError
from amo.operator import Operator
from amo.training import metrics

_ROUNDING = 1e-7  # of values in float32
Loss = Callable[[Operator, Batch, torch.Generator], Tensor]  # each step has its own generator


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
    longest
        The most that a direction may move any coordinate of a sample: where they turn faster, the
        direction is shortened for that sample, and its derivative counts for less.
    """

    value_unit: float
    direction_units: tuple[float, ...]
    step: float
    longest: float = math.inf

    def __call__(self, operator: Operator, batch: Batch, generator: torch.Generator) -> Tensor:
        """Return the loss of a batch."""
        if batch.queries is None or batch.scale is None or batch.value_tangents is None:
            raise SettingsError("a Sobolev loss needs queries, a scale and tangents in the data")
        n_directions = len(self.direction_units)
        signs = torch.randint(0, 2, (len(batch), 1, n_directions, 1), generator=generator)
        units = torch.tensor(self.direction_units).unsqueeze(-1)
        along = ((2.0 * signs - 1.0) / units).to(batch.values)
        if self.longest < math.inf and batch.query_tangents is not None:
            moved = batch.query_tangents.abs().amax((1, 3))[:, None, :, None] * self.step
            along = along * (self.longest / (moved * along.abs()).clamp(min=1e-30)).clamp(max=1.0)

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
        if batch.least is not None:
            on_it = batch.values <= batch.least + _ROUNDING
            squared = squared.masked_fill(on_it & (0.5 * (forth + back) <= batch.least), 0.0)
        return (squared if batch.query_mask is None else squared[batch.query_mask]).mean().log()

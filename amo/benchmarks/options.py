"""The paper's option problem: (r, σ, q, K, T, is_call) to V(S, t), in two codings.

Both read the set of ``python -m data_gen paper-options`` and give every model the same inputs, the
parameters at every point of the grid. ``raw`` has the paper's coordinates (t / T, S) and the price
as target. ``scaled`` has similarity coordinates, and as target (price - offset) / scale, both of
which come with the data: what is known about the form of the answer is known to all models.
"""

from typing import Literal

import torch
from torch import Tensor

from amo.data.batch import Batch
from amo.data.format import Arrays
from amo.experiment import Problem

_STRIKE = 3  # its place among the inputs
_QUOTED = {"fno": 1.6e-3, "lno": 1.0e-3, "transolver": 1.2e-3, "lamo": 8e-4, "amo": 6e-4}

QUOTED_PARAMETERS = {"fno": 3.78, "lno": 2.56, "transolver": 5.91, "lamo": 3.52, "amo": 1.21}  # M


def _read(arrays: Arrays, coding: Literal["raw", "scaled"]) -> Batch:
    time, spot = torch.from_numpy(arrays["time"]), torch.from_numpy(arrays["spot"])
    values = _column(arrays, "price")
    inputs = torch.from_numpy(arrays["inputs"])
    features = inputs.unsqueeze(1).expand(-1, values.shape[1], -1)
    if coding == "raw":
        share = (time / time[:, -1:]).unsqueeze(-1).expand(-1, -1, spot.shape[1])
        points = torch.stack([share, spot.unsqueeze(1).expand_as(share)], dim=-1).flatten(1, 2)
        return Batch(points=points, features=features, values=values)
    distance, deviation = _column(arrays, "ratio").abs(), _column(arrays, "deviation")
    return Batch(
        points=torch.cat([distance, deviation], dim=-1),
        features=features,
        values=values,
        offset=_column(arrays, "offset"),
        scale=_column(arrays, "scale"),
    )


def read_raw(arrays: Arrays) -> Batch:
    """Read the paper's inputs and the price."""
    return _read(arrays, "raw")


def read_scaled(arrays: Arrays) -> Batch:
    """Read similarity coordinates, and the price with its offset and scale."""
    return _read(arrays, "scaled")


def at_the_kink(arrays: Arrays) -> Tensor:
    """Return where S is within 10 % of K in the last tenth of the time: the payoff's kink."""
    time, spot = torch.from_numpy(arrays["time"]), torch.from_numpy(arrays["spot"])
    strike = torch.from_numpy(arrays["inputs"])[:, _STRIKE : _STRIKE + 1]
    is_late = (time >= 0.9 * time[:, -1:]).unsqueeze(-1)
    is_near = ((spot - strike).abs() <= 0.1 * strike).unsqueeze(1)
    return (is_late & is_near).flatten(1)


def at_small_spots(arrays: Arrays) -> Tensor:
    """Return where S is in the lowest tenth: the equation degenerates at S = 0."""
    spot = torch.from_numpy(arrays["spot"])
    is_small = (spot <= 0.1 * spot[:, -1:]).unsqueeze(1)
    return is_small.expand(-1, arrays["time"].shape[1], -1).flatten(1)


def _column(arrays: Arrays, name: str) -> Tensor:
    return torch.from_numpy(arrays[name]).flatten(1).unsqueeze(-1)


_REGIONS = {"kink": at_the_kink, "small S": at_small_spots}
RAW = Problem(
    name="raw",
    title="the paper's coordinates, the price as target",
    read=read_raw,
    n_features=6,
    n_dimensions=2,
    grid=(64, 64),
    input_varies=False,  # six parameters, the same at every point
    regions=_REGIONS,
    quoted=_QUOTED,
)
SCALED = Problem(
    name="scaled",
    title="similarity coordinates, offset and scale of the answer known",
    read=read_scaled,
    n_features=6,
    n_dimensions=2,
    grid=(64, 64),
    input_varies=False,  # six parameters, the same at every point
    link="softplus",
    is_coded=True,
    regions=_REGIONS,
)

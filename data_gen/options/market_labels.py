"""Labels under markets made into what an operator learns: floors, coordinates and tangents."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from amo.arrays import FloatArray
from data_gen.dataset import Arrays
from pricing import bounds
from pricing.options import Options
from pricing.surrogate.market_coding import (
    DIRECTIONS,
    Coded,
    Terms,
    code,
    input_function,
    terms_of,
)

_STEP = 1e-5  # of every direction: a central difference in float64
_NEAR = 0.25  # years to expiry below which prices vary on the scale of the square root of time


def coded(
    options: Options, labels: Mapping[str, FloatArray], n_contracts: int, n_payments: int
) -> Arrays:
    """Return what an operator learns: arrays (slices, ...) named as in ``Batch``."""
    rows = np.arange(len(options)).reshape(-1, n_contracts)
    terms = terms_of(options, rows, n_payments=n_payments)
    points, features, mask = input_function(terms)
    here = code(terms)
    turned = [_around(terms, name) for name in DIRECTIONS]
    label = {name: values.reshape(rows.shape) for name, values in labels.items()}
    slopes = np.stack(
        [
            label["delta"] * (options.spot / options.strike).reshape(rows.shape),
            label["vega"],
            label["rho"],
            label["dividend_rho"],
            label["cash_rho"],
        ],
        axis=-1,
    )
    reach = _reach(terms)
    spot = terms.log_moneyness.exp().numpy()
    paid = bounds.intrinsic(spot, np.ones(1), options.is_call.reshape(rows.shape))
    floors = torch.stack([slope.offset for slope, _ in turned], dim=-1).numpy()
    return {
        "points": points.numpy(),
        "features": features.numpy(),
        "mask": mask.numpy(),
        "queries": here.queries.numpy(),
        "values": label["price"][..., None] - here.offset.numpy()[..., None],
        "scale": here.scale.numpy()[..., None],
        "least": (paid - here.offset.numpy())[..., None],
        "feature_tangents": reach * torch.stack([change for _, change in turned], dim=-2).numpy(),
        "query_tangents": reach
        * torch.stack([slope.queries for slope, _ in turned], dim=-2).numpy(),
        "scale_tangents": reach
        * torch.stack([slope.scale for slope, _ in turned], dim=-1).unsqueeze(-1).numpy(),
        "value_tangents": reach * (slopes - floors)[..., None],
    }


def _reach(terms: Terms) -> FloatArray:
    """Return the length of a step along each direction, (slices, 1, directions, 1).

    It is the same for all options of a slice, because their input function moves along with them.
    """
    reach = np.ones((len(terms.expiry), 1, len(DIRECTIONS), 1))
    reach[:, 0, 0] = np.minimum(1.0, np.sqrt(terms.expiry.numpy() / _NEAR))
    return reach


def _around(terms: Terms, name: str) -> tuple[Coded, Tensor]:
    """Return the derivatives of the coding and of the input function along a direction."""
    forth, back = (terms.moved(**{name: k * _STEP}) for k in (1.0, -1.0))
    ends = code(forth), code(back)
    moved = input_function(forth)[1], input_function(back)[1]
    slopes = [(a - b) / (2.0 * _STEP) for a, b in zip(*ends, strict=True)]
    return Coded(*slopes), (moved[0] - moved[1]) / (2.0 * _STEP)

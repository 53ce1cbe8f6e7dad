"""Labels of options made into what an operator learns: coordinates, values, scales, tangents."""

from collections.abc import Mapping

import numpy as np

from amo.arrays import FloatArray, IntArray
from pricing.fd import Surface
from pricing.surrogate.encoding import (
    DIRECTIONS,
    STATE_POINTS,
    Coding,
    Put,
    code_rate,
    rate_of,
    rate_slope,
    tangents,
)

LABELS = ("price", "delta", "gamma", "vega", "rho", "dividend_rho")


def even_rates(bounds: tuple[float, float], u: FloatArray) -> FloatArray:
    """Return rates whose codes are spread as evenly as ``u`` in [0, 1]."""
    low, high = code_rate(np.array(bounds))
    return np.clip(rate_of(low + (high - low) * u), *bounds)


def coded(coding: Coding, put: Put, labels: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return what an operator learns: arrays (states, ...) named as in ``Batch``."""
    n = len(put.rate)

    def flat(values: FloatArray) -> FloatArray:
        return values.reshape(n, values.shape[1] * values.shape[2], *values.shape[3:])

    spot = np.exp(put.log_moneyness)
    offset = coding.offset(*put.terms, LABELS)
    above = {name: labels[name] - offset[name] for name in LABELS}
    slopes = [spot * above["delta"], above["vega"], above["rho"], above["dividend_rho"]]
    state = np.stack([put.rate[:, 0, 0], put.dividend_yield[:, 0, 0]], axis=1)
    unit = coding.unit(put)
    reach = np.ones((*put.log_moneyness.shape, len(DIRECTIONS)))
    reach[..., 0], reach[..., 1] = coding.reach(put)
    stretch = reach / unit[..., None]
    turns = np.zeros((n, 2, len(DIRECTIONS), 1))  # the state moves along its own two directions
    for point, name in enumerate(("rate", "dividend_yield")):
        turns[:, point, DIRECTIONS.index(name), 0] = rate_slope(state[:, point])
    more = {}
    if coding.is_american:
        more["least"] = flat(((np.maximum(1.0 - spot, 0.0) - offset["price"]) / unit)[..., None])
    if coding.gap is not None:
        more |= {
            "gap": flat((coding.gap(put, np) / unit)[..., None]),
            "gap_tangents": flat((stretch * tangents(coding.gap, put))[..., None]),
        }
    return {
        "points": np.broadcast_to(np.array(STATE_POINTS)[:, None], (n, 2, 1)),
        "features": code_rate(state)[..., None],
        "queries": flat(coding.queries(put, np)),
        "values": flat((above["price"] / unit)[..., None]),
        "scale": flat((coding.scale(put, np) / unit)[..., None]),
        "weights": flat(np.maximum(1.0, 1.0 / spot)[..., None]),
        "feature_tangents": turns,
        "query_tangents": flat(reach[..., None] * coding.query_tangents(put)),
        "scale_tangents": flat((stretch * tangents(coding.scale, put))[..., None]),
        "value_tangents": flat((stretch * np.stack(slopes, axis=-1))[..., None]),
    } | more


def exercised(
    labels: dict[str, FloatArray],
    surface: Surface,
    row: IntArray,
    time: IntArray,
    node: IntArray,
) -> dict[str, FloatArray]:
    """Give points at or beyond the exercise boundary the values of an exercised put."""
    spot = surface.spot[row, node]
    is_stopped = spot <= surface.boundary[row, time]
    values = {"price": 1.0 - spot, "delta": -np.ones_like(spot)}
    return {
        name: np.where(is_stopped, values.get(name, np.zeros_like(spot)), label)
        for name, label in labels.items()
    }

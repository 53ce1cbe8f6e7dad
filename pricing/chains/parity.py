"""Calls and puts of one strike, and lines through their differences that outliers do not move."""

import math

import numpy as np
import pandas as pd

from amo.arrays import FloatArray

_OUTLIER = 3.0  # deviations: beyond, a pair weighs less


def pairs_of(quotes: pd.DataFrame) -> pd.DataFrame:
    """Return strikes with a call and a put: their mids, and the deviation of the difference."""
    sides = [
        quotes[quotes["option_type"] == kind]
        .sort_values("ask")
        .drop_duplicates(["expiry", "strike"])
        .set_index(["expiry", "strike"])[["years", "mid", "bid", "ask"]]
        .add_suffix(f"_{kind}")
        for kind in ("call", "put")
    ]
    both = sides[0].join(sides[1], how="inner").reset_index()
    wide = [both[f"ask_{kind}"] - both[f"bid_{kind}"] for kind in ("call", "put")]
    return pd.DataFrame(
        {
            "expiry": both["expiry"],
            "years": both["years_call"],
            "strike": both["strike"],
            "call": both["mid_call"],
            "put": both["mid_put"],
            "variance": (wide[0] ** 2 + wide[1] ** 2) / 12.0,  # a mid lies evenly in its spread
        }
    ).sort_values(["years", "strike"], ignore_index=True)


def robust_mean(values: FloatArray, variance: FloatArray) -> tuple[float, float, float]:
    """Return a weighted mean that outliers do not move much, its error, and what is left."""
    weight = 1.0 / variance
    mean = float(np.sum(weight * values) / np.sum(weight))
    for _ in range(10):
        weight, _ = _weights(values - mean, variance)
        mean = float(np.sum(weight * values) / np.sum(weight))
    left = values - mean
    spread = float(np.sum(weight * left**2)) / max(len(values) - 1, 1)
    error = math.sqrt(max(1.0, spread) / float(np.sum(weight)))
    return mean, error, float(np.sqrt(np.mean(left**2)))


def robust_slope(x: FloatArray, y: FloatArray, variance: FloatArray) -> tuple[float, float]:
    """Return the slope of a weighted line that outliers do not move much, and its error."""
    weight = 1.0 / variance
    slope = error = 0.0
    for _ in range(10):
        middle = np.sum(weight * x) / np.sum(weight)
        level = np.sum(weight * y) / np.sum(weight)
        spread = np.sum(weight * (x - middle) ** 2)
        slope = float(np.sum(weight * (x - middle) * (y - level)) / spread)
        weight, scale = _weights(y - level - slope * (x - middle), variance)
        error = scale / math.sqrt(float(spread))
    return slope, error


def _weights(left: FloatArray, variance: FloatArray) -> tuple[FloatArray, float]:
    """Return Huber's weights of what a fit leaves, and the deviation that it really has."""
    off = np.abs(left) / np.sqrt(variance)
    scale = max(1.0, 1.4826 * float(np.median(off)))  # of a normal law
    return np.minimum(1.0, _OUTLIER * scale / np.maximum(off, 1e-300)) / variance, scale

"""Contract to operator coordinates, and the output form that keeps no-arbitrage bounds.

One place for both sides: training data are coded and surrogate answers decoded by these functions,
so the two cannot drift apart.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pricing.contracts import FloatArray

MAX_RATIO = 8.0  # of |ln F| / (σ√τ): beyond, no time value is left to learn


class Coded(NamedTuple):
    """Similarity coordinates and the output form of European options, per unit strike.

    price / strike = offset + scale × output: ``offset`` is the discounted payoff of the forward,
    below which no price falls, and ``scale`` = e^{-rτ} √F σ√τ removes size and time decay, so that
    the output is a smooth function of two coordinates with values in [0, 0.4]. At expiry the scale
    is zero and the payoff exact.
    """

    log_forward: FloatArray  # ln F, F the forward over the strike
    deviation: FloatArray  # σ√τ
    ratio: FloatArray  # ln F / (σ√τ), cut at ±MAX_RATIO
    offset: FloatArray
    scale: FloatArray


def code_european(
    log_moneyness: FloatArray,
    time_to_expiry: FloatArray,
    rate: FloatArray,
    dividend_yield: FloatArray,
    volatility: FloatArray,
    is_call: npt.ArrayLike,
) -> Coded:
    """Return coordinates and output form; arguments broadcast."""
    log_forward = log_moneyness + (rate - dividend_yield) * time_to_expiry
    deviation = np.broadcast_to(volatility * np.sqrt(time_to_expiry), log_forward.shape)
    forward = np.exp(log_forward)
    discount = np.exp(-rate * time_to_expiry)
    sign = np.where(is_call, 1.0, -1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(log_forward / deviation, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return Coded(
        log_forward=log_forward,
        deviation=deviation,
        ratio=np.clip(ratio, -MAX_RATIO, MAX_RATIO),
        offset=discount * np.maximum(sign * (forward - 1.0), 0.0),
        scale=discount * np.sqrt(forward) * deviation,
    )

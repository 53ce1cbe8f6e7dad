"""Cells of the market model's domain, whose errors are stated one by one."""

from typing import NamedTuple

import numpy as np

from amo.arrays import FloatArray
from pricing.options import Options
from pricing.surrogate.stated_error import Lattice

LATTICE = Lattice(
    {
        "is_call": (0.0, 0.5, 1.0),
        "ratio": (-np.inf, -2.0, -0.7, 0.0, 0.7, 2.0, np.inf),
        "expiry": (0.0, 0.04, 0.15, 0.5, 1.0, np.inf),
        "volatility": (0.0, 0.13, 0.25, 0.5, np.inf),
        "payments": (-0.5, 0.5, 2.5, 5.5, np.inf),
        "earned": (-np.inf, 0.002, 0.01, 0.03, np.inf),
    }
)


class Place(NamedTuple):
    """Where a contract is among the cells of stated errors.

    Attributes
    ----------
    is_call, expiry, volatility
        Of the contract.
    ratio
        ln(forward / strike) over σ√T.
    payments
        How many dividends up to expiry.
    earned
        What early exercise earns a year: the rate for a put, borrow and dividends for a call. Where
        it is next to nothing so is the scale, and an error is many times that.
    """

    is_call: FloatArray
    ratio: FloatArray
    expiry: FloatArray
    volatility: FloatArray
    payments: FloatArray
    earned: FloatArray


def place_of(options: Options) -> Place:
    """Return where contracts are among the cells."""
    forward = (options.rate - options.dividend_yield) * options.expiry
    deviation = options.volatility * np.sqrt(options.expiry)
    return Place(
        options.is_call.astype(np.float64),
        (np.log(options.spot / options.strike) + forward) / deviation,
        options.expiry,
        options.volatility,
        options.market_slices.n_payments.astype(np.float64),
        np.where(options.is_call, options.dividend_yield, options.rate),
    )

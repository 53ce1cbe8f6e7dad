"""What is known about an option without solving anything.

Payoff, no-arbitrage bounds of prices and Greeks, whether early exercise can pay, and the value at
zero volatility.
All functions are elementwise, broadcast, and use the units of :mod:`pricing.columns`.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from amo.arrays import BoolArray, FloatArray
from pricing.options import Options, Values


def intrinsic(spot: FloatArray, strike: FloatArray, is_call: npt.ArrayLike) -> FloatArray:
    """Return the payoff of exercising now."""
    return np.maximum(np.where(is_call, spot - strike, strike - spot), 0.0)


def never_exercised_early(
    rate: FloatArray, dividend_yield: FloatArray, is_call: npt.ArrayLike
) -> BoolArray:
    """Tell where early exercise never pays: put with r <= 0 and r <= q; call mirrored."""
    paid = np.where(is_call, dividend_yield, rate)  # what the exercised leg earns
    lost = np.where(is_call, rate, dividend_yield)
    return (paid <= 0) & (paid <= lost)


def has_double_boundary(
    rate: FloatArray, dividend_yield: FloatArray, is_call: npt.ArrayLike
) -> BoolArray:
    """Tell where exercise is optimal only between two boundaries: put q < r < 0, call r < q < 0."""
    paid = np.where(is_call, dividend_yield, rate)
    lost = np.where(is_call, rate, dividend_yield)
    return (lost < paid) & (paid < 0)


def bounds(options: Options) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest price without arbitrage, whatever the volatility.

    European: discounted intrinsic of the forward, and the discounted asset one may receive.
    American: the best exercise at a time fixed today (the value at zero volatility), and the
    undiscounted asset where discounting would lower it.
    """
    expiry = options.expiry
    asset = options.spot * np.exp(-options.dividend_yield * expiry)
    cash = options.strike * np.exp(-options.rate * expiry)
    european_low = intrinsic(asset, cash, options.is_call)
    european_high = np.where(options.is_call, asset, cash)
    if not options.is_american.any():
        return european_low, european_high
    if options.slices is None:
        american_low = best_fixed_exercise(
            options.spot,
            options.strike,
            expiry,
            options.rate,
            options.dividend_yield,
            options.is_call,
        )
    else:  # now, or at expiry
        now = intrinsic(options.spot, options.strike, options.is_call)
        american_low = np.maximum(now, european_low)
    undiscounted = np.where(options.is_call, options.spot, options.strike)
    return (
        np.where(options.is_american, american_low, european_low),
        np.where(options.is_american, np.maximum(undiscounted, european_high), european_high),
    )


def best_fixed_exercise(
    spot: FloatArray,
    strike: FloatArray,
    expiry: FloatArray,
    rate: FloatArray,
    dividend_yield: FloatArray,
    is_call: npt.ArrayLike,
) -> FloatArray:
    """Return the value of an American option as volatility goes to zero.

    The supremum over t in [0, expiry] of ±(S e^{-qt} - K e^{-rt}), or zero: the forward is then
    certain, and so is the best time to exercise, an end of the interval or the stationary point
    t = ln(qS / rK) / (q - r).
    """
    sign = np.where(is_call, 1.0, -1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        stationary = np.log(dividend_yield * spot / (rate * strike)) / (dividend_yield - rate)
    stationary = np.where(np.isfinite(stationary), np.clip(stationary, 0.0, expiry), 0.0)

    def exercised_at(time: FloatArray) -> FloatArray:
        return sign * (spot * np.exp(-dividend_yield * time) - strike * np.exp(-rate * time))

    best = np.maximum(sign * (spot - strike), exercised_at(expiry))
    return np.maximum(np.maximum(best, exercised_at(stationary)), 0.0)


def greek_bounds(options: Options, name: str) -> tuple[FloatArray | float, FloatArray | float]:
    """Return the lowest and the highest value of a Greek; infinite where nothing bounds it.

    Prices are convex in spot and rise with volatility. An option is a claim to one asset and one
    strike, discounted: delta is at most what is left of an asset, and a rate moves the price by at
    most the time to expiry on that leg. More time never makes an American option worth less.
    """
    if name in ("gamma", "vega"):
        return 0.0, np.inf
    if name == "theta":
        return -np.inf, np.where(options.is_american, 0.0, np.inf)
    if name not in ("delta", "rho", "dividend_rho"):
        return -np.inf, np.inf
    earned = options.rate if name == "rho" else options.dividend_yield
    most = np.exp(-earned * options.expiry)
    most = np.where(options.is_american, np.maximum(most, 1.0), most)
    if name != "delta":
        most = most * options.expiry * (options.strike if name == "rho" else options.spot)
    rises = options.is_call != (name == "dividend_rho")
    return np.where(rises, 0.0, -most), np.where(rises, most, 0.0)


def project_under_market(options: Options, values: Mapping[str, FloatArray]) -> Values:
    """Return prices and Greeks within what holds under any curves and dividends; NaN stays NaN.

    A price is positive and at most the spot (call; more where holding it earns) or the strike (put;
    more where rates are negative), an American one at least what exercise pays; gamma and vega are
    positive.
    """
    bounded = dict(values)
    held = options.strike * np.maximum(np.exp(-options.rate * options.expiry), 1.0)
    grown = np.ones(len(options))
    if options.slices is not None:
        grown = np.exp(options.slices.largest_carry(options.expiry))
    most = np.where(options.is_call, options.spot * grown, held)
    paid = intrinsic(options.spot, options.strike, options.is_call)
    limits: dict[str, tuple[FloatArray | float, FloatArray | float]] = {
        "price": (np.where(options.is_american, paid, 0.0), np.maximum(most, paid)),
        "delta": (np.where(options.is_call, 0.0, -grown), np.where(options.is_call, grown, 0.0)),
        "gamma": (0.0, np.inf),
        "vega": (0.0, np.inf),
    }
    for name in bounded.keys() & limits.keys():
        low, high = limits[name]
        bounded[name] = np.clip(bounded[name], low, high)
    return bounded


def project(options: Options, values: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return prices and Greeks moved to the nearest value within their bounds; NaN stays NaN.

    Only impossible values change. :func:`pricing.engines.base.evaluate` also keeps an American
    price at or above the European one.
    """
    bounded = dict(values)
    for name, column in values.items():
        low, high = bounds(options) if name == "price" else greek_bounds(options, name)
        bounded[name] = np.clip(column, low, high)
    return bounded

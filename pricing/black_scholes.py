"""Black–Scholes–Merton in closed form: the first referee.

With forward carry, total deviation ``s = σ√T`` and sign φ = +1 for a call, -1 for a put,

    d1 = (ln(S/K) + (r - q)T) / s + s/2,   d2 = d1 - s,
    V  = φ (S e^{-qT} N(φ d1) - K e^{-rT} N(φ d2)).

Every function takes numbers or arrays of any shape, broadcasts them, and is finite in the limits
s → 0 and |d| → ∞. At s = 0 exactly on the (forward) strike the answer is the mean of the
one-sided limits: delta ±½, gamma and vega 0.

Units: theta and charm per year of calendar time, vega and volga per 1.00 of volatility, rho and
dividend_rho per 1.00 of rate; vanna is the change of delta per 1.00 of volatility.

References
----------
E. G. Haug, The Complete Guide to Option Pricing Formulas, 2nd ed., chapters 1 and 2.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import elementwise
from scipy.special import ndtr

from amo.arrays import FloatArray

QUANTITIES = (
    "price",
    "delta",
    "gamma",
    "vega",
    "theta",
    "rho",
    "dividend_rho",
    "vanna",
    "volga",
    "charm",
)
_FAR = 39.0  # N(-39) and the density at 39 underflow to zero


def evaluate(
    spot: npt.ArrayLike,
    strike: npt.ArrayLike,
    expiry: npt.ArrayLike,
    rate: npt.ArrayLike,
    dividend_yield: npt.ArrayLike,
    volatility: npt.ArrayLike,
    is_call: npt.ArrayLike,
    quantities: Sequence[str] = QUANTITIES,
) -> dict[str, FloatArray]:
    """Return the named quantities of European options, shared terms computed once."""
    S, K, T = (np.asarray(x, dtype=np.float64) for x in (spot, strike, expiry))
    r, q, sigma = (np.asarray(x, dtype=np.float64) for x in (rate, dividend_yield, volatility))
    sign = np.where(is_call, 1.0, -1.0)
    root_T = np.sqrt(T)
    s = sigma * root_T
    d1, d2 = _d1_d2(np.log(S / K) + (r - q) * T, s)
    asset, cash = S * np.exp(-q * T), K * np.exp(-r * T)  # discounted to today
    N1, N2 = ndtr(sign * d1), ndtr(sign * d2)
    density = np.exp(-0.5 * d1 * d1) * (1.0 / np.sqrt(2.0 * np.pi))
    spread = asset * density  # S e^{-qT} n(d1)
    formulae: dict[str, Callable[[], FloatArray]] = {
        # rounding must not carry a price below the forward's payoff
        "price": lambda: np.maximum(
            sign * (asset * N1 - cash * N2), np.maximum(sign * (asset - cash), 0.0)
        ),
        "delta": lambda: sign * asset / S * N1,
        "gamma": lambda: _ratio(spread, S * S * s),
        "vega": lambda: spread * root_T,
        "theta": lambda: (
            sign * (q * asset * N1 - r * cash * N2) - _ratio(spread * sigma, 2.0 * root_T)
        ),
        "rho": lambda: sign * T * cash * N2,
        "dividend_rho": lambda: -sign * T * asset * N1,
        "vanna": lambda: _ratio(-spread * d2, S * sigma),
        "volga": lambda: _ratio(spread * root_T * d1 * d2, sigma),
        "charm": lambda: (
            (sign * q * asset * N1 - _ratio(spread * (r - q), s) + _ratio(spread * d2, 2.0 * T)) / S
        ),
    }
    return {name: formulae[name]() for name in quantities}


def price(
    spot: npt.ArrayLike,
    strike: npt.ArrayLike,
    expiry: npt.ArrayLike,
    rate: npt.ArrayLike,
    dividend_yield: npt.ArrayLike,
    volatility: npt.ArrayLike,
    is_call: npt.ArrayLike,
) -> FloatArray:
    """Return prices of European options."""
    return evaluate(
        spot, strike, expiry, rate, dividend_yield, volatility, is_call, quantities=("price",)
    )["price"]


def implied_volatility(
    price: npt.ArrayLike,
    spot: npt.ArrayLike,
    strike: npt.ArrayLike,
    expiry: npt.ArrayLike,
    rate: npt.ArrayLike,
    dividend_yield: npt.ArrayLike,
    is_call: npt.ArrayLike,
) -> FloatArray:
    """Return the volatility that reproduces each price; NaN where none does.

    The no-arbitrage bounds are checked first. The root is then sought in the logarithm of the
    out-of-the-money time value, which keeps its relative accuracy in the wings: with
    x = -|ln F/K|, time value / √(asset · cash) = e^{x/2} N(x/s + s/2) - e^{-x/2} N(x/s - s/2).
    """
    P, S, K, T, r, q = np.broadcast_arrays(
        *(
            np.asarray(x, dtype=np.float64)
            for x in (price, spot, strike, expiry, rate, dividend_yield)
        )
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        asset, cash = S * np.exp(-q * T), K * np.exp(-r * T)
        is_call = np.broadcast_to(np.asarray(is_call, dtype=np.bool_), P.shape)
        low = np.maximum(np.where(is_call, asset - cash, cash - asset), 0.0)
        high = np.where(is_call, asset, cash)
        time_value = (P - low) / np.sqrt(asset * cash)
        x = -np.abs(np.log(asset / cash))
        s_low = np.maximum(-x / 37.0, 1e-14)
        s_high = 20.0 + 2.0 * np.sqrt(-x)
        possible = (low < P) & (high > P) & (T > 0)
        possible &= (time_value > _time_value(x, s_low)) & (time_value < _time_value(x, s_high))
    result = np.full(P.shape, np.nan)
    if possible.any():
        root = elementwise.find_root(
            _log_time_value_over,
            (s_low[possible], s_high[possible]),
            args=(x[possible], np.log(time_value[possible])),
            tolerances={"xrtol": 1e-14, "xatol": 0.0, "fatol": 0.0, "frtol": 0.0},
            maxiter=200,
        )
        result[possible] = root.x / np.sqrt(T[possible])
    return result


def _time_value(x: FloatArray, s: FloatArray) -> FloatArray:
    """Normalised out-of-the-money Black price, increasing in s from 0 to e^{x/2}; x <= 0."""
    d = x / s
    return np.exp(0.5 * x) * ndtr(d + 0.5 * s) - np.exp(-0.5 * x) * ndtr(d - 0.5 * s)


def _log_time_value_over(s: FloatArray, x: FloatArray, goal: FloatArray) -> FloatArray:
    """Return ln(time value) - goal, finite even where the time value underflows."""
    return np.asarray(np.log(np.maximum(_time_value(x, s), 1e-320)) - goal)


def _d1_d2(log_forward: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return d1 and d2, cut at ±39 so that products with the density vanish, not NaN."""
    is_flat = s < 1e-300
    ratio = log_forward / np.where(is_flat, 1.0, s)
    if is_flat.any():
        ratio = np.where(is_flat, np.sign(log_forward) * 2 * _FAR, ratio)
    half = 0.5 * s
    return np.clip(ratio + half, -_FAR, _FAR), np.clip(ratio - half, -_FAR, _FAR)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return the quotient, zero where the denominator is."""
    is_zero = denominator == 0
    return np.asarray(np.where(is_zero, 0.0, numerator) / np.where(is_zero, 1.0, denominator))

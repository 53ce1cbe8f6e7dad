"""European options under cash dividends, nearly in closed form.

Given where the Brownian motion ends, z √T, the terminal spot is about certain: what remains random
is how the payments were spread over the path. With R and Q the integrals of rate and borrow, M the
share of the spot that proportional payments leave, a_i the payments carried to today at R - Q and
cut by later proportions, s = σ√T and s_i = s (1 - t_i / T),

    g(z) = M S e^{sz - s²/2} - Σ a_i e^{s_i z - s_i²/2} - K e^{Q - R},   g(z*) = 0,
    call = e^{-Q} [M S N(s - z*) - Σ a_i N(s_i - z*) - K e^{Q-R} N(-z*) + ½ φ(z*) Var / g'(z*)],

where Var is the variance of the terminal spot at z*, over the bridge. Without cash it is the
Black–Scholes formula, exactly; puts follow by parity with the schedule's forward. The error left is
a small share of the last term, and is stated as such. So is what the formula misses where the spot
may fall to zero: at most the value of the payments that the spot cannot make.
"""

from collections.abc import Sequence
from math import erfc, exp, log, pi, sqrt

import numba
import numpy as np

from amo.arrays import FloatArray
from pricing.markets.slices import Slices
from pricing.options import Options, Values

_SHARE = 0.05  # of the last term: what it leaves out, measured (tests/pricing/test_markets.py)
_ROUNDING = 1e-10  # per unit strike
_SPOT, _VOL, _RATE = 2e-4, 1e-4, 1e-5  # relative bumps of spot and volatility; of rates per year


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _normal(x: float) -> float:
    return 0.5 * erfc(-x / sqrt(2.0))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _root(
    asset: float,
    target: float,
    paid: float,
    s: float,
    a: FloatArray,
    s_i: FloatArray,
    m: int,
) -> tuple[float, float]:
    """Return z* and g'(z*), by Newton from the root without randomness in the payments."""
    z = (log((target + paid) / asset) + 0.5 * s * s) / s
    slope = 0.0
    for _ in range(60):
        g = asset * exp(s * z - 0.5 * s * s)
        slope = s * g
        g -= target
        for i in range(m):
            e = a[i] * exp(s_i[i] * z - 0.5 * s_i[i] * s_i[i])
            g -= e
            slope -= s_i[i] * e
        move = g / slope
        z -= move
        if abs(move) < 1e-13 * (1.0 + abs(z)):
            break
    return z, slope


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _variance(
    z: float,
    a: FloatArray,
    s_i: FloatArray,
    m: int,
    time: FloatArray,
    expiry: float,
    volatility: float,
) -> float:
    """Return the variance of the terminal spot, given where the Brownian motion ends."""
    variance = 0.0
    for i in range(m):
        e_i = a[i] * exp(s_i[i] * z - 0.5 * s_i[i] * s_i[i])
        for j in range(m):
            e_j = a[j] * exp(s_i[j] * z - 0.5 * s_i[j] * s_i[j])
            first, last = min(time[i], time[j]), max(time[i], time[j])
            bridge = first * (1.0 - last / expiry) * volatility**2
            variance += e_i * e_j * (exp(bridge) - 1.0)
    return variance


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _price_all(
    spot: FloatArray,
    strike: FloatArray,
    expiry: FloatArray,
    volatility: FloatArray,
    is_call: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
    rate: FloatArray,
    borrow: FloatArray,
    time: FloatArray,
    cash: FloatArray,
    proportion: FloatArray,
    carry: FloatArray,
    n_payments: "np.ndarray[tuple[int], np.dtype[np.intp]]",
    price: FloatArray,
    spread: FloatArray,
) -> None:
    """Write prices and what they may miss; ``rate`` and ``borrow`` are integrals to expiry.

    ``carry`` (options, payments) is the integral of borrow - rate to each payment.
    """
    width = time.shape[1]
    a = np.empty(width)
    s_i = np.empty(width)
    for row in range(len(spot)):
        m = n_payments[row]
        s = volatility[row] * sqrt(expiry[row])
        left = 1.0
        for i in range(m - 1, -1, -1):
            a[i] = cash[row, i] * left * exp(carry[row, i])
            left *= 1.0 - proportion[row, i]
            s_i[i] = s * (1.0 - time[row, i] / expiry[row])
        asset = left * spot[row]
        target = strike[row] * exp(borrow[row] - rate[row])
        paid = 0.0
        for i in range(m):
            paid += a[i]
        z, slope = _root(asset, target, paid, s, a, s_i, m)
        value = asset * _normal(s - z) - target * _normal(-z)
        for i in range(m):
            value -= a[i] * _normal(s_i[i] - z)
        variance = _variance(z, a, s_i, m, time[row], expiry[row], volatility[row])
        last_term = 0.0
        if variance > 0.0:
            last_term = 0.5 * exp(-0.5 * z * z) / sqrt(2.0 * pi) * variance / slope
        kept = exp(-borrow[row])
        missed = 0.0
        if paid > 0.0:  # a put on the spot, struck at all payments
            z_0 = (log(paid / asset) + 0.5 * s * s) / s
            missed = paid * _normal(z_0) - asset * _normal(z_0 - s)
        if not is_call[row]:
            value -= asset - paid - target
        price[row] = max(kept * (value + last_term), 0.0)
        spread[row] = kept * (_SHARE * last_term + max(missed, 0.0))


def _prices(
    options: Options,
    slices: Slices,
    *,
    spot: float = 1.0,
    volatility: float = 1.0,
    rate: float = 0.0,
    borrow: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Return prices and what they may miss, with spot and volatility scaled and rates shifted."""
    price, spread = np.empty(len(options)), np.empty(len(options))
    time = slices.time
    carry = slices.borrow_integral(time) - slices.rate_integral(time) + (borrow - rate) * time
    _price_all(
        options.spot * spot,
        options.strike,
        options.expiry,
        options.volatility * volatility,
        options.is_call,
        slices.rate_integral(options.expiry) + rate * options.expiry,
        slices.borrow_integral(options.expiry) + borrow * options.expiry,
        time,
        slices.cash,
        slices.proportion,
        carry,
        slices.n_payments,
        price,
        spread,
    )
    return price, spread


def evaluate(options: Options, slices: Slices, quantities: Sequence[str]) -> Values:
    """Return quantities of European options under their markets, ``price_error`` among them.

    Greeks are central differences of the formula, in float64.
    """
    wanted = set(quantities)
    price, missed = _prices(options, slices)
    found: Values = {
        "price": price,
        "price_error": np.abs(missed) + _ROUNDING * options.strike,
    }
    if wanted & {"delta", "gamma", "theta", "charm", "vanna"}:
        h = _SPOT * options.spot
        up, down = (_prices(options, slices, spot=1.0 + k * _SPOT)[0] for k in (1, -1))
        found["delta"] = (up - down) / (2.0 * h)
        found["gamma"] = np.maximum((up - 2.0 * price + down) / h**2, 0.0)
        r, b = slices.rate_now, slices.borrow_now
        found["theta"] = (
            r * price
            - (r - b) * options.spot * found["delta"]
            - 0.5 * (options.volatility * options.spot) ** 2 * found["gamma"]
        )
    if wanted & {"vega", "volga"}:
        h = _VOL * options.volatility
        up, down = (_prices(options, slices, volatility=1.0 + k * _VOL)[0] for k in (1, -1))
        found["vega"] = np.maximum((up - down) / (2.0 * h), 0.0)
        found["volga"] = (up - 2.0 * price + down) / h**2
    for name, moved in (("rho", "rate"), ("dividend_rho", "borrow")):
        if name in wanted:
            up, down = (_prices(options, slices, **{moved: k * _RATE})[0] for k in (1, -1))
            found[name] = (up - down) / (2.0 * _RATE)
    return {name: found[name] for name in quantities}

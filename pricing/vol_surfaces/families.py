"""Made-up surfaces of several families, to try methods on: total variance over y and time.

Each is the exact surface of some model, so it has no arbitrage, and none but the first is of a form
that a method fits by itself. Chains through them have the strikes, spreads and mistakes of listed
ones.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray
from pricing import black_scholes
from pricing.vol_surfaces.essvi import essvi_slice
from pricing.vol_surfaces.quotes import FLOOR, SmileQuotes

Truth = Callable[[FloatArray, FloatArray], FloatArray]
EXPIRIES = np.array([4, 11, 18, 25, 32, 46, 74, 102, 137, 165, 256, 347, 466, 620]) / 365.0
_BELOW, _ABOVE = 3.2, 2.2  # deviations that strikes reach
_SPREAD, _TICK = 0.03, 2e-4  # of the price, and of the forward at least
_OUTLIER = 6.0  # spreads


class MadeUp(NamedTuple):
    """Quotes, with the volatilities of bid and ask."""

    quotes: SmileQuotes
    bid: FloatArray
    ask: FloatArray


def essvi(rng: np.random.Generator) -> Truth:
    """Return an eSSVI surface: θ a power of time, ρ drifting, ψ as √θ."""
    level, power = rng.uniform(0.03, 0.12), rng.uniform(0.8, 1.05)
    first, last = rng.uniform(-0.7, 0.0, 2)
    steep = rng.uniform(0.5, 1.2)

    def variance(y: FloatArray, years: FloatArray) -> FloatArray:
        theta = level * years**power
        rho = last + (first - last) * np.exp(-years)
        return essvi_slice(y, theta, rho, np.minimum(steep * np.sqrt(theta), 1.2))

    return variance


def heston_with_jumps(rng: np.random.Generator) -> Truth:
    """Return the surface of Bates' model, by Fourier inversion (Lewis)."""
    now, long_run = rng.uniform(0.02, 0.12, 2)
    speed, vol_of_vol, rho = rng.uniform(0.5, 4.0), rng.uniform(0.3, 1.0), rng.uniform(-0.8, -0.2)
    rate, mean, size = rng.uniform(0.1, 1.5), rng.uniform(-0.12, 0.02), rng.uniform(0.03, 0.15)
    u = np.linspace(1e-4, 200.0, 4_000)
    weight = np.full(len(u), u[1] - u[0])
    weight[[0, -1]] *= 0.5

    def characteristic(years: float) -> npt.NDArray[np.complex128]:
        z = u - 0.5j
        iz = 1j * z
        a = speed - rho * vol_of_vol * iz
        d = np.sqrt(a**2 + vol_of_vol**2 * (iz + z**2))
        g = (a - d) / (a + d)
        fade = np.exp(-d * years)
        drift = (a - d) * years - 2.0 * np.log((1.0 - g * fade) / (1.0 - g))
        diffusion = (a - d) / vol_of_vol**2 * (1.0 - fade) / (1.0 - g * fade)
        jump = np.exp(iz * mean - 0.5 * size**2 * z**2) - 1.0
        jump = jump - iz * (np.exp(mean + 0.5 * size**2) - 1.0)
        exponent = speed * long_run / vol_of_vol**2 * drift + diffusion * now
        return np.asarray(np.exp(exponent + rate * years * jump))

    def variance(y: FloatArray, years: FloatArray) -> FloatArray:
        y, years = np.broadcast_arrays(y, years)
        calls = np.empty(y.shape)
        for time in np.unique(years):
            here = years == time
            kernel = characteristic(float(time)) / (u**2 + 0.25) * weight
            waves = np.exp(-1j * np.outer(y[here], u))
            calls[here] = 1.0 - np.exp(0.5 * y[here]) / np.pi * (waves @ kernel).real
        return _variance(calls, y)

    return variance


def mixture(rng: np.random.Generator) -> Truth:
    """Return the surface of three lognormal laws with different means and deviations."""
    share = rng.dirichlet(np.full(3, 3.0))
    deviation, drift = rng.uniform(0.12, 0.5, 3), rng.uniform(-0.15, 0.15, 3)

    def variance(y: FloatArray, years: FloatArray) -> FloatArray:
        y, years = np.broadcast_arrays(y, years)
        means = np.exp(drift.reshape(-1, *(1,) * y.ndim) * np.sqrt(years))
        means = means / np.tensordot(share, means, 1)
        calls = sum(
            part * _call(mean, np.exp(y), vol**2 * years)
            for part, mean, vol in zip(share, means, deviation, strict=True)
        )
        return _variance(np.asarray(calls), y)

    return variance


def event(rng: np.random.Generator) -> Truth:
    """Return an eSSVI surface whose spot also jumps up or down on one day, as at earnings."""
    base = essvi(rng)
    day, size, up = rng.uniform(20, 60) / 365.0, rng.uniform(0.03, 0.09), rng.uniform(0.3, 0.7)
    jumps = ((up, 1.0 + 2.0 * size * (1.0 - up)), (1.0 - up, 1.0 - 2.0 * size * up))

    def variance(y: FloatArray, years: FloatArray) -> FloatArray:
        y, years = np.broadcast_arrays(y, years)
        calls = np.zeros(y.shape)
        for share, jump in jumps:
            moved = y - np.log(jump)
            calls += share * jump * _call(1.0, np.exp(moved), base(moved, years))
        return np.where(years >= day, _variance(calls, y), base(y, years))

    return variance


FAMILIES: Mapping[str, Callable[[np.random.Generator], Truth]] = {
    "eSSVI": essvi,
    "Heston with jumps": heston_with_jumps,
    "mixture of lognormals": mixture,
    "an event between expiries": event,
}


def made_up_quotes(truth: Truth, rng: np.random.Generator, *, outliers: float = 0.01) -> MadeUp:
    """Return quotes with listed-like strikes, mids anywhere between bid and ask, and outliers."""
    y, place = [], []
    for number, years in enumerate(EXPIRIES):
        deviation = float(np.sqrt(truth(np.zeros(1), np.array([years])))[0])
        step = 0.01 if years < 0.1 else 0.02 if years < 0.6 else 0.04
        low, high = np.exp(-_BELOW * deviation), np.exp(_ABOVE * deviation)
        strikes = np.arange(np.ceil(low / step) * step, high, step)
        y.append(np.log(strikes[strikes > 0.05]))
        place.append(np.full(len(y[-1]), number))
    k, which = np.concatenate(y), np.concatenate(place)
    time, is_call = EXPIRIES[which], k >= 0
    strike, total = np.exp(k), truth(k, time)
    price = black_scholes.price(1.0, strike, 1.0, 0.0, 0.0, np.sqrt(total), is_call)
    spread = np.maximum(_TICK, _SPREAD * price)
    mid = price + spread * rng.uniform(-0.5, 0.5, len(k))
    is_off = rng.random(len(k)) < outliers
    mid = np.where(is_off, price + _OUTLIER * spread * rng.choice([-1.0, 1.0], len(k)), mid)
    bid, vol, ask = (
        black_scholes.implied_volatility(mid + side * spread, 1.0, strike, time, 0.0, 0.0, is_call)
        for side in (-0.5, 0.0, 0.5)
    )
    good = np.isfinite(bid) & np.isfinite(vol) & np.isfinite(ask)
    error = np.maximum(0.5 * (ask - bid), FLOOR)
    quotes = SmileQuotes(EXPIRIES, which[good], k[good], vol[good], error[good])
    return MadeUp(quotes, bid[good], ask[good])


def _call(forward: FloatArray | float, strike: FloatArray, variance: FloatArray) -> FloatArray:
    return black_scholes.price(forward, strike, 1.0, 0.0, 0.0, np.sqrt(variance), True)


def _variance(calls: FloatArray, y: FloatArray) -> FloatArray:
    """Return total variances of undiscounted calls of forward 1."""
    strike, is_call = np.exp(y), y >= 0
    worth = np.where(is_call, calls, calls - 1.0 + strike)
    return black_scholes.implied_volatility(worth, 1.0, strike, 1.0, 0.0, 0.0, is_call) ** 2

"""Pure strikes: coordinates in which cash dividends are no arbitrage.

A stock that will pay cash is worth at least the value D of what it will pay. What is left,
X = (S - D)/(F - D), is a martingale of mean 1 across ex-dates, so options on it have smiles that
may be compared between expiries, and x = (K - D)/(F - D) is their strike. Without later cash
dividends D = 0, and x = K/F.

References
----------
H. Buehler, Volatility and Dividends, 2010.
"""

import math
from dataclasses import dataclass

import numpy as np

from amo.arrays import BoolArray, FloatArray, IntArray
from pricing import black_scholes
from pricing.engines.base import evaluate
from pricing.engines.registry import get_engine
from pricing.implied_vol import implied_volatility
from pricing.markets.market import Market
from pricing.options import Options


@dataclass(frozen=True)
class PureStrikes:
    """Forward, value of later cash and discount factor, for each of some strikes and expiries."""

    market: Market
    strike: FloatArray
    years: FloatArray
    forward: FloatArray
    later: FloatArray
    discount: FloatArray

    @classmethod
    def of(cls, market: Market, strike: FloatArray, years: FloatArray) -> "PureStrikes":
        """Look up a market at the expiries of strikes."""
        strike, years = np.broadcast_arrays(
            np.asarray(strike, dtype=np.float64), np.asarray(years, dtype=np.float64)
        )
        times, place = np.unique(years, return_inverse=True)
        later = np.array([later_cash(market, time) for time in times.tolist()])
        return cls(
            market,
            strike,
            years,
            market.forwards(years),
            later[place].reshape(years.shape),
            np.exp(-market.rate.integral(years)),
        )

    def take(self, rows: IntArray) -> "PureStrikes":
        """Return some of them, of a flat array."""
        columns = (self.strike, self.years, self.forward, self.later, self.discount)
        return PureStrikes(self.market, *(column[rows] for column in columns))

    @property
    def log_moneyness(self) -> FloatArray:
        """Y = ln x; -inf at and below the value of later cash, where no option has any."""
        with np.errstate(divide="ignore"):
            above = np.maximum(self.strike - self.later, 0.0)
            return np.asarray(np.log(above / (self.forward - self.later)))

    def strikes(self, log_moneyness: FloatArray) -> FloatArray:
        """Return the strikes K of pure log-moneyness y."""
        return np.asarray(self.later + (self.forward - self.later) * np.exp(log_moneyness))

    def variance(self, volatility: FloatArray) -> FloatArray:
        """Return pure total variances of the market's own volatilities."""
        if not self._has_cash:
            return np.asarray(volatility**2 * self.years)
        is_call = self.strike >= self.forward
        options = _european(self.market, self.strike, self.years, is_call)
        options = options.with_values(volatility=volatility)
        worth = evaluate(get_engine("analytic"), options, ("price",))[0]["price"]
        deviation = black_scholes.implied_volatility(
            worth / self.discount,
            self.forward - self.later,
            self.strike - self.later,
            1.0,
            0.0,
            0.0,
            is_call,
        )
        return np.asarray(deviation**2)

    def volatility(self, variance: FloatArray) -> FloatArray:
        """Return the market's own volatilities of pure total variances."""
        if not self._has_cash:
            return np.asarray(np.sqrt(variance / self.years))
        is_call = self.strike >= self.forward
        options = _european(self.market, self.strike, self.years, is_call)
        worth = self.price(variance, is_call)
        return implied_volatility(get_engine("analytic"), options, worth).volatility

    def price(self, variance: FloatArray, is_call: BoolArray) -> FloatArray:
        """Return European prices of pure total variances."""
        return self.discount * black_scholes.price(
            self.forward - self.later,
            np.maximum(self.strike - self.later, 1e-300),
            1.0,
            0.0,
            0.0,
            np.sqrt(variance),
            is_call,
        )

    @property
    def _has_cash(self) -> bool:
        return any(payment.cash > 0 for payment in self.market.dividends)


def later_cash(market: Market, time: float) -> float:
    """Return what cash dividends after a time are worth at that time, of stock held until then."""
    value, later = 0.0, None
    for payment in reversed(market.dividends):
        if payment.time <= time:
            break
        if later is not None:
            value *= _carried(market, payment.time, later)
        value = (value + payment.cash) / (1.0 - payment.proportion)
        later = payment.time
    return value if later is None else value * _carried(market, time, later)


def _carried(market: Market, start: float, end: float) -> float:
    carry = market.rate.integral([start, end]) - market.borrow.integral([start, end])
    return math.exp(float(carry[0] - carry[1]))


def _european(market: Market, strike: FloatArray, years: FloatArray, is_call: BoolArray) -> Options:
    return Options.under(market, strike=strike, expiry=years, is_call=is_call, is_american=False)

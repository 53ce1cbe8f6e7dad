"""The markets and contracts that a market model knows: regular dividends in cash, usual curves."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from amo.arrays import BoolArray, FloatArray
from pricing.markets.slices import Slices
from pricing.options import Options
from pricing.slopes import QUARTERS
from pricing.surrogate.domain import Range

CODING = 1  # of slices and contracts; increases when the same numbers change meaning


@dataclass(frozen=True, kw_only=True)
class MarketDomain:
    """Closed ranges; units of :mod:`pricing.columns`.

    Attributes
    ----------
    expiry, volatility, log_moneyness
        Of the contract.
    rate, borrow
        Of the mean forwards over each quarter of the time to expiry.
    bend
        The most that two neighbouring of these differ.
    cash_yield
        The most that a payment is of the spot, per year since the one before.
    gap
        The least time between two payments, in years.
    payments
        The most payments up to expiry.
    """

    expiry: Range = (3.0 / 365.0, 2.0)
    volatility: Range = (0.08, 0.8)
    log_moneyness: Range = (-0.7, 0.7)
    rate: Range = (0.0, 0.10)
    borrow: Range = (0.0, 0.05)
    bend: float = 0.0125
    cash_yield: float = 0.06
    gap: float = 0.2
    payments: int = 9

    def widened(self) -> "MarketDomain":
        """Return a larger domain to train on: at the ends of its data a model sees one side only.

        Rates stay at or above zero, where early exercise has no value and the form is exact.
        """
        low, high = self.log_moneyness
        return replace(
            self,
            expiry=(self.expiry[0] / 1.5, _WIDER * self.expiry[1]),
            volatility=(self.volatility[0] / 1.2, _WIDER * self.volatility[1]),
            log_moneyness=(1.1 * low, 1.1 * high),
            rate=(self.rate[0], _WIDER * self.rate[1]),
            borrow=(self.borrow[0], _WIDER * self.borrow[1]),
            cash_yield=_WIDER * self.cash_yield,
            payments=self.payments + 1,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the ranges in JSON form."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`as_dict`."""
        ranges: dict[str, Any] = {
            name: tuple(map(float, value)) if isinstance(value, list | tuple) else value
            for name, value in content.items()
        }
        return cls(**ranges)

    def outside(self, options: Options) -> list[tuple[BoolArray, str]]:
        """Return masks of rows outside the domain, each with its reason."""
        slices = options.market_slices
        lengths = {
            "expiry": options.expiry,
            "volatility": options.volatility,
            "log_moneyness": np.log(options.spot / options.strike),
        }
        reasons: list[tuple[BoolArray, str]] = []
        for name, values in lengths.items():
            low, high = getattr(self, name)
            text = f"{name} is outside of the market model's [{low:g}, {high:g}]"
            reasons.append((_beyond(values, low, high), text))
        for name, of in (("rate", slices.rate_integral), ("borrow", slices.borrow_integral)):
            low, high = getattr(self, name)
            mean = _forwards(of(options.expiry[:, None] * np.array(QUARTERS)), options.expiry)
            is_bent = np.any(np.abs(np.diff(mean, axis=1)) > self.bend + _ROUNDING, axis=1)
            is_far = np.any(_beyond(mean, low - _ROUNDING, high + _ROUNDING), axis=1)
            reasons.append(
                (np.asarray(is_far), f"{name} leaves the market model's [{low:g}, {high:g}]")
            )
            reasons.append(
                (np.asarray(is_bent & ~is_far), f"{name} bends more than the market model knows")
            )
        reasons += self._unusual_payments(options.spot, slices)
        return reasons

    def _unusual_payments(self, spot: FloatArray, slices: Slices) -> list[tuple[BoolArray, str]]:
        is_real = np.arange(slices.time.shape[1]) < slices.n_payments[:, None]
        before = np.diff(slices.time, axis=1, prepend=-1.0)  # the first may have a year behind it
        before[:, :1] = 1.0
        after = np.concatenate([before[:, 1:], np.ones((len(before), 1))], axis=1)
        is_followed = np.concatenate([is_real[:, 1:], np.zeros_like(is_real[:, :1])], axis=1)
        after = np.where(is_followed, after, 1.0)
        period = np.minimum(np.minimum(before, after), 1.0)
        is_large = is_real & (slices.cash > self.cash_yield * period * spot[:, None] * _SLACK)
        is_close = is_real[:, 1:] & (before[:, 1:] < self.gap)
        return [
            (
                (is_real & (slices.proportion > 0)).any(axis=1),
                "a dividend in proportion to the spot is outside of the market model",
            ),
            (
                slices.n_payments > self.payments,
                f"more than {self.payments} dividends are outside of the market model",
            ),
            (
                is_close.any(axis=1),
                f"dividends less than {self.gap:g} years apart are outside of the market model",
            ),
            (
                is_large.any(axis=1),
                f"a dividend above {self.cash_yield:.0%} of the spot a year is outside of it",
            ),
        ]


_WIDER = 1.15
_ROUNDING = 1e-9
_SLACK = 1.0 + 1e-9


def _beyond(values: FloatArray, low: float, high: float) -> BoolArray:
    return np.asarray(~((values >= low) & (values <= high)))


def _forwards(integral: FloatArray, expiry: FloatArray) -> FloatArray:
    """Return the mean forward over each quarter."""
    width = np.maximum(expiry, 1e-12)[:, None] * np.diff(QUARTERS, prepend=0.0)
    return np.asarray(np.diff(integral, axis=1, prepend=0.0) / width)

"""What an option sees of its market up to its expiry: payments and integrals of the curves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from amo.arrays import BoolArray, FloatArray, IntArray
from pricing.markets.curve import Curve
from pricing.markets.market import Market


@dataclass(frozen=True)
class Slices:
    """Payments of options as rectangles (options, payments), and where their curves are.

    Rows with fewer payments than the widest are filled with payments of nothing at expiry.

    Attributes
    ----------
    markets, number
        The markets, and which of them each option has.
    time, cash, proportion
        Of each payment: years from now, currency, share of the spot.
    n_payments
        How many of a row's payments are real.
    """

    markets: tuple[Market, ...]
    number: IntArray
    time: FloatArray
    cash: FloatArray
    proportion: FloatArray
    n_payments: IntArray

    @classmethod
    def of(cls, markets: Sequence[Market], number: IntArray, expiry: FloatArray) -> Self:
        """Cut markets at the expiries of options."""
        cut = [
            markets[place].before(end)
            for place, end in zip(number.tolist(), expiry.tolist(), strict=True)
        ]
        n_payments = np.array([len(payments) for payments in cut], dtype=np.intp)
        shape = len(expiry), int(n_payments.max(initial=0))
        time = np.repeat(expiry[:, None], shape[1], axis=1)
        cash, proportion = np.zeros(shape), np.zeros(shape)
        for row, payments in enumerate(cut):
            for column, payment in enumerate(payments):
                time[row, column], cash[row, column], proportion[row, column] = payment
        return cls(tuple(markets), number, time, cash, proportion, n_payments)

    def __len__(self) -> int:
        return len(self.number)

    @property
    def rate_now(self) -> FloatArray:
        """The rate at this moment, per year."""
        return np.array([market.rate.rates[0] for market in self.markets])[self.number]

    @property
    def borrow_now(self) -> FloatArray:
        """The cost of borrowing at this moment, per year."""
        return np.array([market.borrow.rates[0] for market in self.markets])[self.number]

    @property
    def is_plain(self) -> BoolArray:
        """Where a flat rate and a flat yield say all: no payments, and flat curves."""
        flat = np.array([market.rate.is_flat and market.borrow.is_flat for market in self.markets])
        return np.asarray((self.n_payments == 0) & flat[self.number])

    def take(self, rows: npt.NDArray[Any] | slice) -> "Slices":
        """Return the slices of some options."""
        return Slices(
            self.markets,
            self.number[rows],
            self.time[rows],
            self.cash[rows],
            self.proportion[rows],
            self.n_payments[rows],
        )

    def first(self, n_payments: int) -> "Slices":
        """Return the same with rectangles of that many payments: for rows that have no more."""
        return replace(
            self,
            time=self.time[:, :n_payments],
            cash=self.cash[:, :n_payments],
            proportion=self.proportion[:, :n_payments],
        )

    def rate_integral(self, time: FloatArray) -> FloatArray:
        """Return ∫₀ᵗ of the rate for times (options, ...), each by its own market."""
        return self._integral(time, [market.rate for market in self.markets])

    def borrow_integral(self, time: FloatArray) -> FloatArray:
        """Return ∫₀ᵗ of the borrow for times (options, ...), each by its own market."""
        return self._integral(time, [market.borrow for market in self.markets])

    def _integral(self, time: FloatArray, curves: Sequence[Curve]) -> FloatArray:
        if len(curves) == 1:
            return curves[0].integral(time)
        found = np.empty_like(time)
        order = np.argsort(self.number, kind="stable")
        places, starts = np.unique(self.number[order], return_index=True)
        for place, rows in zip(places, np.split(order, starts[1:]), strict=True):
            found[rows] = curves[place].integral(time[rows])
        return found

    def shifted(self, *, rate: float = 0.0, borrow: float = 0.0) -> "Slices":
        """Return the same options with the curves of all markets moved in parallel."""
        moved = [
            market.replaced(rate=market.rate.shifted(rate), borrow=market.borrow.shifted(borrow))
            for market in self.markets
        ]
        return replace(self, markets=tuple(moved))

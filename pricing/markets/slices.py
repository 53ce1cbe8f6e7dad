"""What an option sees of its market up to its expiry: payments and integrals of the curves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from amo.arrays import BoolArray, FloatArray, IntArray
from pricing.markets.curve import Curves
from pricing.markets.market import Dividend, Market


@dataclass(frozen=True)
class Slices:
    """Payments of options as rectangles (options, payments), and where their curves are.

    Rows with fewer payments than the widest are filled with payments of nothing at expiry.

    Attributes
    ----------
    rates, borrows, number
        The curves of all markets, and which market each option has.
    time, cash, proportion
        Of each payment: years from now, currency, share of the spot.
    n_payments
        How many of a row's payments are real.
    start
        The moment from which a row's times count, in years of its curves: zero unless
        :meth:`after` moved it on.
    """

    rates: Curves
    borrows: Curves
    number: IntArray
    time: FloatArray
    cash: FloatArray
    proportion: FloatArray
    n_payments: IntArray
    start: FloatArray

    @classmethod
    def of(cls, markets: Sequence[Market], number: IntArray, expiry: FloatArray) -> Self:
        """Cut markets at the expiries of options; a payment at expiry is made."""
        width = max((len(market.dividends) for market in markets), default=0)
        never = Dividend(np.inf, 0.0)
        filled = [
            [*market.dividends, *[never] * (width - len(market.dividends))] for market in markets
        ]
        table = np.array(filled, dtype=np.float64).reshape(len(markets), width, 3)
        is_made = table[number, :, 0] <= expiry[:, None]
        n_payments = is_made.sum(axis=1)
        is_made = is_made[:, : int(n_payments.max(initial=0))]
        time, cash, proportion = np.moveaxis(table[number, : is_made.shape[1]], -1, 0)
        return cls(
            Curves.of([market.rate for market in markets]),
            Curves.of([market.borrow for market in markets]),
            np.asarray(number, dtype=np.intp),
            np.where(is_made, time, expiry[:, None]),
            np.where(is_made, cash, 0.0),
            np.where(is_made, proportion, 0.0),
            n_payments.astype(np.intp),
            np.zeros(len(expiry)),
        )

    @classmethod
    def flat(cls, rate: FloatArray, borrow: FloatArray, expiry: FloatArray) -> Self:
        """Return the slices of options under flat curves and no payments."""
        n = len(expiry)
        times = np.tile([0.0, 1.0], (n, 1))
        rates, borrows = (Curves(times, times * level[:, None]) for level in (rate, borrow))
        none = np.zeros((n, 0))
        counts = np.zeros(n, dtype=np.intp)
        return cls(rates, borrows, np.arange(n), none, none, none, counts, np.zeros(n))

    def __len__(self) -> int:
        return len(self.number)

    @property
    def rate_now(self) -> FloatArray:
        """The rate at this moment, per year."""
        return self.rates.forward(self.start, self.number)

    @property
    def borrow_now(self) -> FloatArray:
        """The cost of borrowing at this moment, per year."""
        return self.borrows.forward(self.start, self.number)

    @property
    def is_plain(self) -> BoolArray:
        """Where a flat rate and a flat yield say all: no payments, and flat curves."""
        flat = self.rates.is_flat & self.borrows.is_flat
        return np.asarray((self.n_payments == 0) & flat[self.number])

    def take(self, rows: npt.NDArray[Any] | slice) -> "Slices":
        """Return the slices of some options."""
        return replace(
            self,
            number=self.number[rows],
            time=self.time[rows],
            cash=self.cash[rows],
            proportion=self.proportion[rows],
            n_payments=self.n_payments[rows],
            start=self.start[rows],
        )

    def after(self, time: FloatArray, expiry: FloatArray) -> "Slices":
        """Return what options see some years later, their expiries then still that far away.

        Forwards come true; a payment of that very moment is still to be made.
        """
        is_due = (self.time >= time[:, None]) & (
            np.arange(self.time.shape[1]) < self.n_payments[:, None]
        )
        order = np.argsort(~is_due, axis=1, kind="stable")  # what is due comes first

        def due(column: FloatArray, other: FloatArray) -> FloatArray:
            return np.take_along_axis(np.where(is_due, column, other), order, axis=1)

        nothing = np.zeros_like(self.time)
        return replace(
            self,
            time=due(self.time - time[:, None], expiry[:, None]),
            cash=due(self.cash, nothing),
            proportion=due(self.proportion, nothing),
            n_payments=is_due.sum(axis=1),
            start=self.start + time,
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
        return self._integral(self.rates, time)

    def borrow_integral(self, time: FloatArray) -> FloatArray:
        """Return ∫₀ᵗ of the borrow for times (options, ...), each by its own market."""
        return self._integral(self.borrows, time)

    def _integral(self, curves: Curves, time: FloatArray) -> FloatArray:
        if not self.start.any():
            return curves.integral(time, self.number)
        start = self.start.reshape(-1, *(1,) * (time.ndim - 1))
        return curves.integral(time + start, self.number) - curves.integral(start, self.number)

    def largest_carry(self, expiry: FloatArray) -> FloatArray:
        """Return the most that the stock earns its holder up to any time before expiry, in logs."""
        nodes = self.borrows.times[self.number] - self.start[:, None]
        times = np.clip(nodes, 0.0, np.maximum(expiry, 0.0)[:, None])
        ends = np.concatenate([times, np.maximum(expiry, 0.0)[:, None]], axis=1)
        return np.asarray(np.maximum(-self.borrow_integral(ends), 0.0).max(axis=1))

    def shifted(self, *, rate: float = 0.0, borrow: float = 0.0) -> "Slices":
        """Return the same options with the curves of all markets moved in parallel."""
        return replace(self, rates=self.rates.shifted(rate), borrows=self.borrows.shifted(borrow))

    def flat_terms(
        self, spot: FloatArray, expiry: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return the zero rate to expiry, the yield with the same forward, and where there is none.

        There is none where the payments are worth more than the spot. At expiry they are the rates
        of that moment.
        """
        time = np.where(expiry > 0, expiry, 1.0)
        rate, borrow = self.rate_integral(time), self.borrow_integral(time)
        carry = self.borrow_integral(self.time) - self.rate_integral(self.time)
        later = np.cumprod((1.0 - self.proportion)[:, ::-1], axis=1)[:, ::-1]
        after = np.concatenate([later[:, 1:], np.ones((len(spot), 1))], axis=1)[:, : later.shape[1]]
        whole = later[:, 0] if later.shape[1] else np.ones(len(spot))
        left = whole * spot - np.sum(self.cash * after * np.exp(carry), axis=1)
        is_ruined = left <= 0.0
        share = np.where(is_ruined, 1.0, left / spot)
        is_live = expiry > 0
        return (
            np.where(is_live, rate / time, self.rate_now),
            np.where(is_live, (borrow - np.log(share)) / time, self.borrow_now),
            is_ruined & is_live,
        )

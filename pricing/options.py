"""Vanilla options as plain arrays: what every engine takes.

``expiry`` is in years (act/365), ``rate`` and ``dividend_yield`` are continuously compounded per
year, ``volatility`` is per square root of a year; 0.05 means 5 %.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from amo.arrays import BoolArray, FloatArray
from pricing.markets.market import Market
from pricing.markets.slices import Slices

Exercise = Literal["european", "american"]
Values = dict[str, FloatArray]  # an array for each quantity
Terms = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, BoolArray]


COLUMNS = (
    "spot",
    "strike",
    "expiry",
    "rate",
    "dividend_yield",
    "volatility",
    "is_call",
    "is_american",
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Vanilla options as equally long arrays; see the module for units.

    Under a market, ``slices`` holds curves and payments up to each expiry; then ``rate`` is the
    zero rate to expiry, and ``dividend_yield`` the yield that gives the same forward.
    """

    spot: FloatArray
    strike: FloatArray
    expiry: FloatArray
    rate: FloatArray
    dividend_yield: FloatArray
    volatility: FloatArray
    is_call: BoolArray
    is_american: BoolArray
    slices: Slices | None = None

    def __len__(self) -> int:
        return len(self.spot)

    @property
    def terms(self) -> Terms:
        """The arguments of the closed form, in its order."""
        return (
            self.spot,
            self.strike,
            self.expiry,
            self.rate,
            self.dividend_yield,
            self.volatility,
            self.is_call,
        )

    @property
    def quoted_terms(
        self,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, BoolArray]:
        """What is known about a quoted option: its terms without the volatility."""
        return (*self.terms[:5], self.is_call)

    @property
    def market_slices(self) -> Slices:
        """The slices of options that are known to have them."""
        if self.slices is None:
            raise ValueError("these options have no market")
        return self.slices

    def take(self, rows: npt.NDArray[Any] | slice) -> Self:
        """Return the options at ``rows``: positions, a boolean mask or a slice."""
        arrays = {name: getattr(self, name)[rows] for name in COLUMNS}
        return type(self)(**arrays, slices=None if self.slices is None else self.slices.take(rows))

    def with_slices(self, slices: Slices) -> Self:
        """Return the same options under markets."""
        return replace(self, slices=slices)

    def at_forwards(self) -> Self:
        """Return the same with rate and yield set anew from the slices: after the spot moved."""
        if self.slices is None:
            return self
        rate, dividend_yield, _ = self.slices.flat_terms(self.spot, self.expiry)
        return replace(self, rate=rate, dividend_yield=dividend_yield)

    def after(self, time: FloatArray, spot: FloatArray) -> Self:
        """Return what the options will be some years later, at the spots of then.

        Forwards come true; a payment of that very moment is still to be made. An option that has
        expired by then has a negative expiry.
        """
        left = np.where(time == self.expiry, 0.0, self.expiry - time)
        moved = replace(self, spot=spot, expiry=left)
        if self.slices is None:
            return moved
        return moved.with_slices(self.slices.after(time, left)).at_forwards()

    def with_values(self, **columns: FloatArray | BoolArray) -> Self:
        """Return a copy in which the named columns are replaced."""
        return replace(self, **columns)  # type: ignore[arg-type]  # two array dtypes, one call

    @classmethod
    def of(
        cls,
        *,
        spot: npt.ArrayLike,
        strike: npt.ArrayLike,
        expiry: npt.ArrayLike,
        rate: npt.ArrayLike,
        dividend_yield: npt.ArrayLike,
        volatility: npt.ArrayLike,
        is_call: npt.ArrayLike,
        is_american: npt.ArrayLike = False,
    ) -> Self:
        """Build options from scalars and arrays, broadcast against each other to one dimension."""
        numbers = (spot, strike, expiry, rate, dividend_yield, volatility)
        flags = (is_call, is_american)
        arrays = np.broadcast_arrays(
            *(np.asarray(x, dtype=np.float64) for x in numbers),
            *(np.asarray(x, dtype=np.bool_) for x in flags),
        )
        whole = (np.atleast_1d(array).ravel() for array in arrays)
        return cls(**dict(zip(COLUMNS, whole, strict=True)))  # type: ignore[arg-type]  # dtypes

    @classmethod
    def under(
        cls,
        market: Market,
        *,
        strike: npt.ArrayLike,
        expiry: npt.ArrayLike,
        is_call: npt.ArrayLike,
        is_american: npt.ArrayLike,
        volatility: npt.ArrayLike = 0.2,
    ) -> Self:
        """Build options under one market."""
        options = cls.of(
            spot=market.spot,
            strike=strike,
            expiry=expiry,
            rate=0.0,
            dividend_yield=0.0,
            volatility=volatility,
            is_call=is_call,
            is_american=is_american,
        )
        here = np.zeros(len(options), dtype=np.intp)
        return options.with_slices(Slices.of([market], here, options.expiry)).at_forwards()

    def to_frame(self) -> pd.DataFrame:
        """Return the options as a book."""
        numbers = COLUMNS[:6]
        return pd.DataFrame(
            {
                **{name: getattr(self, name) for name in numbers},
                "option_type": np.where(self.is_call, "call", "put"),
                "exercise": np.where(self.is_american, "american", "european"),
            }
        )

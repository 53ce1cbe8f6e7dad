"""The option frame: which columns a book has, what they mean, and what is wrong with a bad one.

A book is a :class:`pandas.DataFrame` with one option a row. :func:`pricing.reading.read_options`
turns it into :class:`Options`, plain arrays that every engine takes, and a list of
:class:`Problem`.

Units
-----
``expiry`` in years (act/365), ``rate`` and ``dividend_yield`` continuously compounded per year,
``volatility`` per square root of a year; 0.05 means 5 %.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Errors = Literal["raise", "coerce"]
Exercise = Literal["european", "american"]
Terms = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, BoolArray]

NUMERIC_COLUMNS = ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility")

# Accepted names of each column, compared without case, with spaces and hyphens read as "_".
# The column's own name wins over an alias; two aliases of one column are an error.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "spot": ("s", "s0", "spot_price", "underlying_price", "stock_price"),
    "strike": ("k", "x", "strike_price", "exercise_price"),
    "expiry": ("t", "tau", "ttm", "years", "maturity", "time_to_expiry", "time_to_maturity"),
    "rate": ("r", "interest_rate", "risk_free_rate"),
    "dividend_yield": ("q", "div_yield"),
    "volatility": ("sigma", "vol", "iv", "implied_vol", "implied_volatility"),
    "option_type": ("type", "cp", "cp_flag", "call_put", "put_call", "right", "flag", "is_call"),
    "exercise": ("style", "exercise_style", "exercise_type"),
}

# What the words in the two text columns mean (any case); a boolean option_type means "is a call".
OPTION_TYPES: Mapping[object, bool] = {"call": True, "c": True, "put": False, "p": False}
EXERCISES: Mapping[object, bool] = {"american": True, "a": True, "european": False, "e": False}

# Closed ranges. The outer ones only keep exp() and ratios finite; they are no market view.
RANGES: Mapping[str, tuple[float, float]] = {
    "spot": (1e-50, 1e50),
    "strike": (1e-50, 1e50),
    "expiry": (0.0, 200.0),
    "rate": (-10.0, 10.0),
    "dividend_yield": (-10.0, 10.0),
    "volatility": (1e-12, 100.0),
    "price": (-1e60, 1e60),  # quotes: the bounds of each option are checked elsewhere
    "quantity": (-1e15, 1e15),  # positions, where a book has them
}
MAX_ACCRUAL = 500.0  # of |rate| * expiry and |dividend_yield| * expiry
# Columns of shares of one, and the median size above which one probably holds per cent.
PER_CENT: Mapping[str, float] = {"rate": 0.5, "dividend_yield": 0.5, "volatility": 3.0}


class AssumptionWarning(UserWarning):
    """Something that a frame does not say was assumed; the message says what, and how to say it."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Vanilla options as equally long arrays; see the module for units."""

    spot: FloatArray
    strike: FloatArray
    expiry: FloatArray
    rate: FloatArray
    dividend_yield: FloatArray
    volatility: FloatArray
    is_call: BoolArray
    is_american: BoolArray

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
        """What is known of a quoted option: its terms without the volatility."""
        return (*self.terms[:5], self.is_call)

    def take(self, rows: npt.NDArray[Any] | slice) -> Self:
        """Return the options at ``rows``: positions, a boolean mask or a slice."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

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
        names = (f.name for f in fields(cls))
        return cls(**dict(zip(names, (np.atleast_1d(a).ravel() for a in arrays), strict=True)))


@dataclass(frozen=True)
class Problem:
    """One reason why some rows cannot be priced."""

    column: str
    reason: str
    rows: npt.NDArray[np.intp]  # positions, not labels


class OptionFrameError(ValueError):
    """A frame, or some of its rows, cannot be priced; the message lists the rows per reason.

    Attributes
    ----------
    problems
        The reasons with their row positions; empty when the frame as a whole is at fault.
    """

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    @classmethod
    def from_problems(cls, problems: Sequence[Problem], index: "pd.Index[Any]") -> Self:
        """Compose the message: count, reason and the first ten rows of every problem."""
        unique = index.is_unique
        lines = []
        for problem in problems:
            labels = [str(index[i]) if unique else str(i) for i in problem.rows[:10]]
            more = ", …" if len(problem.rows) > len(labels) else ""
            where = "rows" if unique else "rows at positions"
            lines.append(
                f"{len(problem.rows)} of {len(index)} rows: {problem.reason}: "
                f"{where} {', '.join(labels)}{more}"
            )
        lines.append('errors="coerce" prices the other rows and names the reason in column "error"')
        return cls("\n".join(lines), problems)


def good_rows(n_rows: int, problems: Iterable[Problem]) -> BoolArray:
    """Return the mask of rows that no problem names."""
    good = np.ones(n_rows, dtype=np.bool_)
    for problem in problems:
        good[problem.rows] = False
    return good


def error_texts(n_rows: int, problems: Iterable[Problem]) -> npt.NDArray[np.object_]:
    """Return one text a row: its reasons joined by "; ", or the empty string."""
    texts = np.full(n_rows, "", dtype=object)
    for problem in problems:
        for row in problem.rows:
            texts[row] += f"; {problem.reason}" if texts[row] else problem.reason
    return texts

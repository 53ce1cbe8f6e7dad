"""The option frame: which columns a book has, what they mean, and what is wrong with a bad one.

A book is a :class:`pandas.DataFrame` with one option per row. :func:`pricing.reading.read_options`
turns it into :class:`Options`, plain arrays that every engine takes, and a list of
:class:`BadRows`.

Units
-----
``expiry`` in years (act/365), ``rate`` and ``dividend_yield`` continuously compounded per year,
``volatility`` per square root of a year; 0.05 means 5 %.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from amo.arrays import BoolArray
from amo.errors import AMOError

Errors = Literal["raise", "coerce"]

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

# Closed ranges. The outer ones only keep exp() and ratios finite; they express no market view.
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
# Columns of fractions, and the median size above which a column probably holds per cent.
PER_CENT: Mapping[str, float] = {"rate": 0.5, "dividend_yield": 0.5, "volatility": 3.0}


class AssumptionWarning(UserWarning):
    """Something the frame does not say was assumed; the message says what, and how to state it."""


@dataclass(frozen=True)
class BadRows:
    """One reason why some rows cannot be priced."""

    column: str
    reason: str
    rows: npt.NDArray[np.intp]  # positions, not labels


class OptionFrameError(AMOError, ValueError):
    """A frame, or some of its rows, cannot be priced; the message lists the rows per reason.

    Attributes
    ----------
    problems
        The reasons with their row positions; empty when the frame as a whole is at fault.
    """

    def __init__(self, message: str, problems: Sequence[BadRows] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    @classmethod
    def from_problems(cls, problems: Sequence[BadRows], index: "pd.Index[Any]") -> Self:
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


def good_rows(n_rows: int, problems: Iterable[BadRows]) -> BoolArray:
    """Return the mask of rows that no problem names."""
    good = np.ones(n_rows, dtype=np.bool_)
    for problem in problems:
        good[problem.rows] = False
    return good


def error_texts(n_rows: int, problems: Iterable[BadRows]) -> npt.NDArray[np.object_]:
    """Return one text per row: its reasons joined by "; ", or the empty string."""
    texts = np.full(n_rows, "", dtype=object)
    for problem in problems:
        for row in problem.rows:
            texts[row] += f"; {problem.reason}" if texts[row] else problem.reason
    return texts


def find_columns(
    labels: Iterable[Hashable],
    columns: Mapping[str, Hashable] | None = None,
    unread: Sequence[str] = (),
) -> dict[str, Hashable]:
    """Map every column of the option frame to the label that holds it.

    Parameters
    ----------
    labels
        The frame's column labels.
    columns
        Overrides, ``{"spot": "Px_Last"}``; they win over names and aliases.
    unread
        Columns to ignore, whether present or not.
    """
    present = list(labels)
    overrides = dict(columns or {})
    if unknown := sorted(set(overrides) - set(ALIASES)):
        raise OptionFrameError(
            f"columns= maps unknown names {unknown}; it takes {', '.join(ALIASES)}"
        )
    found: dict[str, Hashable] = {}
    missing: list[str] = []
    for name in (name for name in ALIASES if name not in unread):
        labels = candidates(name, present, overrides)
        if len(labels) > 1:
            raise OptionFrameError(
                f"{name} stands in {len(labels)} columns: {labels}; keep one, or pass "
                f'columns={{"{name}": …}} if their labels differ'
            )
        if labels:
            found[name] = labels[0]
        elif name in overrides:
            raise OptionFrameError(f"columns= maps {name} to {overrides[name]!r}: no such column")
        elif name != "exercise":
            missing.append(name)
    if missing:
        raise OptionFrameError(
            f"missing column {', '.join(missing)}; the frame has {present}; rename, or pass "
            f'columns={{"{missing[0]}": "your column"}}'
        )
    return found


def guess_columns(frame: pd.DataFrame) -> dict[str, Hashable | None]:
    """Return the likely label of every column of the option frame, None where there is no guess.

    Of several candidates for a numeric column, one that holds numbers is preferred.
    """
    guess: dict[str, Hashable | None] = {}
    for name in ALIASES:
        found = candidates(name, list(frame.columns), {})
        if len(found) > 1 and name in NUMERIC_COLUMNS:
            numbers = frame.select_dtypes("number").columns
            found = [label for label in found if label in numbers]
        guess[name] = found[0] if len(found) == 1 else None
    return guess


def candidates(
    name: str, present: Sequence[Hashable], overrides: Mapping[str, Hashable]
) -> list[Hashable]:
    """Return the labels that may hold a column: as told, by its own name, or by an alias."""
    if name in overrides:
        return [label for label in present if label == overrides[name]]
    exact: list[Hashable] = [label for label in present if label == name]
    names = (name, *ALIASES[name])
    return exact or [label for label in present if _normalised(label) in names]


def _normalised(label: Hashable) -> str:
    return str(label).strip().lower().replace(" ", "_").replace("-", "_")

"""Reading an option frame: which column is which, and what is wrong with each row.

It changes no value, drops no row and keeps the order; all checks are vectorised.
"""

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd

from amo.arrays import BoolArray, FloatArray
from amo.errors import SettingsError
from pricing.columns import (
    EXERCISES,
    MAX_ACCRUAL,
    NUMERIC_COLUMNS,
    OPTION_TYPES,
    PER_CENT,
    RANGES,
    AssumptionWarning,
    BadRows,
    OptionFrameError,
    find_columns,
    good_rows,
)
from pricing.options import Exercise, Options

_SAMPLE = 10_000  # rows from which a column's median is taken


def read_options(
    frame: pd.DataFrame,
    columns: Mapping[str, Hashable] | None = None,
    unread: Sequence[str] = (),
    exercise: Exercise | None = None,
    *,
    assumed: list[str] | None = None,
) -> tuple[Options, list[BadRows]]:
    """Read a frame into arrays and say what is wrong with it, all rows in one pass.

    ``exercise`` is the style of all rows of a frame without such a column; with neither, European
    is assumed. Assumptions, and columns that look like per cent, are added to ``assumed``; if that
    is None, the caller's caller gets an :class:`AssumptionWarning`. Columns named in ``unread`` are
    NaN in the answer, an unread exercise is European. Rows named in a problem hold unusable values.
    """
    if not isinstance(frame, pd.DataFrame):
        raise OptionFrameError(f"expected a pandas DataFrame, got {type(frame).__name__}")
    if exercise not in (None, *get_args(Exercise)):
        raise SettingsError(f"exercise= takes 'european', 'american' or None, not {exercise!r}")
    found = find_columns(frame.columns, columns, unread)
    if exercise is not None and "exercise" in found:
        raise OptionFrameError(
            f"exercise={exercise!r} is for frames that do not say it, and this one has the column "
            f"{found['exercise']!r}: drop the one or the other"
        )
    problems: list[BadRows] = []
    texts: list[str] = []
    numbers = {
        name: read_numbers(name, frame[found[name]], problems)
        if name in found
        else np.full(len(frame), np.nan)
        for name in NUMERIC_COLUMNS
    }
    _check_accrual(numbers, problems)
    is_call = _words("option_type", frame[found["option_type"]], OPTION_TYPES, problems)
    if "exercise" in found:
        is_american = _words("exercise", frame[found["exercise"]], EXERCISES, problems)
    else:
        is_american = np.full(len(frame), exercise == "american")
        if exercise is None and "exercise" not in unread and len(frame):
            texts.append(
                f"the frame has no exercise column: all {len(frame)} options are taken as "
                'European; say exercise="american" or exercise="european", or add the column'
            )
    texts += _like_per_cent(numbers, found)
    if assumed is not None:
        assumed += texts
    else:
        for text in texts:
            warnings.warn(text, AssumptionWarning, stacklevel=3)  # at the call of price_frame
    options = Options(**numbers, is_call=is_call, is_american=is_american)  # type: ignore[arg-type]
    return options, problems


def _like_per_cent(
    numbers: Mapping[str, FloatArray], found: Mapping[str, Hashable]
) -> Iterator[str]:
    """Yield a text for each column whose median makes sense only as per cent."""
    for name, most in PER_CENT.items():
        some = numbers[name][:: max(1, len(numbers[name]) // _SAMPLE)]
        known = some[np.isfinite(some)]
        middle = float(np.median(np.abs(known))) if len(known) else 0.0
        if middle > most:
            label = found[name]
            yield (
                f"{name} is a share of one, and the median of column {label!r}, {middle:g}, is "
                f'{100 * middle:,.0f} %: if it holds per cent, divide it by 100, or write "5%"'
            )


def read_numbers(name: str, column: "pd.Series[Any]", problems: list[BadRows]) -> FloatArray:
    """Return a column as float64; report cells that are not finite numbers in ``name``'s range."""
    values, is_text = _as_float(name, column, problems)
    low, high = RANGES[name]
    if len(values) == 0 or (values.min() >= low and values.max() <= high):  # NaN compares false
        return values
    is_infinite = np.isinf(values)
    _report(problems, name, np.isnan(values) & ~is_text, f"{name} is missing (NaN)")
    _report(problems, name, is_infinite, f"{name} is infinite")
    finite = np.isfinite(values)
    if low > 0:
        _report(problems, name, finite & (values <= 0), f"{name} must be > 0")
        finite &= values > 0
    outside = finite & ((values < low) | (values > high))
    text = f"{name} must be >= 0" if name == "expiry" else f"{name} must be in [{low:g}, {high:g}]"
    _report(problems, name, outside & (values < low), text)
    _report(problems, name, outside & (values > high), f"{name} must be in [{low:g}, {high:g}]")
    return values


def _report(problems: list[BadRows], column: str, mask: BoolArray, reason: str) -> None:
    if mask.any():
        problems.append(BadRows(column, reason, np.flatnonzero(mask)))


def _as_float(
    name: str, column: "pd.Series[Any]", problems: list[BadRows]
) -> tuple[FloatArray, BoolArray]:
    """Convert to float64; the mask marks cells that hold something other than a number."""
    dtype = column.dtype
    none = np.zeros(len(column), dtype=np.bool_)
    is_number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)
    if is_number and not pd.api.types.is_bool_dtype(dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), none
    if dtype.kind != "O" and not pd.api.types.is_string_dtype(dtype):
        everywhere = np.ones(len(column), dtype=np.bool_)
        hint = "; expiry is a number of years" if name == "expiry" else ""
        _report(problems, name, everywhere, f"{name} must be a number, not {dtype}{hint}")
        return np.full(len(column), np.nan), everywhere
    cells = column.to_numpy(dtype=object)  # text, as from a CSV with one bad cell
    number = _share if name in PER_CENT else _cell_to_float
    values = np.fromiter((number(cell) for cell in cells), np.float64, len(cells))
    is_text = np.isnan(values) & ~np.fromiter((_is_missing(c) for c in cells), bool, len(cells))
    _report(problems, name, is_text, f"{name} is not a number")
    return values, is_text


def _cell_to_float(cell: object) -> float:
    if isinstance(cell, bool | np.bool_ | np.ndarray):  # an array of one element would convert
        return np.nan
    try:
        return float(cell)  # type: ignore[arg-type]  # whatever raises is not a number
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _share(cell: object) -> float:
    """Read a number, or a text such as "5%" or "5 %" as 0.05."""
    if isinstance(cell, str) and cell.rstrip().endswith("%"):
        return _cell_to_float(cell.rstrip()[:-1]) / 100.0
    return _cell_to_float(cell)


def _is_missing(cell: object) -> bool:
    try:
        return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))  # type: ignore[call-overload]
    except ArithmeticError:  # decimal's signalling NaN: present, but not a number
        return False


def _words(
    name: str, column: "pd.Series[Any]", meanings: Mapping[object, bool], problems: list[BadRows]
) -> BoolArray:
    """Translate a column of words to booleans; a boolean option_type is taken as it is."""
    if name == "option_type" and column.dtype == np.bool_:
        return column.to_numpy()
    try:
        codes, uniques = pd.factorize(column)
    except (TypeError, NotImplementedError):  # unhashable cells such as lists are not words
        cells = column.astype(object).map(lambda cell: cell if _is_word(cell) else "?")
        codes, uniques = pd.factorize(cells)
    known: list[bool | None] = [_meaning(word, name, meanings) for word in uniques]
    meaning = np.array([word is True for word in known] + [False])  # code -1: missing
    is_unknown = np.array([word is None for word in known] + [False])
    _report(problems, name, codes == -1, f"{name} is missing")
    if is_unknown.any():
        choices = " or ".join(str(word) for word in meanings if len(str(word)) > 1)
        for code in np.flatnonzero(is_unknown)[:20]:
            reason = f"{name} must be {choices}, not {str(uniques[code])[:40]!r}"
            _report(problems, name, codes == code, reason)
        rest = np.isin(codes, np.flatnonzero(is_unknown)[20:])
        _report(problems, name, rest, f"{name} must be {choices}")
    return meaning[codes]


def _is_word(cell: object) -> bool:
    return isinstance(cell, str | bool | np.bool_) or _is_missing(cell)


def _meaning(word: object, name: str, meanings: Mapping[object, bool]) -> bool | None:
    if name == "option_type" and isinstance(word, bool | np.bool_):
        return bool(word)
    return meanings.get(word.strip().lower()) if isinstance(word, str) else None


def _check_accrual(numbers: Mapping[str, FloatArray], problems: list[BadRows]) -> None:
    readable = good_rows(len(numbers["expiry"]), problems)
    expiry = np.where(readable, numbers["expiry"], 0.0)
    for name in ("rate", "dividend_yield"):
        accrual = np.abs(np.where(readable, numbers[name], 0.0) * expiry)
        reason = f"|{name}| x expiry must be at most {MAX_ACCRUAL:g}"
        _report(problems, name, accrual > MAX_ACCRUAL, reason)

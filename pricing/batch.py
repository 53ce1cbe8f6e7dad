"""Books in, books out: the DataFrame doors of the library."""

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from tqdm import tqdm

from pricing import engines
from pricing.contracts import (
    Errors,
    FloatArray,
    OptionFrameError,
    Options,
    Problem,
    error_texts,
    good_rows,
)
from pricing.engines import FIRST_GREEKS, MARKET_UNITS, QUANTITIES, SECOND_GREEKS, Engine
from pricing.implied_vol import implied_volatility
from pricing.reading import read_numbers, read_options

Greeks = bool | Literal["second"] | Sequence[str]
Progress = bool | Callable[[int, int], None] | None


def price_frame(
    frame: pd.DataFrame,
    engine: str | Engine = "quantlib",
    *,
    greeks: Greeks = True,
    units: Literal["natural", "market"] = "natural",
    error_bars: bool = False,
    errors: Errors = "raise",
    columns: Mapping[str, Hashable] | None = None,
    workers: int | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """Price a book.

    Parameters
    ----------
    frame
        One option a row; columns and units in :mod:`pricing.contracts`. It is not changed.
    engine
        A name of :data:`pricing.engines.ENGINES`, or an engine.
    greeks
        True: delta, gamma, vega, theta, rho. "second": also dividend_rho, vanna, volga, charm.
        False: none. Or the names wanted.
    units
        "natural": theta and charm per year, vega, rho and the like per 1.00. "market": per day,
        and per 1 % of volatility or rate.
    error_bars
        Also ``price_error``, the engine's own estimate of its error; engine "fd" has one.
    errors
        "raise": one bad row raises :class:`OptionFrameError`, which lists them all. "coerce":
        bad rows get NaN and their reason in column ``error``.
    columns
        Where the frame's names differ: ``{"spot": "Px_Last"}``.
    workers
        Threads (fd) or processes (quantlib; then guard your script by
        ``if __name__ == "__main__"``). Numbers do not depend on it.
    progress
        True or False for a bar after a second of work; by default on a terminal only. Or a
        function of rows done and rows in all.

    Returns
    -------
    DataFrame
        The frame's own columns, index and order, plus ``price``, the Greeks and ``engine``.
    """
    chosen = engines.get_engine(engine)
    quantities = ("price", *_greek_names(greeks))
    if error_bars:
        if not isinstance(chosen, engines.FDEngine):
            raise ValueError(f'engine "{chosen.name}" states no error; engine="fd" does')
        quantities = (*quantities, "price_error")
    added = (*quantities, "engine", *(("error",) if errors == "coerce" else ()))
    _check_request(frame, added, errors, units)
    options, problems = read_options(frame, columns)
    problems += _refused(chosen, options, problems)
    rows = _rows_to_price(frame, problems, errors)
    priced = options if len(rows) == len(frame) else options.take(rows)
    with _progress_bar(progress, len(priced), "pricing") as advance:
        values, failures = engines.evaluate(
            chosen, priced, quantities, workers=workers, progress=advance
        )
    if failures:
        problems += _failed(failures, rows)
        _rows_to_price(frame, problems, errors)
    result = frame.copy(deep=False)
    for name in quantities:
        if units == "market":
            values[name] *= MARKET_UNITS.get(name, 1.0)
        result[name] = _in_place(values[name], rows, len(frame))
    codes = np.where(good_rows(len(frame), problems), 0, -1).astype(np.int8)
    result["engine"] = pd.Categorical.from_codes(codes, categories=pd.Index([chosen.name]))
    if errors == "coerce":
        result["error"] = error_texts(len(frame), problems)
    return result


def implied_vol_frame(
    frame: pd.DataFrame,
    price_column: Hashable = "price",
    engine: str | Engine = "quantlib",
    *,
    errors: Errors = "raise",
    columns: Mapping[str, Hashable] | None = None,
    workers: int | None = None,
    progress: Progress = None,
) -> pd.DataFrame:
    """Invert quotes to volatilities.

    Takes the frame of :func:`price_frame` with a column of quotes and no need of ``volatility``.
    Adds ``implied_volatility`` and ``error``: a quote without a volatility gets NaN and the
    reason, never an exception; ``errors`` rules only unreadable rows. Europeans are inverted by
    the closed form, Americans with the engine's prices.
    """
    chosen = engines.get_engine(engine)
    _check_request(frame, ("implied_volatility", "error"), errors, "natural")
    n_columns = sum(label == price_column for label in getattr(frame, "columns", ()))
    if n_columns != 1:
        raise OptionFrameError(
            f"{n_columns} columns {price_column!r} of quotes where one is needed; the frame has "
            f"{list(getattr(frame, 'columns', ()))}: pass price_column="
        )
    options, problems = read_options(frame, columns, unread=("volatility",))
    root = np.sqrt(np.maximum(options.expiry, 1e-12))  # NaN stays NaN
    options = options.with_values(volatility=0.5 / root)  # a mild one, to ask who is refused
    problems += _refused(chosen, options, problems)
    _rows_to_price(frame, problems, errors)
    quotes = read_numbers("price", frame[price_column], problems)
    rows = np.flatnonzero(good_rows(len(frame), problems))
    with _progress_bar(progress, len(rows), "implied volatility") as advance:
        found, reasons = implied_volatility(
            chosen, options.take(rows), quotes[rows], workers=workers, progress=advance
        )
    problems += [Problem(p.column, p.reason, rows[p.rows]) for p in reasons]
    result = frame.copy(deep=False)
    result["implied_volatility"] = _in_place(found, rows, len(frame))
    result["error"] = error_texts(len(frame), problems)
    return result


def _greek_names(greeks: Greeks) -> tuple[str, ...]:
    if greeks is True:
        return FIRST_GREEKS
    if greeks is False:
        return ()
    if greeks == "second":
        return (*FIRST_GREEKS, *SECOND_GREEKS)
    names = (greeks,) if isinstance(greeks, str) else tuple(greeks)
    if unknown := [name for name in names if name not in QUANTITIES[1:]]:
        raise ValueError(
            f'greeks= takes True, False, "second" or names of {", ".join(QUANTITIES[1:])}; '
            f"got {unknown}"
        )
    return names


def _check_request(frame: pd.DataFrame, added: Sequence[str], errors: str, units: str) -> None:
    if errors not in ("raise", "coerce"):
        raise ValueError(f'errors= takes "raise" or "coerce", got {errors!r}')
    if units not in ("natural", "market"):
        raise ValueError(f'units= takes "natural" or "market", got {units!r}')
    if isinstance(frame, pd.DataFrame) and (taken := [c for c in added if c in frame.columns]):
        raise OptionFrameError(
            f"the frame already has {', '.join(taken)}, which would be overwritten: rename or "
            f"frame.drop(columns={taken})"
        )


def _refused(engine: Engine, options: Options, problems: Sequence[Problem]) -> list[Problem]:
    """Ask the engine which readable rows it does not take."""
    rows = np.flatnonzero(good_rows(len(options), problems) & (options.expiry > 0))
    asked = options if len(rows) == len(options) else options.take(rows)
    return [
        Problem("engine", reason, rows[mask])
        for mask, reason in engine.refusals(asked)
        if mask.any()
    ]


def _rows_to_price(
    frame: pd.DataFrame, problems: Sequence[Problem], errors: Errors
) -> npt.NDArray[np.intp]:
    if problems and errors == "raise":
        raise OptionFrameError.from_problems(problems, frame.index)
    return np.flatnonzero(good_rows(len(frame), problems))


def _failed(failures: Mapping[int, str], rows: npt.NDArray[np.intp]) -> list[Problem]:
    by_reason: dict[str, list[int]] = {}
    for row, reason in failures.items():
        by_reason.setdefault(reason, []).append(int(rows[row]))
    return [Problem("engine", reason, np.array(at)) for reason, at in by_reason.items()]


def _in_place(values: FloatArray, rows: npt.NDArray[np.intp], n_rows: int) -> FloatArray:
    """Return one value a row of the frame, NaN where no row was priced."""
    if len(rows) == n_rows:
        return values
    spread = np.full(n_rows, np.nan)
    spread[rows] = values
    return spread


@contextmanager
def _progress_bar(
    progress: Progress, total: int, text: str
) -> Iterator[Callable[[int], None] | None]:
    """Yield what engines call with the number of rows just done: a bar, a caller's hook or None."""
    if callable(progress):
        hook, done = progress, 0

        def advance(n: int) -> None:
            nonlocal done
            done += n
            hook(done, total)

        yield advance
    elif progress or (progress is None and sys.stderr.isatty()):
        with tqdm(total=total, desc=text, unit="rows", unit_scale=True, delay=1.0) as bar:

            def step(n: int) -> None:
                bar.update(n)

            yield step
    else:
        yield None

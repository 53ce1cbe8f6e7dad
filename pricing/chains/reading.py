"""Reading a vendor's chain: recognised layout, one canonical frame, and what was assumed."""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amo.arrays import BoolArray
from amo.errors import SettingsError
from pricing.chains.conventions import is_european, years_to_expiry
from pricing.chains.layouts import FIELDS, LAYOUTS, Layout
from pricing.columns import OPTION_TYPES, OptionFrameError
from pricing.markets import clock
from pricing.tables import read_table

_OCC = re.compile(
    r"^(?:O:)?(?P<underlying>[A-Z0-9.^]{1,6}?)\s*(?P<expiry>\d{6})(?P<option_type>[CP])"
    r"(?P<strike>\d{8})$"
)
_DERIBIT = re.compile(
    r"^(?P<underlying>[A-Z]+(?:_[A-Z]+)?)-(?P<expiry>\d{1,2}[A-Z]{3}\d{2})-(?P<strike>[\dD]+)-"
    r"(?P<option_type>[CP])$"
)
_NUMBERS = ("strike", "bid", "ask", "last", "bid_size", "ask_size", "volume", "open_interest",
            "spot", "implied_volatility")  # fmt: skip
_FIRST = ("underlying", "expiry", "years", "strike", "option_type", "exercise", "bid", "ask", "mid")
_NAMELESS = "?"
_FIXED_POINT = 1e-9  # of whole prices beyond any strike
_BEYOND = 1e7


@dataclass(frozen=True)
class Chain:
    """Quotes as :func:`read_chain` returns them.

    Attributes
    ----------
    quotes
        One quote per row: ``underlying``, ``expiry`` (a date), ``years`` to its last moment,
        ``strike``, ``option_type`` (call or put), ``exercise``, ``bid``, ``ask``, ``mid``, and
        where the vendor has them ``last``, sizes, ``volume``, ``open_interest``, ``quote_time``,
        ``spot`` and ``implied_volatility``; its index is that of the rows read.
    left_out
        Rows that should not move a fit, with the same columns and a ``reason``.
    as_of
        The moment of the quotes.
    layout
        The vendor whose layout it is.
    assumed
        What the file does not say, in words.
    """

    quotes: pd.DataFrame
    left_out: pd.DataFrame
    as_of: dt.datetime
    layout: str
    assumed: tuple[str, ...]

    @property
    def dropped(self) -> dict[str, int]:
        """How many rows were left out, by reason."""
        return {str(key): int(n) for key, n in self.left_out["reason"].value_counts().items()}

    def of(self, underlying: str) -> "Chain":
        """Return the chain of one underlying; of a chain that names none, under that name."""
        names = set(self.quotes["underlying"].astype(str))
        if names == {_NAMELESS}:
            kept, out = (part.assign(underlying=underlying) for part in self._parts)
        elif underlying in names:
            kept, out = (part[part["underlying"] == underlying] for part in self._parts)
        else:
            there = ", ".join(sorted(names))
            raise SettingsError(f"the chain has no quotes of {underlying!r}; it has {there}")
        return replace(self, quotes=kept, left_out=out)

    @property
    def _parts(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        return self.quotes, self.left_out


def read_chain(
    source: str | Path | pd.DataFrame,
    *,
    as_of: str | dt.date | None = None,
    underlying: str | None = None,
    spot: float | None = None,
    max_spread: float = 1.0,
    max_age: float | None = None,
) -> Chain:
    """Read a chain of quotes in the layout of a common vendor.

    Parameters
    ----------
    source
        A file (CSV, TSV or Parquet) or a frame.
    as_of
        The moment of the quotes; without it the latest time that they carry.
    underlying, spot
        Where no column says.
    max_spread
        Quotes whose spread is more than this share of their mid are left out.
    max_age
        Quotes older than this many minutes before ``as_of`` are left out, where they have times.

    Returns
    -------
    Chain
        One canonical frame, the vendor's name, what was assumed, and the rows that were left out,
        with the reason: no bid, crossed, below intrinsic, too wide, stale, expired or unreadable.
    """
    frame = source if isinstance(source, pd.DataFrame) else read_table(Path(source))
    if not len(frame):
        raise OptionFrameError("the chain has no rows")
    layout, names = _recognised(frame)
    assumed = [f"layout of {layout.name}", *layout.notes]
    table = _wide(frame, layout, names) if layout.sides else _long(frame, layout, names)
    _from_symbols(table, frame, layout, names)
    _check_fields(table, layout)
    _units(table, layout, assumed)
    if underlying is not None or "underlying" not in table:
        table["underlying"] = underlying or _NAMELESS
        if underlying is None:
            assumed.append('no column names the underlying: it is called "?"; say underlying=')
    if spot is not None:
        table["spot"] = float(spot)
    seen = _times(table, layout, as_of, assumed)
    table["years"] = years_to_expiry(table["underlying"], table["expiry"], seen, layout.name)
    _styles(table, assumed)
    table["mid"] = 0.5 * (table["bid"] + table["ask"])
    reason = _reasons(table, seen, max_spread, max_age)
    ordered = [*_FIRST, *(name for name in FIELDS if name in table and name not in _FIRST)]
    table = table[ordered]
    return Chain(
        table[reason == ""],
        table[reason != ""].assign(reason=reason[reason != ""]),
        seen,
        layout.name,
        tuple(assumed),
    )


def _recognised(frame: pd.DataFrame) -> tuple[Layout, dict[str, Any]]:
    """Return the layout that fits, and the frame's labels by lower-case name."""
    names = {str(label).strip().lower(): label for label in reversed(frame.columns)}
    fitting = [layout for layout in LAYOUTS if all(need in names for need in layout.needs)]
    if fitting:
        return max(fitting, key=lambda layout: len(layout.needs)), names

    def missing(layout: Layout) -> list[str]:
        return [need for need in layout.needs if need not in names]

    near = min(LAYOUTS, key=lambda layout: len(missing(layout)) / len(layout.needs))
    raise OptionFrameError(
        f"no known layout has these columns: {', '.join(map(str, frame.columns[:20]))}. The "
        f"nearest is that of {near.name}, which also needs {', '.join(missing(near))}. Rename your "
        f"columns to those of the plain layout: {', '.join(LAYOUTS[-1].needs)}"
    )


def _long(frame: pd.DataFrame, layout: Layout, names: Mapping[str, Any]) -> pd.DataFrame:
    table = {}
    for field, candidates in layout.columns.items():
        label = next((names[name] for name in candidates if name in names), None)
        if label is not None:
            table[field] = frame[label]
    return pd.DataFrame(table, index=frame.index)


def _wide(frame: pd.DataFrame, layout: Layout, names: Mapping[str, Any]) -> pd.DataFrame:
    """Make a call's and a put's row of every row."""
    parts = []
    for side in layout.sides or ():
        own = {
            field: tuple(side + name for name in candidates) + candidates
            for field, candidates in layout.columns.items()
        }
        part = _long(frame, Layout(name=layout.name, columns=own, needs=()), names)
        parts.append(part.assign(option_type=side))
    return pd.concat(parts, ignore_index=True)


def _from_symbols(
    table: pd.DataFrame, frame: pd.DataFrame, layout: Layout, names: Mapping[str, Any]
) -> None:
    """Read fields that no column holds from OCC symbols or instrument names."""
    wanted = [f for f in ("underlying", "expiry", "strike", "option_type") if f not in table]
    if layout.symbol is None or layout.symbol not in names or not wanted:
        return
    texts = frame[names[layout.symbol]].astype("string").str.strip().str.upper()
    pattern = _DERIBIT if layout.name == "Deribit" else _OCC
    parts = texts.str.extract(pattern)
    if pattern is _DERIBIT:
        parts["strike"] = pd.to_numeric(parts["strike"].str.replace("D", "."), errors="coerce")
        dates = pd.to_datetime(parts["expiry"], format="%d%b%y", errors="coerce")
    else:
        parts["strike"] = pd.to_numeric(parts["strike"], errors="coerce") / 1000.0
        dates = pd.to_datetime(parts["expiry"], format="%y%m%d", errors="coerce")
    parts["expiry"] = dates
    for field in wanted:
        table[field] = parts[field]


def _check_fields(table: pd.DataFrame, layout: Layout) -> None:
    needed = ("expiry", "strike", "option_type", "bid", "ask")
    if missing := [name for name in needed if name not in table]:
        raise OptionFrameError(
            f"the chain looks like that of {layout.name}, but nothing in it says "
            f"{', '.join(missing)}: add columns of these names"
        )


def _units(table: pd.DataFrame, layout: Layout, assumed: list[str]) -> None:
    """Turn columns into numbers in currency and shares of one, and words into call and put."""
    for name in _NUMBERS:
        if name in table:
            table[name] = pd.to_numeric(table[name], errors="coerce").astype(np.float64)
    if layout.name == "Databento" and table["strike"].median() > _BEYOND:
        for name in ("strike", "bid", "ask"):
            table[name] *= _FIXED_POINT
    table["strike"] *= layout.strike_unit
    if layout.per_cent and "implied_volatility" in table:
        table["implied_volatility"] /= 100.0
    if layout.coin:
        if "spot" not in table:
            raise OptionFrameError(
                f"quotes of {layout.name} are in coin, and no column holds the index: add "
                "index_price"
            )
        for name in ("bid", "ask", "last"):
            if name in table:
                table[name] *= table["spot"]
        assumed.append("quotes were in coin: they are multiplied by the index")
        table["exercise"] = "european"
    words = table["option_type"].astype("string").str.strip().str.lower()
    kinds = {word: "call" if is_call else "put" for word, is_call in OPTION_TYPES.items()}
    table["option_type"] = words.map(kinds)


def _styles(table: pd.DataFrame, assumed: list[str]) -> None:
    """Fill in the exercise style where the vendor does not say."""
    if "exercise" in table:
        words = table["exercise"].astype("string").str.strip().str.lower()
        table["exercise"] = words.map(
            {"a": "american", "e": "european", "american": "american", "european": "european"}
        )
        return
    european = table["underlying"].map(lambda name: is_european(str(name)))
    table["exercise"] = np.where(european, "european", "american")
    styles = " and ".join(sorted(set(table["exercise"])))
    assumed.append(f"no column says the exercise style: {styles}, as listed options are")


def _times(
    table: pd.DataFrame, layout: Layout, as_of: str | dt.date | None, assumed: list[str]
) -> dt.datetime:
    """Read expiries as dates and quote times as moments in New York; return the quotes' moment."""
    table["expiry"] = _dates(table["expiry"])
    seen = None
    if "quote_time" in table:
        given = table["quote_time"]
        if pd.api.types.is_numeric_dtype(given) and layout.time_unit is not None:
            stamps = pd.to_datetime(given, unit=layout.time_unit, utc=True, errors="coerce")
        else:
            stamps = _stamps(given, layout.time_of_day)
        table["quote_time"] = stamps.dt.tz_convert(clock.NEW_YORK)
        seen = table["quote_time"].max()
    if as_of is not None:
        return clock.moment(as_of, "as_of")
    if seen is None or pd.isna(seen):
        raise SettingsError(
            f"the chain of {layout.name} does not say when it was quoted: say as_of="
        )
    assumed.append(f"as of {seen:%Y-%m-%d %H:%M}, the latest quote")
    found: dt.datetime = seen.to_pydatetime()
    return found


def _dates(column: "pd.Series[Any]") -> "pd.Series[Any]":
    if pd.api.types.is_integer_dtype(column):
        return pd.to_datetime(column.astype("string"), format="%Y%m%d", errors="coerce")
    found = pd.to_datetime(column, errors="coerce", format="mixed", utc=True)
    return found.dt.tz_localize(None).dt.normalize()


def _stamps(column: "pd.Series[Any]", time_of_day: str) -> "pd.Series[Any]":
    """Read times; bare dates get the vendor's time of day, bare times are New York's."""
    given = column
    if pd.api.types.is_integer_dtype(given):
        given = given.astype("string")
    found = pd.to_datetime(given, errors="coerce", format="mixed")
    if found.dt.tz is None:
        is_date = found == found.dt.normalize()
        hours, minutes = map(int, time_of_day.split(":"))
        found = found.where(~is_date, found + pd.Timedelta(hours=hours, minutes=minutes))
        found = found.dt.tz_localize(clock.NEW_YORK, ambiguous=True, nonexistent="shift_forward")
    return found.dt.tz_convert("UTC")


def _reasons(
    table: pd.DataFrame, as_of: dt.datetime, max_spread: float, max_age: float | None
) -> "pd.Series[str]":
    """Return why each row should be left out, the first reason that holds; "" if none does."""
    needed = table[["expiry", "strike", "option_type", "exercise", "bid", "ask"]]
    reasons: dict[str, pd.Series[bool]] = {
        "unreadable": needed.isna().any(axis=1) | ~(table["strike"] > 0),
        "expired": ~(table["years"] > 0),
        "no bid": ~(table["bid"] > 0),
        "crossed": table["ask"] < table["bid"],
        "too wide": (table["ask"] - table["bid"]) > max_spread * table["mid"],
    }
    if "spot" in table:
        sign = np.where(table["option_type"] == "call", 1.0, -1.0)
        paid = np.maximum(sign * (table["spot"] - table["strike"]), 0.0)
        reasons["below intrinsic"] = table["ask"] < paid
    if max_age is not None and "quote_time" in table:
        age = (pd.Timestamp(as_of) - table["quote_time"]).dt.total_seconds() / 60.0
        reasons["stale"] = age > max_age
    found = pd.Series("", index=table.index, dtype=object)
    for reason, mask in reasons.items():
        is_bad: BoolArray = mask.fillna(value=True).to_numpy(dtype=np.bool_)
        found = found.mask(is_bad & (found == "").to_numpy(np.bool_), reason)
    return found

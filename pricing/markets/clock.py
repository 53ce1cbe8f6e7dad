"""From dates to years: seconds over 365 days, closes at 16:00 in New York unless said."""

import datetime as dt
import re
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from amo.errors import SettingsError

NEW_YORK = ZoneInfo("America/New_York")
CLOSE = dt.time(16, 0)
_YEAR = 365.0 * 24 * 3600
_DATE = re.compile(r"\d{4}|\d{1,2}[/.-]\d{1,2}[/.-]\d{2}")  # what a text with a date has
When = float | str | dt.date | dt.datetime | pd.Timestamp


def moment(given: str | dt.date, what: str, close: dt.time = CLOSE) -> dt.datetime:
    """Return a moment with its time zone: a bare date is its close, a bare time is New York's.

    A midnight without a zone is a date: that is how tables hold dates.
    """
    if isinstance(given, str) and not _DATE.search(given):
        raise SettingsError(f"{what} is no date: {given!r}; write 2025-10-06 or a time")
    if not isinstance(given, str | dt.date | np.datetime64 | None):
        raise SettingsError(f"{what} is no date: {given!r}; write 2025-10-06 or a time")
    try:
        stamp = pd.Timestamp(given)
        if pd.isna(stamp):
            raise SettingsError(f"{what} is missing")
        is_midnight = stamp.tzinfo is None and stamp == stamp.normalize()
        if is_midnight and not (isinstance(given, str) and ":" in given):
            stamp = pd.Timestamp.combine(stamp.date(), close)
        local = stamp.tz_localize(NEW_YORK) if stamp.tzinfo is None else stamp
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, SettingsError):
            raise
        raise SettingsError(f"{what} is no date: {given!r}; write 2025-10-06 or a time") from error
    return local.to_pydatetime()


def years(start: dt.datetime, end: dt.datetime) -> float:
    """Return the time between two moments in years of 365 days, to the second.

    Python takes two times of one zone apart by their clocks, which may have been changed between.
    """
    return (end.astimezone(dt.UTC) - start.astimezone(dt.UTC)).total_seconds() / _YEAR


def before_open(date: dt.date) -> dt.datetime:
    """Return the close before a day: the last moment at which the stock still has its dividend."""
    day = date - dt.timedelta(days=1)
    while day.weekday() >= 5:
        day -= dt.timedelta(days=1)
    return dt.datetime.combine(day, CLOSE, NEW_YORK)


def later(start: dt.datetime, years: float) -> dt.datetime:
    """Return the moment some years of 365 days after another."""
    return start.astimezone(dt.UTC) + dt.timedelta(seconds=years * _YEAR)

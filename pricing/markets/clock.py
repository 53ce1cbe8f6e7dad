"""From dates to years: seconds over 365 days, closes at 16:00 in New York unless said."""

import datetime as dt
from zoneinfo import ZoneInfo

import pandas as pd

from amo.errors import SettingsError

NEW_YORK = ZoneInfo("America/New_York")
CLOSE = dt.time(16, 0)
_YEAR = 365.0 * 24 * 3600
When = float | str | dt.date | dt.datetime | pd.Timestamp


def moment(given: str | dt.date, what: str, close: dt.time = CLOSE) -> dt.datetime:
    """Return a moment with its time zone: a bare date is its close, a bare time is New York's."""
    try:
        stamp = pd.Timestamp(given)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{what} is no date: {given!r}; write 2025-10-06 or a time") from error
    if pd.isna(stamp):
        raise SettingsError(f"{what} is missing")
    is_date = isinstance(given, dt.date) and not isinstance(given, dt.datetime)
    is_date |= isinstance(given, str) and len(given.strip()) <= 10
    if is_date:
        stamp = pd.Timestamp.combine(stamp.date(), close)
    local = stamp.tz_localize(NEW_YORK) if stamp.tzinfo is None else stamp
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

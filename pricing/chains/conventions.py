"""What listed options agree on without saying: exercise style and the moment of expiry."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from amo.arrays import FloatArray
from pricing.markets import clock

# index options of the large exchanges; those of stocks and funds are American
EUROPEAN_ROOTS = frozenset(
    {
        "SPX", "SPXW", "XSP", "NDX", "NDXP", "XND", "RUT", "RUTW", "MRUT", "VIX", "VIXW", "DJX",
        "XEO", "SX5E", "OESX", "DAX", "ODAX", "UKX",
    }
)  # fmt: skip
# their monthly series settle at the open of the third Friday
_AT_THE_OPEN = frozenset(["SPX", "NDX", "RUT", "DJX", "VIX", "XEO"])
_OPEN = dt.time(9, 30)
_DERIBIT = dt.time(8, 0)  # UTC


def is_european(underlying: str) -> bool:
    """Return whether options on an underlying are known to be European."""
    return underlying.strip("^$").upper() in EUROPEAN_ROOTS


def years_to_expiry(
    underlying: "pd.Series[str]", expiry: "pd.Series[pd.Timestamp]", as_of: dt.datetime, layout: str
) -> FloatArray:
    """Return years from a moment to the last one of each option; NaN where there is no date.

    Equity options live until 16:00 in New York, index options of monthly series until the open of
    the third Friday, options of Deribit until 08:00 UTC.
    """
    years = np.full(len(expiry), np.nan)
    roots = underlying.astype("string").str.strip("^$").str.upper()
    at_open = roots.isin(_AT_THE_OPEN).to_numpy(np.bool_)
    for date in expiry.dropna().unique():
        here = (expiry == date).to_numpy(np.bool_)
        day = pd.Timestamp(date).date()
        for mask, is_early in ((here & at_open, True), (here & ~at_open, False)):
            if mask.any():
                end = _end(day, is_early=is_early, layout=layout)
                years[mask] = clock.years(as_of, end)
    return years


def _end(day: dt.date, *, is_early: bool, layout: str) -> dt.datetime:
    if layout == "Deribit":
        return dt.datetime.combine(day, _DERIBIT, ZoneInfo("UTC"))
    is_monthly = day.weekday() == 4 and 15 <= day.day <= 21
    time = _OPEN if is_early and is_monthly else clock.CLOSE
    return dt.datetime.combine(day, time, clock.NEW_YORK)

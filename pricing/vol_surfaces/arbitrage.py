"""Where a surface allows arbitrage: butterflies inside an expiry, calendars between two.

A slice is free of butterflies where Durrleman's function

    g(y) = (1 - y w'/(2w))² - (w'²/4) (1/w + 1/4) + w''/2

is not negative: it is the density of ln X over that of a normal law. Two slices are free of
calendar spreads where total variance does not fall in time at the same y.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from amo.arrays import FloatArray

TotalVariance = Callable[[FloatArray, FloatArray], FloatArray]
_STEP = 2e-3  # in standardised log-moneyness, for derivatives
_REACH = (-6.0, 6.0)  # deviations at the forward
_SLACK = 1e-3  # of g, and of total variance relatively: what differences cannot tell from zero


def durrleman(total_variance: TotalVariance, y: FloatArray, years: FloatArray) -> FloatArray:
    """Return g at points, by central differences of a step that fits the expiry."""
    h = _STEP * np.sqrt(total_variance(np.zeros_like(y), years))
    down, w, up = (total_variance(y + k * h, years) for k in (-1.0, 0.0, 1.0))
    slope, bend = (up - down) / (2.0 * h), (up - 2.0 * w + down) / h**2
    return np.asarray(
        (1.0 - 0.5 * y * slope / w) ** 2 - 0.25 * slope**2 * (1.0 / w + 0.25) + 0.5 * bend
    )


def violations(
    total_variance: TotalVariance,
    expiries: FloatArray,
    *,
    n_strikes: int = 361,
    n_between: int = 3,
) -> pd.DataFrame:
    """List arbitrage on a fine grid of strikes and of times at and between expiries.

    Returns
    -------
    DataFrame
        ``kind`` (butterfly or calendar), ``years``, ``log_moneyness`` of the worst point of a
        stretch, and ``size``: how far g is below zero, or total variance below that of the time
        before, relatively. Empty where there is none.
    """
    times = _times(expiries, n_between)
    rows = []
    before: float | None = None
    for time in times:
        at = np.full(n_strikes, time)
        deviation = float(np.sqrt(total_variance(np.zeros(1), np.array([time])))[0])
        y = deviation * np.linspace(*_REACH, n_strikes)
        rows += _stretches("butterfly", time, y, -durrleman(total_variance, y, at) - _SLACK)
        if before is not None:
            earlier = total_variance(y, np.full(n_strikes, before))
            fall = earlier / total_variance(y, at) - 1.0
            rows += _stretches("calendar", time, y, fall - _SLACK)
        before = time
    return pd.DataFrame(rows, columns=["kind", "years", "log_moneyness", "size"])


def _times(expiries: FloatArray, n_between: int) -> list[float]:
    found = [float(expiries[0])]
    for start, end in zip(expiries[:-1].tolist(), expiries[1:].tolist(), strict=True):
        found += np.linspace(start, end, n_between + 2)[1:].tolist()
    return found


def _stretches(
    kind: str, time: float, y: FloatArray, excess: FloatArray
) -> list[tuple[str, float, float, float]]:
    """Return the worst point of every run of points that break a condition."""
    bad = np.flatnonzero(excess > 0)
    if not len(bad):
        return []
    runs = np.split(bad, np.flatnonzero(np.diff(bad) > 1) + 1)
    worst = [int(run[np.argmax(excess[run])]) for run in runs]
    return [(kind, time, float(y[i]), float(excess[i])) for i in worst]

"""Raw SVI, one expiry at a time: five numbers each, with no promise about arbitrage.

w(y) = a + b (ρ (y - m) + √((y - m)² + s²)). A slice starts from the eSSVI surface of all quotes and
is held near it by a weak prior, so that five quotes are enough.

References
----------
J. Gatheral, A. Jacquier, Arbitrage-free SVI volatility surfaces, 2014.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import least_squares

from amo.arrays import FloatArray
from pricing.vol_surfaces.essvi import ESSVI
from pricing.vol_surfaces.quotes import LOSS_SCALE, SmileQuotes

_PRIOR = 1.0  # of the free numbers around those of the eSSVI slice
_LOWEST = 1e-8  # total variance


@dataclass(frozen=True)
class SVI:
    """Rows of ``slices`` are a, b, ρ, m, s by expiry; total variance is linear in time between."""

    years: FloatArray
    slices: FloatArray

    def total_variance(self, log_moneyness: FloatArray, years: FloatArray) -> FloatArray:
        """Return w, element by element; outside of the expiries variance grows with time."""
        y, time = log_moneyness, years
        inside = np.clip(time, self.years[0], self.years[-1])
        later = np.clip(np.searchsorted(self.years, inside), 1, max(len(self.years) - 1, 1))
        later = np.minimum(later, len(self.years) - 1)
        before = np.maximum(later - 1, 0)
        gap = self.years[later] - self.years[before]
        share = np.where(gap > 0, (inside - self.years[before]) / np.where(gap > 0, gap, 1.0), 0.0)
        ends = [_slice(y, np.moveaxis(self.slices[place], -1, 0)) for place in (before, later)]
        return np.asarray(((1.0 - share) * ends[0] + share * ends[1]) * time / inside)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON holds them."""
        return {"years": self.years.tolist(), "slices": self.slices.tolist()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote."""
        return cls(np.array(content["years"], float), np.array(content["slices"], float))

    @classmethod
    def fitted(cls, quotes: SmileQuotes) -> Self:
        """Fit every expiry by itself, from the eSSVI surface of all."""
        base = ESSVI.fitted(quotes)
        found = []
        for place, years in enumerate(quotes.years):
            start = _free(base.theta[place], base.rho[place], base.psi[place])
            here = quotes.place == place
            y, vol, error = (
                values[here] for values in (quotes.log_moneyness, quotes.volatility, quotes.error)
            )

            def residuals(
                x: FloatArray,
                start: FloatArray = start,
                y: FloatArray = y,
                vol: FloatArray = vol,
                error: FloatArray = error,
                years: float = float(years),
            ) -> FloatArray:
                w = _slice(y, _raw(x))
                left = (np.sqrt(w / years) - vol) / error
                return np.concatenate([left, (x - start) / _PRIOR])

            best = least_squares(
                residuals, start, loss="soft_l1", f_scale=LOSS_SCALE, x_scale="jac", max_nfev=60
            )
            found.append(_raw(best.x))
        return cls(quotes.years, np.array(found))


def _slice(y: FloatArray, raw: FloatArray) -> FloatArray:
    a, b, rho, m, s = raw
    w = a + b * (rho * (y - m) + np.sqrt((y - m) ** 2 + s**2))
    return np.asarray(np.maximum(w, _LOWEST))


def _free(theta: float, rho: float, psi: float) -> FloatArray:
    """Return free numbers of an eSSVI slice: ln of its least variance, ln b, atanh ρ, m/s, ln s."""
    root = np.sqrt(1.0 - rho**2)
    s, m = theta * root / psi, -rho * theta / psi
    least = 0.5 * theta * root**2 + 0.5 * psi * s * root
    return np.array([np.log(least), np.log(0.5 * psi), np.arctanh(rho), m / s, np.log(s)])


def _raw(x: FloatArray) -> FloatArray:
    """Return a, b, ρ, m, s; the least of w, a + b s √(1 - ρ²), is positive."""
    b, rho, s = np.exp(x[1]), np.tanh(x[2]), np.exp(x[4])
    return np.array([np.exp(x[0]) - b * s * np.sqrt(1.0 - rho**2), b, rho, x[3] * s, s])

"""A Gaussian process on top of an eSSVI surface: flexible, with no promise about arbitrage.

What quotes leave of the base, in volatility, is a smooth random function of standardised
log-moneyness z = y/√θ and of ln T, seen with the noise of the spreads. The kernel is a product of
two Matérn 5/2 functions; its size, its two lengths and the size of the noise maximise the marginal
likelihood.

References
----------
C. Rasmussen, C. Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 5.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from amo.arrays import FloatArray
from pricing.vol_surfaces.essvi import ESSVI
from pricing.vol_surfaces.quotes import SmileQuotes

_MOST = 700  # quotes that the process sees
_JITTER = 1e-10
_OUTLIER = 4.0  # errors off the base and its neighbours: not seen
_START = (-5.0, 0.0, 0.5, -0.5)  # logarithms of size, length in z, length in ln T, noise per error
_SPREAD = (1.5, 0.7, 0.7, 0.5)  # of a weak prior on these
_BOUNDS = ((-12.0, 1.0), (-1.5, 2.5), (-2.0, 3.0), (-3.0, 1.5))
_LOWEST_VOL = 1e-3


@dataclass(frozen=True)
class Smoother:
    """A base, where the process was seen (z, ln T), the weights of its kernel, and the kernel."""

    base: ESSVI
    points: FloatArray
    weights: FloatArray
    kernel: FloatArray

    def total_variance(self, log_moneyness: FloatArray, years: FloatArray) -> FloatArray:
        """Return w, element by element."""
        y, time = log_moneyness, years
        vol = np.sqrt(self.base.total_variance(y, time) / time)
        at = _points(self.base, y.ravel(), time.ravel())
        vol = vol + (_matern(at, self.points, self.kernel) @ self.weights).reshape(vol.shape)
        return np.asarray(np.maximum(vol, _LOWEST_VOL) ** 2 * time)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""
        return {
            "base": self.base.to_dict(),
            "points": self.points.tolist(),
            "weights": self.weights.tolist(),
            "kernel": self.kernel.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote."""
        arrays = (np.array(content[name], float) for name in ("points", "weights", "kernel"))
        return cls(ESSVI.from_dict(content["base"]), *arrays)

    @classmethod
    def fitted(cls, quotes: SmileQuotes, base: ESSVI | None = None) -> Self:
        """Fit the base, the kernel by marginal likelihood, and the weights."""
        base = ESSVI.fitted(quotes) if base is None else base
        time = quotes.time
        left = quotes.volatility - np.sqrt(base.total_variance(quotes.log_moneyness, time) / time)
        seen = np.flatnonzero(np.abs(left - _local_median(quotes, left)) < _OUTLIER * quotes.error)
        seen = seen[:: max(1, -(-len(seen) // _MOST))]
        points = _points(base, quotes.log_moneyness[seen], time[seen])
        y, error = left[seen], quotes.error[seen]

        def cost(x: FloatArray) -> tuple[float, FloatArray]:
            return _likelihood(points, error, y, x)

        best = minimize(
            cost, _START, jac=True, method="L-BFGS-B", bounds=_BOUNDS, options={"maxiter": 25}
        )
        factor = cho_factor(_covariance(points, error, best.x), lower=True)
        return cls(base, points, cho_solve(factor, y), best.x[:3])


def _points(base: ESSVI, y: FloatArray, years: FloatArray) -> FloatArray:
    theta, _, _ = base.parameters(years)
    return np.column_stack([np.clip(y / np.sqrt(theta), -6.0, 6.0), np.log(years)])


def _matern(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    """Return the kernel between two sets of points, of logarithms of size and lengths."""
    found = np.full((len(a), len(b)), np.exp(2.0 * x[0]))
    for axis in (0, 1):
        far = np.sqrt(5.0) * np.abs(a[:, axis, None] - b[None, :, axis]) / np.exp(x[1 + axis])
        found *= (1.0 + far + far**2 / 3.0) * np.exp(-far)
    return found


def _covariance(points: FloatArray, error: FloatArray, x: FloatArray) -> FloatArray:
    found = _matern(points, points, x)
    found[np.diag_indices_from(found)] += (np.exp(x[3]) * error) ** 2 + _JITTER
    return found


def _likelihood(
    points: FloatArray, error: FloatArray, y: FloatArray, x: FloatArray
) -> tuple[float, FloatArray]:
    """Return minus the logarithm of the posterior of a kernel's numbers, and its gradient."""
    far = [
        np.sqrt(5.0) * np.abs(points[:, axis, None] - points[None, :, axis]) / np.exp(x[1 + axis])
        for axis in (0, 1)
    ]
    kernel = _matern(points, points, x)
    whole = kernel.copy()
    noise = (np.exp(x[3]) * error) ** 2
    whole[np.diag_indices_from(whole)] += noise + _JITTER
    factor = cho_factor(whole, lower=True)
    alpha = cho_solve(factor, y)
    off = (x - np.array(_START)) / np.array(_SPREAD)
    value = 0.5 * y @ alpha + np.log(np.diag(factor[0])).sum() + 0.5 * off @ off
    inner = cho_solve(factor, np.eye(len(y))) - np.outer(alpha, alpha)
    weighted = inner * kernel
    slopes = [
        2.0 * weighted.sum(),
        # of (1 + r + r²/3) e^{-r} by the logarithm of the length
        *(np.sum(weighted * r**2 * (1.0 + r) / (3.0 + 3.0 * r + r**2)) for r in far),
        2.0 * float(np.diag(inner) @ noise),
    ]
    return float(value), 0.5 * np.array(slopes) + off / np.array(_SPREAD)


def _local_median(quotes: SmileQuotes, left: FloatArray) -> FloatArray:
    """Return the median of what is left at each quote and the four beside it."""
    found = np.empty(len(left))
    for place in range(len(quotes.years)):
        here = np.flatnonzero(quotes.place == place)
        order = here[np.argsort(quotes.log_moneyness[here])]
        if len(order):
            padded = np.pad(left[order], 2, mode="reflect" if len(order) > 2 else "edge")
            windows = np.lib.stride_tricks.sliding_window_view(padded, 5)
            found[order] = np.median(windows, axis=1)
    return found

r"""A flexible surface without arbitrage: local variances that correct those of an eSSVI surface.

Calls on the pure stock, C(x), go from one expiry to the next by one implicit step of Dupire's
equation, (1 - ½ Δt a(x) x² ∂ₓₓ) C = C₋. Whatever a >= 0 is, C stays convex and falling in x and
rises in time, so no choice of a has butterfly or calendar arbitrage at the nodes. The a for which
the steps end on an eSSVI surface is known: a = (C - C₋) / (½ Δt x² ∂ₓₓC) >= 0. The fit multiplies
it by the exponential of a spline in y/√θ, expiry by expiry, with a prior that holds the spline near
zero and smooth. It goes to what a Gaussian process makes of the quotes, which has heard of the
neighbouring expiries; between expiries total variance is linear in time.

References
----------
J. Andreasen, B. Huge, Volatility interpolation, Risk, 2011.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.interpolate import BSpline, CubicSpline
from scipy.linalg import solve_banded

from amo.arrays import FloatArray
from pricing import black_scholes
from pricing.vol_surfaces.essvi import ESSVI
from pricing.vol_surfaces.quotes import LOSS_SCALE, SmileQuotes
from pricing.vol_surfaces.smoother import Smoother

_NODES = 401
_WIDE = 12.0  # deviations of the longest expiry, to either side
_FINE = 0.15  # deviations of the shortest expiry: the step at the forward
_ENDS = (-4.0, 3.0)  # of the spline, in deviations
_KNOTS = 16
_PRIOR = 1.0  # of the spline's coefficients
_BEND = 0.5  # of their second differences
_SURER = 0.3  # of a quote's error: what the smoothed one is off
_LEAST = 1e-10  # time value below which a node says nothing
_ROUNDS = 8


@dataclass(frozen=True)
class LocalVariance:
    """Total variances at nodes of y and expiries, and the eSSVI surface they correct.

    Attributes
    ----------
    base
        Serves before the first expiry and after the last, in its ratio to the nearest slice.
    log_moneyness
        The nodes y.
    ratio
        (expiries, nodes): total variance over that of ``base``.
    """

    base: ESSVI
    log_moneyness: FloatArray
    ratio: FloatArray

    def total_variance(self, log_moneyness: FloatArray, years: FloatArray) -> FloatArray:
        """Return w, element by element."""
        y, time = log_moneyness, years
        known = self.base.years
        found = np.empty(y.shape)
        later = np.searchsorted(known, time)  # the expiry at or after each time
        for place in np.unique(later).tolist():
            here = later == place
            if place in (0, len(known)):
                near = min(place, len(known) - 1)
                found[here] = self.base.total_variance(y[here], time[here])
                found[here] *= self._at(near, y[here])
                continue
            share = (time[here] - known[place - 1]) / (known[place] - known[place - 1])
            first, last = (
                self._at(i, y[here]) * self.base.total_variance(y[here], known[i : i + 1])
                for i in (place - 1, place)
            )
            found[here] = (1.0 - share) * first + share * last
        return found

    def _at(self, place: int, y: FloatArray) -> FloatArray:
        """Return the ratio of an expiry."""
        inside = np.clip(y, self.log_moneyness[0], self.log_moneyness[-1])
        return np.asarray(self._curves[place](inside))

    @cached_property
    def _curves(self) -> list[CubicSpline]:
        return [CubicSpline(self.log_moneyness, ratio) for ratio in self.ratio]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""
        return {
            "base": self.base.to_dict(),
            "log_moneyness": self.log_moneyness.tolist(),
            "ratio": self.ratio.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote."""
        return cls(
            ESSVI.from_dict(content["base"]),
            np.array(content["log_moneyness"], dtype=float),
            np.array(content["ratio"], dtype=float),
        )

    @classmethod
    def fitted(cls, quotes: SmileQuotes) -> Self:
        """Fit an eSSVI surface, and its correction expiry by expiry, to smoothed quotes."""
        base = ESSVI.fitted(quotes)
        smooth = Smoother.fitted(quotes, base).total_variance(quotes.log_moneyness, quotes.time)
        quotes = replace(
            quotes, volatility=np.sqrt(smooth / quotes.time), error=_SURER * quotes.error
        )
        y = _nodes(base)
        x = np.exp(y)
        before = plain = np.maximum(1.0 - x, 0.0)
        ratio = []
        for place, years in enumerate(base.years):
            variance = base.total_variance(y, np.full(len(y), years))
            calls = black_scholes.price(1.0, x, 1.0, 0.0, 0.0, np.sqrt(variance), True)
            local = _local(x, calls, plain)
            here = quotes.place == place
            fit = _Slice(x, before, local, float(np.sqrt(base.theta[place])))
            before = fit.calls(fit.solve(quotes, here)) if here.any() else fit.calls(None)
            plain = calls
            ratio.append(_ratio(x, before, variance))
        return cls(base, y, np.array(ratio))


class _Slice:
    """One step of Dupire's equation, and the fit of what multiplies its local variance."""

    def __init__(
        self, x: FloatArray, before: FloatArray, local: FloatArray, deviation: float
    ) -> None:
        self.x, self.before, self.local, self.deviation = x, before, local, deviation
        self.lower, self.upper = _second(x)
        n = _KNOTS - 4
        inner = np.linspace(*_ENDS, n + 2)
        step = inner[1] - inner[0]
        knots = np.concatenate(
            [inner[0] - step * np.arange(3, 0, -1), inner, inner[-1] + step * np.arange(1, 4)]
        )
        z = np.clip(np.log(x) / deviation, *_ENDS)
        self.basis = BSpline.design_matrix(z, knots, 3, extrapolate=True).toarray()

    def calls(self, coefficients: FloatArray | None) -> FloatArray:
        """Return the calls after the step."""
        local = self.local
        if coefficients is not None:
            local = local * np.exp(self.basis @ coefficients)
        return np.asarray(solve_banded((1, 1), self._banded(local), self.before))

    def _banded(self, local: FloatArray) -> FloatArray:
        """Return 1 - a x² ∂ₓₓ by its three diagonals; the ends keep their value."""
        bands = np.zeros((3, len(self.x)))
        bands[1] = 1.0
        lower, upper = local[1:-1] * self.lower, local[1:-1] * self.upper
        bands[1, 1:-1] += lower + upper
        bands[2, :-2] = -lower
        bands[0, 2:] = -upper
        return bands

    def solve(self, quotes: SmileQuotes, here: FloatArray) -> FloatArray:
        """Return the coefficients that fit some quotes best."""
        y, vol = quotes.log_moneyness[here], quotes.volatility[here]
        time = quotes.time[here]
        worth = black_scholes.evaluate(1.0, np.exp(y), time, 0.0, 0.0, vol, True, ("price", "vega"))
        unit = worth["vega"] * quotes.error[here]
        read = _reading(self.x, np.exp(y))
        n = self.basis.shape[1]
        bend = np.diff(np.eye(n), 2, axis=0) / _BEND
        prior = np.concatenate([np.eye(n) / _PRIOR, bend])
        c = np.zeros(n)
        for _ in range(_ROUNDS):
            local = self.local * np.exp(self.basis @ c)
            bands = self._banded(local)
            calls = solve_banded((1, 1), bands, self.before)
            curved = np.zeros_like(calls)
            curved[1:-1] = self.lower * (calls[:-2] - calls[1:-1]) + self.upper * (
                calls[2:] - calls[1:-1]
            )
            slopes = solve_banded((1, 1), bands, (local * curved)[:, None] * self.basis)
            left = (read @ calls - worth["price"]) / unit
            weight = (1.0 + (left / LOSS_SCALE) ** 2) ** -0.25  # soft l1, by its root
            rows = np.concatenate([(read @ slopes) * (weight / unit)[:, None], prior])
            goal = np.concatenate([-left * weight, -prior @ c])
            step = np.linalg.lstsq(rows, goal, rcond=None)[0]
            c = c + np.clip(step, -1.0, 1.0)
            if np.max(np.abs(step)) < 1e-3:
                break
        return c


def _nodes(base: ESSVI) -> FloatArray:
    """Return nodes that are dense at the forward, an odd number with y = 0 in the middle."""
    end = _WIDE * float(np.sqrt(base.theta[-1]))
    fine = _FINE * float(np.sqrt(base.theta[0]))
    half = _NODES // 2
    steep = _steepness(end / (fine * half))
    return np.asarray(end * np.sinh(steep * np.linspace(-1.0, 1.0, _NODES)) / np.sinh(steep))


def _steepness(ratio: float) -> float:
    """Return s with sinh(s)/s = ratio, 1e-3 at least."""
    low, high = 1e-3, 50.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.sinh(middle) / middle < ratio else (low, middle)
    return low


def _second(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what x² ∂ₓₓ gives the neighbours below and above each inner node."""
    below, above = np.diff(x)[:-1], np.diff(x)[1:]
    scale = 2.0 * x[1:-1] ** 2 / (below + above)
    return scale / below, scale / above


def _local(x: FloatArray, calls: FloatArray, before: FloatArray) -> FloatArray:
    """Return ½ Δt a at the nodes, from where the base has time value; constant beyond."""
    lower, upper = _second(x)
    worth = np.where(x < 1.0, calls - 1.0 + x, calls)  # out of the money: no cancellation
    curved = np.full(len(x), np.nan)
    for side, out in ((x < 1.0, calls - 1.0 + x), (x >= 1.0, calls)):
        whole = lower * (out[:-2] - out[1:-1]) + upper * (out[2:] - out[1:-1])
        curved[1:-1] = np.where(side[1:-1], whole, curved[1:-1])
    gained = calls - before
    is_known = (worth > _LEAST) & (curved > 0) & (gained > 0)
    is_known[[0, -1]] = False
    nodes = np.flatnonzero(is_known)
    found = gained[nodes] / curved[nodes]
    return np.asarray(np.interp(np.arange(len(x)), nodes, found))


def _reading(x: FloatArray, at: FloatArray) -> FloatArray:
    """Return weights (points, nodes) of cubic interpolation."""
    first = np.clip(np.searchsorted(x, at) - 2, 0, len(x) - 4)
    weights = np.zeros((len(at), len(x)))
    for i in range(4):
        value = np.ones(len(at))
        for j in range(4):
            if j != i:
                value *= (at - x[first + j]) / (x[first + i] - x[first + j])
        weights[np.arange(len(at)), first + i] = value
    return weights


def _ratio(x: FloatArray, calls: FloatArray, variance: FloatArray) -> FloatArray:
    """Return total variances of calls over the base's, constant where calls say nothing."""
    is_call = x >= 1.0
    worth = np.where(is_call, calls, calls - 1.0 + x)
    deviation = black_scholes.implied_volatility(worth, 1.0, x, 1.0, 0.0, 0.0, is_call)
    is_known = np.isfinite(deviation) & (worth > _LEAST)
    nodes = np.flatnonzero(is_known)
    return np.asarray(np.interp(np.arange(len(x)), nodes, deviation[nodes] ** 2 / variance[nodes]))

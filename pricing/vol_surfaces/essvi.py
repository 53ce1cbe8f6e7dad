r"""eSSVI: three numbers per expiry, no butterfly or calendar arbitrage by construction.

A slice is w(y) = ½ (θ + ρψy + √((ψy + θρ)² + θ²(1 - ρ²))). With p the larger of
(1 + ρ₋)/(1 + ρ) and (1 - ρ₋)/(1 - ρ), where ₋ is the expiry before, it is free of arbitrage if

    θ >= p θ₋,   p ψ₋ <= ψ <= ψ₋ θ/θ₋,   ψ² (1 + |ρ|) <= 4θ,   ψ (1 + |ρ|) <= 4.

So θ = p θ₋ + a with a > 0, and ψ = A + c (C - A) with c in (0, 1), where A and C are the ends of
what is left for it, C also leaving room for all later slices: any real numbers for ln a, atanh ρ
and logit c give a surface without arbitrage, and the fit needs no constraints. Between expiries θ,
ψ and ρψ are linear in time; along that line all conditions hold again, because ψ(1 ± ρ) rise.

References
----------
Hendriks, Martini, The extended SSVI volatility surface, 2019. Corbetta et al., Robust calibration
and arbitrage-free interpolation of SSVI slices, arXiv 1804.04924. Mingone, No arbitrage global
parametrization for the eSSVI volatility surface, arXiv 2204.00312.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit, logit

from amo.arrays import FloatArray
from pricing.vol_surfaces.quotes import LOSS_SCALE, SmileQuotes

_EDGE = 0.999  # of |ρ|, and of the bounds of ψ
_STEP = 1e-6


@dataclass(frozen=True)
class ESSVI:
    """Parameters by expiry; ``psi`` is θφ."""

    years: FloatArray
    theta: FloatArray
    rho: FloatArray
    psi: FloatArray

    def parameters(self, years: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return θ, ρ and ψ at any times.

        Before the first expiry θ and ψ shrink to zero together; after the last θ grows as before.
        """
        first, last = self.years[0], self.years[-1]
        inside = np.clip(years, first, last)
        theta, psi, turn = (
            np.interp(inside, self.years, values)
            for values in (self.theta, self.psi, self.rho * self.psi)
        )
        rho = turn / psi
        share = np.minimum(years / first, 1.0)
        growth = self.theta[-1] / last
        if len(self.years) > 1:
            growth = (self.theta[-1] - self.theta[-2]) / (last - self.years[-2])
        theta = theta * share + growth * np.maximum(years - last, 0.0)
        return theta, rho, psi * share

    def total_variance(self, log_moneyness: FloatArray, years: FloatArray) -> FloatArray:
        """Return w, element by element."""
        return essvi_slice(log_moneyness, *self.parameters(years))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON holds them."""
        return {name: getattr(self, name).tolist() for name in ("years", "theta", "rho", "psi")}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote."""
        return cls(**{name: np.array(values, dtype=float) for name, values in content.items()})

    @classmethod
    def fitted(cls, quotes: SmileQuotes) -> Self:
        """Fit all expiries together to quotes, each weighed by its error."""
        n, time = len(quotes.years), quotes.time

        def model(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            return decoded(x.reshape(1, 3, n))

        def residuals(x: FloatArray) -> FloatArray:
            theta, rho, psi = (values[0, quotes.place] for values in model(x))
            w = essvi_slice(quotes.log_moneyness, theta, rho, psi)
            return np.asarray((np.sqrt(w / time) - quotes.volatility) / quotes.error)

        def jacobian(x: FloatArray) -> FloatArray:
            return _jacobian(x, quotes)

        found = least_squares(
            residuals,
            _start(quotes),
            jacobian,
            loss="soft_l1",
            f_scale=LOSS_SCALE,
            method="trf",
            x_scale="jac",
            max_nfev=100,
            ftol=1e-7,
            xtol=1e-7,
        )
        theta, rho, psi = (values[0] for values in model(found.x))
        return cls(quotes.years, theta, rho, psi)


def decoded(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return θ, ρ and ψ (sets, expiries) of free numbers (sets, 3, expiries)."""
    growth, rho, share = np.exp(x[:, 0]), _EDGE * np.tanh(x[:, 1]), expit(x[:, 2])
    n = rho.shape[1]
    ratio = np.ones_like(rho)
    ratio[:, 1:] = np.maximum(
        (1.0 + rho[:, :-1]) / (1.0 + rho[:, 1:]), (1.0 - rho[:, :-1]) / (1.0 - rho[:, 1:])
    )
    theta = growth.copy()
    for i in range(1, n):
        theta[:, i] += ratio[:, i] * theta[:, i - 1]
    steep = 1.0 + np.abs(rho)
    room = _EDGE * np.minimum(4.0 / steep, np.sqrt(4.0 * theta / steep))  # of butterflies
    for i in range(n - 2, -1, -1):
        room[:, i] = np.minimum(room[:, i], room[:, i + 1] / ratio[:, i + 1])
    psi = np.empty_like(theta)
    psi[:, 0] = share[:, 0] * room[:, 0]
    for i in range(1, n):
        low = ratio[:, i] * psi[:, i - 1]
        high = np.minimum(psi[:, i - 1] * theta[:, i] / theta[:, i - 1], room[:, i])
        psi[:, i] = low + share[:, i] * (high - low)
    return theta, rho, psi


def essvi_slice(y: FloatArray, theta: FloatArray, rho: FloatArray, psi: FloatArray) -> FloatArray:
    """Return w(y) of a slice, element by element."""
    root = np.sqrt((psi * y + theta * rho) ** 2 + theta**2 * (1.0 - rho**2))
    return np.asarray(0.5 * (theta + rho * psi * y + root))


def _jacobian(x: FloatArray, quotes: SmileQuotes) -> FloatArray:
    """Return derivatives of the residuals by the free numbers."""
    n, y, time = len(quotes.years), quotes.log_moneyness, quotes.time
    moved = np.concatenate([x[None], x + _STEP * np.eye(len(x))]).reshape(-1, 3, n)
    parts = decoded(moved)
    theta, rho, psi = (values[0, quotes.place] for values in parts)
    slopes = [((values[1:] - values[0]) / _STEP)[:, quotes.place] for values in parts]
    tilted = psi * y + theta * rho
    root = np.sqrt(tilted**2 + theta**2 * (1.0 - rho**2))
    by = (
        0.5 * (1.0 + (rho * tilted + theta * (1.0 - rho**2)) / root),
        0.5 * psi * y * (1.0 + theta / root),
        0.5 * y * (rho + tilted / root),
    )
    w = essvi_slice(y, theta, rho, psi)
    whole = sum(own * slope for own, slope in zip(by, slopes, strict=True))
    return np.asarray((whole / (2.0 * np.sqrt(w * time) * quotes.error)).T)


def _start(quotes: SmileQuotes) -> FloatArray:
    """Return free numbers of the best surface with one ρ and ψ = η θ^γ."""
    theta = np.maximum.accumulate(quotes.at_the_money())
    growth = np.maximum(np.diff(theta, prepend=0.0), 1e-4 * theta)
    theta = np.cumsum(growth)
    n, time = len(theta), quotes.time

    def encoded(x: FloatArray) -> FloatArray:
        rho, power = _EDGE * np.tanh(x[0]), expit(x[2])
        steep = 1.0 + abs(rho)
        room = np.minimum(4.0 / steep, np.sqrt(4.0 * theta / steep))
        room = np.minimum.accumulate(room[::-1])[::-1]
        psi = np.minimum(np.exp(x[1]) * theta**power, 0.9 * room)
        low = np.concatenate([[0.0], psi[:-1]])
        high = np.concatenate([room[:1], np.minimum(psi[:-1] * theta[1:] / theta[:-1], room[1:])])
        share = np.clip((psi - low) / np.maximum(high - low, 1e-300), 0.05, 0.95)
        return np.concatenate([np.log(growth), np.full(n, x[0]), logit(share)])

    def residuals(x: FloatArray) -> FloatArray:
        parts = decoded(encoded(x).reshape(1, 3, n))
        w = essvi_slice(quotes.log_moneyness, *(values[0, quotes.place] for values in parts))
        return np.asarray((np.sqrt(w / time) - quotes.volatility) / quotes.error)

    found = least_squares(
        residuals, [-0.3, 0.0, 0.0], loss="soft_l1", f_scale=LOSS_SCALE, max_nfev=50
    )
    return encoded(found.x)

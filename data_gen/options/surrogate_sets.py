"""The serving sets: puts of unit strike over market state, volatility, moneyness and expiry.

A sample is a market state (rate, dividend yield) with several finite-difference solves, each of a
volatility and a horizon, and labels at seeded random points (log-moneyness, time to expiry) of
their grids. Labels are read on nodes and time levels, so no interpolation error enters them;
horizons spread over the whole range of expiries, so the points do too. Calls follow by the symmetry
call(S, K, r, q) = put(K, S, q, r).

Beside the labels stands what an operator learns from them, coded by
:mod:`pricing.surrogate.encoding`: the state at two points, query points, values above the closed
form and their scale, and the first derivatives of all of these along moneyness, volatility, rate
and dividend yield.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from amo.arrays import FloatArray, IntArray
from amo.errors import SettingsError
from data_gen.dataset import Arrays, Check, Shard, split_of
from data_gen.options.coded_labels import LABELS, coded, even_rates, exercised
from data_gen.sampling import power_of_two_below, sobol
from pricing.engines.registry import get_engine
from pricing.fd import FDSettings, solve_surface
from pricing.options import Options
from pricing.surrogate.domain import Domain
from pricing.surrogate.encoding import (
    AMERICAN,
    DIRECTIONS,
    EUROPEAN,
    STATE_POINTS,
    Coding,
    Put,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_BATCH = 16  # contracts solved at a time: bounds memory
_EARLIEST = 0.3  # of the square root of the horizon: before, the kink is not resolved
_SHORTEST = 1e-6  # years: the shortest horizon, half a minute
_BAND = 0.03  # σ√τ to either side of the exercise boundary where no label is taken: the sweep puts
# the boundary on a node, and slopes there are the worst the grid has


@dataclass(frozen=True, kw_only=True)
class ServingSet:
    """States × volatilities, each with random points of its surface.

    Attributes
    ----------
    states
        Market states, scrambled Sobol over a box wider than the domain, so that its ends lie
        inside of what a model has seen; even in :func:`pricing.surrogate.encoding.code_rate`.
    vols
        Volatilities (with horizons) per state, a second Sobol, even in σ^¼: more weight on small
        volatilities. Horizons are even in a root of T.
    points
        Labelled points per surface: half drawn evenly among its nodes, which are dense around the
        strike, half evenly in log-moneyness; none within 3 % of σ√τ of the exercise boundary.
    """

    coding: ClassVar[Coding]
    gate: ClassVar[float]  # of the largest estimated price error, per unit strike
    tolerances: ClassVar[Mapping[str, float]]  # of verify, per unit strike
    horizon_power: ClassVar[float]  # horizons are even in T^(1 / power)

    states: int = 1024
    vols: int = 16
    points: int = 64
    seed: int = 0
    domain: Domain = field(default_factory=Domain)
    grid: FDSettings = field(default_factory=FDSettings)

    def __post_init__(self) -> None:
        for name, least in {"states": 3, "vols": 1, "points": 1}.items():  # three splits
            if getattr(self, name) < least:
                raise SettingsError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.seed < 0:
            raise SettingsError(f"seed must be >= 0, got {self.seed}")

    @property
    def _states_a_shard(self) -> int:
        return min(64, power_of_two_below(self.states // 8))

    @property
    def n_shards(self) -> int:
        """How many shards make the set: at least eight where there are eight states."""
        return -(-self.states // self._states_a_shard)

    @property
    def units(self) -> Mapping[str, str]:
        """What each array holds; strike 1, rates and volatility per year, expiry in years."""
        at_points = "(samples, vols, points)"
        coded = "(samples, vols × points, …)"
        more = {}
        if self.coding.gap is not None:
            more = {"gap": f"call above put, in that unit, {coded}", "gap_tangents": "of the gap"}
        if self.coding.is_american:
            more["least"] = f"what exercise pays above the offset, in that unit, {coded}"
        return {
            "state": "number of the market state",
            "rate": "per year, continuous",
            "dividend_yield": "per year, continuous",
            "volatility": "per square root of a year, (samples, vols)",
            "log_moneyness": f"ln(S/K), {at_points}",
            "time_to_expiry": f"years, {at_points}",
            "price": f"put value / K, {at_points}",
            "delta": f"d price / d S, {at_points}",
            "gamma": f"K d² price / d S², {at_points}",
            "vega": f"per 1.00 of volatility, / K, {at_points}",
            "rho": f"per 1.00 of rate, / K, {at_points}",
            "dividend_rho": f"per 1.00 of dividend yield, / K, {at_points}",
            "boundary": f"S*/K at the point's time, NaN if never exercised, {at_points}",
            "error": "largest estimated error of price / K over the surface, (samples, vols)",
            "points": f"where the state is given: {STATE_POINTS}, (samples, 2, 1)",
            "features": "rate and dividend yield as ln(1 + rate / 3 %), (samples, 2, 1)",
            "queries": f"coordinates of the field, {coded}",
            "values": f"price / K above the offset of the coding, in the coding's unit, {coded}",
            "scale": f"the size of the output, in that unit, {coded}",
            **more,
            "weights": f"the larger of 1 and K/S, spot over strike of the mirrored call, {coded}",
            "feature_tangents": f"derivatives of the features along {', '.join(DIRECTIONS)}",
            "query_tangents": "of the queries",
            "scale_tangents": "of the scale",
            "value_tangents": "of the values",
        }

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the bytes."""
        return {
            "states": self.states,
            "vols": self.vols,
            "points": self.points,
            "seed": self.seed,
            "domain": self.domain.as_dict(),
            "drawn_from": self.domain.widened().as_dict(),
            "horizon_power": self.horizon_power,
            "coding": self.coding.version,
            "grid": {
                "n_space": self.grid.n_space,
                "n_time": self.grid.n_time,
                "levels": self.grid.levels,
                "kind": self.grid.grid,
                "placement": self.grid.placement,
                "scheme": self.grid.scheme.name,
            },
            "gate": self.gate,
        }

    def split(self, shard: int) -> str:
        """Split by market state, so that validation and test hold unseen ones."""
        return split_of(shard, self.n_shards)

    def make(self, shard: int) -> Shard:
        """Solve one shard's surfaces, read labels off them and code what is learned from them.

        A state of which any surface is above the gate is dropped.
        """
        state, options = self._options(shard)
        parts = []
        for start in range(0, len(options), _BATCH):
            rows = slice(start, start + _BATCH)
            rng = np.random.default_rng(np.random.SeedSequence([self.seed, 2, shard, start]))
            parts.append(self._label(options.take(rows), rng))
        labels = {
            name: np.concatenate([part[name] for part in parts]).reshape(
                -1, self.vols, *parts[0][name].shape[1:]
            )
            for name in parts[0]
        }
        kept = (labels["error"] <= self.gate).all(axis=1)
        labels = {name: values[kept] for name, values in labels.items()}
        rate, dividend_yield, volatility = (
            values.reshape(-1, self.vols)[kept]
            for values in (options.rate, options.dividend_yield, options.volatility)
        )
        put = Put(
            labels["log_moneyness"],
            labels["time_to_expiry"],
            rate[..., None],
            dividend_yield[..., None],
            volatility[..., None],
        )
        arrays = {
            "rate": rate[:, 0],
            "dividend_yield": dividend_yield[:, 0],
            "volatility": volatility,
            **labels,
            **coded(self.coding, put, labels),
        }
        return Shard(
            arrays={
                "state": state[:: self.vols][kept].astype(np.int32),
                **{name: values.astype(np.float32) for name, values in arrays.items()},
            },
            n_dropped=int((~kept).sum()),
            worst_error=float(labels["error"].max(initial=0.0)),
        )

    def _options(self, shard: int) -> tuple[IntArray, Options]:
        size = self._states_a_shard
        first = shard * size
        n = min(size, self.states - first)
        corner = sobol(self.seed, 0, first, size, 2)[:n]
        inner = sobol(self.seed, 1, first * self._vols_drawn, size * self._vols_drawn, 2)
        inner = inner.reshape(size, self._vols_drawn, 2)[:n, : self.vols].reshape(-1, 2)
        d = self.domain.widened()
        low, high = np.power(d.volatility, 0.25)
        shortest = max(_SHORTEST, d.expiry[0])

        def single(values: FloatArray) -> FloatArray:
            return values.astype(np.float32).astype(np.float64)  # stored exactly as solved

        state = np.repeat(np.arange(first, first + n), self.vols)
        return state, Options.of(
            spot=1.0,
            strike=1.0,
            expiry=_between((shortest, d.expiry[1]), inner[:, 1] ** self.horizon_power),
            rate=single(np.repeat(even_rates(d.rate, corner[:, 0]), self.vols)),
            dividend_yield=single(np.repeat(even_rates(d.dividend_yield, corner[:, 1]), self.vols)),
            volatility=single(_between((low, high), inner[:, 0]) ** 4),
            is_call=False,
            is_american=self.coding.is_american,
        )

    @property
    def _vols_drawn(self) -> int:
        return 1 << (self.vols - 1).bit_length()  # the next power of two

    def _label(self, options: Options, rng: np.random.Generator) -> dict[str, FloatArray]:
        """Solve a few surfaces and read labels at random points of each."""
        surface = solve_surface(
            options, self.grid, log_moneyness=self.domain.widened().log_moneyness, greeks=True
        )
        x = np.log(surface.spot)
        low, high = self.domain.widened().log_moneyness
        first = int(np.ceil(_EARLIEST * self.grid.n_time))
        is_inside = (x >= low) & (x <= high)
        error = np.where(is_inside[:, None, :], surface.error[:, first:], 0.0).max(axis=(1, 2))
        tau = surface.time_to_expiry[:, first:, None]
        distance = np.abs(x[:, None, :] - np.log(surface.boundary[:, first:, None]))
        is_clear = ~(distance < _BAND * options.volatility[:, None, None] * np.sqrt(tau))
        usable = (is_clear & is_inside[:, None, :]).reshape(len(options), -1)
        spacing = np.gradient(x, axis=1)[:, None, :].repeat(usable.shape[1] // x.shape[1], axis=1)
        flat = np.stack(
            [
                _choose(np.flatnonzero(mask), width, self.points, rng)
                for mask, width in zip(usable, spacing.reshape(usable.shape), strict=True)
            ]
        )
        time, node = first + flat // x.shape[1], flat % x.shape[1]
        row = np.arange(len(options))[:, None]
        labels = {name: getattr(surface, name)[row, time, node] for name in LABELS}
        return {
            "log_moneyness": x[row, node],
            "time_to_expiry": surface.time_to_expiry[row, time],
            **exercised(labels, surface, row, time, node),
            "boundary": surface.boundary[row, time],
            "error": error,
        }

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Solve random points again: Europeans in closed form, Americans by QdFp."""
        row, vol, point = (rng.integers(n, size=n_points) for n in arrays["price"].shape)
        at = {name: arrays[name][row, vol, point].astype(np.float64) for name in _AT_POINTS}
        options = Options.of(
            spot=np.exp(at["log_moneyness"]),
            strike=1.0,
            expiry=at["time_to_expiry"],
            rate=arrays["rate"][row],
            dividend_yield=arrays["dividend_yield"][row],
            volatility=arrays["volatility"][row, vol],
            is_call=False,
            is_american=self.coding.is_american,
        )
        referee = get_engine("quantlib-high-precision" if self.coding.is_american else "analytic")
        names = tuple(self.tolerances)
        truth, failures = referee.evaluate(options, names)
        solved = np.setdiff1d(np.arange(n_points), list(failures))
        # gamma grows like 1 / (σ√τ) near the strike: it is compared in that unit
        unit = {"gamma": options.volatility * np.sqrt(options.expiry)}
        checks = []
        for name in names:
            error = np.abs(at[name] - truth[name]) * unit.get(name, 1.0)
            largest = float(error[solved].max(initial=0.0))
            checks.append(Check(name, largest, self.tolerances[name], len(solved)))
        return checks

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw four surfaces as points over moneyness and time, with the exercise boundary."""
        from data_gen.previews import draw_surfaces  # noqa: PLC0415  # plotly is slow to load

        return draw_surfaces(arrays, LABELS)


@dataclass(frozen=True, kw_only=True)
class EuropeanSet(ServingSet):
    """European puts."""

    coding = EUROPEAN
    horizon_power = 2.0
    gate = 1e-6
    tolerances: ClassVar[Mapping[str, float]] = {
        "price": 2e-6,
        "delta": 1e-5,
        "gamma": 1e-4,
        "vega": 2e-5,
        "rho": 2e-5,
        "dividend_rho": 2e-5,
    }
    grid: FDSettings = field(default_factory=lambda: FDSettings(n_space=144, n_time=72))


@dataclass(frozen=True, kw_only=True)
class AmericanSet(ServingSet):
    """American puts."""

    coding = AMERICAN
    horizon_power = 1.25
    gate = 2e-5
    tolerances: ClassVar[Mapping[str, float]] = {
        "price": 5e-5,
        "delta": 5e-4,
        "vega": 2e-3,
        "rho": 2e-3,
        "dividend_rho": 2e-3,
    }
    states: int = 1536
    grid: FDSettings = field(default_factory=lambda: FDSettings(n_space=192, n_time=96))


_AT_POINTS = ("log_moneyness", "time_to_expiry", *LABELS)


def _between(bounds: tuple[float, float], u: FloatArray) -> FloatArray:
    return bounds[0] + (bounds[1] - bounds[0]) * u


def _choose(nodes: IntArray, spacing: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Draw nodes, half of them evenly, half in proportion to their spacing."""
    share = spacing[nodes] / spacing[nodes].sum()
    return rng.choice(nodes, n, p=0.5 * share + 0.5 / len(nodes))

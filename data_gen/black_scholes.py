"""The serving sets: puts of unit strike over market state, volatility, moneyness and expiry.

A sample is one finite-difference solve: a market state (rate, dividend yield), a volatility and a
horizon, with labels at seeded random points (log-moneyness, time to expiry) of its grid. Labels
are read on nodes and time levels, so no interpolation error enters them; horizons spread over the
whole range of expiries, so the points do too. Calls follow by the symmetry
call(S, K, r, q) = put(K, S, q, r).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from data_gen.dataset import Arrays, Check, Shard, split_of
from data_gen.sampling import power_of_two_below, sobol
from pricing.contracts import FloatArray, Options
from pricing.domain import Domain
from pricing.engines import get_engine
from pricing.fd import FDSettings, Surface, solve_surface

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

IntArray = npt.NDArray[np.int64]
LABELS = ("price", "delta", "gamma", "vega", "rho", "dividend_rho")
_BATCH = 16  # contracts solved at a time: bounds memory
_EARLIEST = 0.3  # of the square root of the horizon: before, the kink is not resolved
_SHORTEST = 0.03  # √years: the shortest horizon
_BAND = 0.03  # σ√τ to either side of the exercise boundary where no label is taken: the sweep puts
# the boundary on a node, and slopes there are the worst the grid has


@dataclass(frozen=True, kw_only=True)
class ServingSet:
    """States × volatilities, each with random points of its surface.

    Attributes
    ----------
    states
        Market states, scrambled Sobol over the domain.
    vols
        Volatilities (with horizons) per state, a second Sobol, even in ln σ: more weight on small
        volatilities. Horizons are even in √T.
    points
        Labelled points per surface, drawn among its nodes, none within 3 % of σ√τ of the exercise
        boundary.
    """

    name: ClassVar[str]
    is_american: ClassVar[bool]
    gate: ClassVar[float]  # of the largest estimated price error, per unit strike
    tolerances: ClassVar[Mapping[str, float]]  # of verify, per unit strike

    states: int = 1024
    vols: int = 16
    points: int = 64
    seed: int = 0
    domain: Domain = field(default_factory=Domain)
    grid: FDSettings = field(default_factory=FDSettings)

    def __post_init__(self) -> None:
        for name, least in {"states": 3, "vols": 1, "points": 1}.items():  # three splits
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.seed < 0:
            raise ValueError(f"seed must be >= 0, got {self.seed}")

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
        at_points = "(samples, points)"
        return {
            "state": "number of the market state",
            "rate": "per year, continuous",
            "dividend_yield": "per year, continuous",
            "volatility": "per square root of a year",
            "log_moneyness": f"ln(S/K), {at_points}",
            "time_to_expiry": f"years, {at_points}",
            "price": f"put value / K, {at_points}",
            "delta": f"d price / d S, {at_points}",
            "gamma": f"K d² price / d S², {at_points}",
            "vega": f"per 1.00 of volatility, / K, {at_points}",
            "rho": f"per 1.00 of rate, / K, {at_points}",
            "dividend_rho": f"per 1.00 of dividend yield, / K, {at_points}",
            "boundary": f"S*/K at the point's time, NaN if never exercised, {at_points}",
            "error": "largest estimated error of price / K over the surface",
        }

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the bytes."""
        return {
            "states": self.states,
            "vols": self.vols,
            "points": self.points,
            "seed": self.seed,
            "domain": self.domain.as_dict(),
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
        """Solve one shard's surfaces and read labels off them."""
        state, options = self._options(shard)
        parts = []
        for start in range(0, len(options), _BATCH):
            rows = slice(start, start + _BATCH)
            rng = np.random.default_rng(np.random.SeedSequence([self.seed, 2, shard, start]))
            parts.append(self._label(state[rows], options.take(rows), rng))
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        kept = arrays["error"] <= self.gate
        return Shard(
            arrays={name: values[kept] for name, values in arrays.items()},
            n_dropped=int((~kept).sum()),
            worst_error=float(arrays["error"][kept].max(initial=0.0)),
        )

    def _options(self, shard: int) -> tuple[IntArray, Options]:
        size = self._states_a_shard
        first = shard * size
        n = min(size, self.states - first)
        corner = sobol(self.seed, 0, first, size, 2)[:n]
        inner = sobol(self.seed, 1, first * self._vols_drawn, size * self._vols_drawn, 2)
        inner = inner.reshape(size, self._vols_drawn, 2)[:n, : self.vols].reshape(-1, 2)
        d = self.domain
        low, high = np.log(d.volatility)
        shortest = max(_SHORTEST, np.sqrt(d.expiry[0]))
        root = shortest + (np.sqrt(d.expiry[1]) - shortest) * inner[:, 1]

        def single(values: FloatArray) -> FloatArray:
            return values.astype(np.float32).astype(np.float64)  # stored exactly as solved

        state = np.repeat(np.arange(first, first + n), self.vols)
        return state, Options.of(
            spot=1.0,
            strike=1.0,
            expiry=root**2,
            rate=single(np.repeat(_between(d.rate, corner[:, 0]), self.vols)),
            dividend_yield=single(np.repeat(_between(d.dividend_yield, corner[:, 1]), self.vols)),
            volatility=single(np.exp(low + (high - low) * inner[:, 0])),
            is_call=False,
            is_american=self.is_american,
        )

    @property
    def _vols_drawn(self) -> int:
        return 1 << (self.vols - 1).bit_length()  # the next power of two

    def _label(self, state: IntArray, options: Options, rng: np.random.Generator) -> Arrays:
        surface = solve_surface(
            options, self.grid, log_moneyness=self.domain.log_moneyness, greeks=True
        )
        x = np.log(surface.spot)
        low, high = self.domain.log_moneyness
        first = int(np.ceil(_EARLIEST * self.grid.n_time))
        is_inside = (x >= low) & (x <= high)
        error = np.where(is_inside[:, None, :], surface.error[:, first:], 0.0).max(axis=(1, 2))
        tau = surface.time_to_expiry[:, first:, None]
        distance = np.abs(x[:, None, :] - np.log(surface.boundary[:, first:, None]))
        is_clear = ~(distance < _BAND * options.volatility[:, None, None] * np.sqrt(tau))
        usable = (is_clear & is_inside[:, None, :]).reshape(len(options), -1)
        flat = np.stack([rng.choice(np.flatnonzero(each), self.points) for each in usable])
        time, node = first + flat // x.shape[1], flat % x.shape[1]
        row = np.arange(len(options))[:, None]
        labels = {name: getattr(surface, name)[row, time, node] for name in LABELS}
        stored = {
            "rate": options.rate,
            "dividend_yield": options.dividend_yield,
            "volatility": options.volatility,
            "log_moneyness": x[row, node],
            "time_to_expiry": surface.time_to_expiry[row, time],
            **_stopped(labels, surface, row, time, node),
            "boundary": surface.boundary[row, time],
            "error": error,
        }
        return {
            "state": state.astype(np.int32),
            **{name: values.astype(np.float32) for name, values in stored.items()},
        }

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Solve random points again: Europeans in closed form, Americans by QdFp."""
        row = rng.integers(len(arrays["rate"]), size=n_points)
        column = rng.integers(arrays["price"].shape[1], size=n_points)
        at = {name: arrays[name][row, column].astype(np.float64) for name in _AT_POINTS}
        options = Options.of(
            spot=np.exp(at["log_moneyness"]),
            strike=1.0,
            expiry=at["time_to_expiry"],
            rate=arrays["rate"][row],
            dividend_yield=arrays["dividend_yield"][row],
            volatility=arrays["volatility"][row],
            is_call=False,
            is_american=self.is_american,
        )
        referee = get_engine("quantlib-high-precision" if self.is_american else "analytic")
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
        from data_gen.pictures import draw_surfaces  # noqa: PLC0415  # plotly is slow to load

        return draw_surfaces(arrays, LABELS)


class EuropeanSet(ServingSet):
    """European puts."""

    name = "european"
    is_american = False
    gate = 1e-6
    tolerances: ClassVar[Mapping[str, float]] = {
        "price": 2e-6,
        "delta": 1e-5,
        "gamma": 1e-4,
        "vega": 2e-5,
        "rho": 2e-5,
        "dividend_rho": 2e-5,
    }


@dataclass(frozen=True, kw_only=True)
class AmericanSet(ServingSet):
    """American puts."""

    name = "american"
    is_american = True
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


def _stopped(
    labels: dict[str, FloatArray],
    surface: Surface,
    row: IntArray,
    time: IntArray,
    node: IntArray,
) -> dict[str, FloatArray]:
    """Give points at or beyond the exercise boundary the values of an exercised put."""
    spot = surface.spot[row, node]
    is_stopped = spot <= surface.boundary[row, time]
    values = {"price": 1.0 - spot, "delta": -np.ones_like(spot)}
    return {
        name: np.where(is_stopped, values.get(name, np.zeros_like(spot)), label)
        for name, label in labels.items()
    }

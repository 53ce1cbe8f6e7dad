"""The market set: American options under curves and regular cash dividends, schedule by schedule.

A market is drawn with an expiry and several contracts of unit spot. One solve of a contract gives
its values at several moments and spots; at each of them the contracts see another slice of the
market: what is left of the schedule, over another spot. Such a slice, with all contracts under it,
is a sample: it is the number of different schedules from which an operator learns, not that of
contracts under one. Beside the labels stands what the operator learns from them, coded by
:mod:`pricing.surrogate.market_coding`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from amo.arrays import FloatArray
from amo.errors import SettingsError
from data_gen.dataset import Arrays, Check, Shard, split_of
from data_gen.sampling import power_of_two_below, sobol
from pricing import fd
from pricing.fd import FDSettings
from pricing.options import Options, Values
from pricing.random_schedules import AXES, draw_contracts, draw_markets
from pricing.surrogate.market_domain import CODING, MarketDomain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

LABELS = ("price", "delta", "vega", "rho", "dividend_rho", "cash_rho")
_SOLVED = LABELS[:-1]
_BUMP = 0.05  # of all dividends, relative
_SPREAD = 0.25  # of the logarithm of the spots, to either side
_LATEST = 0.9  # of -ln of the share of the time that is left
_LONGER = 0.6  # expiries are about even in T, where random markets have them even in √T
_PAYING = 0.9  # of the kinds of schedules: a third of the markets without dividends, no more


class Contracts(NamedTuple):
    """Contracts under markets, and where their values are read.

    Attributes
    ----------
    options
        (markets × contracts,), those of a market next to each other.
    spot, time
        (markets, spots) and (markets, moments): the same for all contracts of a market.
    """

    options: Options
    spot: FloatArray
    time: FloatArray


@dataclass(frozen=True, kw_only=True)
class MarketSet:
    """American options under curves and regular cash dividends.

    Attributes
    ----------
    markets
        Markets up to an expiry, scrambled Sobol over a box wider than the domain. Long expiries
        and dividends are more frequent than in :mod:`pricing.random_schedules`: errors are largest
        under many payments.
    contracts
        Contracts per market, half of them calls: strikes half around the forward, half over the
        whole range, volatilities even in σ^¼.
    moments, spots
        Slices read off each market: moments times spots.
    """

    markets: int = 16_384
    contracts: int = 24
    moments: int = 4
    spots: int = 4
    seed: int = 0
    domain: MarketDomain = field(default_factory=MarketDomain)
    grid: FDSettings = field(default_factory=lambda: FDSettings(n_space=96, n_time=36, levels=2))
    gate: ClassVar[float] = 1e-5  # per unit strike: how far a price may lie below its floor

    def __post_init__(self) -> None:
        least = {"markets": 3, "contracts": 1, "moments": 1, "spots": 1}  # three splits
        for name, count in least.items():
            if getattr(self, name) < count:
                raise SettingsError(f"{name} must be at least {count}, got {getattr(self, name)}")
        if self.seed < 0:
            raise SettingsError(f"seed must be >= 0, got {self.seed}")

    @property
    def _markets_a_shard(self) -> int:
        return min(64, power_of_two_below(self.markets // 8))

    @property
    def n_shards(self) -> int:
        """How many shards make the set."""
        return -(-self.markets // self._markets_a_shard)

    @property
    def units(self) -> Mapping[str, str]:
        """What each array holds; strike 1, rates and volatility per year."""
        of_contracts = "(samples, contracts)"
        along = "spot, volatility, rate, borrow and dividends"
        return {
            "number": "of the slice, in the order in which the set draws them",
            "expiry": "years",
            "spot": f"S/K, {of_contracts}",
            "volatility": f"per square root of a year, {of_contracts}",
            "is_call": of_contracts,
            "payment_time": "years, (samples, payments); that of expiry where there is none",
            "payment_cash": "over the spot, (samples, payments)",
            "price": f"value / K, {of_contracts}",
            "delta": f"d price / d S, {of_contracts}",
            "vega": f"per 1.00 of volatility, / K, {of_contracts}",
            "rho": f"per 1.00 of a parallel shift of the rate, / K, {of_contracts}",
            "dividend_rho": f"likewise of the borrow, {of_contracts}",
            "cash_rho": f"per 100 % of all dividends, / K, {of_contracts}",
            "points": "share of the expiry, (samples, points, 1)",
            "features": "payments and integrals of rate and borrow, coded, (samples, points, …)",
            "mask": "false where a point is padding, (samples, points)",
            "queries": "coordinates of the field, (samples, contracts, …)",
            "values": "price / K above the floor, (samples, contracts, 1)",
            "scale": "the size of the output, (samples, contracts, 1)",
            "least": "what exercise pays above the floor, (samples, contracts, 1)",
            "feature_tangents": f"derivatives of the features along {along}",
            "query_tangents": "of the queries",
            "scale_tangents": "of the scale",
            "value_tangents": "of the values",
        }

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the bytes."""
        return {
            "markets": self.markets,
            "contracts": self.contracts,
            "moments": self.moments,
            "spots": self.spots,
            "seed": self.seed,
            "domain": self.domain.as_dict(),
            "coding": CODING,
            "drawn": {"latest": _LATEST, "longer": _LONGER, "paying": _PAYING},
            "grid": {
                "n_space": self.grid.n_space,
                "n_time": self.grid.n_time,
                "levels": self.grid.levels,
            },
            "gate": self.gate,
        }

    def split(self, shard: int) -> str:
        """Split by market, so that validation and test hold unseen schedules."""
        return split_of(shard, self.n_shards, held_out=1 / 32)

    def make(self, shard: int) -> Shard:
        """Draw markets and contracts, solve and code them.

        A slice with a price below its floor, or with no number, is dropped. The error is that of
        the first market's prices, against a grid twice as fine with one level more.
        """
        from data_gen.options.market_labels import coded  # noqa: PLC0415  # torch is slow to load

        drawn = self.draw(shard)
        found = solve_labels(drawn, self.grid)
        first = Contracts(drawn.options.take(slice(self.contracts)), drawn.spot[:1], drawn.time[:1])
        referee = solve_labels(first, _finer(self.grid))["price"]
        error = float(np.abs(referee - found["price"][: self.contracts]).max())
        options = self.sliced(drawn)
        labels = {
            name: _single(self._by_slice(values) / (1.0 if name == "delta" else options.strike))
            for name, values in found.items()
        }
        n_payments = self.domain.widened().payments
        arrays: Arrays = {
            "number": shard * self._a_shard + np.arange(len(options) // self.contracts),
            "expiry": options.expiry[:: self.contracts],
            **self._described(options),
            **{name: values.reshape(-1, self.contracts) for name, values in labels.items()},
            **coded(options, labels, self.contracts, n_payments),
        }
        kept = np.logical_and.reduce(
            [np.isfinite(values).reshape(len(values), -1).all(axis=1) for values in arrays.values()]
        ) & (arrays["values"] > -self.gate).all(axis=(1, 2))
        return Shard(
            arrays={
                name: values[kept] if values.dtype.kind in "bi" else values[kept].astype(np.float32)
                for name, values in arrays.items()
            },
            n_dropped=int((~kept).sum()),
            worst_error=error,
        )

    @property
    def _a_shard(self) -> int:
        return self._markets_a_shard * self.moments * self.spots

    def _described(self, options: Options) -> Arrays:
        slices, first = options.market_slices, slice(None, None, self.contracts)
        shape = (-1, self.contracts)
        return {
            "spot": (options.spot / options.strike).reshape(shape),
            "volatility": options.volatility.reshape(shape),
            "is_call": options.is_call.reshape(shape),
            "payment_time": slices.time[first],
            "payment_cash": slices.cash[first] / options.spot[first, None],
        }

    def _by_slice(self, values: FloatArray) -> FloatArray:
        """Return values of (markets × contracts, moments, spots) in the order of the slices."""
        shape = (-1, self.contracts, self.moments, self.spots)
        return np.moveaxis(values.reshape(shape), 1, 3).ravel()

    def draw(self, shard: int) -> Contracts:
        """Return a shard's contracts."""
        size = self._markets_a_shard
        n = min(size, self.markets - shard * size)
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, 1, shard]))
        corner = sobol(self.seed, 0, shard * size, size, len(AXES))[:n]
        wide = self.domain.widened()
        even = dict(zip(AXES, corner.T, strict=True))
        even |= {"expiry": even["expiry"] ** _LONGER, "kind": _PAYING * even["kind"]}
        drawn = draw_markets(wide, even, rng)
        options = draw_contracts(wide, drawn, self.contracts, rng)
        spot = np.exp(rng.uniform(-_SPREAD, _SPREAD, (n, self.spots)))
        left = np.exp(-_LATEST * rng.random((n, self.moments)))
        left[:, 0] = 1.0
        shortest = wide.expiry[0]
        left = np.maximum(left, np.minimum(shortest / drawn.expiry, 1.0)[:, None])
        return Contracts(options, spot, drawn.expiry[:, None] * (1.0 - left))

    def sliced(self, drawn: Contracts) -> Options:
        """Return the options of every slice: (markets, moments, spots, contracts) in one row."""
        shape = (len(drawn.time), self.moments, self.spots, self.contracts)
        market, moment, spot, contract = (index.ravel() for index in np.indices(shape))
        rows = market * self.contracts + contract
        later = drawn.time[market, moment]
        options = drawn.options.take(rows)
        expiry = options.expiry - later
        moved = options.with_values(spot=drawn.spot[market, spot], expiry=expiry)
        return moved.with_slices(options.market_slices.after(later, expiry)).at_forwards()

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Solve some labels again, by themselves and on finer grids."""
        n, m = arrays["price"].shape
        sample, contract = rng.integers(n, size=n_points), rng.integers(m, size=n_points)
        shard, place = np.divmod(arrays["number"][sample], self._a_shard)
        worst = dict.fromkeys(LABELS, 0.0)
        for number in np.unique(shard):
            mine = np.flatnonzero(shard == number)
            rows = place[mine] * self.contracts + contract[mine]
            options = self.sliced(self.draw(int(number))).take(rows)
            truth = solve_alone(options, _finer(self.grid))
            unit = {"delta": 1.0}
            for name in LABELS:
                size = unit.get(name, options.strike)
                off = np.abs(arrays[name][sample[mine], contract[mine]] - truth[name] / size)
                worst[name] = max(worst[name], float(off.max()))
        return [Check(name, worst[name], _ALLOWED[name], n_points) for name in LABELS]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw the schedules of a few slices, and prices under them."""
        from data_gen.previews import draw_schedules  # noqa: PLC0415  # plotly is slow to load

        return draw_schedules(arrays)


# near the exercise boundary derivatives of labels are the worst that grids have
_ALLOWED = {"price": 2e-4, "delta": 2e-2, "vega": 2e-2, "rho": 8e-2, "dividend_rho": 8e-2,
            "cash_rho": 1e-2}  # fmt: skip


def _single(values: FloatArray) -> FloatArray:
    """Return values as they are stored: what is learned is coded from the stored labels."""
    return values.astype(np.float32).astype(np.float64)


def _finer(grid: FDSettings) -> FDSettings:
    return replace(grid, n_space=2 * grid.n_space, n_time=2 * grid.n_time, levels=grid.levels + 1)


def solve_labels(drawn: Contracts, grid: FDSettings) -> Values:
    """Return labels (contracts, moments, spots), in the units of the spot."""
    options = drawn.options
    each = len(options) // len(drawn.spot)
    spot, time = (np.repeat(values, each, axis=0) for values in (drawn.spot, drawn.time))

    def solved(changed: Options, names: Sequence[str]) -> Values:
        return fd.evaluate_points(changed, spot, time, names, grid, workers=1)

    return _with_cash_rho(options, solved)


def solve_alone(options: Options, grid: FDSettings) -> Values:
    """Return labels of options now, at their own spots."""

    def solved(changed: Options, names: Sequence[str]) -> Values:
        return fd.evaluate_under_markets(changed, changed.market_slices, names, grid, workers=1)

    return _with_cash_rho(options, solved)


def _with_cash_rho(options: Options, solved: Callable[[Options, Sequence[str]], Values]) -> Values:
    slices = options.market_slices
    up, down = (
        solved(options.with_slices(replace(slices, cash=slices.cash * (1.0 + k * _BUMP))),
               ("price",))["price"]
        for k in (1, -1)
    )  # fmt: skip
    return {**solved(options, _SOLVED), "cash_rho": (up - down) / (2.0 * _BUMP)}

"""The paper's option set: (r, σ, q, K, T, is_call) to V(S, t) on a grid, in two codings.

Paper: the ranges of the parameters, of S and of the grid are not printed. Chosen here, and stored
in the manifest: rates to 10 %, volatilities 10 to 60 %, strikes 50 to 150, expiries 0.1 to 2
years, S from 1 to 300, 64 × 64 points, calls and puts in equal parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from amo.arrays import FloatArray
from data_gen.dataset import Arrays, Check, Shard
from data_gen.sampling import sobol
from data_gen.sized import SizedSet
from pricing import black_scholes
from pricing.fd import FDSettings, solve_surface
from pricing.fd.schemes import CRANK_NICOLSON_EVEN
from pricing.options import Options
from pricing.surrogate.encoding import code_european

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

RANGES: Mapping[str, tuple[float, float]] = {
    "rate": (0.0, 0.10),
    "volatility": (0.10, 0.60),
    "dividend_yield": (0.0, 0.08),
    "strike": (50.0, 150.0),
    "expiry": (0.1, 2.0),
    "is_call": (0.0, 1.0),
}
SPOT = (1.0, 300.0)
_BATCH = 16
_STEPS_A_TIME = 3  # steps of the coarsest grid between two stored times


@dataclass(frozen=True, kw_only=True)
class PaperOptionsSet(SizedSet):
    """European surfaces; a sample carries raw inputs and similarity coordinates alike."""

    least: ClassVar[Mapping[str, int]] = {"resolution": 8}

    train: int = 1200
    validation: int = 200
    test: int = 200
    resolution: int = 64

    @property
    def units(self) -> Mapping[str, str]:
        """What each array holds; (samples, times, spots) where it says grid."""
        return {
            "inputs": "rate, volatility, dividend_yield, strike, expiry, is_call",
            "spot": "S, (samples, spots)",
            "time": "calendar time t from 0 to T, years, (samples, times)",
            "price": "V(S, t), grid",
            "log_forward": "ln(F/K), grid",
            "deviation": "σ√τ, grid",
            "ratio": "ln(F/K) / (σ√τ), cut at ±8, grid",
            "offset": "price = offset + scale × output: discounted payoff of the forward, grid",
            "scale": "K e^{-rτ} √(F/K) σ√τ, grid",
        }

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the bytes."""
        return {
            **super().settings(),
            "ranges": {name: list(bounds) for name, bounds in RANGES.items()},
            "spot": list(SPOT),
        }

    def samples(self, first: int, n: int) -> Shard:
        """Solve some surfaces on a grid whose time levels are the stored times."""
        options = self._options(first, n)
        batches = [options.take(slice(i, min(i + _BATCH, n))) for i in range(0, n, _BATCH)]
        parts = [self._solve(batch) for batch in batches]
        price = np.concatenate([part[0] for part in parts])
        arrays = self._code(options, price)
        return Shard(arrays, n_dropped=0, worst_error=max(part[1] for part in parts))

    def _options(self, first: int, n: int) -> Options:
        total = self.train + self.validation + self.test
        u = sobol(self.seed, 0, 0, 1 << (total - 1).bit_length(), len(RANGES))[first : first + n]
        values = {
            name: low + (high - low) * u[:, k]
            for k, (name, (low, high)) in enumerate(RANGES.items())
        }
        single = {k: v.astype(np.float32).astype(np.float64) for k, v in values.items()}
        is_call = single.pop("is_call") >= 0.5
        return Options.of(spot=single["strike"], is_call=is_call, **single)

    def _solve(self, options: Options) -> tuple[FloatArray, float]:
        steps = _STEPS_A_TIME
        settings = FDSettings(
            n_space=128, n_time=steps * (self.resolution - 1), scheme=CRANK_NICOLSON_EVEN
        )
        strikes = RANGES["strike"]
        cover = (np.log(SPOT[0] / strikes[1]), np.log(SPOT[1] / strikes[0]))
        surface = solve_surface(options, settings, log_moneyness=cover)
        spot = self._spot()
        price = surface.price_at(spot)[:, ::steps]
        payoff = np.where(options.is_call, 1.0, -1.0)[:, None] * (spot - options.strike[:, None])
        price[:, 0] = np.maximum(payoff, 0.0)
        error = surface.error[:, ::steps][:, 1:] / options.strike[:, None, None]
        return price[:, ::-1], float(error.max())  # calendar time runs the other way

    def _spot(self) -> FloatArray:
        return np.linspace(*SPOT, self.resolution)

    def _code(self, options: Options, price: FloatArray) -> Arrays:
        n, spot = len(options), self._spot()
        fraction = np.linspace(0.0, 1.0, self.resolution)
        time = fraction * options.expiry[:, None]
        strike = options.strike[:, None, None]
        coded = code_european(
            np.log(spot / strike),
            (options.expiry[:, None] - time)[:, :, None],
            options.rate[:, None, None],
            options.dividend_yield[:, None, None],
            options.volatility[:, None, None],
            options.is_call[:, None, None],
        )
        inputs = [getattr(options, name) for name in RANGES]
        arrays = {
            "inputs": np.stack(inputs, axis=1),
            "spot": np.broadcast_to(spot, (n, self.resolution)),
            "time": time,
            "price": price,
            **coded._asdict(),
            "offset": coded.offset * strike,
            "scale": coded.scale * strike,
        }
        return {name: np.ascontiguousarray(a, dtype=np.float32) for name, a in arrays.items()}

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Compare random points with the closed form."""
        row = rng.integers(len(arrays["inputs"]), size=n_points)
        time, node = rng.integers(self.resolution, size=(2, n_points))
        rate, volatility, dividend_yield, strike, expiry, is_call = (
            arrays["inputs"][row].astype(np.float64).T
        )
        truth = black_scholes.price(
            arrays["spot"][row, node].astype(np.float64),
            strike,
            np.maximum(expiry - arrays["time"][row, time].astype(np.float64), 0.0),
            rate,
            dividend_yield,
            volatility,
            is_call > 0.5,
        )
        error = np.abs(arrays["price"][row, time, node] - truth) / strike
        return [Check("price", float(error.max()), 5e-6, n_points)]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw four surfaces."""
        from data_gen.previews import draw_grids  # noqa: PLC0415  # plotly is slow to load

        return draw_grids(arrays)

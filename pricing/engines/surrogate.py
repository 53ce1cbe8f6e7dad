"""The engine "amo": the shipped surrogates as one engine that never leaves their domain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch

from amo.arrays import BoolArray, FloatArray, IntArray
from amo.errors import CheckpointError
from pricing.engines.base import Failures, Refusals
from pricing.options import Options, Values
from pricing.progress import Advance
from pricing.slopes import Slopes
from pricing.surrogate.encoding import AMERICAN, EUROPEAN
from pricing.surrogate.market_model import NAME as MARKET_MODEL
from pricing.surrogate.market_model import MarketSurrogate
from pricing.surrogate.model import Surrogate
from pricing.surrogate.store import models_folder

_LOST = "the network gave no finite number: choose another engine for this row"


_FORMULA = 'European options under dividends or sloped curves have a formula: use engine="analytic"'
_NO_MODEL = (
    "there is no model for American options under dividends or sloped curves here: let `make "
    'models` train it, or use engine="fd-fast"'
)


@dataclass(frozen=True)
class SurrogateEngine:
    """The engine "amo": one surrogate for each exercise style, and one for markets.

    Options under a market without dividends, whose curves are flat, are like those without one.
    The others are priced by the market model if they are American.
    """

    european: Surrogate
    american: Surrogate
    market: MarketSurrogate | None = None
    name: str = "amo"
    takes_markets: Literal[True] = True
    stated_error: str = "what at least 99 of 100 contracts like this one stay below, as measured"

    @classmethod
    def load(cls, folder: Path | None = None, device: torch.device | str = "cpu") -> Self:
        """Read both model folders, by default those of :func:`models_folder`."""
        folder = models_folder() if folder is None else folder
        if missing := [c.name for c in (EUROPEAN, AMERICAN) if not (folder / c.name).is_dir()]:
            raise CheckpointError(
                f"{folder} holds no model {' and no model '.join(missing)}: set AMO_MODELS to a "
                "folder that does, let `make models` train them, or choose another engine"
            )
        european, american = (
            Surrogate.load(folder / coding.name, device) for coding in (EUROPEAN, AMERICAN)
        )
        if european.coding.is_american or not american.coding.is_american:
            raise CheckpointError(f"{folder} has its two models in each other's place")
        market = folder / MARKET_MODEL
        return cls(
            european, american, MarketSurrogate.load(market, device) if market.is_dir() else None
        )

    @classmethod
    def load_all(cls, folder: Path | None = None, device: torch.device | str = "cpu") -> list[Self]:
        """Read the engine and, if present, its rival: a plain MLP on the same coding."""
        folder = models_folder() if folder is None else folder
        engine, rival = cls.load(folder, device), folder / "american-mlp"
        if not rival.is_dir():
            return [engine]
        american = Surrogate.load(rival, device)
        return [engine, cls(engine.european, american, engine.market, name="mlp")]

    def refusals(self, options: Options) -> Refusals:
        """Refuse rows outside the domain: nothing is extrapolated."""
        is_market = _needs_market(options)
        found = [
            (mask & (options.is_american == surrogate.coding.is_american) & ~is_market, reason)
            for surrogate in (self.european, self.american)
            for mask, reason in surrogate.outside(options)
        ]
        if is_market.any():
            found.append((is_market & ~options.is_american, _FORMULA))
            known = [] if self.market is None else self.market.outside(options)
            is_early = is_market & options.is_american
            found += [(mask & is_early, reason) for mask, reason in known]
            if self.market is None:
                found.append((is_early, _NO_MODEL))
        return found

    def inside(self, options: Options) -> BoolArray:
        """Return which rows lie in the domain of their style's surrogate."""
        return np.asarray(~np.any([mask for mask, _ in self.refusals(options)], axis=0))

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        *,
        workers: int | None = None,
        progress: Advance = None,
    ) -> tuple[Values, Failures]:
        """Return price, Greeks and price error of rows in the domain.

        ``workers`` is the number of threads, by default one per core.
        """
        asked = [name for name in quantities if name != "price_error"]
        values = {name: np.full(len(options), np.nan) for name in quantities}
        failures: Failures = {}
        for surrogate, rows in self._shares(options, np.ones(len(options), dtype=np.bool_)):
            some = options.take(rows)
            part = surrogate.evaluate(some, asked, progress, workers)
            is_lost = ~np.isfinite(list(part.values())).all(axis=0)
            failures.update(dict.fromkeys(rows[is_lost].tolist(), _LOST))
            if "price_error" in quantities:
                part["price_error"] = np.where(is_lost, np.nan, surrogate.price_error(some))
            for name in quantities:
                values[name][rows] = part[name]
        return values, failures

    def implied_volatility(
        self,
        options: Options,
        price: FloatArray,
        *,
        workers: int | None = None,
        progress: Advance = None,
    ) -> tuple[FloatArray, Failures]:
        """Return the volatility in the domain that gives each price, NaN where there is none."""
        result = np.full(len(options), np.nan)
        failures: Failures = {}
        low, high = self.european.domain.volatility
        known = options.with_values(volatility=np.full(len(options), 0.5 * (low + high)))
        is_inside = self.inside(known)
        for surrogate, rows in self._shares(options, is_inside):
            result[rows], is_lost = surrogate.implied_volatility(
                options.take(rows), price[rows], progress, workers
            )
            failures.update(dict.fromkeys(rows[is_lost].tolist(), _LOST))
        if progress is not None:
            progress(int((~is_inside).sum()))
        return result, failures

    def exercise_boundary(self, options: Options) -> FloatArray:
        """Return the spot at which each American option is exercised; NaN where it is unknown."""
        at_strike = options.with_values(spot=options.strike)
        chosen = options.is_american & (options.expiry > 0) & self.inside(at_strike)
        result = np.full(len(options), np.nan)
        for surrogate, rows in self._shares(options, chosen):
            result[rows] = surrogate.exercise_boundary(options.take(rows))
        return result

    def slopes(
        self, options: Options, weight: FloatArray, workers: int | None = None
    ) -> tuple[BoolArray, Slopes | None]:
        """Return which rows the market model prices, and their slopes; see :class:`Slopes`."""
        chosen = _needs_market(options) & self.inside(options) & options.is_american
        rows = np.flatnonzero(chosen & (options.expiry > 0))
        if self.market is None or not len(rows):
            return np.zeros(len(options), dtype=np.bool_), None
        found = self.market.slopes(options.take(rows), weight[rows], workers)
        return np.isin(np.arange(len(options)), rows), found._replace(row=rows[found.row])

    def _shares(
        self, options: Options, chosen: BoolArray
    ) -> Iterator[tuple[Surrogate | MarketSurrogate, IntArray]]:
        """Yield each surrogate with its rows among the chosen ones, if there are any."""
        is_market = _needs_market(options)
        models: list[tuple[Surrogate | MarketSurrogate | None, BoolArray]] = [
            (self.european, ~options.is_american & ~is_market),
            (self.american, options.is_american & ~is_market),
            (self.market, options.is_american & is_market),
        ]
        for model, mine in models:
            rows = np.flatnonzero(chosen & mine)
            if len(rows) and model is not None:
                yield model, rows


def _needs_market(options: Options) -> BoolArray:
    """Return which rows have dividends, or curves that are not flat."""
    if options.slices is None:
        return np.zeros(len(options), dtype=np.bool_)
    return ~options.slices.is_plain

"""The engine "amo": the shipped surrogates as one engine that never leaves their domain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch

from amo.arrays import BoolArray, FloatArray, IntArray
from amo.errors import CheckpointError
from pricing.engines.base import Failures, Refusals
from pricing.options import Options, Values
from pricing.progress import Advance
from pricing.surrogate.encoding import AMERICAN, EUROPEAN
from pricing.surrogate.model import Surrogate
from pricing.surrogate.store import models_folder

_LOST = "the network gave no finite number: choose another engine for this row"


@dataclass(frozen=True)
class SurrogateEngine:
    """The engine "amo": one surrogate for each exercise style."""

    european: Surrogate
    american: Surrogate
    name: str = "amo"
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
        return cls(european, american)

    @classmethod
    def load_all(cls, folder: Path | None = None, device: torch.device | str = "cpu") -> list[Self]:
        """Read the engine and, if present, its rival: a plain MLP on the same coding."""
        folder = models_folder() if folder is None else folder
        engine, rival = cls.load(folder, device), folder / "american-mlp"
        if not rival.is_dir():
            return [engine]
        return [engine, cls(engine.european, Surrogate.load(rival, device), name="mlp")]

    def refusals(self, options: Options) -> Refusals:
        """Refuse rows outside the domain: nothing is extrapolated."""
        return [
            (mask & (options.is_american == surrogate.coding.is_american), reason)
            for surrogate in (self.european, self.american)
            for mask, reason in surrogate.outside(options)
        ]

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
        rows = np.flatnonzero(options.is_american & (options.expiry > 0) & self.inside(at_strike))
        result = np.full(len(options), np.nan)
        if len(rows):
            result[rows] = self.american.exercise_boundary(options.take(rows))
        return result

    def _shares(self, options: Options, chosen: BoolArray) -> Iterator[tuple[Surrogate, IntArray]]:
        """Yield each surrogate with its rows among the chosen ones, if there are any."""
        for surrogate in (self.european, self.american):
            rows = np.flatnonzero(chosen & (options.is_american == surrogate.coding.is_american))
            if len(rows):
                yield surrogate, rows

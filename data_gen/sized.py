"""Sets with a given number of samples in each split."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from amo.errors import SettingsError
from data_gen.dataset import SPLITS, Arrays, Check, Shard

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True, kw_only=True)
class SizedSet(ABC):
    """Samples numbered from train through validation to test, in shards that no two splits share.

    Subclasses add their own settings as fields, and ``least`` says how small each may be.
    """

    shard_size: ClassVar[int] = 64
    least: ClassVar[Mapping[str, int]] = {}

    train: int
    validation: int
    test: int
    seed: int = 0

    def __post_init__(self) -> None:
        for name, bound in {**dict.fromkeys(SPLITS, 1), "seed": 0, **self.least}.items():
            if getattr(self, name) < bound:
                raise SettingsError(f"{name} must be at least {bound}, got {getattr(self, name)}")

    @property
    def _shards(self) -> list[tuple[str, int, int]]:
        """Split, first sample and number of samples of every shard."""
        shards: list[tuple[str, int, int]] = []
        first = 0
        for split in SPLITS:
            size = getattr(self, split)
            shards += [
                (split, first + start, min(self.shard_size, size - start))
                for start in range(0, size, self.shard_size)
            ]
            first += size
        return shards

    @property
    def n_shards(self) -> int:
        """How many shards make the set."""
        return len(self._shards)

    @property
    def n_samples(self) -> int:
        """How many samples the set has."""
        return sum(n for _, _, n in self._shards)

    def settings(self) -> dict[str, Any]:
        """Return the settings; apart from these, only this version's code determines the bytes."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def split(self, shard: int) -> str:
        """Return the split a shard belongs to."""
        return self._shards[shard][0]

    def make(self, shard: int) -> Shard:
        """Make one shard."""
        _, first, n = self._shards[shard]
        return self.samples(first, n)

    @property
    @abstractmethod
    def units(self) -> Mapping[str, str]:
        """What each array holds."""

    @abstractmethod
    def samples(self, first: int, n: int) -> Shard:
        """Make ``n`` samples from number ``first`` on."""

    @abstractmethod
    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Solve some stored samples again with a referee."""

    @abstractmethod
    def picture(self, arrays: Arrays) -> "Figure":
        """Draw a few samples."""


@dataclass(frozen=True, kw_only=True)
class SampleSet(SizedSet):
    """A set whose samples are drawn one by one, each a function of the seed and its number.

    Those whose error is above the gate are left out.
    """

    gate: ClassVar[float] = math.inf

    def samples(self, first: int, n: int) -> Shard:
        """Make ``n`` samples from number ``first`` on."""
        numbers = range(first, first + n)
        parts = [self.sample(np.random.default_rng([self.seed, number])) for number in numbers]
        errors = np.array([error for _, error in parts])
        kept = errors <= self.gate
        arrays: Arrays = {
            name: np.stack([part[name] for part, _ in parts]).astype(np.float32)[kept]
            for name in parts[0][0]
        }
        arrays["number"] = np.arange(first, first + n, dtype=np.int32)[kept]
        worst = float(errors[kept].max(initial=0.0))
        return Shard(arrays, n_dropped=int((~kept).sum()), worst_error=worst)

    @property
    def units(self) -> Mapping[str, str]:
        """What each array holds."""
        return {**self.fields, "number": "the sample's, which its random numbers come from"}

    @property
    @abstractmethod
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one sample and an estimate of its relative error."""

"""What a training set is: a recipe that makes numbered shards, and checks and pictures of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Arrays = dict[str, npt.NDArray[Any]]
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Shard:
    """One piece of a set.

    Attributes
    ----------
    arrays
        Equally long, one sample per row.
    n_dropped
        Samples left out because their label error was above the set's gate.
    worst_error
        The largest estimated label error among those kept.
    """

    arrays: Arrays
    n_dropped: int
    worst_error: float


@dataclass(frozen=True)
class Check:
    """How far re-solved labels are from the stored ones; by default per unit strike."""

    quantity: str
    largest: float
    allowed: float
    n_points: int
    unit: str = " K"

    @property
    def is_met(self) -> bool:
        """Whether every point agrees; a check of no points is not met."""
        return self.n_points > 0 and self.largest <= self.allowed


class CheckedSet(TypedDict):
    """What was found of one set when some of it was solved again."""

    settings: dict[str, Any]
    samples: int
    worst_error: float
    checks: list[Check]


class CheckResults(TypedDict):
    """What was found of all sets: docs/results/physics_data.json."""

    command: str
    sets: dict[str, CheckedSet]


class DataSet(Protocol):
    """A frozen dataclass whose fields are its settings; each becomes a flag of the command line.

    A shard is a function of the settings and its number alone, so its bytes depend neither on the
    workers nor on interruptions.
    """

    @property
    def n_shards(self) -> int:
        """How many shards make the set."""

    @property
    def units(self) -> Mapping[str, str]:
        """What each array holds, and in which unit."""

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the bytes, in JSON form."""

    def split(self, shard: int) -> str:
        """Return the split a shard belongs to."""

    def make(self, shard: int) -> Shard:
        """Make one shard."""

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Solve some stored points again with a referee."""

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw a few samples."""


def split_of(shard: int, n_shards: int, held_out: float = 1 / 16) -> str:
    """Give the last shards to test, those before them to validation, the others to train."""
    n_held = max(1, round(held_out * n_shards))
    if shard >= n_shards - n_held:
        return "test"
    return "validation" if shard >= n_shards - 2 * n_held else "train"

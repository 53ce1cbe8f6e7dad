"""Results files: measured rows with their origin, merged one by one.

They lie in docs/results of the checkout, or inside the installed package. A file is written whole
or not at all, after every row.
"""

import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, TypeVar

import msgspec

from amo.errors import FileError, SettingsError
from amo.files import make_folder, write_text

_SHIPPED = Path(__file__).parent / "shipped_results"
RESULTS = _SHIPPED if _SHIPPED.is_dir() else Path(__file__).parents[1] / "docs" / "results"
Size = Literal["small", "paper"]
_Content = TypeVar("_Content")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a number comes from: the command that measured it, on what, and when."""

    command: str
    commit: str
    date: str
    hardware: str
    versions: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What every row of a table is given.

    Attributes
    ----------
    minutes, steps, epochs
        One of them: minutes of training steps, validation not counted, a number of steps, or of
        passes over the training split.
    size
        Of all models: for two cores, or as in their papers.
    batch_size
        Samples in a step.
    n_points
        Random points of a sample that models over points see in a step, None for all; models on a
        grid need all.
    optimizer, learning_rate
        ``adamw`` or ``soap``, with warm-up and a cosine to zero.
    further_rates
        Other learning rates: every row is trained at each, and validation chooses.
    """

    minutes: float | None = None
    steps: int | None = None
    epochs: int | None = None
    size: Size = "small"
    batch_size: int = 8
    n_points: int | None = 1024
    optimizer: Literal["adamw", "soap"] = "adamw"
    learning_rate: float = 1e-3
    further_rates: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        given = [x for x in (self.minutes, self.steps, self.epochs) if x is not None]
        if len(given) != 1:
            raise SettingsError("a budget is minutes, steps or epochs: give one of them")
        if given[0] <= 0:
            raise SettingsError("a budget must be positive")


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Errors over a split, as :func:`amo.training.evaluation.evaluate` returns them."""

    relative_l2: float
    pooled_relative_l2: float
    rmse: float
    largest_error: float
    samples: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model on one problem with one seed.

    ``diverged`` says what happened to a model that has no scores. ``regions`` are root mean square
    errors in parts of the domain, ``further`` the scores on more test splits. Seconds and minutes
    count training steps only, ``wall_minutes`` validation too. ``validation`` has the relative L2
    on validation by learning rate, where several were tried, and ``curve`` how it fell: pairs of
    minutes of steps and relative L2 on validation.
    """

    parameters: int
    model: dict[str, Any]
    origin: Origin
    diverged: str = ""
    scores: Scores | None = None
    regions: dict[str, float] = field(default_factory=dict)
    further: dict[str, Scores] = field(default_factory=dict)
    milliseconds_per_sample: float = 0.0
    peak_megabytes: float = 0.0
    steps: int = 0
    seconds_per_step: float = 0.0
    training_minutes: float = 0.0
    wall_minutes: float = 0.0
    seconds_per_epoch: float = 0.0
    validation: dict[str, float] = field(default_factory=dict)
    curve: list[tuple[float, float]] = field(default_factory=list)

    @property
    def relative_l2(self) -> float:
        """The paper's figure; only rows with scores have it."""
        if self.scores is None:
            raise ValueError(f"this row has no scores: {self.diverged}")
        return self.scores.relative_l2


@dataclass(frozen=True, kw_only=True)
class ProblemData:
    """What a table says about a problem's data."""

    title: str
    origin: Literal["official", "regenerated"]
    samples: dict[str, int]
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class PaperSize:
    """Parameters at a paper's settings, beside the quoted count in millions."""

    parameters: int
    quoted: float | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of models under one budget; their keys are problem/model/seed."""

    budget: Budget
    problems: dict[str, ProblemData] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    quoted: dict[str, dict[str, float]] = field(default_factory=dict)
    paper_sizes: dict[str, PaperSize] = field(default_factory=dict)


class Machine(TypedDict):
    """What a benchmark ran on."""

    processor: str
    cores: int
    python: str
    numpy: NotRequired[str]


class PaperCost(TypedDict):
    """The paper's figures at one size."""

    train_seconds_per_epoch: float
    inference_seconds: float
    memory_gigabytes: float


class SizeRow(TypedDict):
    """Cost of the operator at one size."""

    train_seconds: float
    inference_seconds: float
    inference_megabytes: float
    paper: PaperCost


class GridCost(TypedDict):
    """Cost of one contestant on one grid, in batches of eight."""

    train_seconds: float
    parameters: int
    megabytes: float


class ScalingResults(TypedDict):
    """Cost against the number of points: docs/results/scaling.json.

    ``grids`` has, by grid and model, what a step of training takes there.
    """

    command: str
    hardware: str
    model: str
    sizes: dict[str, SizeRow]
    grids: NotRequired[dict[str, dict[str, GridCost]]]
    train_growth: list[float]
    inference_growth: list[float]
    memory_growth: float


class RunSummary(TypedDict):
    """What one experiment reached, and what it took."""

    preset: str
    parameters: int
    seed: int
    steps: int
    minutes: float
    hardware: str
    versions: dict[str, str]
    scores: dict[str, dict[str, float]]


class LearningResults(TypedDict):
    """What experiments reached: docs/results/learning.json."""

    command: str
    runs: dict[str, RunSummary]


def origin(hardware: str, command: str | None = None) -> Origin:
    """Return where a number measured now comes from."""
    name = Path(sys.argv[0]).parent.name or "amo"
    typed = f"python -m {name} " + " ".join(sys.argv[1:])
    return Origin(
        command=typed if command is None else command,
        commit=_commit(),
        date=datetime.now(UTC).date().isoformat(),
        hardware=hardware,
        versions={name: version(name) for name in ("torch", "numpy")},
    )


def _commit() -> str:
    """Return the checkout's commit, with a plus where files differ from it; "" elsewhere."""
    root = Path(__file__).parents[1]
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],  # noqa: S607
            cwd=root, capture_output=True, text=True, check=True, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def read(path: Path, kind: type[_Content]) -> _Content:
    """Read a results file of that kind."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise FileError(f"no results file {path}") from None
    except (OSError, msgspec.DecodeError) as error:
        raise FileError(f"{path} holds no {kind.__name__}: {error}") from error


def write(content: object, path: Path) -> None:
    """Write a results file, whole or not at all."""
    make_folder(path.parent)
    write_text(msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n", path)

"""A book of parts through one operation: finished parts are kept, whatever happens to the rest."""

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from amo.errors import AMOError, ClusterError, SettingsError, StoppedError
from amo.jobs import Failed, Where, check_executor, run_jobs
from pricing.columns import AssumptionWarning, OptionFrameError
from pricing.datasets.manifest import (
    FORMAT,
    MANIFEST,
    MARKETS,
    Dataset,
    DatasetError,
    FailedPartsError,
    PartLine,
    Request,
    file_name,
    keep_markets,
    kept_markets,
    open_folder,
    read_dataset,
    remove_strays,
    write_dataset,
)
from pricing.datasets.operations import OPERATIONS
from pricing.datasets.parts import (
    Part,
    as_table,
    hash_of,
    parts_of,
    read_part,
    with_columns,
    write_part,
)
from pricing.engines.registry import get_engine
from pricing.frames import check_workers
from pricing.markets.market import Market
from pricing.options import Options
from pricing.progress import Progress, parts_bar

_NAMED = 5  # failed parts in a message


@dataclass(frozen=True, kw_only=True)
class Job:
    """One part in, one part out: all that a worker is told."""

    request: Request
    options: Mapping[str, Any]
    part: Part
    folder: str
    file: str


@dataclass(frozen=True, kw_only=True)
class Done:
    """A finished part, and what was assumed about its rows."""

    line: PartLine
    assumed: tuple[str, ...]


def run_dataset(
    operation: str,
    source: str | Path,
    out: str | Path,
    engine: str | None,
    given: Mapping[str, Any],
    *,
    markets: Mapping[str, Market] | None = None,
    executor: Where = None,
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress = None,
) -> Dataset:
    """Do an operation with every part of a book that is not finished yet.

    Raises
    ------
    FailedPartsError
        At the end, if some parts failed.
    StoppedError
        After Ctrl-C.
    ClusterError
        If the executor is lost.
    """
    options = OPERATIONS[operation].options(given)
    check_executor(executor)
    check_workers(workers)
    folder = Path(out).absolute()
    _check_settings(operation, engine, options, markets)
    parts = _parts(source, folder)
    request = Request.of(operation, engine, options, markets)
    done = open_folder(folder, request, parts, overwrite=overwrite)
    remove_strays(folder)
    keep_markets(markets, folder)
    state = _State(folder=folder, request=request, parts=parts, done=done)
    state.record()  # marks the folder before the first part
    missing = [number for number in range(len(parts)) if number not in done]
    jobs = [state.job(number, options) for number in missing]
    with (
        _naming(folder, done, len(parts)),
        parts_bar(progress, len(done), len(parts), operation) as advance,
    ):
        for place, answer in run_jobs(do_part, jobs, executor, workers=workers):
            if state.settle(missing[place], answer):
                advance(done[missing[place]].source_rows)
    remove_strays(folder)
    if state.failed:
        raise _failure(state.reasons(), len(parts), folder)
    return state.dataset()


@dataclass(kw_only=True)
class _State:
    """What is finished and what has failed of a book."""

    folder: Path
    request: Request
    parts: list[Part]
    done: dict[int, PartLine]
    failed: dict[int, str] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def job(self, number: int, options: Mapping[str, Any]) -> Job:
        """Return what makes a part."""
        return Job(
            request=self.request,
            options=options,
            part=self.parts[number],
            folder=str(self.folder),
            file=file_name(number, len(self.parts)),
        )

    def settle(self, number: int, answer: Done | Failed) -> bool:
        """Record a part, and tell whether it is finished."""
        if isinstance(answer, Failed):
            self.failed[number] = _reason(answer.error)
            return False
        self.done[number] = answer.line
        self.record()
        _warn_once(self.parts[number].name, answer.assumed, self.told)
        return True

    def dataset(self) -> Dataset:
        """Return the manifest of what is finished, in the order of the book."""
        return Dataset(
            format=FORMAT,
            request=self.request,
            n_parts=len(self.parts),
            is_complete=len(self.done) == len(self.parts),
            parts=tuple(self.done[number] for number in sorted(self.done)),
        )

    def record(self) -> None:
        """Write the manifest."""
        write_dataset(self.dataset(), self.folder)

    def reasons(self) -> dict[str, str]:
        """Return why parts failed, by name, in the order of the book."""
        return {self.parts[number].name: self.failed[number] for number in sorted(self.failed)}


def do_part(job: Job) -> Done:
    """Make one part, on any machine: read, compute, write; its bytes depend on the job alone."""
    job.request.check_worker()
    operation, folder = OPERATIONS[job.request.operation], Path(job.folder)
    options = dict(job.options)
    if job.request.markets is not None:
        options["markets"] = kept_markets(folder / MARKETS, job.request.markets)
    columns, frame = read_part(job.part)
    made, assumed = operation.of_part(frame, job.request.engine, options)
    added = made[[label for label in made.columns if label not in frame.columns]]
    table = with_columns(columns, added) if operation.adds else as_table(made)
    size, digest = write_part(table, folder / job.file)
    line = PartLine(
        file=job.file,
        sha256=digest,
        bytes=size,
        rows=table.num_rows,
        source=job.part.name,
        source_sha256=hash_of(job.part),
        source_rows=len(frame),
        engines=_engines(added) if operation.adds else {},
    )
    return Done(line=line, assumed=tuple(assumed))


def _engines(added: pd.DataFrame) -> dict[str, int]:
    """Return how many rows each engine priced."""
    counts = added["engine"].astype(object).value_counts()
    return {str(name): int(n) for name, n in sorted(counts.items())}


def _check_settings(
    operation: str,
    engine: str | None,
    options: Mapping[str, Any],
    markets: Mapping[str, Market] | None,
) -> None:
    """Raise SettingsError for what is wrong with every part alike, before the first one is read.

    A book without rows goes through the operation; what is wrong with a book is for the parts.
    """
    if engine is not None and not isinstance(engine, str):
        raise SettingsError(
            f"a dataset takes an engine by its name, since workers build their own: not {engine!r}"
        )
    if engine is not None:
        get_engine(engine)
    empty = Options.of(
        spot=[], strike=[], expiry=[], rate=[], dividend_yield=[], volatility=[], is_call=[],
        is_american=[],
    ).to_frame()  # fmt: skip
    under = {} if markets is None else {"markets": markets}
    try:
        OPERATIONS[operation].of_part(empty, engine, {**options, **under})
    except OptionFrameError:
        return


def _parts(source: str | Path, folder: Path) -> list[Part]:
    """Return the parts of a source that may be read."""
    if Path(source).is_dir() and (Path(source) / MANIFEST).exists():
        there = read_dataset(source)
        if not there.is_complete:
            raise DatasetError(
                f"{source} has {len(there.parts)} of {there.n_parts} parts: let the job that makes "
                "it end first"
            )
    parts = parts_of(source)
    if any(Path(part.path).parent == folder for part in parts):
        raise DatasetError(f"{folder} is where the book lies: choose another folder for the parts")
    return parts


@contextmanager
def _naming(folder: Path, done: Mapping[int, PartLine], n_parts: int) -> Iterator[None]:
    """Say in the errors that end a job how much of it is finished, and how it goes on."""

    def finished() -> str:
        return f"{len(done)} of {n_parts} parts are finished in {folder}"

    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(f"{finished()}, and the same request goes on with the others") from None
    except ClusterError as error:
        raise ClusterError(f"{error}; {finished()}") from error


def _warn_once(name: str, assumed: tuple[str, ...], told: set[str]) -> None:
    """Warn of each kind of assumption at the first part that makes it."""
    for text in assumed:
        kind = re.split(r"[:,]", text)[0]
        if kind not in told:
            told.add(kind)
            warnings.warn(f"{name}: {text}", AssumptionWarning, stacklevel=5)


def _reason(error: BaseException) -> str:
    """Return an error in words; one that is no error of a user's has its name before it."""
    return str(error) if isinstance(error, AMOError) else f"{type(error).__name__}: {error}"


def _failure(failed: Mapping[str, str], n_parts: int, folder: Path) -> FailedPartsError:
    lines = [f"{name}: {reason}" for name, reason in failed.items()][:_NAMED]
    more = [f"and {len(failed) - _NAMED} more"] * (len(failed) > _NAMED)
    told = "\n".join([*lines, *more]).replace("\n", "\n  ")
    return FailedPartsError(
        f"{len(failed)} of {n_parts} parts failed, the others are in {folder}; after they are "
        f"mended, the same request makes only what is missing:\n  {told}",
        failed,
    )

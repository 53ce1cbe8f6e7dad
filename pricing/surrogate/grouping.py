"""Rows of a book gathered by market state, in rectangles that an operator decodes at once."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from amo.arrays import BoolArray, FloatArray, IntArray
from pricing.progress import Advance
from pricing.threads import in_threads

ROWS = 1 << 13  # decoded at a time
STATES = 128  # encoded at a time
LIST = 4  # packs whose states are encoded together, at most: one thread's task
TASKS = 8  # into which a book is split, at least, if its rows fill that many packs


class Pack(NamedTuple):
    """Rows of several states: positions (states, rows), each line padded by repeating its last."""

    rows: IntArray
    lengths: IntArray

    @property
    def states(self) -> IntArray:
        """One row of each state."""
        return self.rows[:, 0]

    @property
    def is_row(self) -> BoolArray:
        """False where a position is only padding."""
        return np.arange(self.rows.shape[1]) < self.lengths[:, None]

    def narrowed(self, chosen: BoolArray) -> "tuple[Pack, BoolArray]":
        """Return a pack of the chosen positions (states, rows), and which states are in it."""
        lengths = chosen.sum(axis=1)
        is_kept = lengths > 0
        return Pack(self.rows[chosen][_rectangle(lengths[is_kept])], lengths[is_kept]), is_kept

    def put(self, values: FloatArray, into: FloatArray) -> None:
        """Write values (states, rows) to where their rows are in the book."""
        into[self.rows[self.is_row]] = values[self.is_row]


def gather(*state: npt.NDArray[np.generic]) -> Iterator[Pack]:
    """Yield packs that hold every row once: long states split, states of similar size together.

    How rows are split depends on the book alone, never on the machine.
    """
    code = np.zeros(len(state[0]), dtype=np.int64)
    for column in state:
        numbers, kinds = pd.factorize(column)
        code = pd.factorize(code * len(kinds) + numbers)[0]
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    counts = np.diff(starts, append=len(order))
    pieces = -(-counts // ROWS)
    whole = np.repeat(np.cumsum(pieces) - pieces, pieces)
    skipped = (np.arange(len(whole)) - whole) * ROWS
    start = np.repeat(starts, pieces) + skipped
    count = np.minimum(np.repeat(counts, pieces) - skipped, ROWS)
    by_size = np.argsort(-count, kind="stable")
    start, count = start[by_size], count[by_size]
    done = 0
    while done < len(count):
        some = slice(done, done + max(1, min(STATES, ROWS // count[done])))
        yield Pack(order[_rectangle(count[some], start[some])], count[some])
        done = some.stop


def together(packs: Iterable[Pack], n_rows: int) -> Iterator[list[Pack]]:
    """Yield the packs of ``n_rows`` rows in lists, each the task of one thread.

    A list has about ``STATES`` states, or an equal share of the rows.
    """
    share = min(max(n_rows // TASKS, ROWS), LIST * ROWS)
    some: list[Pack] = []
    for pack in packs:
        some.append(pack)
        if (
            sum(len(one.rows) for one in some) >= STATES
            or sum(one.rows.size for one in some) >= share
        ):
            yield some
            some = []
    if some:
        yield some


def run(
    work: Callable[[list[Pack]], int],
    packs: Iterable[Pack],
    n_rows: int,
    device: torch.device,
    workers: int | None,
    progress: Advance,
) -> None:
    """Do some work on all packs, a list of them at a time; on a CPU, in threads."""
    tasks = together(packs, n_rows)
    on_cpu = device.type == "cpu"
    for n_done in in_threads(work, tasks, workers) if on_cpu else map(work, tasks):
        if progress is not None:
            progress(n_done)


def _rectangle(lengths: IntArray, starts: IntArray | None = None) -> IntArray:
    """Return the positions of runs of given lengths, one per line, padded by repeating the last."""
    first = np.cumsum(lengths) - lengths if starts is None else starts
    within = np.minimum(np.arange(lengths.max(initial=0)), lengths[:, None] - 1)
    return np.asarray(first[:, None] + within)

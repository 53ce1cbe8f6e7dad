"""Work cut over processes, for libraries that hold Python's lock while they compute.

Starting processes takes seconds, so that is done only where the work is longer, and once: they wait
for more until this process ends.
"""

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from amo.processes import follow_parent

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")
_START = 4.0  # seconds of work that are worth starting processes for
_SEND = 0.1  # and that are worth sending to processes that wait
_lock = threading.Lock()
_pools: dict[int, ProcessPoolExecutor] = {}


def in_processes(
    work: Callable[[_Task], _Answer], tasks: Sequence[_Task], workers: int | None = None
) -> Iterator[_Answer]:
    """Yield the answers to tasks in their order.

    The first task is done here, and its time says whether the rest goes to ``workers`` processes.
    ``work`` and tasks are pickled to processes of our own making.
    """
    if not tasks:
        return
    start = time.perf_counter()
    yield work(tasks[0])
    rest = tasks[1:]
    seconds = (time.perf_counter() - start) * len(rest)
    enough = _SEND if workers in _pools else _START
    if workers is None or workers == 1 or seconds < enough:
        yield from map(work, rest)
    else:
        yield from _processes(workers).map(work, rest)


def _processes(workers: int) -> ProcessPoolExecutor:
    with _lock:
        if workers not in _pools:
            context = multiprocessing.get_context("spawn")
            _pools[workers] = ProcessPoolExecutor(
                workers, mp_context=context, initializer=follow_parent
            )
        return _pools[workers]

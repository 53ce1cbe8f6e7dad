"""Work split across processes, for libraries that hold Python's lock while they compute.

Starting processes takes seconds, so they are started only for longer work, and once: they wait for
more until this process ends.
"""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple, TypeVar

from amo.system import follow_parent

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")
_START = 4.0  # seconds of work worth starting processes for
_SEND = 0.1  # seconds of work worth sending to waiting processes


class _Pool(NamedTuple):
    workers: int
    executor: ProcessPoolExecutor


_lock = threading.Lock()
_pool: _Pool | None = None


def in_processes(
    work: Callable[[_Task], _Answer], tasks: Sequence[_Task], workers: int | None = None
) -> Iterator[_Answer]:
    """Yield the answers to tasks in their order.

    The first task is done here, and its time says whether the rest goes to ``workers`` processes.
    ``work`` and tasks are pickled, to processes started here only.
    """
    if not tasks:
        return
    start = time.perf_counter()
    first, rest = work(tasks[0]), tasks[1:]
    seconds = (time.perf_counter() - start) * len(rest)
    yield first
    enough = _SEND if _pool is not None and _pool.workers == workers else _START
    if workers is None or workers == 1 or seconds < enough:
        yield from map(work, rest)
        return
    try:
        yield from _processes(workers).map(work, rest)
    except BrokenProcessPool:  # one of them was killed: the next call starts others
        _forget()
        raise


def _processes(workers: int) -> ProcessPoolExecutor:
    """Return a pool of that many processes: the waiting one, or a new one in its place."""
    global _pool  # noqa: PLW0603  # processes belong to the process that started them
    with _lock:
        if _pool is not None and _pool.workers != workers:
            _pool.executor.shutdown(wait=False)  # work that others submitted is still done
            _pool = None
        if _pool is None:
            context = multiprocessing.get_context("spawn")
            executor = ProcessPoolExecutor(workers, mp_context=context, initializer=follow_parent)
            _pool = _Pool(workers, executor)
        return _pool.executor


def _forget() -> None:
    """Forget the pool, so that the next use starts a new one; a forked child inherits none."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

"""Work split across our own threads, each of which computes on one core.

Torch's own threads share every operation and wait for each other: when another program takes one
of the cores, all of them wait. Threads that work on separate rows lose only that core's share.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

from amo.system import n_cores

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")
_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def in_threads(
    work: Callable[[_Task], _Answer], tasks: Iterable[_Task], workers: int | None = None
) -> Iterator[_Answer]:
    """Yield the answers to tasks in their order, at most ``workers`` of them under way at a time.

    The default is one per core. What the work raises is raised here.
    """
    pool, waiting = _threads(), deque[Future[_Answer]]()
    for task in tasks:
        if len(waiting) == (workers or n_cores()):
            yield waiting.popleft().result()
        waiting.append(pool.submit(work, task))
    while waiting:
        yield waiting.popleft().result()


def _threads() -> ThreadPoolExecutor:
    """Return the threads of this process, started once."""
    global _pool  # noqa: PLW0603  # threads belong to one process
    with _lock:
        if _pool is None:
            n, before = n_cores(), torch.get_num_threads()
            started = threading.Barrier(n + 1)

            def begin() -> None:
                torch.get_num_threads()  # torch sets a thread up at its first use, from what is
                torch.set_num_threads(1)  # set for all; what comes after that is the thread's own
                started.wait()

            _pool = ThreadPoolExecutor(n, thread_name_prefix="pricing")
            waiting = [_pool.submit(begin) for _ in range(n)]
            started.wait()
            torch.set_num_threads(before)  # so that threads of others do not start with one
            for each in waiting:
                each.result()
        return _pool


def _forget() -> None:
    """Let a forked child start its own threads: none survives a fork, and locks may be held."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

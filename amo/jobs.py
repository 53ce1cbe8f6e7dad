"""Independent jobs: in this process, in processes of ours, on any executor, or on a Dask cluster.

A job is a function and a small task, such as the path of a file; what it makes goes to a file, and
its answer is small too. Answers come as they are ready, so their order depends on the executor;
the answers themselves must not.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar

from amo.errors import AMOError, ClusterError, FileError, SettingsError
from amo.system import follow_parent, keep_freed_memory, n_cores, stop_signals

if TYPE_CHECKING:
    from distributed import Client

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")
Where: TypeAlias = "Literal['processes'] | Executor | Client | None"

_WAIT = 0.2  # seconds between two looks at whether to stop
_LOST = "the {} went away before all was done: what is finished is kept, the same call goes on"
_KILLED = "its process was killed {} times, perhaps for want of memory: make the parts smaller"


@dataclass(frozen=True)
class Failed:
    """What a job ended with instead of an answer."""

    error: BaseException


def run_jobs(
    work: Callable[[_Task], _Answer],
    tasks: Sequence[_Task],
    executor: Where = None,
    *,
    workers: int | None = None,
    retries: int = 2,
) -> Iterator[tuple[int, _Answer | Failed]]:
    """Yield the number of each task with its answer, or with why it has none, as they are ready.

    Parameters
    ----------
    work, tasks
        The function and what it is called with. Processes and clusters get them pickled.
    executor
        None: one after the other in this process. "processes": processes that are started for this
        and end with it. Or a ``concurrent.futures.Executor`` or a ``distributed.Client``, which
        is used as it is and not closed.
    workers
        How many processes "processes" means, by default one per core. More than one means them.
    retries
        How often a job is tried again that raised or whose process died; not in this process, and
        not after an error that another try cannot mend.

    Raises
    ------
    ClusterError
        If the executor itself is lost.
    KeyboardInterrupt
        After SIGINT or SIGTERM in the main thread; jobs under way are finished and yielded first.
    """
    check_executor(executor)
    attempt = partial(_attempt, work)
    if executor is None and (workers or 1) > 1 and len(tasks) > 1:
        executor = "processes"
    if executor is None:
        yield from _here(work, tasks)
    elif executor == "processes":
        yield from _Processes(attempt, tasks, workers or n_cores(), retries).answers()
    elif isinstance(executor, Executor):
        yield from _on_executor(executor, attempt, tasks, retries)
    else:
        yield from _on_dask(executor, partial(_attempt_on_dask, work), tasks, retries)


def check_executor(executor: object) -> None:
    """Raise SettingsError unless :func:`run_jobs` knows it."""
    if executor is None or executor == "processes" or isinstance(executor, Executor):
        return
    loaded = sys.modules.get("distributed")  # who has a client has loaded it
    if loaded is None or not isinstance(executor, loaded.Client):
        raise SettingsError(
            'executor= takes None, "processes", a concurrent.futures.Executor or a '
            f"distributed.Client, not {executor!r}"
        )


def _attempt(work: Callable[[_Task], _Answer], task: _Task) -> _Answer | Failed:
    """Do a job; an error that another try cannot mend is an answer, the others are raised."""
    try:
        return work(task)
    except (FileError, ClusterError):  # a disk or a machine: the next try may have another one
        raise
    except AMOError as error:
        return Failed(error)


def _attempt_on_dask(work: Callable[[_Task], _Answer], task: _Task) -> _Answer | Failed:
    """Do a job in a worker of Dask, which tells glibc to give freed memory back at once.

    Faulting the pages of large arrays in again would cost as much as the work.
    """
    keep_freed_memory()
    return _attempt(work, task)


def _here(
    work: Callable[[_Task], _Answer], tasks: Sequence[_Task]
) -> Iterator[tuple[int, _Answer | Failed]]:
    for number, task in enumerate(tasks):
        answer: _Answer | Failed
        try:
            answer = work(task)
        except Exception as error:  # noqa: BLE001  # one job fails; the caller says what it means
            answer = Failed(error)
        yield number, answer


@dataclass
class _Processes(Generic[_Task, _Answer]):
    """Jobs in processes of ours, as many under way as there are processes.

    A process that is killed takes its pool along. Any of the jobs under way may have been the
    reason, so each of them is tried again alone: then it is known which one it was.
    """

    attempt: Callable[[_Task], _Answer | Failed]
    tasks: Sequence[_Task]
    workers: int
    retries: int
    waiting: deque[int] = field(default_factory=deque)
    suspects: deque[int] = field(default_factory=deque)
    tries: Counter[int] = field(default_factory=Counter)
    is_alone: bool = False

    def answers(self) -> Iterator[tuple[int, _Answer | Failed]]:
        """Yield answers as they are ready.

        Ctrl-C only sets a flag, which is looked at between waits: an exception in the middle of
        one could leave a lock of the pool taken, and the pool would never end.
        """
        self.waiting.extend(range(len(self.tasks)))
        with stop_signals() as stopped:
            while self.waiting or self.suspects:
                with worker_pool(min(self.workers, len(self.tasks))) as pool:
                    yield from self._until_broken(pool, stopped)
                if stopped.is_set() and (self.waiting or self.suspects):
                    raise KeyboardInterrupt

    def _until_broken(
        self, pool: Executor, stopped: threading.Event
    ) -> Iterator[tuple[int, _Answer | Failed]]:
        """Yield answers until none is left, or the pool breaks, or it is time to stop."""
        under_way: dict[Future[_Answer | Failed], int] = {}
        is_broken = False
        while not is_broken:
            while not stopped.is_set() and (number := self._next(len(under_way))) is not None:
                try:
                    under_way[pool.submit(self.attempt, self.tasks[number])] = number
                except BrokenExecutor:  # a process was killed while it waited
                    self.waiting.appendleft(number)
                    is_broken = True
                    break
            if not under_way:
                return
            finished, _ = wait(under_way, _WAIT, return_when=FIRST_COMPLETED)
            is_broken = is_broken or any(
                isinstance(f.exception(), BrokenExecutor) for f in finished
            )
            for future in wait(under_way).done if is_broken else finished:
                yield from self._settled(under_way.pop(future), future)

    def _next(self, n_under_way: int) -> int | None:
        """Return which job is to start now, if any: a suspect only alone."""
        if n_under_way and (self.suspects or self.is_alone or n_under_way >= self.workers):
            return None
        self.is_alone = bool(self.suspects)
        queue = self.suspects or self.waiting
        return queue.popleft() if queue else None

    def _settled(
        self, number: int, future: "Future[_Answer | Failed]"
    ) -> Iterator[tuple[int, _Answer | Failed]]:
        """Yield what a finished job is, or put it back to be tried again."""
        error = future.exception()
        if error is None:
            yield number, future.result()
            return
        is_killed = isinstance(error, BrokenExecutor)
        if is_killed and not self.is_alone:
            self.suspects.append(number)
            return
        self.tries[number] += 1
        if self.tries[number] <= self.retries:
            (self.suspects if is_killed else self.waiting).appendleft(number)
        elif is_killed:
            yield number, Failed(ClusterError(_KILLED.format(self.tries[number])))
        else:
            yield number, Failed(error)


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes for long jobs, which end with this one.

    They keep freed memory (glibc; elsewhere the setting has no effect): giving the pages of large
    arrays back and faulting them in again would cost as much as the work.
    """
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"):
        os.environ.setdefault(name, str(1 << 30))
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and stops the pool
    follow_parent()


def _on_executor(
    executor: Executor,
    attempt: Callable[[_Task], _Answer | Failed],
    tasks: Sequence[_Task],
    retries: int,
) -> Iterator[tuple[int, _Answer | Failed]]:
    """Yield answers of somebody else's executor, which queues the jobs itself."""
    tries = Counter[int]()
    under_way: dict[Future[_Answer | Failed], int] = {}
    with stop_signals() as stopped:
        try:
            for number, task in enumerate(tasks):
                under_way[executor.submit(attempt, task)] = number
            while under_way:
                if stopped.is_set():
                    under_way = {f: number for f, number in under_way.items() if not f.cancel()}
                for future in wait(under_way, _WAIT, return_when=FIRST_COMPLETED).done:
                    number = under_way.pop(future)
                    tries[number] += 1
                    if _is_final(future) or tries[number] > retries or stopped.is_set():
                        yield number, _answer(future)
                    else:
                        under_way[executor.submit(attempt, tasks[number])] = number
        except (RuntimeError, CancelledError) as error:  # it is broken, or was shut down
            raise ClusterError(_LOST.format("executor")) from error
        finally:
            for future in under_way:
                future.cancel()
    if stopped.is_set():
        raise KeyboardInterrupt


def _is_final(future: "Future[_Answer | Failed]") -> bool:
    return future.exception() is None or isinstance(future.exception(), BrokenExecutor)


def _answer(future: "Future[_Answer | Failed]") -> _Answer | Failed:
    """Return a job's answer or why it has none; raise if the executor is broken."""
    error = future.exception()
    if error is None or isinstance(error, BrokenExecutor):
        return future.result()
    return Failed(error)


def _on_dask(
    client: "Client",
    attempt: Callable[[_Task], _Answer | Failed],
    tasks: Sequence[_Task],
    retries: int,
) -> Iterator[tuple[int, _Answer | Failed]]:
    """Yield answers of a cluster, which sees to retries and lost workers itself."""
    from distributed import as_completed  # noqa: PLC0415  # of an extra

    futures = client.map(attempt, tasks, key="part", retries=retries, pure=False)
    numbers = {future.key: number for number, future in enumerate(futures)}
    try:
        for future in as_completed(futures, loop=client.loop):
            if future.status == "error":
                yield numbers[future.key], Failed(future.exception())
            else:
                yield numbers[future.key], future.result()
    except (CancelledError, OSError, TimeoutError) as error:
        raise ClusterError(_LOST.format("cluster")) from error
    finally:
        if client.status == "running":
            client.cancel(futures)

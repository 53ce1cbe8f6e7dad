"""What this process asks of the operating system: memory, signals, and ending with its parent."""

import ctypes
import multiprocessing
import os
import platform
import re
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def n_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def keep_freed_memory() -> None:
    """Ask glibc to keep freed buffers: faulting their pages in again costs as much as the work."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        for parameter in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            libc.mallopt(parameter, 1 << 30)


def peak_megabytes() -> float:
    """Return the most memory this process has held.

    Linux states it in /proc; getrusage, used elsewhere, would include the parent's peak there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
        if found:
            return int(found.group(1)) / 1e3
    unit = 1e6 if platform.system() == "Darwin" else 1e3  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def follow_parent() -> None:
    """End this process with its parent, even if that was killed."""
    threading.Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Turn SIGINT and SIGTERM into a flag, so that a step ends before the run does."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def handle(_: int, __: object) -> None:
        event.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

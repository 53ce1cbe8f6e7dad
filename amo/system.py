"""What this process asks of the operating system: its memory, and its end with its parent."""

import ctypes
import multiprocessing
import os
import platform
import re
import resource
import threading
from pathlib import Path


def keep_freed_memory() -> None:
    """Ask glibc to keep freed buffers: faulting their pages in again costs as much as the work."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        for parameter in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            libc.mallopt(parameter, 1 << 30)


def peak_megabytes() -> float:
    """Return the most this process has held.

    Linux says so itself; getrusage, the answer elsewhere, would there include the parent's peak.
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

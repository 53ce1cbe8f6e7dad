"""Processes that work for another one."""

import multiprocessing
import os
import threading


def follow_parent() -> None:
    """End this process with its parent, even if that was killed."""
    threading.Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)

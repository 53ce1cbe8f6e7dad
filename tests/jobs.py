"""Jobs that processes elsewhere can import."""

import os
import signal
import time
from pathlib import Path

from amo.errors import FileError, SettingsError


def squared(number: int) -> int:
    return number * number


def squared_but_not_three(number: int) -> int:
    if number == 3:
        raise SettingsError("three is refused")
    return number * number


def squared_unless_fault(number: int) -> int:
    if number == 3:
        raise ZeroDivisionError("a fault")
    return number * number


def killed_at_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def killed_the_first_time(mark: str) -> int:
    """Kill this process, unless that has happened."""
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 1


def fails_the_first_time(mark: str) -> int:
    """Raise what another try may mend, unless that has happened."""
    if not Path(mark).exists():
        Path(mark).touch()
        raise FileError("the disk was busy")
    return 1


def interrupted_at_zero(number: int) -> int:
    if number == 0:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)  # for the signal to arrive before all are done
    return number

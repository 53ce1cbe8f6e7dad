"""What the command lines share: exit codes, numbers, and where results go.

0: all went well. 1: rows, files, models or data were refused, or a check failed. 2: bad usage.
130: stopped by a signal. Anything else is a fault of the program, and says so by its traceback.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from amo.errors import AMOError, SettingsError, StoppedError
from amo.files import write_text
from amo.lazy import way_out

_Results = TypeVar("_Results")
STANDARD = Path("-")  # standard output


def run(
    command: Callable[[], int],
    *,
    interrupted: str = "interrupted: nothing was written",
    in_words: Callable[[str], str] = str,
) -> int:
    """Run a command and return its exit code; errors become one line on standard error.

    ``interrupted`` is printed after Ctrl-C, ``in_words`` puts a message into the words of the
    command line.
    """
    code = 0
    try:
        code = command()
    except AMOError as error:
        code = 130 if isinstance(error, StoppedError) else 1 + isinstance(error, SettingsError)
        say(f"{'stopped' if code == 130 else 'error'}: {in_words(str(error))}")
    except ModuleNotFoundError as error:
        code = 1
        say(f"error: {way_out(error)}")
    except BrokenPipeError:  # the reader of standard output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        code = 130
        say(f"\n{interrupted}")
    return code


def count(text: str) -> int:
    """Read a whole number of at least 1, for argparse."""
    return _whole(text, least=1)


def seed(text: str) -> int:
    """Read a whole number of at least 0, for argparse."""
    return _whole(text, least=0)


def _whole(text: str, least: int) -> int:
    number = int(text) if text.strip().lstrip("+").isdecimal() else -1
    if number < least:
        raise argparse.ArgumentTypeError(f"takes a number from {least} on, not {text!r}")
    return number


def add_json(parser: argparse.ArgumentParser, what: str = "results") -> None:
    """Add ``--json FILE``, - for standard output; without it the results are printed as text."""
    parser.add_argument(
        "--json",
        type=Path,
        nargs="?",
        const=STANDARD,
        metavar="FILE",
        help=f"write the {what} as JSON; - (or nothing) is standard output; default: a text",
    )


def publish(results: _Results, as_text: Callable[[_Results], str], to: Path | None) -> None:
    """Print results as text, or write them as JSON to standard output or to a file."""
    if to is None:
        print(as_text(results))
        return
    text = json.dumps(results, indent=2) + "\n"
    if to == STANDARD:
        print(text, end="")
    else:
        write_text(text, to)
        say(f"wrote {to}")


def say(text: str) -> None:
    """Print a message to standard error, at once."""
    print(text, file=sys.stderr, flush=True)

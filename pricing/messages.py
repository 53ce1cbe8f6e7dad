"""Library messages in the words of the command line."""

import re
import warnings
from typing import TextIO

from amo.command_line import say

# What the library calls an argument, and what it is called here.
_FLAGS = {
    'exercise="american" or exercise="european"': "--exercise american or --exercise european",
    "exercise='american'": "--exercise american",
    "exercise='european'": "--exercise european",
    'errors="coerce"': "--errors coerce",
    "price_column=": "--price-column",
    'engine="': '--engine "',
    "workers=": "--workers",
    "say overwrite=True": "say --overwrite",
    "give as_of, or": "give --as-of, or",
    "say as_of=": "say --as-of",
    "say rate=, 0.04": "say --rate 0.04",
    "say underlying=": "say --underlying",
    "columns= maps": "--column maps",
}


def in_flags(text: str) -> str:
    """Return a library message in the words of the command line."""
    text = re.sub(r'columns=\{"(\w+)": ([^}]*)\}', r"--column \1=\2", text)
    text = re.sub(r"rename or frame.drop\(columns=\[(.*)\]\)", r"rename or remove \1", text)
    text = re.sub(r"take one by chain\.of\('(.*)'\)", r"say --underlying \1", text)
    for ours, theirs in _FLAGS.items():
        text = text.replace(ours, theirs)
    return text


def print_at_once(kind: type[Warning]) -> None:
    """Print warnings of that kind as one line each, until the surrounding block ends."""
    as_ever = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, kind):
            say(f"warning: {in_flags(str(message))}")
        else:
            as_ever(message, category, filename, lineno, file, line)

    warnings.simplefilter("always", kind)
    warnings.showwarning = show

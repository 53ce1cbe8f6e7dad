"""Marked tables of a document, rewritten from results."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from amo.errors import FileError
from amo.files import write_text
from amo.results import RESULTS, read

ROOT = Path(__file__).parents[2]
_Results = TypeVar("_Results")
Tables = Mapping[str, Callable[[], str]]


def fill(text: str, tables: Tables) -> str:
    """Return the text with each marked table rewritten."""
    for name, table in tables.items():
        begin, end = f"<!-- results:{name} -->\n", "<!-- end -->"
        before, begin_found, rest = text.partition(begin)
        _, end_found, after = rest.partition(end)
        if not (begin_found and end_found):
            raise ValueError(f"no {begin.strip()} … {end} in the text")
        text = before + begin + table() + end + after
    return text


def fill_file(path: Path, tables: Tables) -> None:
    """Rewrite the marked tables of a document."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileError(
            f"no document {path}: reports are written into a checkout, not an installed package"
        ) from None
    write_text(fill(text, tables), path)


def from_results(
    name: str, kind: type[_Results], table: Callable[[_Results], str]
) -> Callable[[], str]:
    """Return what writes a document's table from a results file of that kind."""
    return lambda: table(read(RESULTS / f"{name}.json", kind))

"""How the code is kept: sizes, and words that say where a number is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path
    for folder in ("amo", "pricing", "data_gen", "app", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
MOST_LINES, MOST_IN_A_FUNCTION = 350, 60
REASON = "One long file on purpose"


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def n_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without its docstring."""
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_short_or_say_why(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    said = REASON in (ast.get_docstring(tree) or "")
    assert said or len(text.splitlines()) <= MOST_LINES
    long = {f.name: n_lines(f) for f in functions(tree) if n_lines(f) > MOST_IN_A_FUNCTION}
    assert said or not long

"""Every problem by every model: who can take part, on what data, and with what error."""

from collections.abc import Mapping

from amo.benchmarks.contestants import RIVALS, is_possible
from amo.benchmarks.options import RAW, SCALED
from amo.benchmarks.physics import PROBLEMS
from amo.experiment import Problem
from amo.results import RESULTS, Row, Table, read
from app.documents.budgets import amount

_TABLES = ("options", "physics", "grids")  # of docs/results
_CANNOT, _UNKNOWN = "–", ""


def from_all() -> str:
    """Return the matrix of all results files."""
    tables = [read(RESULTS / f"{name}.json", Table) for name in _TABLES]
    problems = {problem.name: problem for problem in (RAW, SCALED, *PROBLEMS.values())}
    return matrix(problems, tables)


def matrix(problems: Mapping[str, Problem], tables: list[Table]) -> str:
    """Return a line for each problem and budget, and a column for each model."""
    lines = [
        f"| problem | data | budget | {' | '.join(RIVALS)} |",
        "|---|---|---|" + "---:|" * len(RIVALS),
    ]
    for name, problem in problems.items():
        measured = [table for table in tables if name in table.problems]
        for table in measured:
            tried = (table.budget.learning_rate, *table.budget.further_rates)
            budget = f"{amount(table.budget)}, rate {' or '.join(f'{rate:g}' for rate in tried)}"
            origin = table.problems[name].origin
            lines.append(f"| {name} | {origin} | {budget} | {_cells(problem, table.rows)} |")
        if not measured:
            lines.append(f"| {name} | {problem.origin} | none yet | {_cells(problem, {})} |")
    return "\n".join(lines) + "\n"


def _cells(problem: Problem, rows: Mapping[str, Row]) -> str:
    """Return every model's mean error and its number of seeds, the least in bold."""
    scored: dict[str, list[float]] = {model: [] for model in RIVALS}
    lost = set()
    for key, row in rows.items():
        name, model, _ = key.split("/")
        if name == problem.name and model in scored:
            if row.diverged:
                lost.add(model)
            else:
                scored[model].append(row.relative_l2)
    means = {model: sum(errors) / len(errors) for model, errors in scored.items() if errors}
    best = min(means, key=lambda model: means[model], default=None)

    def cell(model: str) -> str:
        if model in means:
            text = f"{means[model]:.1e} ({len(scored[model])})"
            return f"**{text}**" if model == best else text
        if model in lost:
            return "diverged"
        return _UNKNOWN if is_possible(model, problem) else _CANNOT

    return " | ".join(map(cell, RIVALS))

"""The paper's claims beside what was measured here, judged by one rule.

Two groups of rows differ if no seed of one lies among those of the other. A claim that one has the
lower error is *seen* if all its seeds are below all of the other's, *refuted* if all are above, and
*not seen* if they overlap.
"""

from collections.abc import Sequence
from typing import NamedTuple

from amo.results import RESULTS, Table, read


class Claim(NamedTuple):
    """A variant that should have a lower error than another one, and what the paper says of it."""

    words: str
    quoted: str
    better: str
    worse: str


_BASE = "AMO: 16 adaptive poles, TM, bidirectional"
ABLATED = (
    Claim(
        "adaptive poles are better than static ones",
        "options: 32 static 0.0035, adaptive 0.0006",
        _BASE,
        "poles random and fixed",
    ),
    Claim(
        "poles that follow the input are better than poles learned once",
        "static poles are random there",
        _BASE,
        "poles learned, the same for all inputs",
    ),
    Claim(
        "four adaptive poles are better than static ones",
        "options: 32 static 0.0035, 4 adaptive 0.0014",
        "4 poles",
        "poles random and fixed",
    ),
    Claim(
        "64 poles are worse than 32",
        "options: 32 poles 0.0006, 64 poles 0.0009",
        "32 poles",
        "64 poles",
    ),
    Claim(
        "orthogonal functions are better than plain kernels",
        "elasticity: 0.0043, kernels 0.0094",
        _BASE,
        "plain kernels instead of TM",
    ),
    Claim("two directions are better than one", "a figure only", _BASE, "mixer one way"),
    Claim("two directions are better than four", "a figure only", _BASE, "mixer four ways"),
)
_AMO = ("amo", "amo-grid", "amo-cloud")


def verdict(better: Sequence[float], worse: Sequence[float]) -> str:
    """Return what seeds say of a claim that the first have the lower error."""
    if max(better) < min(worse):
        return "seen"
    if min(better) > max(worse):
        return "refuted"
    return "not seen"


def claims_table(ablations: Table, races: dict[str, Table]) -> str:
    """Return claims of parts, then of races: AMO against its best rival, problem by problem."""
    seeds = _errors(ablations)
    lines = [
        "| claim | the paper's figures | measured here | seeds | verdict |",
        "|---|---|---|---:|---|",
    ]
    for claim in ABLATED:
        better, worse = (
            next(iter(found for (_, model), found in seeds.items() if model == name))
            for name in (claim.better, claim.worse)
        )
        n = min(len(better), len(worse))
        lines.append(
            f"| {claim.words} | {claim.quoted} | {_range(better)} against {_range(worse)}"
            f"{_idle(worse)} | {n} | {verdict(better, worse)} |"
        )
    for name, table in races.items():
        lines += [_race(name, problem, found) for problem, found in _races(table).items()]
    return "\n".join(lines) + "\n"


def _idle(errors: Sequence[float]) -> str:
    """Say so where all seeds have the same error: such a model has learned nothing."""
    return " (the same for all seeds: learned nothing)" if len(set(errors)) < len(errors) else ""


def _race(name: str, problem: str, found: dict[str, list[float]]) -> str:
    """Return AMO's best form against the best rival."""
    means = {model: sum(errors) / len(errors) for model, errors in found.items()}
    ours, rival = (
        min((m for m in means if (m in _AMO) == is_ours), key=lambda m: means[m])
        for is_ours in (True, False)
    )
    n = min(len(found[ours]), len(found[rival]))
    said = verdict(found[ours], found[rival])
    return (
        f"| AMO is better than its rivals: {problem} ({name}) | better than all, on all problems "
        f"| {ours} {_range(found[ours])} against {rival} {_range(found[rival])} | {n} "
        f"| {said}{', one seed' if n == 1 and said != 'not seen' else ''} |"
    )


def _races(table: Table) -> dict[str, dict[str, list[float]]]:
    """Return the errors by problem and model where AMO and a rival took part."""
    races: dict[str, dict[str, list[float]]] = {}
    for (problem, model), errors in _errors(table).items():
        races.setdefault(problem, {})[model] = errors
    return {
        problem: found
        for problem, found in races.items()
        if any(m in _AMO for m in found) and any(m not in _AMO for m in found)
    }


def _errors(table: Table) -> dict[tuple[str, str], list[float]]:
    """Return the errors of all seeds by problem and model."""
    errors: dict[tuple[str, str], list[float]] = {}
    for key, row in table.rows.items():
        if not row.diverged:
            problem, model, _ = key.split("/")
            errors.setdefault((problem, model), []).append(row.relative_l2)
    return errors


def _range(errors: Sequence[float]) -> str:
    low, high = min(errors), max(errors)
    return f"{low:.2e}" if low == high else f"{low:.2e} to {high:.2e}"


def from_all() -> str:
    """Return the table from the results files."""
    names = {"options": "options", "physics": "physics", "full resolution": "grids"}
    races = {words: read(RESULTS / f"{name}.json", Table) for words, name in names.items()}
    return claims_table(read(RESULTS / "ablations.json", Table), races)

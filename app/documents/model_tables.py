"""Tables of the documents, written from measured results files."""

from collections.abc import Iterable

from amo.results import LearningResults, Row, ScalingResults, Table
from app.documents import claims, matrix
from app.documents.budgets import amount, rates
from app.documents.fill import Tables, from_results
from data_gen.dataset import CheckResults

_OPTIMIZERS = {"adamw": "AdamW", "soap": "SOAP"}


def learning_table(results: LearningResults) -> str:
    """Return the scores and times of experiments."""
    lines = [
        "| experiment | parameters | steps | minutes | split | samples | relative L2 | largest |",
        "|---|---:|---:|---:|---|---:|---:|---:|",
    ]
    for name, run in results["runs"].items():
        for split, scores in run["scores"].items():
            lines.append(
                f"| `{name}` | {run['parameters']:,} | {run['steps']:,} | {run['minutes']:.1f} "
                f"| {split} | {scores['samples']:.0f} | {scores['relative_l2']:.1e} "
                f"| {scores['largest_error']:.1e} |"
            )
    seeds = ", ".join(sorted({str(run["seed"]) for run in results["runs"].values()}))
    hardware = ", ".join(sorted({run["hardware"] for run in results["runs"].values()}))
    return "\n".join([*lines, "", f"Seed {seeds}, {hardware}; by `{results['command']}`."]) + "\n"


def scaling_table(results: ScalingResults) -> str:
    """Return time and memory against the number of points, beside the paper's figures."""
    lines = [
        "| points | train step, s | inference, s | MB | quoted: epoch, s | inference, s | GB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in results["sizes"].items():
        paper = row["paper"]
        lines.append(
            f"| {name.replace('x', ' × ')} | {row['train_seconds']:.2f} "
            f"| {row['inference_seconds']:.3f} | {row['inference_megabytes']:.0f} "
            f"| {paper['train_seconds_per_epoch']:.1f} | {paper['inference_seconds']} "
            f"| {paper['memory_gigabytes']} |"
        )
    growth = (
        f"Growth per fourfold number of points: training {_ratios(results['train_growth'])}, "
        f"inference {_ratios(results['inference_growth'])}; memory over all "
        f"{results['memory_growth']:.2f}. Measured on {results['model']}, "
        f"{results['hardware']}; by `{results['command']}`. The last three columns are quoted from "
        "the paper: other data, other hardware."
    )
    return "\n".join([*lines, "", growth, *_grid_costs(results)]) + "\n"


def _grid_costs(results: ScalingResults) -> list[str]:
    """Return the seconds of a training step on square grids, model by model."""
    grids = results.get("grids", {})
    if not grids:
        return []
    names = list(next(iter(grids.values())))
    lines = [
        "",
        "A step of training on a square grid, eight samples, at the size for two cores:",
        "",
        (
            f"| points | {' | '.join(f'{name}, ms' for name in names)} "
            f"| {' | '.join(f'{name}, MB' for name in names)} |"
        ),
        "|---" + "|---:" * (2 * len(names)) + "|",
    ]
    for size, costs in grids.items():
        seconds = " | ".join(f"{1e3 * costs[name]['train_seconds']:.0f}" for name in names)
        memory = " | ".join(f"{costs[name]['megabytes']:,.0f}" for name in names)
        lines.append(f"| {size.replace('x', ' × ')} | {seconds} | {memory} |")
    return lines


def _ratios(values: list[float]) -> str:
    return " and ".join(f"{value:.1f}" for value in values)


def rivals_table(table: Table) -> str:
    """Return models on one problem each, seeds pooled, best first, beside quoted figures."""
    columns = (
        "relative L2", "seeds", "largest error", "at the kink", "small S", "steps", "ms / step",
        "s / epoch", "ms / sample", "parameters", "error × parameters", "MB",
        "quoted",
    )  # fmt: skip
    lines = [
        f"| coding | model | {' | '.join(columns)} |",
        "|---|---|" + "---:|" * len(columns),
    ]
    for (problem, model), rows in _pooled(table).items():
        one = rows[0]
        lines.append(
            f"| {problem} | {model} | {_spread([row.relative_l2 for row in rows])} "
            f"| {len(rows)} | {_mean(_largest(row) for row in rows):.2f} "
            f"| {_region(rows, 'kink'):.2e} | {_region(rows, 'small S'):.2e} "
            f"| {_mean(row.steps for row in rows):,.0f} "
            f"| {1e3 * _mean(row.seconds_per_step for row in rows):.0f} "
            f"| {_mean(row.seconds_per_epoch for row in rows):.0f} "
            f"| {_mean(row.milliseconds_per_sample for row in rows):.1f} | {one.parameters:,} "
            f"| {_mean(row.relative_l2 for row in rows) * one.parameters:,.0f} "
            f"| {_mean(row.peak_megabytes for row in rows):,.0f} "
            f"| {_number(table.quoted.get(problem, {}).get(model))} |"
        )
    return "\n".join([*lines, "", _places(table), "", _conditions(table)]) + "\n"


def ablations_table(table: Table) -> str:
    """Return AMO with one part changed, best first."""
    lines = [
        "| variant | relative L2 | seeds | steps | parameters |",
        "|---|---:|---:|---:|---:|",
    ]
    for (_, model), rows in _pooled(table).items():
        lines.append(
            f"| {model} | {_spread([row.relative_l2 for row in rows])} | {len(rows)} "
            f"| {_mean(row.steps for row in rows):,.0f} | {rows[0].parameters:,} |"
        )
    return "\n".join([*lines, "", _conditions(table)]) + "\n"


def physics_table(table: Table) -> str:
    """Return models on the physics problems, best first in each, with where the data come from."""
    columns = (
        "relative L2", "seeds", "largest error", "elsewhere", "steps", "ms / step", "ms / sample",
        "parameters", "MB",
    )  # fmt: skip
    lines = [
        f"| problem | data: train / validation / test | model | {' | '.join(columns)} |",
        "|---|---|---|" + "---:|" * len(columns),
    ]
    for (problem, model), rows in _pooled(table).items():
        lines.append(
            f"| {problem} | {_data(table, problem)} | {model} "
            f"| {_spread([row.relative_l2 for row in rows])} | {len(rows)} "
            f"| {_mean(_largest(row) for row in rows):.2g} | {_elsewhere(rows)} "
            f"| {_mean(row.steps for row in rows):,.0f} "
            f"| {1e3 * _mean(row.seconds_per_step for row in rows):.0f} "
            f"| {_mean(row.milliseconds_per_sample for row in rows):.1f} | {rows[0].parameters:,} "
            f"| {_mean(row.peak_megabytes for row in rows):,.0f} |"
        )
    titles = "; ".join(f"{name}: {known.title}" for name, known in table.problems.items())
    notes = [_places(table), f"Problems: {titles}.", _conditions(table)]
    return "\n".join([*lines, "", "\n\n".join(notes)]) + "\n"


def _elsewhere(rows: list[Row]) -> str:
    """Return the errors on further test splits and in regions, mean over seeds."""
    splits, regions = rows[0].further, rows[0].regions
    means = {s: _mean(row.further[s].relative_l2 for row in rows) for s in splits}
    parts = {f"{name}, rms": _region(rows, name) for name in regions}
    return ", ".join(f"{name} {mean:.2e}" for name, mean in {**means, **parts}.items())


def checks_table(results: CheckResults) -> str:
    """Return how accurate the generated sets are: by their own estimates, and solved again."""
    lines = [
        "| set | samples | own estimate, at worst | solved again, off by at most (allowed) |",
        "|---|---:|---:|---|",
    ]
    for name, known in results["sets"].items():
        checks = "; ".join(
            f"{check.quantity} {check.largest:.1e}{check.unit} ({check.allowed:.0e})"
            for check in known["checks"]
        )
        lines.append(f"| {name} | {known['samples']:,} | {known['worst_error']:.1e} | {checks} |")
    return "\n".join([*lines, "", f"By `{results['command']}`, each on a few samples."]) + "\n"


def quoted_table(table: Table) -> str:
    """Return the paper's own figures: its data and hardware, not ours."""
    problems = list(table.quoted)
    models = list(dict.fromkeys(m for row in table.quoted.values() for m in row))
    lines = [f"| model | {' | '.join(problems)} |", "|---|" + "---:|" * len(problems)]
    lines += [
        f"| {model} | " + " | ".join(f"{table.quoted[p][model]:.4f}" for p in problems) + " |"
        for model in models
    ]
    return "\n".join(lines) + "\n"


def sizes_table(table: Table) -> str:
    """Return parameters at the papers' settings beside the quoted counts."""
    lines = ["| model | parameters here | quoted |", "|---|---:|---:|"]
    lines += [
        f"| {name} | {size.parameters:,} | {_millions(size.quoted)} |"
        for name, size in table.paper_sizes.items()
    ]
    return "\n".join(lines) + "\n"


def _pooled(table: Table) -> dict[tuple[str, str], list[Row]]:
    """Return scored rows by problem and model, problems in their order, models by mean error."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for key, row in table.rows.items():
        if row.diverged:
            continue
        problem, model, _ = key.split("/")
        groups.setdefault((problem, model), []).append(row)
    problems = list(dict.fromkeys(problem for problem, _ in groups))
    order = sorted(
        groups, key=lambda g: (problems.index(g[0]), _mean(row.relative_l2 for row in groups[g]))
    )
    return {group: groups[group] for group in order}


def _places(table: Table) -> str:
    """Return AMO's rank in every problem, and how far it is from the best other model."""
    words = []
    pooled = _pooled(table)
    for problem in dict.fromkeys(problem for problem, _ in pooled):
        errors = {
            m: _mean(row.relative_l2 for row in rows)
            for (p, m), rows in pooled.items()
            if p == problem
        }
        forms = {model: error for model, error in errors.items() if model.startswith("amo")}
        others = {model: error for model, error in errors.items() if model not in forms}
        if not forms or not others:
            continue
        ours, rival = (min(some, key=lambda model: some[model]) for some in (forms, others))
        place = 1 + sum(error < forms[ours] for error in others.values())
        ratio = forms[ours] / others[rival]
        name = "" if len(forms) == 1 and ours == "amo" else f" ({ours})"
        words.append(
            f"{problem}{name}: {place} of {1 + len(others)}, {ratio:.2g} × the error of {rival}"
        )
    return "AMO's place by mean error, and its error against the best rival's: " + (
        "; ".join(words) + "." if words else "no rival."
    )


def _data(table: Table, problem: str) -> str:
    """Return where a problem's data come from, and how many samples train, validate and test."""
    known = table.problems[problem]
    sizes = " / ".join(f"{known.samples[split]:,}" for split in ("train", "validation", "test"))
    return f"{known.origin}, {sizes}"


def _conditions(table: Table) -> str:
    budget = table.budget
    given = amount(budget)
    points = "all" if budget.n_points is None else f"{budget.n_points:,} random"
    origins = [row.origin for row in table.rows.values()]
    lost = [key for key, row in table.rows.items() if row.diverged]
    data = "; ".join(f"{name}: {_data(table, name)}" for name in table.problems)
    hardware = ", ".join(dict.fromkeys(origin.hardware for origin in origins))
    versions = ", ".join(dict.fromkeys(origin.versions["torch"] for origin in origins))
    dates = sorted({origin.date for origin in origins})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    commits = ", ".join(dict.fromkeys(origin.commit for origin in origins))
    commands = "; ".join(f"`{text}`" for text in dict.fromkeys(o.command for o in origins))
    return (
        f"Data: {data}. Budget of every row: {given}, batches of {budget.batch_size}, "
        f"{_OPTIMIZERS[budget.optimizer]} {rates(budget)}; models over points take "
        f"{points} points of a sample in each step, models on a grid all of it. "
        "± is half of the range over seeds. "
        f"Measured {when} at {commits} on {hardware}, torch {versions}, by {commands}"
        + (f". Diverged, and not in the means: {', '.join(lost)}." if lost else ".")
    )


def _spread(values: list[float]) -> str:
    middle, half = sum(values) / len(values), (max(values) - min(values)) / 2
    return f"{middle:.2e}" + (f" ± {half:.0e}" if len(values) > 1 else "")


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def _largest(row: Row) -> float:
    return 0.0 if row.scores is None else row.scores.largest_error


def _region(rows: list[Row], name: str) -> float:
    return _mean(row.regions[name] for row in rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _millions(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} M"


OPERATOR_TABLES: Tables = {
    "learning": from_results("learning", LearningResults, learning_table),
    "scaling": from_results("scaling", ScalingResults, scaling_table),
}
MATRIX_TABLES: Tables = {"matrix": matrix.from_all}
BENCHMARK_TABLES: Tables = {
    "options": from_results("options", Table, rivals_table),
    "sizes": from_results("options", Table, sizes_table),
    "ablations": from_results("ablations", Table, ablations_table),
    "physics": from_results("physics", Table, physics_table),
    "grids": from_results("grids", Table, physics_table),
    "claims": claims.from_all,
    "quoted": from_results("physics", Table, quoted_table),
    "checks": from_results("physics_data", CheckResults, checks_table),
}

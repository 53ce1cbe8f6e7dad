"""Tables of the documents, written from the results files that programs measured."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from amo.files import FileError, write_text

ROOT = Path(__file__).parent.parent
_SHIPPED = Path(__file__).parent / "results"  # of an installed package
RESULTS = _SHIPPED if _SHIPPED.is_dir() else ROOT / "docs" / "results"
Tables = Mapping[str, Callable[[], str]]
_OPTIMIZERS = {"adamw": "AdamW", "soap": "SOAP"}


def fill(text: str, tables: Tables) -> str:
    """Return the text with each marked table written anew."""
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


def from_results(name: str, table: Callable[[dict[str, Any]], str]) -> Callable[[], str]:
    """Return what writes a table from its results file."""
    return lambda: table(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")))


def learning_table(results: dict[str, Any]) -> str:
    """Return what presets reached, and in which time."""
    lines = [
        "| preset | parameters | steps | minutes | split | samples | relative L2 | largest error |",
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


def scaling_table(results: dict[str, Any]) -> str:
    """Return time and memory against the number of points, the paper's figures beside."""
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
    return "\n".join([*lines, "", growth]) + "\n"


def _ratios(values: list[float]) -> str:
    return " and ".join(f"{value:.1f}" for value in values)


def rivals_table(results: dict[str, Any]) -> str:
    """Return models on one problem each, seeds pooled, best first; quoted figures beside."""
    columns = (
        "relative L2", "seeds", "largest error", "at the kink", "small S", "steps", "ms / step",
        "s / epoch", "ms / sample", "parameters", "error × parameters", "MB",
        "quoted",
    )  # fmt: skip
    lines = [
        f"| coding | model | {' | '.join(columns)} |",
        "|---|---|" + "---:|" * len(columns),
    ]
    quoted = results.get("quoted", {})
    for (problem, model), rows in _pooled(results).items():
        one = rows[0]
        lines.append(
            f"| {problem} | {model} | {_spread([row['relative_l2'] for row in rows])} "
            f"| {len(rows)} | {_mean(rows, 'largest_error'):.2f} "
            f"| {_region(rows, 'kink'):.2e} | {_region(rows, 'small S'):.2e} "
            f"| {_mean(rows, 'steps'):,.0f} | {1e3 * _mean(rows, 'seconds_per_step'):.0f} "
            f"| {_mean(rows, 'seconds_per_epoch'):.0f} "
            f"| {_mean(rows, 'milliseconds_per_sample'):.1f} | {one['parameters']:,} "
            f"| {_mean(rows, 'relative_l2') * one['parameters']:,.0f} "
            f"| {_mean(rows, 'peak_megabytes'):,.0f} "
            f"| {_number(quoted.get(problem, {}).get(model))} |"
        )
    return "\n".join([*lines, "", _places(results), "", _conditions(results)]) + "\n"


def ablations_table(results: dict[str, Any]) -> str:
    """Return AMO with one part changed, best first."""
    lines = [
        "| variant | relative L2 | seeds | steps | parameters |",
        "|---|---:|---:|---:|---:|",
    ]
    for (_, model), rows in _pooled(results).items():
        lines.append(
            f"| {model} | {_spread([row['relative_l2'] for row in rows])} | {len(rows)} "
            f"| {_mean(rows, 'steps'):,.0f} | {rows[0]['parameters']:,} |"
        )
    return "\n".join([*lines, "", _conditions(results)]) + "\n"


def physics_table(results: dict[str, Any]) -> str:
    """Return models on the physics problems, best first in each, with where the data come from."""
    columns = (
        "relative L2", "seeds", "largest error", "elsewhere", "steps", "ms / step", "ms / sample",
        "parameters", "MB",
    )  # fmt: skip
    lines = [
        f"| problem | data: train / validation / test | model | {' | '.join(columns)} |",
        "|---|---|---|" + "---:|" * len(columns),
    ]
    for (problem, model), rows in _pooled(results).items():
        lines.append(
            f"| {problem} | {_data(results, problem)} | {model} "
            f"| {_spread([row['relative_l2'] for row in rows])} | {len(rows)} "
            f"| {_mean(rows, 'largest_error'):.2g} | {_elsewhere(rows)} "
            f"| {_mean(rows, 'steps'):,.0f} | {1e3 * _mean(rows, 'seconds_per_step'):.0f} "
            f"| {_mean(rows, 'milliseconds_per_sample'):.1f} | {rows[0]['parameters']:,} "
            f"| {_mean(rows, 'peak_megabytes'):,.0f} |"
        )
    titles = "; ".join(f"{name}: {known['title']}" for name, known in results["problems"].items())
    notes = [_places(results), f"Problems: {titles}.", _conditions(results)]
    return "\n".join([*lines, "", "\n\n".join(notes)]) + "\n"


def _elsewhere(rows: list[dict[str, Any]]) -> str:
    """Return the errors on further test splits, mean over seeds."""
    splits = rows[0]["further"]
    means = {s: sum(row["further"][s]["relative_l2"] for row in rows) / len(rows) for s in splits}
    return ", ".join(f"{split} {mean:.2e}" for split, mean in means.items())


def checks_table(results: dict[str, Any]) -> str:
    """Return how right the made sets are: by their own estimate, and solved again."""
    lines = [
        "| set | samples | own estimate, at worst | solved again, off by at most (allowed) |",
        "|---|---:|---:|---|",
    ]
    for name, known in results["sets"].items():
        checks = "; ".join(
            f"{check['quantity']} {check['largest']:.1e}{check['unit']} ({check['allowed']:.0e})"
            for check in known["checks"]
        )
        lines.append(f"| {name} | {known['samples']:,} | {known['worst_error']:.1e} | {checks} |")
    return "\n".join([*lines, "", f"By `{results['command']}`, each on a few samples."]) + "\n"


def quoted_table(results: dict[str, Any]) -> str:
    """Return the paper's own figures: its data and hardware, not ours."""
    problems = list(results["quoted"])
    models = list(dict.fromkeys(m for row in results["quoted"].values() for m in row))
    lines = [f"| model | {' | '.join(problems)} |", "|---|" + "---:|" * len(problems)]
    lines += [
        f"| {model} | " + " | ".join(f"{results['quoted'][p][model]:.4f}" for p in problems) + " |"
        for model in models
    ]
    return "\n".join(lines) + "\n"


def sizes_table(results: dict[str, Any]) -> str:
    """Return parameters at the papers' settings beside the quoted counts."""
    lines = ["| model | parameters here | quoted |", "|---|---:|---:|"]
    lines += [
        f"| {name} | {row['parameters']:,} | {_millions(row['quoted'])} |"
        for name, row in results["paper_sizes"].items()
    ]
    return "\n".join(lines) + "\n"


def _pooled(results: dict[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return scored rows by problem and model, problems in their order, models by mean error."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key, row in results["rows"].items():
        if "diverged" in row:
            continue
        problem, model, _ = key.split("/")
        groups.setdefault((problem, model), []).append(row)
    problems = list(dict.fromkeys(problem for problem, _ in groups))
    order = sorted(groups, key=lambda g: (problems.index(g[0]), _mean(groups[g], "relative_l2")))
    return {group: groups[group] for group in order}


def _places(results: dict[str, Any]) -> str:
    """Return AMO's place in every problem, and how far it is from the best other model."""
    words = []
    pooled = _pooled(results)
    for problem in dict.fromkeys(problem for problem, _ in pooled):
        errors = {m: _mean(rows, "relative_l2") for (p, m), rows in pooled.items() if p == problem}
        others = {model: error for model, error in errors.items() if model != "amo"}
        if "amo" not in errors or not others:
            continue
        rival = min(others, key=lambda model: others[model])
        place = 1 + sum(error < errors["amo"] for error in others.values())
        ratio = errors["amo"] / others[rival]
        words.append(f"{problem}: {place} of {len(errors)}, {ratio:.2g} × the error of {rival}")
    return "AMO's place by mean error, and its error against the best rival's: " + (
        "; ".join(words) + "." if words else "no rival."
    )


def _data(results: dict[str, Any], problem: str) -> str:
    """Return where a problem's data come from, and how many samples train, choose and test."""
    known = results["problems"][problem]
    sizes = " / ".join(f"{known['samples'][split]:,}" for split in ("train", "validation", "test"))
    return f"{known['origin']}, {sizes}"


def _conditions(results: dict[str, Any]) -> str:
    budget = results["budget"]
    given = (
        f"{budget['steps']:,} steps"
        if budget["minutes"] is None
        else f"{budget['minutes']:g} minutes of steps"
    )
    commands = dict.fromkeys(row["command"] for row in results["rows"].values())
    lost = [key for key, row in results["rows"].items() if "diverged" in row]
    data = "; ".join(f"{name}: {_data(results, name)}" for name in results["problems"])
    return (
        f"Data: {data}. Budget of every row: {given}, batches of "
        f"{budget['batch_size']}, "
        f"{_OPTIMIZERS[budget['optimizer']]} {budget['learning_rate']:g}; models over points take "
        f"{budget['n_points']:,} random points of a sample a step, models on a grid all of it. "
        "± is half of the range over seeds. "
        f"{results['hardware']}, torch {results['versions']['torch']}; by "
        + "; ".join(f"`{command}`" for command in commands)
        + (f". Diverged, and not in the means: {', '.join(lost)}." if lost else ".")
    )


def _spread(values: list[float]) -> str:
    middle, half = sum(values) / len(values), (max(values) - min(values)) / 2
    return f"{middle:.2e}" + (f" ± {half:.0e}" if len(values) > 1 else "")


def _mean(rows: list[dict[str, Any]], name: str) -> float:
    return float(sum(row[name] for row in rows) / len(rows))


def _region(rows: list[dict[str, Any]], name: str) -> float:
    return float(sum(row["regions"][name] for row in rows) / len(rows))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _millions(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} M"


OPERATOR_TABLES: Tables = {
    "learning": from_results("learning", learning_table),
    "scaling": from_results("scaling", scaling_table),
}
BENCHMARK_TABLES: Tables = {
    "options": from_results("options", rivals_table),
    "sizes": from_results("options", sizes_table),
    "ablations": from_results("ablations", ablations_table),
    "physics": from_results("physics", physics_table),
    "quoted": from_results("physics", quoted_table),
    "checks": from_results("physics_data", checks_table),
}
DOCUMENTS: Mapping[str, Tables] = {
    "operator.md": OPERATOR_TABLES,
    "benchmarks.md": BENCHMARK_TABLES,
}

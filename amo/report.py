"""Tables of the documents, written from the results files that programs measured."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from amo.files import write_text

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
Tables = Mapping[str, Callable[[], str]]


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
    write_text(fill(path.read_text(encoding="utf-8"), tables), path)


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


OPERATOR_TABLES: Tables = {
    "learning": from_results("learning", learning_table),
    "scaling": from_results("scaling", scaling_table),
}

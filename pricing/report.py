"""The README's tables, written from the results files that programs measured."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from amo import checkpoint
from amo.report import RESULTS, ROOT, Tables, fill_file, from_results
from pricing import cards
from pricing.amo_engine import models_folder


def write() -> list[Path]:
    """Rewrite every marked table; return the files written."""
    from pricing import pictures  # noqa: PLC0415  # matplotlib is of an extra, tables are not

    readme = ROOT / "README.md"
    fill_file(readme, README_TABLES)
    results = json.loads((RESULTS / "engines.json").read_text(encoding="utf-8"))
    picture = ROOT / "docs" / "pictures" / "pareto.svg"
    pictures.draw_pareto(results["american"], picture)
    return [
        readme,
        picture,
        *(cards.write(path.parent) for path in sorted(models_folder().glob("*/config.json"))),
    ]


def engine_table(results: dict[str, Any]) -> str:
    """Return the accuracy and speed of the engines as a Markdown table with its provenance."""
    lines = [
        "| engine | price, µs | price + 5 Greeks, µs | implied vol, µs | RMSE | max |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, row in results["american"].items():
        implied = row.get("microseconds_implied_vol")
        lines.append(
            f"| `{name}` | {_short(row['microseconds_price'])} "
            f"| {_short(row['microseconds_five_greeks'])} "
            f"| {'' if implied is None else _short(implied)} "
            f"| {row['price_rmse']:.1e} | {row['price_max']:.1e} |"
        )
    frame, machine, book = results["frame"], results["machine"], results["book"]
    box = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in results["box"].items())
    solve = (
        "- A grid solve with price, delta and gamma (`fd-fast`) takes 1/"
        f"{results['fd_fast_over_quantlib_fd']:.0f} of QuantLib's own 100 × 200 grid."
    )
    layer = (
        f"- `price_frame` on {frame['rows']:,.0f} European rows with five Greeks takes "
        f"{frame['time_ratio']:.2f} × the bare numpy formula's time, and at its peak "
        f"{frame['memory_ratio']:.1f} × the frame's memory."
    )
    origin = (
        f"American options, {results['n_contracts']} random contracts, K = 100, {box}; truth: "
        "QuantLib's QdFp high precision. Time per option on one core; of the surrogate per row of "
        f"a book of {book['rows']:,.0f} rows over {book['states']:.0f} market states."
    )
    if "mlp" in results["american"]:
        origin += " `mlp` is a plain network on the same coding and labels, trained for longer."
    ratios = (
        f"- Core for core, `amo` prices that book {book['price_times_faster']:.0f} × faster than a "
        f"loop over QdFp fast, with five Greeks {book['five_greeks_times_faster']:.0f} ×, and "
        f"inverts it {book['implied_vol_times_faster']:.0f} × faster than a bracketed search on "
        f"QdFp fast. On all {machine['cores']} cores a price takes "
        f"{book['microseconds_price_all_cores']:.1f} µs, with five Greeks "
        f"{book['microseconds_five_greeks_all_cores']:.1f} µs; beside {book['busy_programs']:.0f} "
        f"other busy programs it keeps {book['busy_throughput_share']:.0%} of its throughput."
    )
    losses = (
        "- Where it loses: QdFp fast is more exact; a row with a market state of its own costs "
        f"{book['microseconds_price_one_state_a_row']:,.0f} µs; on Europeans the formula takes "
        f"{book['microseconds_formula_five_greeks']:.2f} µs with five Greeks, the surrogate "
        f"{book['microseconds_european_five_greeks']:.1f}."
    )
    if "mlp" in results["american"]:
        losses += _beside_mlp(results["american"]["amo"], results["american"]["mlp"])
    large = (
        f"- {book['large_rows']:,.0f} American rows with five Greeks by `amo`: "
        f"{book['large_seconds']:.0f} s, at most {book['large_peak_megabytes']:,.0f} MB in the "
        "whole process."
    )
    measured = (
        f"Measured by `{results['command']}` on {machine['cores']} cores "
        f"({machine['processor']}), Python {machine['python']}."
    )
    return (
        "\n".join([*lines, "", origin, "", ratios, losses, large, solve, layer, "", measured])
        + "\n"
    )


def _beside_mlp(ours: dict[str, float], mlp: dict[str, float]) -> str:
    """Return how the operator compares with a plain network that costs as much, whoever wins."""
    error = mlp["price_rmse"] / ours["price_rmse"]
    greeks = mlp["microseconds_five_greeks"] / ours["microseconds_five_greeks"]
    return (
        f" A plain MLP on the same labels has {error:.2f} × its price error and takes "
        f"{greeks:.1f} × its time for price and Greeks."
    )


def _short(microseconds: float) -> str:
    return f"{microseconds:,.0f}" if microseconds >= 20 else f"{microseconds:.1f}"


def data_table(results: dict[str, Any]) -> str:
    """Return what the default training sets hold, weigh and take, as a Markdown table."""
    lines = [
        "| set | samples | dropped | worst label error | MB | seconds |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| `{name}` | {row['samples']:,} | {row['dropped']:,} | {row['worst_error']:.1e} K "
        f"| {row['megabytes']:,} | {row['seconds']:,} |"
        for name, row in results["sets"].items()
    ]
    machine = results["machine"]
    peak = max(results["peak_megabytes_with_two_workers"].values())
    speed = (
        f"{results['surfaces_per_second_and_core']:,.0f} surfaces a second and core "
        f"({results['surface']}; price RMSE {results['surface_price_rmse']:.1e} at K = 100), "
        f"{results['ratio']:.0f} × the single prices of QuantLib's grid 100 × 200 (RMSE "
        f"{results['quantlib_fd_100x200_price_rmse']:.1e}). A build with two workers holds at most "
        f"{peak:,.0f} MB, whatever the number of states."
    )
    measured = (
        f"Measured by `{results['command']} --full` on {machine['cores']} cores "
        f"({machine['processor']}), Python {machine['python']}."
    )
    return "\n".join([*lines, "", speed, measured]) + "\n"


def dashboard_table(results: dict[str, Any]) -> str:
    """Return how fast the dashboard answers, one reader and many, as a sentence or two."""
    page, many = results["browser"], results["sessions"]
    paint, first, later = (
        page[f"{k}_milliseconds"] / 1e3 for k in ("first_paint", "first_price", "later_visitor")
    )
    median, slowest = (page[f"change_{k}_milliseconds"] for k in ("median", "slowest"))
    alone = (
        f"In Chromium, a new server's first visitor sees the page after {paint:.1f} s and the "
        f"first price after {first:.1f} s, the next visitor the price after {later:.1f} s. A "
        f"changed input is answered in {median:.0f} ms (median of {page['changes']}; slowest "
        f"{slowest:.0f} ms)."
    )
    together = (
        f"{many['sessions']} sessions that change their contracts at once for "
        f"{many['seconds']:.0f} s got {many['answers']:,} answers, each in "
        f"{many['answer_median_milliseconds']:.0f} ms (median); {many['faults']} were wrong or "
        f"another's, and the server grew by {many['memory_growth_megabytes']:.0f} MB."
    )
    return f"{alone} {together} Measured on two cores by `{results['command']}`.\n"


def surrogate_table() -> str:
    """Return what the shipped models say of their errors, as a Markdown table."""
    names = {"european": "European", "american": "American"}
    metrics = {name: checkpoint.read_metrics(models_folder() / name) for name in names}
    notes = {name: checkpoint.load(models_folder() / name)[1].notes for name in names}

    def row(title: str, text: Callable[[dict[str, Any]], str]) -> str:
        return f"| {title} | " + " | ".join(text(metrics[name]) for name in names) + " |"

    greeks = ("delta", "gamma", "vega", "rho", "theta")
    lines = [
        f"| K = 100 | {' | '.join(names.values())} |",
        "|---|---:|---:|",
        row("relative L2 of V(S, t)", lambda m: f"{m['surfaces']['relative_l2']:.1e}"),
        row(
            "price RMSE / max, box",
            lambda m: f"{m['box']['price']['rmse']:.1e} / {m['box']['price']['max']:.1e}",
        ),
        row("price RMSE, whole domain", lambda m: f"{m['domain']['price']['rmse']:.1e}"),
        *(
            row(f"{greek} RMSE, box", lambda m, g=greek: f"{m['box'][g]['rmse']:.1e}")  # type: ignore[misc]
            for greek in greeks
        ),
        row(
            "prices below intrinsic / above the upper bound / below the European",
            lambda m: " / ".join(
                str(m["bounds"][k]) for k in ("below_intrinsic", "above_upper", "below_european")
            ),
        ),
        row(
            "steps of strike ladders not monotone or convex",
            lambda m: f"{m['ladder']['share']:.2%}",
        ),
    ]
    trained = "; ".join(
        f"{title} {notes[name]['minutes']:.0f} minutes on {notes[name]['hardware']}"
        for name, title in names.items()
    )
    n = metrics["american"]["contracts"]
    return (
        "\n".join(lines)
        + f"\n\n{n:,} fresh contracts each in the box and in the domain; training: {trained}. By "
        "region, and how to train them again: "
        + ", ".join(f"[models/{name}](models/{name}/MODEL_CARD.md)" for name in names)
        + ".\n"
    )


def stated_errors(results: dict[str, Any]) -> str:
    """Return how true the errors are that the surrogates state."""
    return cards.fuzz_table(results) + "\n"


README_TABLES: Tables = {
    "fuzz": from_results("fuzz", stated_errors),
    "dashboard": from_results("dashboard", dashboard_table),
    "engines": from_results("engines", engine_table),
    "surrogates": surrogate_table,
    "data_gen": from_results("data_gen", data_table),
}

"""The README's tables, written from the results files that programs measured."""

from pathlib import Path
from typing import Any

from amo.report import ROOT, Tables, fill_file


def write() -> list[Path]:
    """Rewrite every marked table; return the files written."""
    readme = ROOT / "README.md"
    fill_file(readme, README_TABLES)
    return [readme]


def engine_table(results: dict[str, Any]) -> str:
    """Return the accuracy and speed of the engines as a Markdown table with its provenance."""
    lines = [
        "| engine | price, µs | price + 5 Greeks, µs | implied vol, µs | RMSE | max |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, row in results["american"].items():
        implied = row.get("microseconds_implied_vol")
        lines.append(
            f"| `{name}` | {row['microseconds_price']:,.0f} "
            f"| {row['microseconds_five_greeks']:,.0f} "
            f"| {'' if implied is None else format(implied, ',.0f')} "
            f"| {row['price_rmse']:.1e} | {row['price_max']:.1e} |"
        )
    frame, machine = results["frame"], results["machine"]
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
        "QuantLib's QdFp high precision. Time per option on one core."
    )
    measured = (
        f"Measured by `{results['command']}` on {machine['cores']} cores "
        f"({machine['processor']}), Python {machine['python']}."
    )
    return "\n".join([*lines, "", origin, "", solve, layer, "", measured]) + "\n"


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


README_TABLES: Tables = {
    "engines": engine_table,
    "data_gen": data_table,
}

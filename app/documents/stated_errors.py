"""How often stated errors hold: the fuzzer's table, for cards and documents."""

from collections.abc import Mapping
from typing import Any


def fuzz_table(results: Mapping[str, Any], style: str = "") -> str:
    """Return coverage and worst ratio of stated errors, region by region, of one style or all."""
    lines = [
        (
            "| | rows | price RMSE | largest error | median stated | within the stated error "
            "| worst, × stated | bounds broken |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in results["regions"].items():
        if name.startswith(style):
            broken = sum(row["bounds_broken"].values())
            lines.append(
                f"| {name} | {row['rows']:,} | {row['rmse']:.1e} | {row['largest']:.1e} "
                f"| {row['median_stated']:.1e} | {row['covered']:.2%} | {row['worst_ratio']:.1f} "
                f"| {broken} |"
            )
    return "\n".join([*lines, "", f"Strike or spot 100; by `{results['command']}`."])

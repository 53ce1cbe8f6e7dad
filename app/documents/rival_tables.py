"""The table of the American surrogate and its rivals, written from measured results."""

import statistics

from app.documents.fill import Tables, from_results
from pricing.analysis.rivals import RivalResults


def rival_table(results: RivalResults) -> str:
    """Return mean error, spread over seeds and cost of each model."""
    lines = [
        "| model | RMSE | seeds | largest | steps | parameters |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    names = list(dict.fromkeys(row["model"] for row in results["rows"]))
    means = {}
    for name in names:
        rows = [row for row in results["rows"] if row["model"] == name]
        errors = [row["rmse"] for row in rows]
        means[name] = statistics.mean(errors)
        lines.append(
            f"| {name} | {means[name]:.2e} | {min(errors):.2e} to {max(errors):.2e} "
            f"| {max(row['largest'] for row in rows):.1e} "
            f"| {round(statistics.mean(row['steps'] for row in rows)):,} "
            f"| {rows[0]['parameters']:,} |"
        )
    seeds = len({row["seed"] for row in results["rows"]})
    ratio = means["amo"] / means["mlp"]
    note = (
        f"{results['minutes']:g} minutes of computing for each row, {results['hardware']}, {seeds} "
        "seeds. Errors are for a strike of 100, on market states that were not trained on, over "
        f"the whole box that is trained on. `amo` has {ratio:.2f} times the error of `mlp`. "
        f"Measured by `{results['command']}`."
    )
    return "\n".join([*lines, "", note]) + "\n"


RIVAL_TABLES: Tables = {"rivals": from_results("rivals", RivalResults, rival_table)}

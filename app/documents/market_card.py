"""The card of the market model, written from what its folder says about itself."""

import json
from collections.abc import Mapping
from typing import Any

from amo.checkpoint import Recipe
from amo.model_config import AMOConfig
from amo.results import RESULTS
from app.documents.stated_errors import fuzz_table
from pricing.analysis.assessment import QUANTITIES

_UNITS = {
    "price": "price",
    "delta": "delta",
    "gamma": "gamma",
    "vega": "vega, per 1.00",
    "theta": "theta, per year",
    "rho": "rho, per 1.00",
    "dividend_rho": "dividend rho, per 1.00 of borrow",
}
_KINDS = {
    "amo": "Adaptive Mamba Neural Operator",
    "mlp": "Plain MLP on padded slots",
    "set-encoder": "Set encoder",
}
GROUPS = {"payments": "dividends", "expiries": "years"}  # by which errors are reported
_DOMAIN = {
    "expiry": "expiry, years",
    "volatility": "volatility",
    "log_moneyness": "ln(S/K)",
    "rate": "rate, mean forward over each quarter of the time to expiry",
    "borrow": "borrow, likewise",
}


def market_card(name: str, n_parameters: int, recipe: Recipe, metrics: Mapping[str, Any]) -> str:
    """Return the card."""
    kind = _KINDS[recipe.kind]
    if isinstance(recipe.config, AMOConfig) and recipe.config.mixer == "none":
        kind += " without its state-space mixers"
    head = (
        f"# {name}\n\n{kind}, {n_parameters:,} parameters: American options under "
        "curves and cash dividends, price and Greeks. This card is written by `python -m app "
        "report` from the files beside it."
    )
    use = (
        '## Intended use\n\n`price_frame(book, engine="amo", markets=…)`, `implied_vol_frame` and '
        "`ladder_frame`, for American rows whose market has dividends or sloped curves. European "
        "rows have a formula, and rows outside the domain are priced by `fd-fast`; the column "
        "`engine` says which."
    )
    sections = [head, use, _domain(recipe.domain), _errors(metrics), _groups(metrics)]
    sections += [_fuzzed(), _origin(recipe, name)]
    return "\n\n".join(sections) + "\n"


def _domain(domain: Mapping[str, Any]) -> str:
    lines = ["| | from | to |", "|---|---:|---:|"]
    lines += [
        f"| {words} | {domain[name][0]:.3g} | {domain[name][1]:g} |"
        for name, words in _DOMAIN.items()
    ]
    return (
        "## Domain\n\n"
        + "\n".join(lines)
        + f"\n\nDividends in cash only, at most {domain['payments']} up to expiry, at least "
        f"{domain['gap']:g} years apart, each at most {domain['cash_yield']:.0%} of the spot for "
        "every year since the one before. Mean forwards of neighbouring quarters differ by at most "
        f"{domain['bend']:.2%}. Rows outside are never extrapolated."
    )


def _errors(metrics: Mapping[str, Any]) -> str:
    lines = ["| | RMSE | p99 | max |", "|---|---:|---:|---:|"]
    for name in QUANTITIES:
        row = metrics["domain"][name]
        lines.append(
            f"| {_UNITS[name]} | {row['rmse']:.1e} | {row['p99']:.1e} | {row['max']:.1e} |"
        )
    bounds = metrics["bounds"]
    return (
        f"## Errors\n\nOn {metrics['contracts']:,} contracts under markets drawn from the domain, "
        f"spot {metrics['spot']:g}, never used in training. Truth: finite differences, "
        "extrapolated over three grids.\n\n"
        + "\n".join(lines)
        + f"\n\nOf {bounds['contracts']:,} prices, {bounds['below_intrinsic']} lie below what "
        f"exercise pays, {bounds['above_upper']} above the upper bound, {bounds['below_european']} "
        "below the European."
    )


def group_name(row: Mapping[str, Any], unit: str) -> str:
    """Return what a group of contracts has in common, in words."""
    if row["from"] == row["to"] == 0:
        return f"no {unit}"
    return f"{row['from']:g} to {row['to']:g} {unit}"


def _groups(metrics: Mapping[str, Any]) -> str:
    lines = [
        "| | contracts | price RMSE | p99 | max | delta RMSE | vega RMSE |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for key, unit in GROUPS.items():
        for row in metrics[key]:
            price = row["price"]
            lines.append(
                f"| {group_name(row, unit)} | {row['contracts']:,} "
                f"| {price['rmse']:.1e} | {price['p99']:.1e} | {price['max']:.1e} "
                f"| {row['delta']['rmse']:.1e} | {row['vega']['rmse']:.1e} |"
            )
    return "## Errors by dividends and by expiry\n\n" + "\n".join(lines)


def _fuzzed() -> str:
    results = json.loads((RESULTS / "fuzz_markets.json").read_text(encoding="utf-8"))
    return (
        "## Stated errors\n\n`price_error` is the largest error measured in the row's cell of "
        "option type, moneyness, expiry, volatility and number of dividends and in those beside "
        "it, times the scale of the model's output there. How true that is, on contracts drawn "
        "afresh:\n\n" + fuzz_table(results)
    )


def _origin(recipe: Recipe, name: str) -> str:
    notes, data = recipe.notes, recipe.notes["data"]
    settings = data["settings"]
    versions = ", ".join(f"{package} {number}" for package, number in notes["versions"].items())
    return (
        f"## Origin\n\n- Data: `python -m data_gen {data['set']}`, {settings['markets']:,} markets "
        f"× {settings['moments']} moments × {settings['spots']} spots × {settings['contracts']} "
        f"contracts, seed {settings['seed']}; SHA-256 of the shards' checksums "
        f"`{data['sha256']}`.\n"
        f"- Training: {notes['steps']:,} steps in {notes['minutes']:.0f} minutes on "
        f"{notes['hardware']}; {versions}.\n"
        f"- Again: `make models`, or `python -m pricing train {name}` and "
        f"`python -m pricing publish runs/{name}`."
    )

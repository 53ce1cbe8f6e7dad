"""Model cards, written from what a model folder says about itself."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amo import checkpoint
from amo.files import write_text
from amo.results import RESULTS
from app.documents.market_card import market_card
from app.documents.stated_errors import fuzz_table
from pricing.analysis.assessment import BAND, QUANTITIES
from pricing.surrogate.market_model import NAME as MARKET_MODEL

CARD = "MODEL_CARD.md"
_STYLES = {"european": "European", "american": "American"}
_TRUTHS = {
    "european": "the closed form",
    "american": "finite differences, Richardson-extrapolated over three grids",
}
_UNITS = {
    "price": "price",
    "delta": "delta",
    "gamma": "gamma",
    "vega": "vega, per 1.00",
    "theta": "theta, per year",
    "rho": "rho, per 1.00",
    "dividend_rho": "dividend rho, per 1.00",
}


def write(folder: Path) -> Path:
    """Write the card of a model folder."""
    path = folder / CARD
    write_text(card(folder), path)
    return path


def card(folder: Path) -> str:
    """Return the card of a model folder."""
    operator, recipe = checkpoint.load(folder)
    metrics = checkpoint.read_metrics(folder)
    n_parameters = sum(parameter.numel() for parameter in operator.parameters())
    if recipe.notes["data"]["set"] == MARKET_MODEL:
        return market_card(folder.name, n_parameters, recipe, metrics)
    style = _STYLES[recipe.notes["data"]["set"]]
    kind = "Adaptive Mamba Neural Operator" if recipe.kind == "amo" else "Plain MLP"
    sections = [
        (
            f"# {folder.name}\n\n{kind}, {n_parameters:,} parameters: {style} options, price and "
            "Greeks. This card is written by `python -m app report` from the files beside it."
        ),
        _use(style, recipe.kind),
        _domain(recipe.domain),
        _errors(metrics, recipe.notes["data"]["set"]),
        _regions(metrics),
        *([_fuzzed(recipe.notes["data"]["set"])] if recipe.kind == "amo" else []),
        _failures(metrics, recipe.notes["data"]["set"]),
        _origin(recipe, folder.name),
    ]
    return "\n\n".join(sections) + "\n"


def _use(style: str, kind: str) -> str:
    if kind == "mlp":
        return (
            "## Intended use\n\nComparison only: the row `mlp` of the engine table. It has the "
            "coding and the labels of the operator beside it."
        )
    extra = (
        "There is no formula to compete with: this is what the engine is for."
        if style == "American"
        else "The closed form is exact and faster: this model is here to be put on trial."
    )
    return (
        f'## Intended use\n\n`price_frame(book, engine="amo")` and `implied_vol_frame`, for the '
        f"{style} rows of a book. {extra} Not for discrete dividends, stochastic volatility or "
        "anything else that is not Black–Scholes."
    )


def _domain(domain: Mapping[str, Any]) -> str:
    rows = [
        f"| {name} | {_number(low)} | {_number(high)} |" for name, (low, high) in domain.items()
    ]
    return (
        "## Domain\n\nOf the put; a call is priced as the put it mirrors, with spot and strike, "
        "rate and dividend yield exchanged. Rows outside are never extrapolated: they fall back to "
        "another engine, stay empty or raise, as the caller chooses.\n\n"
        "| | from | to |\n|---|---:|---:|\n" + "\n".join(rows)
    )


def _errors(metrics: Mapping[str, Any], style: str) -> str:
    box = ", ".join(
        f"{name} {_number(low)} to {_number(high)}"
        for name, (low, high) in metrics["box_ranges"].items()
    )
    lines = [
        "| | RMSE, box | p99 | max | RMSE, whole domain | p99 | max |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in QUANTITIES:
        cells = [
            f"{metrics[where][name][kind]:.1e}"
            for where in ("box", "domain")
            for kind in ("rmse", "p99", "max")
        ]
        lines.append(f"| {_UNITS[name]} | " + " | ".join(cells) + " |")
    surfaces, bounds, ladder = metrics["surfaces"], metrics["bounds"], metrics["ladder"]
    band = (
        f" Greeks in the box are counted further than {BAND:.0%} from the exercise boundary, where "
        "gamma jumps."
        if style == "american"
        else ""
    )
    checks = [
        (
            f"- V(S, t) on {surfaces['states']} unseen states: relative L2 "
            f"{surfaces['relative_l2']:.1e} on average, {surfaces['largest']:.1e} at worst."
        ),
        (
            f"- Of {bounds['contracts']:,} contracts, {bounds['below_intrinsic']} are priced below "
            f"intrinsic, {bounds['above_upper']} above the upper bound, {bounds['below_european']} "
            "below the European."
        ),
        (
            f"- Of {ladder['steps']:,} steps of strike ladders, {ladder['broken']} are not "
            "monotone or not convex by more than 1e-4 of the strike."
        ),
    ]
    if "boundary" in metrics:
        edge = metrics["boundary"]
        checks.append(
            f"- Exercise boundary against finite differences, {edge['found']} contracts: RMSE "
            f"{edge['rmse']:.2g} % of the strike, largest {edge['max']:.2g} %."
        )
    return (
        f"## Errors\n\nOn {metrics['contracts']:,} contracts drawn evenly from the box ({box}) and "
        f"as many from the whole domain, calls and puts, strike {metrics['strike']:g}, never used "
        f"in training or tuning. Truth: {_TRUTHS[style]}.{band}\n\n"
        + "\n".join(lines)
        + "\n\n"
        + "\n".join(checks)
    )


def _regions(metrics: Mapping[str, Any]) -> str:
    lines = [
        (
            "| moneyness | expiry | volatility | contracts | price RMSE | p99 | max | delta p99 "
            "| vega p99 |"
        ),
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in metrics["regions"]:
        price = row["price"]
        lines.append(
            f"| {row['moneyness']} | {row['expiry']} | {row['volatility']} | {row['contracts']} "
            f"| {price['rmse']:.1e} | {price['p99']:.1e} | {price['max']:.1e} "
            f"| {row['delta']['p99']:.1e} | {row['vega']['p99']:.1e} |"
        )
    return "## Errors by region\n\nAt strike 100, over the whole domain.\n\n" + "\n".join(lines)


def _fuzzed(style: str) -> str:
    """Return how well the stated errors hold, from the results of the fuzzer."""
    results = json.loads((RESULTS / "fuzz.json").read_text(encoding="utf-8"))
    return (
        "## Stated errors\n\n`price_frame(..., error_bars=True)` states as `price_error` what at "
        "least 99 of 100 contracts like the row's stay below: the largest error measured in the "
        "row's cell of moneyness, expiry, volatility, rate and dividend yield and in the cells "
        "beside it, times the scale of the model's output there. The ends of every axis are cells "
        "of their own. How true that is, on contracts drawn afresh:\n\n"
        + fuzz_table(results, style)
    )


def _failures(metrics: Mapping[str, Any], style: str) -> str:
    worst = sorted(metrics["regions"], key=lambda row: -row["price"]["p99"])[:3]
    where = "; ".join(
        f"{row['moneyness']}, expiry {row['expiry']}, volatility {row['volatility']} "
        f"(p99 {row['price']['p99']:.1e})"
        for row in worst
    )
    lines = [f"- Prices are worst in these regions: {where}."]
    if style == "american":
        lines += [
            (
                "- Gamma jumps at the exercise boundary and the model smooths the jump; options "
                "with less time value than 1e-5 of the strike get the Greeks of exercised ones."
            ),
            (
                "- At equal rates of both legs, short expiries and small volatilities the boundary "
                "is steep: Greeks there are worse than their averages."
            ),
        ]
    else:
        lines.append("- None known that the stated error does not cover.")
    return "## Known failures\n\n" + "\n".join(lines)


def _origin(recipe: checkpoint.Recipe, name: str) -> str:
    notes, data = recipe.notes, recipe.notes["data"]
    settings = data["settings"]
    versions = ", ".join(f"{package} {number}" for package, number in notes["versions"].items())
    return (
        f"## Origin\n\n- Data: `python -m data_gen {data['set']}`, {settings['states']:,} market "
        f"states × {settings['vols']} volatilities × {settings['points']} points, seed "
        f"{settings['seed']}; SHA-256 of the shards' checksums `{data['sha256']}`.\n"
        f"- Training: {notes['steps']:,} steps in {notes['minutes']:.0f} minutes on "
        f"{notes['hardware']}; {versions}.\n"
        f"- Again: `make models`, or `python -m pricing train {name}` and "
        f"`python -m pricing publish runs/{name}`."
    )


def _number(value: float) -> str:
    return f"{value:g}"

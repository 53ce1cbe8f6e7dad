"""Tables of engines under curves and dividends, written from measured results."""

from app.documents.fill import Tables, from_results
from app.documents.stated_errors import fuzz_table
from app.pareto import front_in_words
from pricing.analysis.fuzz import FuzzResults
from pricing.analysis.rivals import RivalResults, shipped
from pricing.bench_market_model import ModelResults
from pricing.bench_markets import MarketResults
from pricing.bench_surfaces import SurfaceBench


def errors_table(results: MarketResults) -> str:
    """Return the errors of the finite differences by the number of payments."""
    counts = list(next(iter(results["errors"].values()))["rmse_by_payments"])
    lines = [
        "| engine | RMSE | largest | within the stated error | "
        + " | ".join(f"{n} paid" for n in counts)
        + " |",
        "|---|" + "---:|" * (3 + len(counts)),
    ]
    for name, row in results["errors"].items():
        covered = "" if row["covered"] is None else f"{row['covered']:.1%}"
        by_count = " | ".join(f"{row['rmse_by_payments'][n]:.0e}" for n in counts)
        lines.append(
            f"| `{name}` | {row['rmse']:.1e} | {row['max']:.1e} | {covered} | {by_count} |"
        )
    note = (
        f"{results['n_contracts']:,} American calls and puts under {results['n_markets']:,} random "
        "markets with sloped curves, up to two years and eight payments, at a spot of 100, against "
        "the same grid with four times as many steps both ways. The last columns are the RMSE by "
        "the number of payments before expiry."
    )
    return "\n".join([*lines, "", note]) + "\n"


def speed_table(results: MarketResults) -> str:
    """Return times and errors on contracts with four payments, and what else was timed."""
    lines = ["| four payments, one core | µs a price | RMSE |", "|---|---:|---:|"]
    for name, row in results["four_payments"].items():
        lines.append(f"| {name} | {row['microseconds']:,.0f} | {row['rmse']:.1e} |")
    fd, amo = results["surfaces"]["fd"], results["surfaces"]["amo"]
    faster = results["fd_fast_over_quantlib_grid"], results["surface_over_quantlib_grid"]
    gaps = fd["largest_difference"], amo["largest_difference"]
    notes = [
        (
            f"`fd-fast` is {faster[0]:.0f} times as fast as {results['quantlib_grid']}, the finest "
            "of QuantLib's grids here whose error is not smaller."
        ),
        f"European options by `analytic`: {results['analytic_microseconds']:.2f} µs a row.",
        (
            f"Implied volatilities of {results['chain_rows']:,} American quotes by `fd-fast`, on "
            f"all cores: {results['chain_seconds']:.1f} s."
        ),
        (
            f"`surface_frame` on one core, {fd['points']:,} points: by `fd` {fd['seconds']:.1f} s "
            f"and {fd['megabytes']:,.0f} MB at the peak, by `amo` {amo['seconds']:.1f} s and "
            f"{amo['megabytes']:,.0f} MB. By `fd` that is {faster[1]:,.0f} times as fast as "
            "QuantLib's 100 × 200 grid, point by point. Sampled points differ from `price_frame` "
            f"by at most {gaps[0]:.0e} and {gaps[1]:.0e}, for a strike of 100."
        ),
        f"Measured by `{results['command']}`.",
    ]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)]) + "\n"


def model_table(results: ModelResults) -> str:
    """Return the market model beside finite differences, and its ladder."""
    lines = [
        (
            "| engine | µs a price | with five Greeks | an implied vol | RMSE | p99 | largest "
            "| delta RMSE | vega RMSE |"
        ),
        "|---|" + "---:|" * 8,
    ]
    for name, row in results["engines"].items():
        lines.append(
            f"| `{name}` | {row['price']:.1f} | {row['greeks']:.0f} "
            f"| {row['implied_volatility']:.0f} | {row['rmse']:.1e} | {row['p99']:.1e} "
            f"| {row['largest']:.1e} | {row['delta_rmse']:.1e} | {row['vega_rmse']:.1e} |"
        )
    ladder, bumped = results["ladder_seconds"], results["bumped_ladder_seconds"]
    most = max(row["compared"] for row in results["engines"].values())
    notes = [
        (
            f"A book of {results['rows']:,} American options over {results['slices']} slices, spot "
            "100, one core, all in. The grids are timed on "
            + ", ".join(
                f"{row['rows']:,} (`{name}`)"
                for name, row in results["engines"].items()
                if row["rows"] < results["rows"]
            )
            + f" of its rows, and errors are those on up to {most:,}, against grids twice as fine "
            "as those of `fd`."
        ),
        front_in_words(under_markets(results)),
        f"Encoding of a slice: {results['encoding_microseconds']:.0f} µs.",
        (
            f"`ladder_frame` of the whole book, {results['rungs']} rungs: {ladder:.1f} s, "
            f"{bumped / ladder:,.0f} times as fast as `fd-fast` bumped (from "
            f"{results['bumped_rows']} rows); sensitivities of these differ from `fd` by at most "
            f"{results['ladder_difference']:.1%} of the largest."
        ),
        f"Measured by `{results['command']}`.",
    ]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes)]) + "\n"


def under_markets(results: ModelResults) -> dict[str, dict[str, float]]:
    """Return the rows of the bench under markets, named as those of the flat one are."""
    return {
        name: {
            "price_rmse": row["rmse"],
            "microseconds_price": row["price"],
            "microseconds_five_greeks": row["greeks"],
            "microseconds_implied_vol": row["implied_volatility"],
        }
        for name, row in results["engines"].items()
    }


def rivals_table(results: RivalResults) -> str:
    """Return the models trained for the same minutes, their seeds pooled."""
    lines = [
        "| model | parameters | steps | ms a step | RMSE, mean of seeds | each | largest |",
        "|---|---:|---:|---:|---:|---|---:|",
    ]
    means: dict[str, float] = {}
    for model in dict.fromkeys(row["model"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["model"] == model]
        mean = means[model] = sum(row["rmse"] for row in rows) / len(rows)
        each = ", ".join(f"{row['rmse']:.2e}" for row in rows)
        lines.append(
            f"| {model} | {rows[0]['parameters']:,} | {rows[0]['steps']:,} "
            f"| {1e3 * rows[0]['seconds_per_step']:.0f} | {mean:.2e} | {each} "
            f"| {max(row['largest'] for row in rows):.1e} |"
        )
    best, rival = (
        min(some, key=lambda name: means[name])
        for some in (means, [name for name in means if not name.startswith("amo")])
    )
    ours = shipped(results["problem"])
    ratio = means[ours] / means[rival]
    order = f"{ours}, the shipped form, has {ratio:.2f} times the error of the best rival, {rival}."
    if best not in (ours, rival):
        order += f" The lowest is that of {best}, {means[best] / means[rival]:.2f} times."
    minutes = "1 minute" if results["minutes"] == 1.0 else f"{results['minutes']:g} minutes"
    note = (
        f"{order} {minutes} each on {results['hardware']}; errors for a "
        "strike of 100 on unseen samples of the training set's own distribution, which is wider "
        f"than what is served. By `{results['command']}`."
    )
    return "\n".join([*lines, "", note]) + "\n"


def surfaces_table(results: SurfaceBench) -> str:
    """Return errors, times and arbitrage of the methods, family by family."""
    lines = [
        "| family | method | RMSE | between expiries | inside bid–ask | ms | with arbitrage |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for family, methods in results["families"].items():
        for method, row in methods.items():
            lines.append(
                f"| {family} | `{method}` | {row['rmse']:.3f} | {row['rmse_between']:.3f} "
                f"| {row['inside']:.0%} | {row['milliseconds']:.0f} | {row['with_arbitrage']:.0%} |"
            )
    free = [
        method
        for method in next(iter(results["families"].values()))
        if all(methods[method]["with_arbitrage"] == 0 for methods in results["families"].values())
    ]
    note = (
        f"{results['surfaces']} surfaces of each family, {results['quotes']:.0f} quotes on "
        "average, fourteen expiries, one core. Never with arbitrage: "
        f"{', '.join(f'`{method}`' for method in free)}. "
        f"By `{results['command']}`."
    )
    return "\n".join([*lines, "", note]) + "\n"


CHAIN_TABLES: Tables = {"surfaces": from_results("surfaces", SurfaceBench, surfaces_table)}
FLAT_TABLES: Tables = {"rivals": from_results("rivals", RivalResults, rivals_table)}
MARKET_TABLES: Tables = {
    "model": from_results("market_model", ModelResults, model_table),
    "market-rivals": from_results("market_rivals", RivalResults, rivals_table),
    "market-fuzz": from_results(
        "fuzz_markets", FuzzResults, lambda found: fuzz_table(found) + "\n"
    ),
    "errors": from_results("markets", MarketResults, errors_table),
    "speed": from_results("markets", MarketResults, speed_table),
}

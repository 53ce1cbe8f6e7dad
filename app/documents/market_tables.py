"""Tables of engines under curves and dividends, written from measured results."""

from app.documents.fill import Tables, from_results
from pricing.bench_markets import MarketResults


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


MARKET_TABLES: Tables = {
    "errors": from_results("markets", MarketResults, errors_table),
    "speed": from_results("markets", MarketResults, speed_table),
}

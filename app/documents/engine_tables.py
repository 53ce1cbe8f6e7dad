"""Tables of engines, surrogates, training sets and the dashboard, written from measured results."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NotRequired, TypedDict, cast

from amo import checkpoint
from app.documents import cards
from app.documents.fill import Tables, from_results
from app.documents.stated_errors import fuzz_table
from app.pareto import Engines, front_in_words
from data_gen.bench import DataResults
from pricing.analysis.fuzz import FuzzResults
from pricing.bench import EngineResults, EngineRow
from pricing.engines.registry import ENGINES
from pricing.surrogate.experiments import EXPERIMENTS
from pricing.surrogate.store import models_folder

# What each engine prices; an engine that is missing here cannot be written into the README.
_PRICES: Mapping[str, str] = {
    "amo": "both styles, inside its domain: the neural operator",
    "analytic": "European options: the closed form",
    "fd": "both styles: our finite differences on three nested grids",
    "fd-fast": "both styles: the same on one grid of 100 × 50",
    "quantlib": "both styles: QuantLib, American ones by QdFp; the default",
    "quantlib-fast": "both styles: the same with QdFp's fast scheme",
    "quantlib-high-precision": "both styles: the same with QdFp's most accurate scheme",
    "quantlib-fd": "both styles, also with two exercise boundaries: QuantLib's 100 × 200 grid",
}
_UNMEASURED = {"analytic": "exact", "quantlib-high-precision": "reference"}
_SAME_MEMORY = 10.0  # megabytes by which a server's memory may fluctuate


class Latency(TypedDict):
    """How long one reader waits."""

    first_paint_milliseconds: float
    first_price_milliseconds: float
    later_visitor_milliseconds: float
    change_median_milliseconds: float
    change_slowest_milliseconds: float
    changes: int


class Many(TypedDict):
    """How long many readers wait, and what they cost."""

    sessions: int
    seconds: float
    answers: int
    faults: int
    first_faults: list[str]
    answer_median_milliseconds: float
    memory_megabytes: float
    memory_growth_megabytes: float


class PageTimes(TypedDict):
    """How long one reader waits for a page."""

    paint_milliseconds: float  # to its heading
    answer_milliseconds: float  # to its last chart, the first time on this server
    again_milliseconds: float  # the same for the next reader


class DashboardResults(TypedDict):
    """How fast the dashboard answers: docs/results/dashboard.json."""

    command: str
    browser: Latency
    pages: NotRequired[dict[str, PageTimes]]  # the newer two are not in every file
    apply_milliseconds: NotRequired[
        float
    ]  # on the Market page, from the press on Apply to new marks
    sessions: Many
    tracebacks_in_the_log: int


def engine_summary(results: EngineResults) -> str:
    """Return what each engine prices, how fast and how exactly, as a small Markdown table."""
    lines = ["| engine | what it prices | price, µs | RMSE |", "|---|---|---:|---:|"]
    for name in ENGINES:
        row = results["american"].get(name)
        time = "" if row is None else _short(row["microseconds_price"])
        error = _UNMEASURED.get(name, "") if row is None else f"{row['price_rmse']:.1e}"
        lines.append(f"| `{name}` | {_PRICES[name]} | {time} | {error} |")
    book = results["book"]
    note = (
        f"Measured on {results['n_contracts']} random American options with strike 100, on one "
        "core. The time of `amo` is per row of a book of "
        f"{book['rows']:,.0f} rows that share {book['states']:.0f} market states; a row with a "
        f"market state of its own takes {book['microseconds_price_one_state_a_row']:,.0f} µs."
    )
    if "mlp" in results["american"]:
        note += _beside_mlp(results["american"]["amo"], results["american"]["mlp"])
    return "\n".join([*lines, "", note]) + "\n"


def engine_table(results: EngineResults) -> str:
    """Return the accuracy and speed of the engines as a Markdown table with its provenance."""
    lines = [
        "| engine | price, µs | price + 5 Greeks, µs | implied vol, µs | RMSE | largest error |",
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
    book, machine = results["book"], results["machine"]
    box = ", ".join(
        f"{name.replace('_', ' ')} {low:g} to {high:g}"
        for name, (low, high) in results["box"].items()
    )
    origin = (
        f"{results['n_contracts']} random American options with strike 100: {box}. Errors are "
        "measured against QuantLib's QdFp engine with its high-precision scheme. Times are per "
        "option on one core; those of the surrogates are per row of a book of "
        f"{book['rows']:,.0f} rows that share {book['states']:.0f} market states."
    )
    if "mlp" in results["american"]:
        origin += (
            " `mlp` is a plain network with the same coding and labels; it is here for comparison "
            "and is not one of the engines."
        )
    measured = (
        f"Measured by `{results['command']}` on {machine['cores']} cores "
        f"({machine['processor']}), Python {machine['python']}."
    )
    return "\n".join([*lines, "", origin, "", *_findings(results), "", measured]) + "\n"


def _findings(results: EngineResults) -> list[str]:
    """Return what the engine table means, as a list: where the surrogate wins and loses."""
    book, frame, american = results["book"], results["frame"], results["american"]
    wins = (
        f"- Core for core, `amo` prices that book {book['price_times_faster']:.0f} times as fast "
        "as a loop over QuantLib's fast scheme. With five Greeks the factor is "
        f"{book['five_greeks_times_faster']:.0f}; for implied volatilities, against a bracketed "
        f"search on the fast scheme, it is {book['implied_vol_times_faster']:.0f}."
    )
    cores = (
        f"- On all {results['machine']['cores']} cores `amo` takes "
        f"{book['microseconds_price_all_cores']:.1f} µs for a price, and "
        f"{book['microseconds_five_greeks_all_cores']:.1f} µs with five Greeks. When "
        f"{book['busy_programs']:.0f} other programs compete for the cores it keeps "
        f"{book['busy_throughput_share']:.0%} of its throughput."
    )
    fast = american["quantlib-fast"]["price_rmse"] / american["amo"]["price_rmse"]
    losses = (
        f"- Where `amo` loses: QuantLib's fast scheme has {fast:.2f} times its price error. A row "
        "with a market state of its own takes "
        f"{book['microseconds_price_one_state_a_row']:,.0f} µs. For European options with five "
        "Greeks the formula takes "
        f"{book['microseconds_formula_five_greeks']:.2f} µs, the surrogate "
        f"{book['microseconds_european_five_greeks']:.1f} µs."
    )
    if "mlp" in american:
        losses += "\n-" + _beside_mlp(american["amo"], american["mlp"])
    large = (
        f"- `amo` prices {book['large_rows']:,.0f} American rows with five Greeks in "
        f"{book['large_seconds']:.0f} s; the whole process needs at most "
        f"{book['large_peak_megabytes']:,.0f} MB."
    )
    solve = (
        "- `fd-fast` solves for price, delta and gamma in 1/"
        f"{results['fd_fast_over_quantlib_fd']:.0f} of the time of QuantLib's own 100 × 200 grid."
    )
    layer = (
        f"- `price_frame` on {frame['rows']:,.0f} European rows with five Greeks takes "
        f"{frame['time_ratio']:.2f} times as long as the bare formula in numpy; its peak memory is "
        f"{frame['memory_ratio']:.1f} times that of the frame."
    )
    beaten = f"- {front_in_words(cast('Engines', american))}"
    return [wins, beaten, cores, losses, large, solve, layer]


def _beside_mlp(ours: EngineRow, mlp: EngineRow) -> str:
    """Return how the operator compares with the plain network that is shipped, whichever wins.

    Errors are those of the cards: the contracts of the engine table are too few to tell them apart.
    """
    price, greeks = (
        mlp[quantity] / ours[quantity]
        for quantity in ("microseconds_price", "microseconds_five_greeks")
    )
    amo, plain = (
        json.loads((models_folder() / name / checkpoint.METRICS).read_text(encoding="utf-8"))
        for name in ("american", "american-mlp")
    )
    box, domain, rho = (
        plain[where][quantity]["rmse"] / amo[where][quantity]["rmse"]
        for where, quantity in (("box", "price"), ("domain", "price"), ("box", "rho"))
    )
    return (
        f" On {amo['contracts']:,} contracts in the box a plain MLP has {box:.2f} times the price "
        f"error of `amo` and {rho:.2f} times that of rho, in the whole domain {domain:.2f} times "
        f"that of prices. It takes {price:.1f} times as long for a price, {greeks:.1f} times with "
        f"Greeks; {_training_of_both()}."
    )


def _training_of_both() -> str:
    """Return how long both networks were trained, and whether on the same set."""
    ours, mlp = (
        checkpoint.load(models_folder() / name)[1].notes for name in ("american", "american-mlp")
    )
    text = f"it was trained for {mlp['minutes']:.0f} minutes, `amo` for {ours['minutes']:.0f}"
    if mlp["data"]["sha256"] != ours["data"]["sha256"]:
        return f"{text}, and on another set: this is no race under equal terms"
    if EXPERIMENTS["american-mlp"].loss != EXPERIMENTS["american"].loss:
        text += ", by a loss that weighs errors of rho more"
    return text


def _short(microseconds: float) -> str:
    return f"{microseconds:,.0f}" if microseconds >= 20 else f"{microseconds:.1f}"


def data_table(results: DataResults) -> str:
    """Return the contents, size and cost of the default training sets, as a Markdown table."""
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
        f"One core solves {results['surfaces_per_second_and_core']:,.0f} surfaces per second "
        f"({results['surface']}; price RMSE {results['surface_price_rmse']:.1e} at strike 100). In "
        f"the same time QuantLib's 100 × 200 grid gives 1/{results['ratio']:.0f} as many single "
        f"prices, with an RMSE of {results['quantlib_fd_100x200_price_rmse']:.1e}. A build with "
        f"two workers needs at most {peak:,.0f} MB, however many states it has."
    )
    measured = (
        f"Measured by `{results['command']} --full` on {machine['cores']} cores "
        f"({machine['processor']}), Python {machine['python']}."
    )
    return "\n".join([*lines, "", speed, "", measured]) + "\n"


def dashboard_table(results: DashboardResults) -> str:
    """Return how fast the dashboard answers, to one visitor and to many, in a few sentences."""
    page, many = results["browser"], results["sessions"]
    paint = page["first_paint_milliseconds"] / 1e3
    first = page["first_price_milliseconds"] / 1e3
    later = page["later_visitor_milliseconds"] / 1e3
    median, slowest = page["change_median_milliseconds"], page["change_slowest_milliseconds"]
    alone = (
        f"In Chromium, the first visitor of a new server sees the page after {paint:.1f} s and the "
        f"first price after {first:.1f} s; the next visitor sees a price after {later:.1f} s. When "
        f"an input changes, the new answer is there after {median:.0f} ms (median of "
        f"{page['changes']} changes; the slowest took {slowest:.0f} ms)."
    )
    faults, growth = many["faults"], many["memory_growth_megabytes"]
    wrong = "none of them wrong" if faults == 0 else f"{faults} of them wrong"
    memory = "stayed the same" if growth < _SAME_MEMORY else f"grew by {growth:.0f} MB"
    together = (
        f"When {many['sessions']} visitors changed their contracts at once for "
        f"{many['seconds']:.0f} s, the server gave {many['answers']:,} answers, {wrong} or meant "
        "for another visitor. The median wait was "
        f"{many['answer_median_milliseconds'] / 1e3:.1f} s, and memory {memory}."
    )
    parts = [alone, _page_times(results), together]
    return (
        "\n\n".join([*filter(None, parts), f"Measured on two cores by `{results['command']}`."])
        + "\n"
    )


def _page_times(results: DashboardResults) -> str:
    if "pages" not in results or "apply_milliseconds" not in results:
        return ""
    lines = [
        "| page under a market | heading, s | all of it, s | the next visitor, s |",
        "|---|---:|---:|---:|",
    ]
    for name, times in results["pages"].items():
        cells = (times["paint_milliseconds"], times["answer_milliseconds"],
                 times["again_milliseconds"])  # fmt: skip
        lines.append(f"| {name} | " + " | ".join(f"{1e-3 * cell:.1f}" for cell in cells) + " |")
    apply = 1e-3 * results["apply_milliseconds"]
    said = f"On the Market page, new marks appear {apply:.1f} s after pressing Apply."
    return "\n".join(lines) + f"\n\n{said}"


def surrogate_table() -> str:
    """Return the measured errors of the shipped surrogates, as a Markdown table."""
    names = {"european": "European", "american": "American"}
    metrics = {name: checkpoint.read_metrics(models_folder() / name) for name in names}
    notes = {name: checkpoint.load(models_folder() / name)[1].notes for name in names}

    def row(title: str, text: Callable[[dict[str, Any]], str]) -> str:
        return f"| {title} | " + " | ".join(text(metrics[name]) for name in names) + " |"

    greeks = ("delta", "gamma", "vega", "rho", "theta")
    lines = [
        f"| at strike 100 | {' | '.join(names.values())} |",
        "|---|---:|---:|",
        row("relative L2 of V(S, t)", lambda m: f"{m['surfaces']['relative_l2']:.1e}"),
        row("price RMSE, box", lambda m: f"{m['box']['price']['rmse']:.1e}"),
        row("largest price error, box", lambda m: f"{m['box']['price']['max']:.1e}"),
        row("price RMSE, whole domain", lambda m: f"{m['domain']['price']['rmse']:.1e}"),
        *(
            row(f"{greek} RMSE, box", lambda m, g=greek: f"{m['box'][g]['rmse']:.1e}")  # type: ignore[misc]
            for greek in greeks
        ),
        row("prices below intrinsic value", lambda m: str(m["bounds"]["below_intrinsic"])),
        row("prices above the upper bound", lambda m: str(m["bounds"]["above_upper"])),
        row("prices below the European price", lambda m: str(m["bounds"]["below_european"])),
        row(
            "steps of strike ladders that are not monotone or not convex",
            lambda m: f"{m['ladder']['share']:.2%}",
        ),
    ]
    trained = "; ".join(
        f"{title} {notes[name]['minutes']:.0f} minutes on {notes[name]['hardware']}"
        for name, title in names.items()
    )
    return (
        "\n".join(lines)
        + f"\n\n{metrics['american']['contracts']:,} new contracts in the box and as many in the "
        f"whole domain. Training time: {trained}. Errors by region, and how to train the models "
        "again, are in the cards: "
        + ", ".join(f"`models/{name}/{cards.CARD}`" for name in names)
        + ".\n"
    )


def stated_errors(results: FuzzResults) -> str:
    """Return how often the errors that the surrogates state hold, region by region."""
    return fuzz_table(results) + "\n"


README_TABLES: Tables = {"engines": from_results("engines", EngineResults, engine_summary)}
PERFORMANCE_TABLES: Tables = {
    "engines": from_results("engines", EngineResults, engine_table),
    "surrogates": surrogate_table,
    "fuzz": from_results("fuzz", FuzzResults, stated_errors),
    "dashboard": from_results("dashboard", DashboardResults, dashboard_table),
    "data_gen": from_results("data_gen", DataResults, data_table),
}

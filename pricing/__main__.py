"""python -m pricing, or amo-pricing: price a book, compare engines, invert quotes, measure.

``--help`` answers before pandas, numba and torch are loaded: commands load what they need.

One long file on purpose: flags stand beside what they do.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from amo.__main__ import add_training, train_from
from amo.command_line import add_json, count, publish, run, say, seed
from amo.errors import SettingsError
from pricing.engines.registry import ENGINES
from pricing.messages import in_flags, print_at_once

if TYPE_CHECKING:
    import pandas as pd

    from pricing.markets.market import Market

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
EXAMPLES = """examples:
  amo-pricing price book.csv -o priced.csv --engine fd --greeks
  amo-pricing price chain.tsv -o priced.parquet --exercise american
  amo-pricing compare book.parquet --engines quantlib,fd,fd-fast
  amo-pricing implied-vol - -o - --price-column mid < quotes.csv > vols.csv
  amo-pricing app

columns: spot, strike, expiry (years), rate, dividend_yield, volatility, option_type (call/put),
exercise (european/american); S, K, T, r, q, sigma and other usual names are understood.
tables: .csv, .tsv, .txt (comma, semicolon or tab), .csv.gz, .parquet; - is CSV on standard input or
output."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; exit codes as :mod:`amo.command_line` has them."""
    parser = _parser()
    args, more = parser.parse_known_args(arguments)
    if more and args.run is not _app:
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    args.more = more
    from pricing.columns import AssumptionWarning

    with warnings.catch_warnings():
        print_at_once(AssumptionWarning)
        return run(lambda: int(args.run(args)), in_words=in_flags)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amo-pricing" if Path(sys.argv[0]).name == "amo-pricing" else "python -m pricing",
        description="Price option books held in CSV or Parquet files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_pricing(commands)
    _add_measuring(commands)
    _add_training(commands)
    _command(commands, "list", "the engines and the surrogates", _list)
    _command(
        commands,
        "app",
        "serve the dashboard; further flags, as --server.port 8600, are Streamlit's",
        _app,
    )
    return parser


def _add_pricing(commands: Commands) -> None:
    """Add what is done with a book."""
    price = _command(commands, "price", "price a book, with Greeks", _price)
    _add_book(price)
    price.add_argument("--engine", default="quantlib", choices=list(ENGINES))
    price.add_argument(
        "--greeks",
        nargs="?",
        const="first",
        choices=["first", "second"],
        help="delta gamma vega theta rho; 'second' adds dividend_rho vanna volga charm",
    )
    price.add_argument(
        "--units",
        default="natural",
        choices=["natural", "market"],
        help="natural: per year and per 1.00; market: per day and per 1 %%",
    )
    price.add_argument(
        "--error-bars", action="store_true", help="add price_error (engines amo and fd)"
    )
    price.add_argument(
        "--out-of-domain",
        default="fallback",
        choices=["fallback", "nan", "raise"],
        help="rows that engine amo was not trained for: another engine, empty, or refused",
    )
    _add_errors(price)

    implied = _command(commands, "implied-vol", "invert quotes to volatilities", _implied_vol)
    _add_book(implied)
    implied.add_argument("--engine", default="quantlib", choices=list(ENGINES))
    implied.add_argument(
        "--price-column", default="price", metavar="NAME", help="of the quotes, default price"
    )
    implied.add_argument(
        "--error-bars", action="store_true", help="add implied_volatility_error (engine amo)"
    )
    implied.add_argument(
        "--out-of-domain",
        default="fallback",
        choices=["fallback", "nan"],
        help="quotes that engine amo cannot invert: by another engine, or empty",
    )
    _add_errors(implied)

    compare = _command(commands, "compare", "errors and times of several engines", _compare)
    _add_book(compare, needs_output=False)
    compare.add_argument(
        "--engines", default="quantlib,fd", metavar="A,B,…", help="names, default quantlib,fd"
    )
    compare.add_argument("--reference", metavar="A", help="the truth; default: the first engine")
    compare.add_argument("--regions", action="store_true", help="also by region")


def _add_measuring(commands: Commands) -> None:
    """Add what says how good engines and surrogates are."""
    measure = _command(commands, "bench", "ratios of the engines, measured in one run", _bench)
    add_json(measure)
    measure.add_argument(
        "--contracts", type=count, default=300, metavar="N", help="for errors, default 300"
    )
    measure.add_argument(
        "--rows", type=count, default=1_000_000, metavar="N",
        help="of the large books, default 1,000,000",
    )  # fmt: skip
    measure.add_argument(
        "--book", type=count, default=100_000, metavar="N",
        help="American rows of the timed book, default 100,000",
    )  # fmt: skip

    assess = _command(commands, "assess", "measure a model's errors into metrics.json", _assess)
    assess.add_argument("model", type=Path, help="a folder such as models/american")
    assess.add_argument("--contracts", type=count, default=5_000, metavar="N", help="default 5,000")
    assess.add_argument("--seed", type=seed, default=2_026, metavar="N", help="default 2026")

    fuzz = _command(commands, "fuzz", "try to break the surrogates and their stated errors", _fuzz)
    fuzz.add_argument(
        "--rows", type=count, default=20_000, metavar="N", help="in all, default 20,000"
    )
    fuzz.add_argument("--seed", type=seed, default=1, metavar="N", help="default 1")
    fuzz.add_argument("--engine", default="amo", choices=["amo", "fd"])
    add_json(fuzz)
    fuzz.add_argument(
        "--workers", type=count, default=os.cpu_count(), metavar="N", help="default: one per core"
    )


def _add_training(commands: Commands) -> None:
    """Add the way of a surrogate among the models."""
    train = _command(commands, "train", "train a surrogate, or go on where it stopped", _train)
    train.add_argument("surrogate", help="a name of `python -m pricing list`")
    add_training(train, "SET")

    publish_ = _command(
        commands, "publish", "measure a trained surrogate and put it among the models", _publish
    )
    publish_.add_argument("run", type=Path, help="a folder of `python -m pricing train`")
    publish_.add_argument(
        "--out", type=Path, metavar="DIR", help="default: its name among the shipped models"
    )
    publish_.add_argument(
        "--contracts", type=count, default=5_000, metavar="N",
        help="to measure its errors on, default 5,000",
    )  # fmt: skip
    publish_.add_argument("--seed", type=seed, default=2_026, metavar="N", help="default 2026")


def _command(
    commands: Commands,
    name: str,
    text: str,
    run: object,
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=text,
        description=text,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    return command


def _add_book(command: argparse.ArgumentParser, *, needs_output: bool = True) -> None:
    command.add_argument("book", type=Path, help="a table, one option a row; - is standard input")
    command.add_argument(
        "-o", "--output", type=Path, required=needs_output, help="a table; - is standard output"
    )
    command.add_argument(
        "--exercise",
        choices=["european", "american"],
        help="the style of a table without such a column; else European is assumed, and said",
    )
    command.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="NAME=LABEL",
        help="where a column has another name, e.g. --column spot=Px_Last",
    )
    command.add_argument(
        "--workers", type=count, default=os.cpu_count(), metavar="N", help="default: one per core"
    )


def _add_errors(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--markets",
        type=Path,
        metavar="FILE",
        help="JSON of curves and dividends by underlying, for engines fd, fd-fast and analytic",
    )
    command.add_argument(
        "--errors",
        default="raise",
        choices=["raise", "coerce"],
        help="raise: stop at bad rows and list them; coerce: NaN and a reason for each",
    )


def _columns(args: argparse.Namespace) -> dict[str, str]:
    pairs = [text.partition("=") for text in args.column]
    if bad := [name for name, equals, _ in pairs if not equals]:
        raise SettingsError(f"--column takes NAME=LABEL, got {', '.join(bad)}")
    return {name: label for name, _, label in pairs}


def _markets(args: argparse.Namespace) -> "dict[str, Market] | None":
    from pricing.markets.files import read_markets

    return None if args.markets is None else read_markets(args.markets)


def _save(frame: "pd.DataFrame", args: argparse.Namespace, start: float) -> None:
    from pricing.tables import write_table

    write_table(frame, args.output)
    n_bad = int((frame["error"] != "").sum()) if "error" in frame else 0
    bad = f", {n_bad} with a reason in column error" if n_bad else ""
    seconds = time.perf_counter() - start
    print(f"{len(frame):,} rows in {seconds:.1f} s -> {args.output}{bad}", file=sys.stderr)


def _price(args: argparse.Namespace) -> int:
    from pricing.frames import price_frame
    from pricing.tables import check_writable, read_table

    start = time.perf_counter()
    check_writable(args.output)
    greeks = {None: False, "first": True, "second": "second"}[args.greeks]
    priced = price_frame(
        read_table(args.book),
        args.engine,
        greeks=greeks,  # type: ignore[arg-type]  # the three literals of the table above
        units=args.units,
        error_bars=args.error_bars,
        out_of_domain=args.out_of_domain,
        errors=args.errors,
        exercise=args.exercise,
        columns=_columns(args),
        markets=_markets(args),
        workers=args.workers,
    )
    _save(priced, args, start)
    return 0


def _implied_vol(args: argparse.Namespace) -> int:
    from pricing.frames import implied_vol_frame
    from pricing.tables import check_writable, read_table

    start = time.perf_counter()
    check_writable(args.output)
    inverted = implied_vol_frame(
        read_table(args.book),
        args.price_column,
        args.engine,
        error_bars=args.error_bars,
        out_of_domain=args.out_of_domain,
        errors=args.errors,
        exercise=args.exercise,
        columns=_columns(args),
        markets=_markets(args),
        workers=args.workers,
    )
    _save(inverted, args, start)
    return 0


def _compare(args: argparse.Namespace) -> int:
    import pandas as pd

    from pricing.analysis.comparison import compare_frame
    from pricing.tables import check_writable, read_table, write_table

    if args.output:
        check_writable(args.output)
    found = compare_frame(
        read_table(args.book),
        args.engines.split(","),
        reference=args.reference,
        exercise=args.exercise,
        columns=_columns(args),
        workers=args.workers,
    )
    is_piped = args.output is not None and str(args.output) == "-"  # the rows go there
    summary = sys.stderr if is_piped else sys.stdout
    with pd.option_context("display.max_rows", None, "display.width", 120):
        print(f"errors against {found.reference}; time in microseconds per option", file=summary)
        print(found.summary.T.to_string(float_format=lambda x: f"{x:.3g}"), file=summary)
        if args.regions:
            text = found.regions.to_string(index=False, float_format=lambda x: f"{x:.3g}")
            print(text, file=summary)
    if args.output:
        write_table(found.rows, args.output)
    return 0


def _bench(args: argparse.Namespace) -> int:
    from pricing import bench

    results = bench.run(n_contracts=args.contracts, n_rows=args.rows, n_book=args.book)
    publish(results, bench.as_text, args.json)
    return 0


def _fuzz(args: argparse.Namespace) -> int:
    from pricing.analysis import fuzz

    results = fuzz.run(args.rows, args.seed, args.engine, workers=args.workers)
    publish(results, fuzz.as_text, args.json)
    return 1 if fuzz.faults(results) else 0


def _app(args: argparse.Namespace) -> int:
    """Become the dashboard's server."""
    from importlib.util import find_spec

    if find_spec("streamlit") is None or find_spec("app") is None:
        raise SettingsError('the dashboard is not installed: pip install "amo-pricing[app]"')
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "app", "serve", *args.more])  # noqa: S606


def _assess(args: argparse.Namespace) -> int:
    from pricing.publishing import measure

    box, domain = measure(args.model, args.contracts, args.seed)
    say(f"price RMSE {box:.1e} in the box, {domain:.1e} in the whole domain; wrote {args.model}")
    return 0


def _train(args: argparse.Namespace) -> int:
    from pricing.surrogate.experiments import experiment_named

    experiment = experiment_named(args.surrogate)
    return train_from(args, experiment, Path("data") / experiment.problem.name)


def _publish(args: argparse.Namespace) -> int:
    from pricing.publishing import publish as put

    say(f"wrote {put(args.run, args.out, args.contracts, args.seed)}")
    return 0


def _list(_: argparse.Namespace) -> int:
    from pricing.surrogate.experiments import EXPERIMENTS

    print("engines, for --engine: " + ", ".join(ENGINES))
    print("surrogates, for `python -m pricing train`:")
    for name, experiment in EXPERIMENTS.items():
        print(f"  {name:<16}{experiment.problem.title}, by the model {experiment.kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

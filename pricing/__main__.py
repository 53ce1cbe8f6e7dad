"""python -m pricing: price a book, compare engines, invert quotes, measure."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from amo.errors import CheckpointError
from amo.files import FileError, write_text
from pricing.batch import implied_vol_frame, price_frame
from pricing.comparison import compare_frame
from pricing.contracts import OptionFrameError
from pricing.engines import ENGINES
from pricing.files import check_writable, read_table, write_table

EXAMPLES = """examples:
  python -m pricing price book.csv -o priced.csv --engine fd --greeks
  python -m pricing compare book.parquet --engines quantlib,fd,fd-fast
  python -m pricing implied-vol quotes.csv -o vols.csv --price-column mid
  python -m pricing bench --json docs/results/engines.json

columns: spot, strike, expiry (years), rate, dividend_yield, volatility, option_type (call/put),
exercise (european/american); S, K, T, r, q, sigma and other usual names are understood."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if all went well, 1 if rows or files were refused, 2 for bad usage."""
    parser = _parser()
    args = parser.parse_args(arguments)
    try:
        return int(args.run(args))
    except (OptionFrameError, FileError, CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except ValueError as error:  # an argument that argparse cannot judge
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pricing",
        description="Price option books held in CSV or Parquet files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command")

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
    implied.add_argument("--price-column", default="price", metavar="NAME")
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
    compare.add_argument("--engines", default="quantlib,fd", metavar="A,B,…")
    compare.add_argument("--reference", metavar="A", help="the truth; default: the first engine")
    compare.add_argument("--regions", action="store_true", help="also by region")

    measure = _command(commands, "bench", "ratios of the engines, measured in one run", _bench)
    measure.add_argument("--json", type=Path, nargs="?", const=Path("-"), metavar="FILE")
    measure.add_argument("--contracts", type=int, default=300, metavar="N")
    measure.add_argument("--rows", type=int, default=1_000_000, metavar="N", help="of large books")
    measure.add_argument("--book", type=int, default=100_000, metavar="N", help="American rows")

    assess = _command(commands, "assess", "measure a model's errors into metrics.json", _assess)
    assess.add_argument("model", type=Path, help="a folder such as models/american")
    assess.add_argument("--contracts", type=int, default=5_000, metavar="N")
    assess.add_argument("--seed", type=int, default=2_026, metavar="N")

    _command(commands, "report", "write the README's tables from the results files", _report)
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
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
    command.add_argument("book", type=Path, help=".csv or .parquet, one option a row")
    command.add_argument(
        "-o", "--output", type=Path, required=needs_output, help=".csv or .parquet"
    )
    command.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="NAME=LABEL",
        help="where a column has another name, e.g. --column spot=Px_Last",
    )
    command.add_argument("--workers", type=int, default=os.cpu_count(), metavar="N")


def _add_errors(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--errors",
        default="raise",
        choices=["raise", "coerce"],
        help="raise: stop at bad rows and list them; coerce: NaN and a reason for each",
    )


def _columns(args: argparse.Namespace) -> dict[str, str]:
    pairs = [text.partition("=") for text in args.column]
    if bad := [name for name, equals, _ in pairs if not equals]:
        raise ValueError(f"--column takes NAME=LABEL, got {', '.join(bad)}")
    return {name: label for name, _, label in pairs}


def _save(frame: pd.DataFrame, args: argparse.Namespace, start: float) -> None:
    write_table(frame, args.output)
    n_bad = int((frame["error"] != "").sum()) if "error" in frame else 0
    bad = f", {n_bad} with a reason in column error" if n_bad else ""
    seconds = time.perf_counter() - start
    print(f"{len(frame):,} rows in {seconds:.1f} s -> {args.output}{bad}", file=sys.stderr)


def _price(args: argparse.Namespace) -> int:
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
        columns=_columns(args),
        workers=args.workers,
    )
    _save(priced, args, start)
    return 0


def _implied_vol(args: argparse.Namespace) -> int:
    start = time.perf_counter()
    check_writable(args.output)
    inverted = implied_vol_frame(
        read_table(args.book),
        args.price_column,
        args.engine,
        error_bars=args.error_bars,
        out_of_domain=args.out_of_domain,
        errors=args.errors,
        columns=_columns(args),
        workers=args.workers,
    )
    _save(inverted, args, start)
    return 0


def _compare(args: argparse.Namespace) -> int:
    if args.output:
        check_writable(args.output)
    found = compare_frame(
        read_table(args.book),
        args.engines.split(","),
        reference=args.reference,
        columns=_columns(args),
        workers=args.workers,
    )
    with pd.option_context("display.max_rows", None, "display.width", 120):
        print(f"errors against {found.reference}; time in microseconds per option")
        print(found.summary.T.to_string(float_format=lambda x: f"{x:.3g}"))
        if args.regions:
            print(found.regions.to_string(index=False, float_format=lambda x: f"{x:.3g}"))
    if args.output:
        write_table(found.rows, args.output)
    return 0


def _bench(args: argparse.Namespace) -> int:
    from pricing import bench  # noqa: PLC0415  # torch is slow to import

    results = bench.run(n_contracts=args.contracts, n_rows=args.rows, n_book=args.book)
    text = json.dumps(results, indent=2) + "\n"
    if args.json is None:
        print(bench.as_text(results))
    elif args.json == Path("-"):
        print(text, end="")
    else:
        write_text(text, args.json)
        print(f"wrote {args.json}", file=sys.stderr)
    return 0


def _assess(args: argparse.Namespace) -> int:
    from amo import checkpoint  # noqa: PLC0415  # torch is slow to import
    from pricing.assessment import assess  # noqa: PLC0415
    from pricing.surrogate import Surrogate  # noqa: PLC0415

    surrogate = Surrogate.load(args.model)
    found = assess(surrogate, args.contracts, args.seed)
    checkpoint.write_metrics({**surrogate.metrics, **found}, args.model)
    box = found["box"]
    print(
        f"box: price RMSE {box['price']['rmse']:.1e}, max {box['price']['max']:.1e}; whole domain: "
        f"RMSE {found['domain']['price']['rmse']:.1e}; wrote {args.model / checkpoint.METRICS}"
    )
    return 0


def _report(_: argparse.Namespace) -> int:
    from pricing import report  # noqa: PLC0415  # torch is slow to import

    for path in report.write():
        print(f"wrote {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""python -m pricing, or amo-pricing: price a book, compare engines, invert quotes, measure.

``--help`` answers before pandas, numba and torch are loaded: commands load what they need.
"""

import argparse
import json
import os
import re
import sys
import time
import tomllib
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from amo.errors import CheckpointError, FailedError, SettingsError
from amo.files import FileError, write_text
from amo.lazy import way_out
from pricing.registry import ENGINES

if TYPE_CHECKING:
    import pandas as pd

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

# What the library calls an argument, and what it is called here.
_FLAGS = {
    'exercise="american" or exercise="european"': "--exercise american or --exercise european",
    "exercise='american'": "--exercise american",
    "exercise='european'": "--exercise european",
    'errors="coerce"': "--errors coerce",
    "price_column=": "--price-column",
    'engine="': '--engine "',
    "workers=": "--workers",
    "columns= maps": "--column maps",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if all went well, 1 if rows or files were refused, 2 for bad usage.

    Anything else that goes wrong is a fault of this program, and says so by its traceback.
    """
    parser = _parser()
    args, more = parser.parse_known_args(arguments)
    if more and args.run is not _app:
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    args.more = more
    from pricing.contracts import AssumptionWarning, OptionFrameError

    run: Callable[[argparse.Namespace], int] = args.run
    try:
        with warnings.catch_warnings():
            _print_at_once(AssumptionWarning)
            return run(args)
    except SettingsError as error:  # an argument that argparse cannot judge
        return _fail(error, 2)
    except (OptionFrameError, FileError, CheckpointError, FailedError) as error:
        return _fail(error, 1)
    except ModuleNotFoundError as error:
        print(f"error: {way_out(error)}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read standard output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return 130


def _fail(error: Exception, code: int) -> int:
    print(f"error: {_in_flags(str(error))}", file=sys.stderr)
    return code


def _in_flags(text: str) -> str:
    """Return a message of the library in words of the command line."""
    text = re.sub(r'columns=\{"(\w+)": ([^}]*)\}', r"--column \1=\2", text)
    text = re.sub(r"rename or frame.drop\(columns=\[(.*)\]\)", r"rename or remove \1", text)
    for ours, theirs in _FLAGS.items():
        text = text.replace(ours, theirs)
    return text


def _print_at_once(kind: type[Warning]) -> None:
    """Print warnings of that kind as one line each, until the surrounding block ends."""
    as_ever = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, kind):
            print(f"warning: {_in_flags(str(message))}", file=sys.stderr)
        else:
            as_ever(message, category, filename, lineno, file, line)

    warnings.simplefilter("always", kind)
    warnings.showwarning = show


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amo-pricing" if Path(sys.argv[0]).name == "amo-pricing" else "python -m pricing",
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
    measure.add_argument("--contracts", type=_count, default=300, metavar="N")
    measure.add_argument("--rows", type=_count, default=1_000_000, metavar="N", help="large books")
    measure.add_argument("--book", type=_count, default=100_000, metavar="N", help="American rows")

    assess = _command(commands, "assess", "measure a model's errors into metrics.json", _assess)
    assess.add_argument("model", type=Path, help="a folder such as models/american")
    assess.add_argument("--contracts", type=_count, default=5_000, metavar="N")
    assess.add_argument("--seed", type=_seed, default=2_026, metavar="N")

    fuzz = _command(commands, "fuzz", "try to break the surrogates and their stated errors", _fuzz)
    fuzz.add_argument("--rows", type=_count, default=20_000, metavar="N", help="in all")
    fuzz.add_argument("--seed", type=_seed, default=1, metavar="S")
    fuzz.add_argument("--engine", default="amo", choices=["amo", "fd"])
    fuzz.add_argument(
        "--json", type=Path, nargs="?", const=Path("-"), metavar="FILE", help="default: a table"
    )
    fuzz.add_argument("--workers", type=_count, default=os.cpu_count(), metavar="N")

    _command(commands, "report", "write the README's tables from the results files", _report)
    _command(
        commands,
        "app",
        "serve the dashboard; further flags, as --server.port 8600, are Streamlit's",
        _app,
    )
    return parser


def _count(text: str) -> int:
    """Read a number from 1 on."""
    return _whole(text, least=1)


def _seed(text: str) -> int:
    """Read a number from 0 on."""
    return _whole(text, least=0)


def _whole(text: str, least: int) -> int:
    number = int(text) if text.strip().lstrip("+").isdecimal() else -1
    if number < least:
        raise argparse.ArgumentTypeError(f"takes a number from {least} on, not {text!r}")
    return number


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
    command.add_argument("--workers", type=_count, default=os.cpu_count(), metavar="N")


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
        raise SettingsError(f"--column takes NAME=LABEL, got {', '.join(bad)}")
    return {name: label for name, _, label in pairs}


def _save(frame: "pd.DataFrame", args: argparse.Namespace, start: float) -> None:
    from pricing.files import write_table

    write_table(frame, args.output)
    n_bad = int((frame["error"] != "").sum()) if "error" in frame else 0
    bad = f", {n_bad} with a reason in column error" if n_bad else ""
    seconds = time.perf_counter() - start
    print(f"{len(frame):,} rows in {seconds:.1f} s -> {args.output}{bad}", file=sys.stderr)


def _price(args: argparse.Namespace) -> int:
    from pricing.batch import price_frame
    from pricing.files import check_writable, read_table

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
        workers=args.workers,
    )
    _save(priced, args, start)
    return 0


def _implied_vol(args: argparse.Namespace) -> int:
    from pricing.batch import implied_vol_frame
    from pricing.files import check_writable, read_table

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
        workers=args.workers,
    )
    _save(inverted, args, start)
    return 0


def _compare(args: argparse.Namespace) -> int:
    import pandas as pd

    from pricing.comparison import compare_frame
    from pricing.files import check_writable, read_table, write_table

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
    _publish(results, bench.as_text, args.json)
    return 0


def _fuzz(args: argparse.Namespace) -> int:
    from pricing import fuzz

    results = fuzz.run(args.rows, args.seed, args.engine, workers=args.workers)
    _publish(results, fuzz.as_text, args.json)
    return 1 if fuzz.faults(results) else 0


def _publish(
    results: dict[str, Any], as_text: Callable[[dict[str, Any]], str], to: Path | None
) -> None:
    """Print results for people, or write them as JSON to standard output or to a file."""
    if to is None:
        print(as_text(results))
        return
    text = json.dumps(results, indent=2) + "\n"
    if to == Path("-"):
        print(text, end="")
    else:
        write_text(text, to)
        print(f"wrote {to}", file=sys.stderr)


def _app(args: argparse.Namespace) -> int:
    """Become Streamlit's server of the dashboard, with the dashboard's own settings."""
    from importlib.util import find_spec

    found = find_spec("app")
    if find_spec("streamlit") is None or found is None or found.origin is None:
        raise SettingsError('the dashboard is not installed: pip install "amo-pricing[app]"')
    home = Path(found.origin).parent
    command = [sys.executable, "-m", "streamlit", "run", str(home / "main.py")]
    sys.stdout.flush()
    os.execv(sys.executable, [*command, *_settings(home), *args.more])  # noqa: S606


def _settings(home: Path) -> list[str]:
    """Return Streamlit's settings as flags: it looks for its file where it is started."""
    beside, checkout = home / "config.toml", home.parent / ".streamlit" / "config.toml"
    path = beside if beside.is_file() else checkout
    flags = []

    def flatten(settings: dict[str, Any], prefix: str) -> None:
        for name, value in settings.items():
            if isinstance(value, dict):
                flatten(value, f"{prefix}{name}.")
            else:
                text = str(value).lower() if isinstance(value, bool) else value
                flags.append(f"--{prefix}{name}={text}")

    flatten(tomllib.loads(path.read_text(encoding="utf-8")), "")
    return flags


def _assess(args: argparse.Namespace) -> int:
    from amo import checkpoint
    from pricing.assessment import assess
    from pricing.surrogate import Surrogate

    try:
        known = checkpoint.read_metrics(args.model)
    except CheckpointError:  # missing, of other weights or of an older version: measured anew here
        known = {}
    surrogate = Surrogate.load(args.model, is_measured=False)
    found = assess(surrogate, args.contracts, args.seed)
    checkpoint.write_metrics({**known, **found}, args.model)
    box = found["box"]
    print(
        f"box: price RMSE {box['price']['rmse']:.1e}, max {box['price']['max']:.1e}; whole domain: "
        f"RMSE {found['domain']['price']['rmse']:.1e}; wrote {args.model / checkpoint.METRICS}"
    )
    return 0


def _report(_: argparse.Namespace) -> int:
    from pricing import report

    for path in report.write():
        print(f"wrote {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the commands on books share: examples, the flags of a book, and what they mean."""

import argparse
import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from amo.command_line import count
from amo.errors import SettingsError

if TYPE_CHECKING:
    from amo.arrays import FloatArray

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
EXAMPLES = """examples:
  amo-pricing price book.csv -o priced.csv --engine fd --greeks
  amo-pricing price chain.tsv -o priced.parquet --exercise american
  amo-pricing compare book.parquet --engines quantlib,fd,fd-fast
  amo-pricing price book.csv -o priced.csv --engine fd --markets markets.json
  amo-pricing surface book.csv -o surfaces.parquet --spots 0.7:1.3:64 --times 0:1:64
  amo-pricing implied-vol - -o - --price-column mid < quotes.csv > vols.csv
  amo-pricing price book/ -o priced/ --engine amo --workers 8
  amo-pricing price /shared/book -o /shared/priced --dask tcp://10.0.0.5:8786
  amo-pricing chain aapl.csv --as-of 2025-10-06 --rate 0.04 -o aapl/
  amo-pricing app

columns: spot, strike, expiry (years; dates with --as-of or --markets), rate, dividend_yield,
volatility, option_type (call/put), exercise (european/american); S, K, T, r, q, sigma and other
usual names are understood. With --markets, underlying instead of spot, rate and dividend_yield.
tables: .csv, .tsv, .txt (comma, semicolon or tab), .csv.gz, .parquet; - is CSV on standard input or
output."""


def command(
    commands: Commands,
    name: str,
    text: str,
    run: object,
) -> argparse.ArgumentParser:
    """Add a command with its help and the common examples."""
    added = commands.add_parser(
        name,
        help=text,
        description=text,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.set_defaults(run=run)
    return added


def add_book(command: argparse.ArgumentParser, *, needs_output: bool = True) -> None:
    """Add the flags of a book."""
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
        "--markets",
        type=Path,
        metavar="FILE",
        help="JSON of curves and dividends by underlying, for engines fd, fd-fast, quantlib-fd and "
        "analytic",
    )
    command.add_argument(
        "--as-of",
        metavar="DATE",
        help="when the book is seen: expiries may then be dates; a market's own moment comes first",
    )
    command.add_argument(
        "--expiry-time",
        type=_clock,
        default="16:00",
        metavar="HH:MM",
        help="when a date of expiry ends in New York, default 16:00",
    )
    command.add_argument(
        "--workers", type=count, default=os.cpu_count(), metavar="N", help="default: one per core"
    )


def add_errors(command: argparse.ArgumentParser) -> None:
    """Add what happens at bad rows."""
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


def axis(text: str) -> "FloatArray":
    """Read FROM:TO:N or a list of numbers, for argparse."""
    import numpy as np

    try:
        if ":" in text:
            first, last, number = text.split(":")
            return np.linspace(float(first), float(last), count(number))
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise argparse.ArgumentTypeError(f"takes FROM:TO:N or A,B,…, not {text!r}") from None


def _clock(text: str) -> dt.time:
    """Read a time of day, for argparse."""
    try:
        return dt.time.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"takes a time such as 16:00, not {text!r}") from None


def terms(args: argparse.Namespace) -> dict[str, Any]:
    """Return what every function on books takes."""
    from pricing.markets.files import read_markets

    return {
        "exercise": args.exercise,
        "columns": _columns(args),
        "markets": None if args.markets is None else read_markets(args.markets),
        "as_of": args.as_of,
        "expiry_time": args.expiry_time,
        "workers": args.workers,
    }

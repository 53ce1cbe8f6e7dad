"""The commands on books: price, implied-vol, compare, surface, ladder.

Nothing heavy is loaded before a command runs.
"""

import argparse
import datetime as dt
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from amo.command_line import count
from amo.errors import SettingsError
from pricing.engines.registry import ENGINES

if TYPE_CHECKING:
    import pandas as pd

    from amo.arrays import FloatArray

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
EXAMPLES = """examples:
  amo-pricing price book.csv -o priced.csv --engine fd --greeks
  amo-pricing price chain.tsv -o priced.parquet --exercise american
  amo-pricing compare book.parquet --engines quantlib,fd,fd-fast
  amo-pricing price book.csv -o priced.csv --engine fd --markets markets.json
  amo-pricing surface book.csv -o surfaces.parquet --spots 0.7:1.3:64 --times 0:1:64
  amo-pricing implied-vol - -o - --price-column mid < quotes.csv > vols.csv
  amo-pricing chain aapl.csv --as-of 2025-10-06 --rate 0.04 -o aapl/
  amo-pricing app

columns: spot, strike, expiry (years; dates with --as-of or --markets), rate, dividend_yield,
volatility, option_type (call/put), exercise (european/american); S, K, T, r, q, sigma and other
usual names are understood. With --markets, underlying instead of spot, rate and dividend_yield.
tables: .csv, .tsv, .txt (comma, semicolon or tab), .csv.gz, .parquet; - is CSV on standard input or
output."""


def add(commands: Commands) -> None:
    """Add what is done with a book."""
    _add_single(commands)
    _add_whole(commands)


def _add_single(commands: Commands) -> None:
    """Add what gives each row a number."""
    price = command(commands, "price", "price a book, with Greeks", _price)
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

    implied = command(commands, "implied-vol", "invert quotes to volatilities", _implied_vol)
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


def _add_whole(commands: Commands) -> None:
    """Add what looks at a book as a whole, or at more than today."""
    compare = command(commands, "compare", "errors and times of several engines", _compare)
    _add_book(compare, needs_output=False)
    compare.add_argument(
        "--engines", default="quantlib,fd", metavar="A,B,…", help="names, default quantlib,fd"
    )
    compare.add_argument("--reference", metavar="A", help="the truth; default: the first engine")
    compare.add_argument("--regions", action="store_true", help="also by region")

    surface = command(commands, "surface", "V(S, t) of every contract of a book", _surface)
    _add_book(surface)
    surface.add_argument("--engine", default="fd", choices=list(ENGINES))
    surface.add_argument(
        "--spots", type=_axis, default="0.5:1.5:41", metavar="FROM:TO:N|A,B,…",
        help="multiples of each contract's own spot, default 0.5:1.5:41",
    )  # fmt: skip
    surface.add_argument("--absolute", action="store_true", help="--spots are prices")
    surface.add_argument(
        "--times", type=_axis, default="0:1:21", metavar="FROM:TO:N|A,B,…",
        help="shares of the time to expiry, default 0:1:21",
    )  # fmt: skip
    surface.add_argument("--years", action="store_true", help="--times are years from now")
    surface.add_argument("--greeks", action="store_true", help="delta gamma vega theta rho")
    surface.add_argument(
        "--errors",
        default="raise",
        choices=["raise", "coerce"],
        help="raise: stop at bad rows and list them; coerce: leave their values empty",
    )

    ladder = command(commands, "ladder", "a book's risk by curve node and dividend", _ladder)
    _add_book(ladder)
    ladder.add_argument("--engine", default="fd-fast", choices=list(ENGINES))
    ladder.add_argument("--quantity", metavar="NAME", help="the column of positions; default: one")


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


def _axis(text: str) -> "FloatArray":
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


def _terms(args: argparse.Namespace) -> dict[str, Any]:
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
        **_terms(args),
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
        **_terms(args),
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
        **_terms(args),
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


def _surface(args: argparse.Namespace) -> int:
    from pricing.analysis.surfaces import surface_frame
    from pricing.tables import check_writable, read_table

    start = time.perf_counter()
    check_writable(args.output)
    surfaces = surface_frame(
        read_table(args.book),
        args.engine,
        spot=args.spots,
        time=args.times,
        spot_unit="absolute" if args.absolute else "relative",
        time_unit="years" if args.years else "share",
        greeks=args.greeks,
        errors=args.errors,
        **_terms(args),
    )
    _save(cast("pd.DataFrame", surfaces), args, start)
    return 0


def _ladder(args: argparse.Namespace) -> int:
    from pricing.analysis.ladder import ladder_frame
    from pricing.tables import check_writable, read_table

    start = time.perf_counter()
    check_writable(args.output)
    terms = _terms(args)
    if terms["markets"] is None:
        raise SettingsError("a ladder is by the nodes of markets: give --markets FILE")
    rungs = ladder_frame(read_table(args.book), args.engine, quantity=args.quantity, **terms)
    _save(rungs, args, start)
    return 0

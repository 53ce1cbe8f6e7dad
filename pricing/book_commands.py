"""The commands on books: price, implied-vol, compare, surface, ladder.

Nothing heavy is loaded before a command runs.
"""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any, cast

from amo.errors import SettingsError
from pricing.book_flags import Commands, add_book, add_errors, axis, command, terms
from pricing.dataset_commands import add_parts, on_executor, run_parts, wants_parts
from pricing.engines.registry import ENGINES

if TYPE_CHECKING:
    import pandas as pd


def add(commands: Commands) -> None:
    """Add what is done with a book."""
    _add_single(commands)
    _add_whole(commands)


def _add_single(commands: Commands) -> None:
    """Add what gives each row a number."""
    price = command(commands, "price", "price a book, with Greeks", _price)
    add_book(price)
    add_parts(price)
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
    add_errors(price)

    implied = command(commands, "implied-vol", "invert quotes to volatilities", _implied_vol)
    add_book(implied)
    add_parts(implied)
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
    add_errors(implied)


def _add_whole(commands: Commands) -> None:
    """Add what looks at a book as a whole, or at more than today."""
    compare = command(commands, "compare", "errors and times of several engines", _compare)
    add_book(compare, needs_output=False)
    compare.add_argument(
        "--engines", default="quantlib,fd", metavar="A,B,…", help="names, default quantlib,fd"
    )
    compare.add_argument("--reference", metavar="A", help="the truth; default: the first engine")
    compare.add_argument("--regions", action="store_true", help="also by region")

    surface = command(commands, "surface", "V(S, t) of every contract of a book", _surface)
    add_book(surface)
    add_parts(surface)
    surface.add_argument("--engine", default="fd", choices=list(ENGINES))
    surface.add_argument(
        "--spots", type=axis, default="0.5:1.5:41", metavar="FROM:TO:N|A,B,…",
        help="multiples of each contract's own spot, default 0.5:1.5:41",
    )  # fmt: skip
    surface.add_argument("--absolute", action="store_true", help="--spots are prices")
    surface.add_argument(
        "--times", type=axis, default="0:1:21", metavar="FROM:TO:N|A,B,…",
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
    add_book(ladder)
    add_parts(ladder)
    ladder.add_argument("--engine", default="fd-fast", choices=list(ENGINES))
    ladder.add_argument("--quantity", metavar="NAME", help="the column of positions; default: one")


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
    options: dict[str, Any] = {
        "greeks": {None: False, "first": True, "second": "second"}[args.greeks],
        "units": args.units,
        "error_bars": args.error_bars,
        "out_of_domain": args.out_of_domain,
        "errors": args.errors,
        **terms(args),
    }
    if wants_parts(args):
        from pricing.datasets.frames import price_dataset

        return run_parts(args, price_dataset, engine=args.engine, **options)
    check_writable(args.output)
    _save(price_frame(read_table(args.book), args.engine, **options), args, start)
    return 0


def _implied_vol(args: argparse.Namespace) -> int:
    from pricing.frames import implied_vol_frame
    from pricing.tables import check_writable, read_table

    start = time.perf_counter()
    options: dict[str, Any] = {
        "price_column": args.price_column,
        "engine": args.engine,
        "error_bars": args.error_bars,
        "out_of_domain": args.out_of_domain,
        "errors": args.errors,
        **terms(args),
    }
    if wants_parts(args):
        from pricing.datasets.frames import implied_vol_dataset

        return run_parts(args, implied_vol_dataset, **options)
    check_writable(args.output)
    _save(implied_vol_frame(read_table(args.book), **options), args, start)
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
        **terms(args),
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
    options: dict[str, Any] = {
        "engine": args.engine,
        "spot": args.spots,
        "time": args.times,
        "spot_unit": "absolute" if args.absolute else "relative",
        "time_unit": "years" if args.years else "share",
        "greeks": args.greeks,
        "errors": args.errors,
        **terms(args),
    }
    if wants_parts(args):
        from pricing.datasets.frames import surface_dataset

        return run_parts(args, surface_dataset, **options)
    check_writable(args.output)
    _save(cast("pd.DataFrame", surface_frame(read_table(args.book), **options)), args, start)
    return 0


def _ladder(args: argparse.Namespace) -> int:
    from pricing.analysis.ladder import ladder_frame
    from pricing.tables import STANDARD, check_writable, read_table

    start = time.perf_counter()
    check_writable(args.output)
    options: dict[str, Any] = {"engine": args.engine, "quantity": args.quantity, **terms(args)}
    if options["markets"] is None:
        raise SettingsError("a ladder is by the nodes of markets: give --markets FILE")
    if wants_parts(args):
        from pricing.datasets.frames import ladder_dataset

        if args.output == STANDARD:
            raise SettingsError("partial sums are kept beside the ladder: give a file for -o")
        partial = args.output.with_name(f"{args.output.name}.parts")  # so that it can go on
        rungs = on_executor(args, ladder_dataset, source=args.book, out=partial, **options)
    else:
        rungs = ladder_frame(read_table(args.book), **options)
    _save(rungs, args, start)
    return 0

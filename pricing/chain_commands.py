"""The command on a chain of quotes: from a vendor's file to marks, market, surface and a report.

Nothing heavy is loaded before it runs.
"""

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from amo.command_line import count, say
from pricing.book_flags import Commands, command

if TYPE_CHECKING:
    from pricing.marked_chains import MarkedChain

_METHODS = ("local", "essvi", "svi", "smoother")


def add(commands: Commands) -> None:
    """Add what is done with a chain."""
    chain = command(
        commands, "chain", "fit a chain of quotes: forwards, volatilities, surface, report", _chain
    )
    chain.add_argument("quotes", type=Path, help="a vendor's file: .csv, .tsv, .csv.gz or .parquet")
    chain.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR",
        help="gets marks.parquet, market.json, surface.json and report.html",
    )  # fmt: skip
    chain.add_argument(
        "--as-of", metavar="WHEN",
        help="moment of the quotes, a date (its close) or a time; default: what they say",
    )  # fmt: skip
    chain.add_argument(
        "--rate", type=_rate, metavar="R",
        help="0.04 is 4 %%, or 0.25:0.041,1:0.039 by years; needed for American options",
    )  # fmt: skip
    chain.add_argument(
        "--dividends", type=_dividends, default=(), metavar="DATE:CASH,…",
        help="ex-dates and cash, as 2025-11-10:0.26,2026-02-09:0.26; default: in the borrow",
    )  # fmt: skip
    chain.add_argument("--spot", type=float, metavar="S", help="default: the file's, or fitted")
    chain.add_argument(
        "--underlying", metavar="NAME", help="of several in a file, or where none is named"
    )
    chain.add_argument("--method", choices=_METHODS, default="local", help="default local")
    chain.add_argument(
        "--engine", choices=["fd-fast", "fd", "quantlib-fd", "amo"], default="fd-fast",
        help="for early exercise, default fd-fast",
    )  # fmt: skip
    chain.add_argument(
        "--max-spread", type=float, default=1.0, metavar="X",
        help="quotes wider than this share of their mid do not move the fits, default 1",
    )  # fmt: skip
    chain.add_argument(
        "--workers", type=count, default=os.cpu_count(), metavar="N", help="default: one per core"
    )


def _chain(args: argparse.Namespace) -> int:
    from pricing.chains.reading import read_chain
    from pricing.marked_chains import mark_chain

    start = time.perf_counter()
    chain = read_chain(args.quotes, as_of=args.as_of, spot=args.spot, max_spread=args.max_spread)
    if args.underlying is not None:
        chain = chain.of(args.underlying)
    for text in chain.assumed:
        say(f"assumed: {text}")
    marked = mark_chain(
        chain,
        rate=args.rate,
        dividends=args.dividends,
        method=args.method,
        engine=args.engine,
        workers=args.workers,
        progress=lambda text: say(f"{time.perf_counter() - start:5.1f} s  {text} …"),
    )
    for text in marked.fit.assumed:
        say(f"assumed: {text}")
    written = _write(marked, args.output)
    from pricing.chain_report import headline

    for line in headline(marked):
        print(line)
    say(f"{time.perf_counter() - start:5.1f} s  wrote {', '.join(written)} in {args.output}")
    return 0


def _write(marked: "MarkedChain", folder: Path) -> list[str]:
    """Write everything, each file whole or not at all; return their names."""
    from importlib.util import find_spec

    from amo.files import make_folder, write_text
    from pricing.markets.files import write_markets
    from pricing.tables import write_table

    make_folder(folder)
    write_table(marked.marks, folder / "marks.parquet")
    write_markets({marked.fit.underlying: marked.fit.market}, folder / "market.json")
    marked.surface.save(folder / "surface.json")
    written = ["marks.parquet", "market.json", "surface.json"]
    if find_spec("plotly") is None:
        say('no report: it needs plotly; pip install "amo-pricing[app]"')
        return written
    from pricing.chain_report import as_html

    write_text(as_html(marked), folder / "report.html")
    return [*written, "report.html"]


def _rate(text: str) -> float | dict[str, float]:
    """Read a rate, or rates by years or dates."""
    try:
        if ":" not in text:
            return float(text)
        pairs = (part.rsplit(":", 1) for part in text.split(","))
        return {when.strip(): float(rate) for when, rate in pairs}
    except ValueError:
        raise argparse.ArgumentTypeError(f"takes a number or YEARS:RATE,…, not {text!r}") from None


def _dividends(text: str) -> list[tuple[str, float]]:
    """Read ex-dates and cash."""
    try:
        pairs = (part.rsplit(":", 1) for part in text.split(","))
        return [(when.strip(), float(cash)) for when, cash in pairs]
    except ValueError:
        raise argparse.ArgumentTypeError(f"takes DATE:CASH,…, not {text!r}") from None

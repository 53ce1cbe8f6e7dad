"""The commands on books, where the book is in parts: on this machine or on a cluster."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amo.errors import SettingsError

if TYPE_CHECKING:
    from pricing.datasets.manifest import Dataset


def add_parts(command: argparse.ArgumentParser) -> None:
    """Add the flags of a command that also takes a book in parts."""
    parts = command.add_argument_group(
        "books in parts",
        "a folder of Parquet files, a pattern such as 'books/*.parquet', or one large .parquet "
        "with a folder as output; parts are done by --workers processes, and a job that was "
        "stopped goes on by the same command",
    )
    parts.add_argument(
        "--dask", metavar="ADDRESS", help="of a scheduler, tcp://HOST:PORT, whose workers do them"
    )
    parts.add_argument(
        "--overwrite", action="store_true", help="replace the parts of another request"
    )


def wants_parts(args: argparse.Namespace) -> bool:
    """Tell whether the book, or what is made of it, is a folder of parts."""
    from pricing.tables import STANDARD, is_in_parts

    book, output = args.book, args.output
    is_cut = book.suffix.lower() in {".parquet", ".pq"} and not output.suffix and output != STANDARD
    if is_in_parts(book) or output.is_dir() or is_cut:
        return True
    if args.dask is not None or args.overwrite:
        raise SettingsError(
            "--dask and --overwrite are for books in parts: give a folder of Parquet files, a "
            "pattern, or one .parquet file with a folder for -o"
        )
    return False


def output_folder(args: argparse.Namespace) -> Path:
    """Return where the parts go."""
    from pricing.tables import STANDARD

    output: Path = args.output
    if output == STANDARD or (output.suffix and not output.is_dir()):
        raise SettingsError(f"a book in parts is written into a folder, not into {output}")
    return output


def run_parts(args: argparse.Namespace, work: "Callable[..., Dataset]", **options: Any) -> int:  # noqa: ANN401
    """Do a command with every part, and say how long it took."""
    start = time.perf_counter()
    made = on_executor(args, work, source=args.book, out=output_folder(args), **options)
    seconds = time.perf_counter() - start
    told = f"{made.source_rows:,} rows in {len(made.parts):,} parts -> {args.output}"
    print(f"{told}, in {seconds:.1f} s", file=sys.stderr)
    return 0


def on_executor(args: argparse.Namespace, work: Callable[..., Any], **options: Any) -> Any:  # noqa: ANN401
    """Call a function on books in parts, with the processes or the cluster that the flags name."""
    from amo.cluster import connected

    with connected(args.dask) as executor:
        return work(**options, executor=executor, overwrite=args.overwrite)

"""python -m app: serve the dashboard, write the documents, measure and photograph."""

import argparse
import ast
import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amo.command_line import add_json, count, publish, run, say

EXAMPLES = """examples:
  python -m app serve --server.port 8600
  python -m app report
  python -m app bench --sessions 20 --seconds 120 --json docs/results/dashboard.json
  python -m app screenshots --widths 1280 400"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit codes are those of :mod:`amo.command_line`."""
    parser = _parser()
    args, more = parser.parse_known_args(arguments)
    if more and args.run is not _serve:
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    args.more = more
    return run(lambda: int(args.run(args)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m app",
        description="The dashboard, and the documents written from results.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    serve = commands.add_parser(
        "serve", help="serve the dashboard; further flags, as --server.port 8600, are Streamlit's"
    )
    serve.set_defaults(run=_serve)
    commands.add_parser("list", help="the pages").set_defaults(run=_list)
    report = commands.add_parser("report", help="write tables, cards and pictures from the results")
    report.set_defaults(run=_report)
    bench = commands.add_parser("bench", help="how fast the dashboard answers, to one and to many")
    bench.add_argument(
        "--sessions", type=count, default=20, metavar="N", help="at once, default 20"
    )
    bench.add_argument(
        "--seconds", type=float, default=120.0, metavar="S", help="of their visit, default 120"
    )
    add_json(bench)
    bench.set_defaults(run=_bench)
    screenshots = commands.add_parser("screenshots", help="every page in light and dark")
    screenshots.add_argument(
        "--out", type=Path, metavar="DIR", help="default docs/screenshots of the checkout"
    )
    screenshots.add_argument(
        "--widths", type=count, nargs="+", default=[1280], metavar="PIXELS", help="default 1280"
    )
    screenshots.set_defaults(run=_screenshots)
    return parser


def _serve(args: argparse.Namespace) -> int:
    """Turn this process into Streamlit serving the dashboard, with the dashboard's own settings."""
    home = Path(__file__).parent
    command = [sys.executable, "-m", "streamlit", "run", str(home / "main.py")]
    sys.stdout.flush()
    os.execv(sys.executable, [*command, *_settings(home), *args.more])  # noqa: S606


def _settings(home: Path) -> list[str]:
    """Return Streamlit's settings as flags: it looks for its file in the current folder only."""
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


def _list(_: argparse.Namespace) -> int:
    for path in sorted((Path(__file__).parent / "views").glob("[!_]*.py")):
        summary = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        print(f"{path.stem:<14}{summary.splitlines()[0]}")
    return 0


def _report(_: argparse.Namespace) -> int:
    from app.documents import report

    for path in report.write():
        say(f"wrote {path}")
    return 0


def _bench(args: argparse.Namespace) -> int:
    from app.measuring import bench

    publish(bench.run(args.sessions, args.seconds), bench.as_text, args.json)
    return 0


def _screenshots(args: argparse.Namespace) -> int:
    from app.measuring import screenshots

    screenshots.take_all(args.out, tuple(args.widths))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""python -m pricing, or amo-pricing: price a book, compare engines, invert quotes, measure.

``--help`` answers before pandas, numba and torch are loaded: commands load what they need.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from amo.__main__ import add_training, train_from
from amo.command_line import add_json, count, publish, run, say, seed
from amo.errors import SettingsError
from pricing import book_commands, chain_commands
from pricing.book_flags import EXAMPLES, Commands, command
from pricing.engines.registry import ENGINES
from pricing.messages import in_flags, print_at_once


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
    book_commands.add(commands)
    chain_commands.add(commands)
    _add_measuring(commands)
    _add_training(commands)
    command(commands, "list", "the engines and the surrogates", _list)
    command(
        commands,
        "app",
        "serve the dashboard; further flags, as --server.port 8600, are Streamlit's",
        _app,
    )
    return parser


def _add_measuring(commands: Commands) -> None:
    """Add what says how good engines and surrogates are."""
    measure = command(commands, "bench", "ratios of the engines, measured in one run", _bench)
    measure.add_argument(
        "what", nargs="?",
        choices=["engines", "markets", "market-model", "surfaces", "rivals", "clusters"],
        help="engines under flat rates, engines under curves and dividends (default: both), the "
        "market model on a large book, volatility surfaces found again from noisy quotes, a "
        "surrogate and its rivals trained for the same minutes, or a book on a local cluster",
    )  # fmt: skip
    measure.add_argument(
        "--minutes", type=float, default=6.0, metavar="M", help="for each rival, default 6"
    )
    measure.add_argument("--seeds", type=count, default=3, metavar="N", help="default 3")
    measure.add_argument(
        "--compile", action="store_true",
        help="compile the loss of rivals by torch.compile, which is not counted in their minutes",
    )  # fmt: skip
    measure.add_argument(
        "--problem", choices=["american", "american-market"], default="american",
        help="of the rivals, default american",
    )  # fmt: skip
    measure.add_argument(
        "--data", type=Path, metavar="DIR", help="what rivals learn, default data/PROBLEM"
    )
    measure.add_argument(
        "--slices", type=count, default=500, metavar="N",
        help="of the market model's book, default 500",
    )  # fmt: skip
    measure.add_argument(
        "--out", type=Path, default=Path("runs/rivals"), metavar="DIR",
        help="where rivals are trained, default runs/rivals",
    )  # fmt: skip
    add_json(measure)
    measure.add_argument(
        "--contracts", type=count, default=300, metavar="N", help="for errors, default 300"
    )
    measure.add_argument(
        "--rows", type=count, metavar="N",
        help="of the large books, default 1,000,000, of that on a cluster 2,000,000",
    )  # fmt: skip
    measure.add_argument(
        "--parts", type=count, default=40, metavar="N", help="of the book on a cluster, default 40"
    )
    measure.add_argument(
        "--book", type=count, default=100_000, metavar="N",
        help="American rows of the timed book, default 100,000",
    )  # fmt: skip

    measure.add_argument(
        "--markets", type=count, default=500, metavar="N", help="random ones, default 500"
    )
    measure.add_argument(
        "--surfaces",
        type=count,
        default=1_000,
        metavar="N",
        help="contracts, default 1,000; with `surfaces`, of each family, at most 300",
    )

    _add_trials(commands)


def _add_trials(commands: Commands) -> None:
    """Add what tries one model."""
    assess = command(commands, "assess", "measure a model's errors into metrics.json", _assess)
    assess.add_argument("model", type=Path, help="a folder such as models/american")
    assess.add_argument("--contracts", type=count, default=5_000, metavar="N", help="default 5,000")
    assess.add_argument("--seed", type=seed, default=2_026, metavar="N", help="default 2026")

    fuzz = command(commands, "fuzz", "try to break the surrogates and their stated errors", _fuzz)
    fuzz.add_argument(
        "--rows", type=count, default=20_000, metavar="N", help="in all, default 20,000"
    )
    fuzz.add_argument("--seed", type=seed, default=1, metavar="N", help="default 1")
    fuzz.add_argument("--engine", default="amo", choices=["amo", "fd"])
    fuzz.add_argument(
        "--markets", action="store_true", help="American options under curves and dividends"
    )
    add_json(fuzz)
    fuzz.add_argument(
        "--workers", type=count, default=os.cpu_count(), metavar="N", help="default: one per core"
    )


def _add_training(commands: Commands) -> None:
    """Add the way of a surrogate among the models."""
    train = command(commands, "train", "train a surrogate, or go on where it stopped", _train)
    train.add_argument("surrogate", help="a name of `python -m pricing list`")
    add_training(train, "SET")

    publish_ = command(
        commands, "publish", "measure a trained surrogate and put it among the models", _publish
    )
    publish_.add_argument("trained", type=Path, help="a folder of `python -m pricing train`")
    publish_.add_argument(
        "--out", type=Path, metavar="DIR", help="default: its name among the shipped models"
    )
    publish_.add_argument(
        "--contracts", type=count, default=5_000, metavar="N",
        help="to measure its errors on, default 5,000",
    )  # fmt: skip
    publish_.add_argument("--seed", type=seed, default=2_026, metavar="N", help="default 2026")


def _bench(args: argparse.Namespace) -> int:
    from pricing import bench, bench_markets

    if args.what == "rivals":
        from pricing.analysis import rivals

        data = args.data or Path("data") / args.problem
        table = rivals.run(
            args.problem, data, args.out, args.minutes, args.seeds, say, compiled=args.compile
        )
        publish(table, rivals.as_text, args.json)
        return 0
    if args.what == "clusters":
        from pricing import bench_clusters

        spread = bench_clusters.run(args.rows or 2_000_000, args.parts)
        publish(spread, bench_clusters.as_text, args.json)
        return 0
    rows = args.rows or 1_000_000
    if args.what == "market-model":
        from pricing import bench_market_model

        rows = min(rows, 100_000)
        publish(bench_market_model.run(rows, args.slices), bench_market_model.as_text, args.json)
        return 0
    if args.what == "surfaces":
        from pricing import bench_surfaces

        found_again = bench_surfaces.run(min(args.surfaces, 300))
        publish(found_again, bench_surfaces.as_text, args.json)
        return 0
    if args.what == "markets":
        found = bench_markets.run(args.markets, args.surfaces)
        publish(found, bench_markets.as_text, args.json)
        return 0
    results = bench.run(n_contracts=args.contracts, n_rows=rows, n_book=args.book)
    if args.what is None:
        results["markets"] = bench_markets.run(args.markets, args.surfaces)
    publish(results, bench.as_text, args.json)
    return 0


def _fuzz(args: argparse.Namespace) -> int:
    from pricing.analysis import fuzz

    run = fuzz.run_markets if args.markets else fuzz.run
    results = run(args.rows, args.seed, args.engine, workers=args.workers)
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

    say(f"wrote {put(args.trained, args.out, args.contracts, args.seed)}")
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

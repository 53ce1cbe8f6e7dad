"""python -m amo bench: cost against size, and tables of models."""

import argparse
import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amo.command_line import add_json, count, publish, say
from amo.errors import SettingsError
from amo.files import make_folder
from amo.results import RESULTS

if TYPE_CHECKING:
    from amo.benchmarks.table import Entry
    from amo.experiment import Problem

EXAMPLES = """examples:
  python -m data_gen paper-options
  python -m amo bench options --seeds 3 --minutes 4 --json docs/results/options.json
  python -m amo bench options --models amo,fno --codings scaled --minutes 4 --json …/options.json
  python -m data_gen darcy
  python -m amo bench physics --problems darcy --minutes 4 --json docs/results/physics.json
A row that the file has already is not run again; a stopped table goes on where it stopped."""


def add_to(bench: argparse.ArgumentParser) -> None:
    """Add what can be measured."""
    kinds = bench.add_subparsers(metavar="what", required=True)
    scaling = kinds.add_parser("scaling", help="time and memory against the number of points")
    add_json(scaling)
    add_device(scaling)
    scaling.set_defaults(run=_bench_scaling)

    options = kinds.add_parser(
        "options", **_described("the paper's option problem: AMO and its rivals under one budget")
    )
    options.add_argument("--codings", default="raw", metavar="A,B", help="raw, scaled")
    _add_rivals(options)
    _add_table(options, "options", "data/paper-options")
    options.set_defaults(run=_bench_options)

    physics = kinds.add_parser(
        "physics", **_described("the paper's physics problems: AMO and its rivals under one budget")
    )
    physics.add_argument(
        "--problems",
        default="darcy,elasticity",
        metavar="A,B,…",
        help="names of `python -m amo list`",
    )
    _add_rivals(physics)
    _add_table(physics, "physics", "data")
    physics.set_defaults(run=_bench_physics)

    ablations = kinds.add_parser("ablations", help="AMO with one part changed, same budget")
    ablations.add_argument("--coding", default="raw", choices=("raw", "scaled"))
    _add_table(ablations, "ablations", "data/paper-options")
    ablations.set_defaults(run=_bench_ablations)

    filters = kinds.add_parser(
        "filters", help="AMO on grids and clouds with one part changed, same budget"
    )
    few = "reaction-diffusion,elasticity,advection-speeds"
    filters.add_argument(
        "--problems", default=few, metavar="A,B,…", help=f"of `python -m amo list`, default {few}"
    )
    _add_table(filters, "filters", "data")
    filters.set_defaults(run=_bench_filters)


def _described(text: str) -> dict[str, Any]:
    raw = argparse.RawDescriptionHelpFormatter
    return {"help": text, "description": text, "epilog": EXAMPLES, "formatter_class": raw}


def _add_rivals(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--models", default="amo,amo-grid,fno,lno,transolver,lamo", metavar="A,B,…",
        help="names, default amo,amo-grid,fno,lno,transolver,lamo",
    )  # fmt: skip
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="what every model answers")


def _add_table(parser: argparse.ArgumentParser, name: str, data: str) -> None:
    """Add what every table of models has."""
    parser.add_argument(
        "--seeds", type=count, default=1, metavar="N", help="seeds 0 to N - 1, default 1"
    )
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float, metavar="M", help="of training, for every row")
    budget.add_argument("--steps", type=int, metavar="N", help="for every row, instead")
    budget.add_argument(
        "--epochs", type=count, metavar="N", help="passes over the training split, instead"
    )
    parser.add_argument("--size", default="small", choices=("small", "paper"))
    parser.add_argument(
        "--batch-size", type=count, default=8, metavar="N", help="samples in a step, default 8"
    )
    parser.add_argument(
        "--points", type=_points, default=1024, metavar="N|all",
        help="random points of a sample in a step, for models over points; default 1024",
    )  # fmt: skip
    parser.add_argument(
        "--estimate", action="store_true", help="only say what the rows would cost: hours, memory"
    )
    parser.add_argument("--optimizer", default="adamw", choices=("adamw", "soap"))
    parser.add_argument(
        "--learning-rate", type=_rates, default=(1e-3,), metavar="X[,Y…]",
        help="largest, default 0.001; of several, each row takes the best on validation",
    )  # fmt: skip
    parser.add_argument(
        "--data", type=Path, default=Path(data), metavar="DIR",
        help=f"where `python -m data_gen` wrote, or official files lie (default {data})",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, default=Path("runs/bench") / name, metavar="DIR",
        help=f"where runs live, default runs/bench/{name}",
    )  # fmt: skip
    parser.add_argument(
        "--json", type=Path, default=RESULTS / f"{name}.json", metavar="FILE",
        help=f"the table, default docs/results/{name}.json; rows that it has are not run again",
    )  # fmt: skip
    parser.add_argument("--again", action="store_true", help="measure rows anew that it has")
    add_device(parser)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add where to compute."""
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda, cuda:1 …")


def _bench_scaling(args: argparse.Namespace) -> int:
    from amo.benchmarks import scaling

    publish(scaling.run(args.device), scaling.table, args.json)
    return 0


def _bench_options(args: argparse.Namespace) -> int:
    from amo.benchmarks import options
    from amo.benchmarks.contestants import paper_sizes
    from amo.benchmarks.table import Entry, run

    problems = {problem.name: problem for problem in (options.RAW, options.SCALED)}
    if unknown := set(args.codings.split(",")) - set(problems):
        raise SettingsError(f"no coding {', '.join(sorted(unknown))}; there are raw and scaled")
    entries = [
        Entry(problems[coding], model, seed)
        for coding in args.codings.split(",")
        for seed in range(args.seeds)
        for model in args.models.split(",")
    ]
    if _is_only_estimated(args, entries):
        return 0
    table = run(
        entries,
        _budget(args),
        quoted={name: problem.quoted for name, problem in problems.items()},
        paper_sizes=paper_sizes(options.RAW, options.QUOTED_PARAMETERS),
        **_table_arguments(args),
    )
    if args.pictures is not None:
        from amo.benchmarks.plots import draw_surface, drawable

        make_folder(args.pictures)
        for coding in args.codings.split(","):
            file = args.pictures / f"options-{coding}.png"
            models = drawable(table, coding, args.models.split(","))
            draw_surface(problems[coding], models, args.data, args.out, file)
            say(f"wrote {file}")
    return 0


def _bench_physics(args: argparse.Namespace) -> int:
    from amo.benchmarks.contestants import is_possible
    from amo.benchmarks.physics import QUOTED
    from amo.benchmarks.table import Entry, run

    problems, models = _problems(args.problems), args.models.split(",")
    for problem in problems:
        if left_out := [m for m in models if not is_possible(m, problem)]:
            say(f"{problem.name} has no grid: without {', '.join(left_out)}")
    entries = [
        Entry(problem, model, seed)
        for problem in problems
        for seed in range(args.seeds)
        for model in models
        if is_possible(model, problem)
    ]
    if _is_only_estimated(args, entries):
        return 0
    table = run(entries, _budget(args), quoted=QUOTED, **_table_arguments(args))
    if args.pictures is not None:
        from amo.benchmarks.plots import draw_problem, drawable

        for problem in problems:
            there = drawable(table, problem.name, models)
            for file in draw_problem(problem, there, args.data, args.out, args.pictures):
                say(f"wrote {file}")
    return 0


def _bench_ablations(args: argparse.Namespace) -> int:
    from amo.benchmarks import options
    from amo.benchmarks.contestants import ABLATIONS
    from amo.benchmarks.table import Entry, run

    problem = {"raw": options.RAW, "scaled": options.SCALED}[args.coding]
    entries = [Entry(problem, name, seed) for seed in range(args.seeds) for name in ABLATIONS]
    if not _is_only_estimated(args, entries):
        run(entries, _budget(args), **_table_arguments(args))
    return 0


def _bench_filters(args: argparse.Namespace) -> int:
    from amo.benchmarks.contestants import filter_ablations
    from amo.benchmarks.table import Entry, run

    entries = [
        Entry(problem, model, seed)
        for problem in _problems(args.problems)
        for seed in range(args.seeds)
        for model in filter_ablations(problem)
    ]
    if not _is_only_estimated(args, entries):
        run(entries, _budget(args), **_table_arguments(args))
    return 0


def _problems(text: str) -> "list[Problem]":
    """Return the problems of a list of names."""
    from amo.benchmarks.physics import PROBLEMS

    names = text.split(",")
    if unknown := set(names) - set(PROBLEMS):
        raise SettingsError(
            f"no problem {', '.join(sorted(unknown))}; there are {', '.join(PROBLEMS)}"
        )
    return [PROBLEMS[name] for name in names]


def _budget(args: argparse.Namespace) -> Any:  # noqa: ANN401  # imported when needed
    from amo.results import Budget

    return Budget(
        minutes=args.minutes,
        steps=args.steps,
        epochs=args.epochs,
        size=args.size,
        batch_size=args.batch_size,
        n_points=args.points,
        optimizer=args.optimizer,
        learning_rate=args.learning_rate[0],
        further_rates=args.learning_rate[1:],
    )


def _points(text: str) -> int | None:
    """Read a number of points, or all of them."""
    return None if text == "all" else count(text)


def _rates(text: str) -> tuple[float, ...]:
    """Read one learning rate or several."""
    try:
        rates = tuple(float(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of learning rates") from None
    if not all(0 < rate < math.inf for rate in rates) or len(set(rates)) < len(rates):
        raise argparse.ArgumentTypeError("learning rates are above zero, each given once")
    return rates


def _is_only_estimated(args: argparse.Namespace, entries: "list[Entry]") -> bool:
    """Say what the rows will cost if that was asked for, or if they will take long."""
    if not (args.estimate or args.epochs):
        return False
    from amo.benchmarks.estimate import as_text, estimates
    from amo.results import Table, read

    if args.json.exists() and not args.again:  # what is measured costs nothing more
        known = read(args.json, Table).rows
        entries = [entry for entry in entries if entry.key not in known]
    say(as_text(estimates(entries, _budget(args), args.data, args.device)))
    return bool(args.estimate)


def _table_arguments(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "data": args.data,
        "out": args.out,
        "file": args.json,
        "device": args.device,
        "again": args.again,
        "command": "python -m amo " + shlex.join(sys.argv[1:]),
        "say": say,
    }

"""python -m amo: train, evaluate and look at operators."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from amo.data import DataError
from amo.errors import SettingsError
from amo.files import FileError, make_folder, write_text

EXAMPLES = """examples:
  python -m data_gen diffusion
  python -m amo train diffusion --data data/diffusion --out runs/diffusion
  python -m amo evaluate runs/diffusion --data data/diffusion
  python -m amo info runs/diffusion
  python -m amo plot-poles runs/diffusion -o poles.svg
  torchrun --nproc-per-node 2 -m amo train diffusion --data data/diffusion --out runs/two"""

BENCH_EXAMPLES = """examples:
  python -m data_gen paper-options
  python -m amo bench options --seeds 3 --minutes 4 --json docs/results/options.json
  python -m amo bench options --models amo,fno --codings scaled --minutes 4 --json …/options.json
  python -m data_gen darcy
  python -m amo bench physics --problems darcy --minutes 4 --json docs/results/physics.json
A row that the file has already is not run again; a stopped table goes on where it stopped."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 well, 1 refused or failed, 2 bad usage, 130 stopped by a signal."""
    args = _parser().parse_args(arguments)
    from amo.benchmarks.runner import StoppedError
    from amo.errors import CheckpointError
    from amo.training import DivergedError

    try:
        run: Callable[[argparse.Namespace], int] = args.run
        return run(args)
    except StoppedError as error:
        print(error, file=sys.stderr)
        return 130
    except (CheckpointError, DataError, DivergedError, FileError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except SettingsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m amo",
        description="Adaptive Mamba Neural Operators.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="command", required=True)

    train = commands.add_parser("train", help="train a preset, or go on where it stopped")
    train.add_argument("preset", nargs="?", help="a name of `python -m amo presets`")
    train.add_argument("--data", type=Path, metavar="DIR", help="default data/PRESET")
    train.add_argument("--out", type=Path, metavar="DIR", help="default runs/PRESET")
    _add_device(train)
    train.add_argument("--seed", type=int, default=0, metavar="N")
    train.add_argument("--steps", type=int, metavar="N", help="instead of the preset's")
    train.add_argument("--max-minutes", type=float, metavar="M", help="stop, saved, after M")
    train.add_argument("--compile", action="store_true", help="torch.compile the loss")
    train.add_argument("--fresh", action="store_true", help="forget a run that is in --out")
    train.set_defaults(run=_train)

    presets = commands.add_parser("presets", help="what can be trained")
    presets.set_defaults(run=_presets)

    problems = commands.add_parser("problems", help="the physics problems, and where data go")
    problems.set_defaults(run=_problems)

    evaluate = commands.add_parser("evaluate", help="score a model on a split it never saw")
    evaluate.add_argument("model", type=Path)
    evaluate.add_argument("--data", type=Path, required=True, metavar="DIR")
    evaluate.add_argument("--split", default="test", help="default test")
    _add_device(evaluate)
    evaluate.set_defaults(run=_evaluate)

    info = commands.add_parser("info", help="parameters, domain, metrics and poles of a model")
    info.add_argument("model", type=Path)
    info.set_defaults(run=_info)

    poles = commands.add_parser("plot-poles", help="learned poles of each block in the unit disc")
    poles.add_argument("model", type=Path)
    poles.add_argument("-o", "--output", type=Path, metavar="FILE", help="svg, png or pdf")
    poles.set_defaults(run=_plot_poles)

    bases = commands.add_parser("plot-bases", help="the functions that those poles span")
    bases.add_argument("model", type=Path)
    bases.add_argument("-o", "--output", type=Path, metavar="FILE", help="svg, png or pdf")
    bases.set_defaults(run=_plot_bases)

    record = commands.add_parser("record", help="write what runs reached into a results file")
    record.add_argument("runs", type=Path, nargs="+")
    record.add_argument("--json", type=Path, required=True, metavar="FILE")
    record.set_defaults(run=_record)

    report = commands.add_parser("report", help="write the tables in docs/ from the results")
    report.set_defaults(run=_report)

    _add_bench(commands.add_parser("bench", help="measure"))
    return parser


def _add_bench(bench: argparse.ArgumentParser) -> None:
    """Add what can be measured."""
    kinds = bench.add_subparsers(metavar="what", required=True)
    scaling = kinds.add_parser("scaling", help="time and memory against the number of points")
    scaling.add_argument("--json", type=Path, nargs="?", const=Path("-"), metavar="FILE")
    _add_device(scaling)
    scaling.set_defaults(run=_bench_scaling)

    options = kinds.add_parser(
        "options",
        help="the paper's option problem: AMO and its rivals under one budget",
        epilog=BENCH_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--models", default="amo,fno,lno,transolver,lamo", metavar="A,B,…")
    options.add_argument("--codings", default="raw", metavar="A,B", help="raw, scaled")
    _add_table(options, "options", "data/paper-options")
    _add_pictures(options)
    options.set_defaults(run=_bench_options)

    physics = kinds.add_parser(
        "physics",
        help="the paper's physics problems: AMO and its rivals under one budget",
        epilog=BENCH_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    physics.add_argument("--models", default="amo,fno,lno,transolver,lamo", metavar="A,B,…")
    physics.add_argument(
        "--problems", default="darcy,elasticity", metavar="A,B,…", help="see `amo problems`"
    )
    _add_table(physics, "physics", "data")
    _add_pictures(physics)
    physics.set_defaults(run=_bench_physics)

    ablations = kinds.add_parser("ablations", help="AMO with one part changed, same budget")
    ablations.add_argument("--coding", default="raw", choices=("raw", "scaled"))
    _add_table(ablations, "ablations", "data/paper-options")
    ablations.set_defaults(run=_bench_ablations)


def _add_table(parser: argparse.ArgumentParser, name: str, data: str) -> None:
    """Add what every table of models has."""
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds 0 to N - 1")
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float, metavar="M", help="of training, for every row")
    budget.add_argument("--steps", type=int, metavar="N", help="for every row, instead")
    parser.add_argument("--size", default="small", choices=("small", "paper"))
    parser.add_argument("--optimizer", default="adamw", choices=("adamw", "soap"))
    parser.add_argument("--learning-rate", type=float, default=1e-3, metavar="X")
    parser.add_argument(
        "--data", type=Path, default=Path(data), metavar="DIR",
        help=f"where `python -m data_gen` wrote, or official files lie (default {data})",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("runs/bench") / name, metavar="DIR")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="the table")
    _add_device(parser)


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda, cuda:1 …")


def _train(args: argparse.Namespace) -> int:
    from amo import runs

    if args.preset is None:
        raise SettingsError("say which preset: one of `python -m amo presets`")
    run = runs.train(
        args.preset,
        data=args.data or Path("data") / args.preset,
        out=args.out or Path("runs") / args.preset,
        device=args.device,
        seed=args.seed,
        steps=args.steps,
        max_minutes=args.max_minutes,
        compiled=args.compile,
        fresh=args.fresh,
    )
    if run.message:
        print(run.message, file=sys.stderr)
    return run.exit_code


def _presets(_: argparse.Namespace) -> int:
    from amo.experiments import PRESETS

    for name, preset in PRESETS.items():
        print(f"{name:<16}{preset.summary}")
    return 0


def _problems(_: argparse.Namespace) -> int:
    from amo.benchmarks.physics import PROBLEMS

    for name, problem in PROBLEMS.items():
        print(f"{name:<30}{problem.origin:<14}data/{problem.folder:<30}{problem.title}")
    return 0


def _evaluate(args: argparse.Namespace) -> int:
    from amo import runs

    scores = runs.evaluate(args.model, args.data, args.split, args.device)
    if int(os.environ.get("RANK", "0")) == 0:
        _print(scores)
    return 0


def _info(args: argparse.Namespace) -> int:
    from amo import runs

    print(runs.describe(args.model))
    return 0


def _plot_poles(args: argparse.Namespace) -> int:
    from amo import pictures, runs

    output = args.output or args.model / "poles.svg"
    pictures.draw_poles(runs.learned_poles(args.model), output)
    print(f"wrote {output}", file=sys.stderr)
    return 0


def _plot_bases(args: argparse.Namespace) -> int:
    from amo import pictures, runs

    output = args.output or args.model / "bases.svg"
    poles = runs.learned_poles(args.model)
    pictures.draw_bases([block[0] for block in poles], runs.n_tokens(args.model), output)
    print(f"wrote {output}", file=sys.stderr)
    return 0


def _record(args: argparse.Namespace) -> int:
    from amo import runs

    content = {
        "command": "python -m amo train PRESET --data DIR --out RUN; python -m amo evaluate RUN "
        "--data DIR; python -m amo record RUNS --json FILE",
        "runs": {run.name: runs.summary(run) for run in args.runs},
    }
    write_text(json.dumps(content, indent=2) + "\n", args.json)
    print(f"wrote {args.json}", file=sys.stderr)
    return 0


def _report(_: argparse.Namespace) -> int:
    from amo import report

    for name, tables in report.DOCUMENTS.items():
        path = report.ROOT / "docs" / name
        report.fill_file(path, tables)
        print(f"wrote {path}", file=sys.stderr)
    return 0


def _bench_scaling(args: argparse.Namespace) -> int:
    from amo.benchmarks import scaling

    results = scaling.run(args.device)
    if args.json is None:
        print(scaling.table(results))
    elif args.json == Path("-"):
        _print(results)
    else:
        write_text(json.dumps(results, indent=2) + "\n", args.json)
        print(f"wrote {args.json}", file=sys.stderr)
    return 0


def _bench_options(args: argparse.Namespace) -> int:
    from amo.benchmarks import options
    from amo.benchmarks.contestants import paper_sizes
    from amo.benchmarks.runner import Entry, run

    problems = {problem.name: problem for problem in (options.RAW, options.SCALED)}
    if unknown := set(args.codings.split(",")) - set(problems):
        raise SettingsError(f"no coding {', '.join(sorted(unknown))}; there are raw and scaled")
    entries = [
        Entry(problems[coding], model, seed)
        for coding in args.codings.split(",")
        for seed in range(args.seeds)
        for model in args.models.split(",")
    ]
    notes = {
        "quoted": {name: dict(problem.quoted) for name, problem in problems.items()},
        "paper_sizes": paper_sizes(options.RAW, options.QUOTED_PARAMETERS),
    }
    table = run(entries, _budget(args), notes=notes, **_table_arguments(args))
    if args.pictures is not None:
        from amo.benchmarks.figures import draw_surface, drawable

        make_folder(args.pictures)
        for coding in args.codings.split(","):
            file = args.pictures / f"options-{coding}.png"
            models = drawable(table, coding, args.models.split(","))
            draw_surface(problems[coding], models, args.data, args.out, file)
            print(f"wrote {file}", file=sys.stderr)
    return 0


def _bench_physics(args: argparse.Namespace) -> int:
    from amo.benchmarks.contestants import is_possible
    from amo.benchmarks.physics import PROBLEMS, QUOTED
    from amo.benchmarks.runner import Entry, run

    names, models = args.problems.split(","), args.models.split(",")
    if unknown := set(names) - set(PROBLEMS):
        raise SettingsError(
            f"no problem {', '.join(sorted(unknown))}; there are {', '.join(PROBLEMS)}"
        )
    for name in names:
        if left_out := [m for m in models if not is_possible(m, PROBLEMS[name])]:
            print(f"{name} has no grid: without {', '.join(left_out)}", file=sys.stderr)
    entries = [
        Entry(PROBLEMS[name], model, seed)
        for name in names
        for seed in range(args.seeds)
        for model in models
        if is_possible(model, PROBLEMS[name])
    ]
    table = run(entries, _budget(args), notes={"quoted": QUOTED}, **_table_arguments(args))
    if args.pictures is not None:
        from amo.benchmarks.figures import draw_problem, drawable

        for name in names:
            there = drawable(table, name, models)
            for file in draw_problem(PROBLEMS[name], there, args.data, args.out, args.pictures):
                print(f"wrote {file}", file=sys.stderr)
    return 0


def _bench_ablations(args: argparse.Namespace) -> int:
    from amo.benchmarks import options
    from amo.benchmarks.contestants import ABLATIONS
    from amo.benchmarks.runner import Entry, run

    problem = {"raw": options.RAW, "scaled": options.SCALED}[args.coding]
    entries = [Entry(problem, name, seed) for seed in range(args.seeds) for name in ABLATIONS]
    run(entries, _budget(args), **_table_arguments(args))
    return 0


def _add_pictures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="what every model answers")


def _budget(args: argparse.Namespace) -> Any:  # noqa: ANN401  # imported when needed
    from amo.benchmarks.runner import Budget

    return Budget(
        minutes=args.minutes,
        steps=args.steps,
        size=args.size,
        optimizer=args.optimizer,
        learning_rate=args.learning_rate,
    )


def _table_arguments(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "data": args.data,
        "out": args.out,
        "file": args.json,
        "device": args.device,
        "command": "python -m amo " + shlex.join(sys.argv[1:]),
        "say": lambda text: print(text, file=sys.stderr, flush=True),
    }


def _print(content: Any) -> None:  # noqa: ANN401  # anything JSON holds
    print(json.dumps(content, indent=2))


if __name__ == "__main__":
    sys.exit(main())

"""python -m amo: train, evaluate and look at operators."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from amo.benchmarks import command_line
from amo.errors import DataError, SettingsError, StoppedError
from amo.files import FileError, write_text
from amo.lazy import way_out

EXAMPLES = """examples:
  python -m data_gen diffusion
  python -m amo train diffusion --data data/diffusion --out runs/diffusion
  python -m amo evaluate runs/diffusion --data data/diffusion
  python -m amo info runs/diffusion
  python -m amo plot-poles runs/diffusion -o poles.svg
  torchrun --nproc-per-node 2 -m amo train diffusion --data data/diffusion --out runs/two"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 well, 1 refused or failed, 2 bad usage, 130 stopped by a signal."""
    args = _parser().parse_args(arguments)
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
    except ModuleNotFoundError as error:
        print(f"error: {way_out(error)}", file=sys.stderr)
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
    command_line.add_device(train)
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
    command_line.add_device(evaluate)
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

    command_line.add_to(commands.add_parser("bench", help="measure"))
    return parser


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


def _print(content: Any) -> None:  # noqa: ANN401  # anything JSON holds
    print(json.dumps(content, indent=2))


if __name__ == "__main__":
    sys.exit(main())

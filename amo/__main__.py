"""python -m amo: train, evaluate and look at operators.

``--help`` answers before torch is loaded: commands load what they need.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from amo.benchmarks import command_line as benchmarks
from amo.command_line import run, say, seed
from amo.errors import SettingsError
from amo.files import write_text

EXAMPLES = """examples:
  python -m data_gen diffusion
  python -m amo train diffusion --data data/diffusion --out runs/diffusion
  python -m amo evaluate runs/diffusion --data data/diffusion
  python -m amo info runs/diffusion
  python -m amo plot-poles runs/diffusion -o poles.svg
  torchrun --nproc-per-node 2 -m amo train diffusion --data data/diffusion --out runs/two"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit codes are those of :mod:`amo.command_line`."""
    args = _parser().parse_args(arguments)
    return run(lambda: int(args.run(args)), interrupted="interrupted: the same command goes on")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m amo",
        description="Adaptive Mamba Neural Operators.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="command", required=True)

    listing = commands.add_parser("list", help="the experiments, and the problems of the tables")
    listing.set_defaults(run=_list)

    train = commands.add_parser("train", help="train an experiment, or go on where it stopped")
    train.add_argument("experiment", nargs="?", help="a name of `python -m amo list`")
    add_training(train, "EXPERIMENT")
    train.set_defaults(run=_train)

    evaluate = commands.add_parser("evaluate", help="score a model on a split it never saw")
    evaluate.add_argument("model", type=Path, help="a model folder")
    evaluate.add_argument("--data", type=Path, required=True, metavar="DIR", help="the data set")
    evaluate.add_argument("--split", default="test", metavar="NAME", help="default test")
    benchmarks.add_device(evaluate)
    evaluate.set_defaults(run=_evaluate)

    info = commands.add_parser("info", help="parameters, domain, metrics and poles of a model")
    info.add_argument("model", type=Path, help="a model folder")
    info.set_defaults(run=_info)

    for name, what in (
        ("poles", "learned poles of each block in the unit disc"),
        ("bases", "the functions that those poles span"),
    ):
        plot = commands.add_parser(f"plot-{name}", help=what)
        plot.add_argument("model", type=Path, help="a model folder")
        plot.add_argument(
            "-o", "--output", type=Path, metavar="FILE",
            help=f"svg, png or pdf; default {name}.svg in the model folder",
        )  # fmt: skip
        plot.set_defaults(run=_plot, what=name)

    record = commands.add_parser("record", help="write what runs reached into a results file")
    record.add_argument("runs", type=Path, nargs="+", help="model folders")
    record.add_argument("--json", type=Path, required=True, metavar="FILE", help="results file")
    record.set_defaults(run=_record)

    benchmarks.add_to(commands.add_parser("bench", help="measure cost, and tables of models"))
    return parser


def add_training(parser: argparse.ArgumentParser, name: str) -> None:
    """Add what every training command takes; ``name`` is what the experiment is called there."""
    parser.add_argument("--data", type=Path, metavar="DIR", help=f"default data/{name}")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help=f"model folder, default runs/{name}"
    )
    benchmarks.add_device(parser)
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="default 0")
    parser.add_argument("--steps", type=int, metavar="N", help="instead of the experiment's own")
    parser.add_argument(
        "--max-minutes",
        type=float,
        metavar="M",
        help="stop after M minutes; what is there is saved",
    )
    parser.add_argument(
        "--save-every", type=int, metavar="N", help="steps from one saved state to the next"
    )
    parser.add_argument("--compile", action="store_true", help="compile the loss by torch.compile")
    parser.add_argument("--fresh", action="store_true", help="forget the run that is in --out")


def train_from(args: argparse.Namespace, experiment: object, data: Path) -> int:
    """Train an experiment as the flags of :func:`add_training` say; return the exit code."""
    from dataclasses import replace

    from amo.experiment import Experiment, train

    assert isinstance(experiment, Experiment)  # noqa: S101  # typed there, loaded here
    config = replace(experiment.training, seed=args.seed, compile=args.compile)
    given = {"steps": args.steps, "save_every": args.save_every}
    config = replace(config, **{name: n for name, n in given.items() if n is not None})
    trained = train(
        replace(experiment, training=config),
        data=args.data or data,
        out=args.out or Path("runs") / experiment.name,
        device=args.device,
        max_minutes=args.max_minutes,
        fresh=args.fresh,
    )
    if int(os.environ.get("RANK", "0")) == 0:
        error = f"validation relative L2 {trained.validation['relative_l2']:.2e}"
        if trained.is_finished:
            say(
                f"{trained.reason} after {trained.steps} steps: {error}; the model is in "
                f"{trained.folder} (--fresh trains it anew)"
            )
        else:
            say(
                f"stopped by {trained.reason} after {trained.steps} steps: {error}; the best "
                f"weights are in {trained.folder}, and the same command goes on from here"
            )
    return 130 if trained.reason == "signal" else 0


def _train(args: argparse.Namespace) -> int:
    if args.experiment is None:
        raise SettingsError("say which experiment: one of `python -m amo list`")
    from amo.benchmarks.toys import experiment_named

    return train_from(args, experiment_named(args.experiment), Path("data") / args.experiment)


def _list(_: argparse.Namespace) -> int:
    from amo.benchmarks.physics import PROBLEMS
    from amo.benchmarks.toys import EXPERIMENTS

    print("experiments, for `python -m amo train`:")
    for name, experiment in EXPERIMENTS.items():
        print(f"  {name:<28}{experiment.problem.title}")
    print("problems, for `python -m amo bench physics`, and where their data lie:")
    for name, problem in PROBLEMS.items():
        print(f"  {name:<28}{problem.origin:<14}data/{problem.folder:<28}{problem.title}")
    return 0


def _evaluate(args: argparse.Namespace) -> int:
    from amo import checkpoint
    from amo.benchmarks.toys import EXPERIMENTS
    from amo.experiment import evaluate

    known = EXPERIMENTS.get(checkpoint.load(args.model)[1].preset)
    problem = None if known is None else known.problem
    scores = evaluate(args.model, args.data, args.split, args.device, problem)
    if int(os.environ.get("RANK", "0")) == 0:
        print(json.dumps(scores, indent=2))
    return 0


def _info(args: argparse.Namespace) -> int:
    from amo.model_folder import describe

    print(describe(args.model))
    return 0


def _plot(args: argparse.Namespace) -> int:
    from amo import model_folder, plots

    output = args.output or args.model / f"{args.what}.svg"
    poles = model_folder.learned_poles(args.model)
    if args.what == "poles":
        plots.draw_poles(poles, output)
    else:
        n_tokens = model_folder.n_tokens(args.model)
        plots.draw_bases([block[0] for block in poles], n_tokens, output)
    say(f"wrote {output}")
    return 0


def _record(args: argparse.Namespace) -> int:
    from amo.model_folder import summary

    content = {
        "command": "python -m amo train EXPERIMENT --data DIR --out RUN; python -m amo evaluate "
        "RUN --data DIR; python -m amo record RUNS --json FILE",
        "runs": {run.name: summary(run) for run in args.runs},
    }
    write_text(json.dumps(content, indent=2) + "\n", args.json)
    say(f"wrote {args.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The surrogate and its rivals on the same labels, for the same minutes, with several seeds.

Each rival takes the steps that fill its minutes of computing, measured before it starts; the best
weights on validation are scored on market states that no rival has seen. A stopped table goes on
where it stopped, because each rival's run does.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import torch

from amo.benchmarks.budget import Pace, plan
from amo.benchmarks.contestants import n_parameters
from amo.data.datasets import Dataset
from amo.errors import StoppedError
from amo.experiment import Experiment, evaluate, train
from amo.operator import Operator
from amo.training.distributed import Workers
from amo.training.loop import TrainingConfig
from pricing.surrogate.experiments import EXPERIMENTS, at_equal_cost, changed

_VALIDATIONS = 4
_SEPARATORS = re.compile(r"\W+")
STRIKE = 100.0  # errors are stated for


class RivalRow(TypedDict):
    """One model with one seed: its error on unseen market states, for a strike of 100."""

    model: str
    seed: int
    parameters: int
    steps: int
    seconds_per_step: float
    rmse: float
    largest: float


class RivalResults(TypedDict):
    """All models and seeds: docs/results/rivals.json and market_rivals.json."""

    command: str
    problem: str
    minutes: float
    hardware: str
    rows: list[RivalRow]


def rivals(problem: str = "american") -> Mapping[str, Experiment]:
    """Return the contestants on a problem, whose trunks have the size of the shipped form's.

    On rates: the shipped form, the perceptron that is shipped beside it, and a larger one. On
    markets: AMO as a whole, the same with mixers of a quarter of the size or without one of its
    parts, the set encoder that is left without any of them, and a perceptron on padded slots.
    """
    ours = EXPERIMENTS[problem]
    if problem == "american-market":
        whole = changed(ours, mixer="bi", state_size=8)
        return {
            "amo": whole,
            "amo, no direct path": changed(whole, direct=False),
            "amo, small mixers": changed(whole, state_size=4, expansion=1),
            "amo, no mixers": ours,
            "amo, no projection": changed(whole, projects=False),
            "set encoder": at_equal_cost(EXPERIMENTS["american-market-set"], ours),
            "mlp, padded": at_equal_cost(EXPERIMENTS["american-market-mlp"], ours),
        }
    plain = replace(EXPERIMENTS["american-mlp"], training=ours.training, loss=ours.loss)
    return {
        "amo": ours,
        "mlp": plain,
        "mlp, 128 × 4": changed(plain, width=128, depth=4),
    }


def shipped(problem: str) -> str:
    """Return which of the contestants is the form that is shipped."""
    ours = EXPERIMENTS[problem]
    return next(name for name, experiment in rivals(problem).items() if experiment == ours)


def run(
    problem: str,
    data: Path,
    out: Path,
    minutes: float,
    n_seeds: int,
    say: Callable[[str], None],
    *,
    compiled: bool = False,
) -> RivalResults:
    """Train every rival with every seed into folders below ``out``."""
    rows: list[RivalRow] = []
    hardware = ""
    for seed in range(n_seeds):
        for name, experiment in rivals(problem).items():
            say(f"{name}, seed {seed}: {minutes:g} minutes")
            folder = out / problem / f"{_SEPARATORS.sub('-', name)}-{seed}"
            config = replace(experiment.training, seed=seed, compile=compiled)
            seeded = replace(experiment, training=config)
            row, hardware = _trained(name, seeded, data, folder, minutes)
            say(f"    RMSE {row['rmse']:.2e} after {row['steps']:,} steps")
            rows.append(row)
    return {
        "command": f"python -m pricing bench rivals --problem {problem} --minutes {minutes:g} "
        f"--seeds {n_seeds}" + (" --compile" if compiled else ""),
        "problem": problem,
        "minutes": minutes,
        "hardware": hardware,
        "rows": rows,
    }


def _trained(
    name: str, experiment: Experiment, data: Path, folder: Path, minutes: float
) -> tuple[RivalRow, str]:
    config = experiment.training
    if config.compile:
        torch.compiler.reset()  # it compiles the loss for so many models, and then no more
    pace, hardware = 0.0, ""

    def settled(operator: Operator, dataset: Dataset, workers: Workers) -> TrainingConfig:
        nonlocal pace, hardware
        hardware = workers.hardware

        measured = Pace(
            operator, dataset, experiment.problem.read, config, workers, experiment.loss
        )
        identity = {"rival": name, "minutes": minutes, "hardware": hardware}
        identity |= {"seed": config.seed, "compile": config.compile}
        steps, pace = plan(measured, folder, identity, minutes=minutes, steps=None)
        every = max(1, -(-steps // _VALIDATIONS))
        return replace(config, steps=steps, validate_every=every, save_every=max(1, steps // 10))

    found = train(experiment, data=data, out=folder, plan=settled)
    if not found.is_finished:
        raise StoppedError(
            f"{name}, seed {config.seed} was stopped: the same command goes on from there"
        )
    scores = evaluate(folder, data, "test", problem=experiment.problem)
    return {
        "model": name,
        "seed": config.seed,
        "parameters": n_parameters(experiment.recipe),
        "steps": found.steps,
        "seconds_per_step": pace,
        "rmse": STRIKE * scores["rmse"],
        "largest": STRIKE * scores["largest_error"],
    }, hardware


def as_text(results: RivalResults) -> str:
    """Return the rows in plain text."""
    head = f"{results['minutes']:g} minutes each, {results['hardware']}, strike 100"
    rows = (
        f"  {row['model']}, seed {row['seed']}: RMSE {row['rmse']:.2e}, largest "
        f"{row['largest']:.1e}, {row['steps']:,} steps, {1e3 * row['seconds_per_step']:.0f} ms each"
        for row in results["rows"]
    )
    return "\n".join([head, *rows])

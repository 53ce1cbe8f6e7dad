"""From a finished run to a shipped model: checked, measured, and copied whole."""

import shutil
from dataclasses import asdict
from pathlib import Path

from amo import checkpoint
from amo.checkpoint import Recipe
from amo.errors import CheckpointError
from amo.experiment import Experiment
from amo.files import make_folder, replacing
from amo.training.state import LOG, STATE
from pricing.analysis.assessment import assess
from pricing.analysis.market_assessment import assess_market
from pricing.surrogate.domain import Domain
from pricing.surrogate.experiments import experiment_named
from pricing.surrogate.market_domain import MarketDomain
from pricing.surrogate.market_model import NAME as MARKET_MODEL
from pricing.surrogate.market_model import MarketSurrogate
from pricing.surrogate.model import Surrogate
from pricing.surrogate.store import models_folder


def publish(run: Path, out: Path | None = None, contracts: int = 5_000, seed: int = 2_026) -> Path:
    """Measure a finished run's errors and put it among the models; return its folder there.

    A run is refused if it is not finished, or if its data, domain, model or coding are not those of
    the experiment that it names. What was there before is replaced only when everything else has
    succeeded.
    """
    _, recipe = checkpoint.load(run)
    experiment = experiment_named(recipe.preset)
    if (run / STATE).exists():
        raise CheckpointError(f"{run} is not finished: run the same training command again")
    _check(recipe, experiment, run)
    measure(run, contracts, seed)
    out = models_folder() / recipe.preset if out is None else out
    make_folder(out)
    for name in (checkpoint.WEIGHTS, checkpoint.CONFIG, checkpoint.METRICS, LOG):
        with replacing(out / name) as beside:
            shutil.copyfile(run / name, beside)
    return out


def _check(recipe: Recipe, experiment: Experiment, run: Path) -> None:
    """Refuse a run that does not match the experiment it names, or that experiment's data."""
    data, training = recipe.notes["data"], recipe.notes["training"]
    for what, found, wanted in (
        ("data of the set", data.get("set"), experiment.problem.name),
        ("domain", dict(recipe.domain), _domain(experiment).as_dict()),
        ("model", asdict(recipe.config), asdict(experiment.model)),
        ("link", recipe.link, experiment.problem.link),
        ("number of steps", training["steps"], experiment.training.steps),
    ):
        if found != wanted:
            raise CheckpointError(
                f"{run} has the {what} {found}; {experiment.name} is published with {wanted}"
            )


def measure(model: Path, contracts: int = 5_000, seed: int = 2_026) -> tuple[float, float]:
    """Measure a model's errors into its metrics.json; return price RMSE in box and domain."""
    try:
        known = checkpoint.read_metrics(model)
    except CheckpointError:  # missing, for other weights or of an older version: measured anew here
        known = {}
    _, recipe = checkpoint.load(model)
    if recipe.notes.get("data", {}).get("set") == MARKET_MODEL:
        market = MarketSurrogate.load(model, is_measured=False)
        found = assess_market(market, contracts, seed)
    else:
        found = assess(Surrogate.load(model, is_measured=False), contracts, seed)
    checkpoint.write_metrics({**known, **found}, model)
    return found.get("box", found["domain"])["price"]["rmse"], found["domain"]["price"]["rmse"]


def _domain(experiment: Experiment) -> Domain | MarketDomain:
    return MarketDomain() if experiment.problem.name == MARKET_MODEL else Domain()

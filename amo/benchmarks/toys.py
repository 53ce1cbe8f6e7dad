"""Experiments that train in minutes: two made-up operators, and a small public data set."""

from collections.abc import Mapping

from amo.benchmarks.physics import PROBLEMS
from amo.errors import SettingsError
from amo.experiment import Experiment, Problem
from amo.model_config import AMOConfig
from amo.training.loop import TrainingConfig

_SMALL = AMOConfig(
    n_features=1, n_dimensions=1, width=64, n_tokens=16, n_poles=6, n_blocks=2, state_size=8
)
_ALL = (
    Experiment(
        name="antiderivative",
        problem=Problem(
            name="antiderivative",
            title="∫_0^x f of random series at random points",
            n_features=1,
            n_dimensions=1,
        ),
        kind="amo",
        model=_SMALL,
        training=TrainingConfig(steps=2000, learning_rate=2e-3),
    ),
    Experiment(
        name="diffusion",
        problem=Problem(
            name="diffusion",
            title="k to the solution of -(k u')' = 1",
            n_features=1,
            n_dimensions=1,
        ),
        kind="amo",
        model=_SMALL,
        training=TrainingConfig(steps=1500, learning_rate=2e-3),
    ),
    Experiment(
        name="darcy-small",
        problem=PROBLEMS["darcy-small"],
        kind="amo",
        model=AMOConfig(n_features=1, n_dimensions=2),
        training=TrainingConfig(steps=1300, learning_rate=1e-3, weight_decay=1e-4),
    ),
)
EXPERIMENTS: Mapping[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def experiment_named(name: str) -> Experiment:
    """Return the experiment of that name."""
    if name not in EXPERIMENTS:
        raise SettingsError(f"no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]

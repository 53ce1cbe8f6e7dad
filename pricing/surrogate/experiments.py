"""How the shipped surrogates are trained, derived from the coding that serves them.

Link, coordinates and directions of derivatives come from :mod:`pricing.surrogate.encoding`, so
training and serving cannot drift apart.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from amo.baselines.mlp import PointwiseMLPConfig
from amo.baselines.set_encoder import SetEncoderConfig
from amo.configuration import ModelConfig
from amo.errors import SettingsError
from amo.experiment import Experiment, Problem
from amo.model_config import AMOConfig
from amo.training.loop import TrainingConfig
from amo.training.losses import SobolevLoss
from pricing.slopes import QUARTERS
from pricing.surrogate import market_coding
from pricing.surrogate.encoding import AMERICAN, DIRECTIONS, EUROPEAN, STATE_POINTS, Coding
from pricing.surrogate.market_domain import MarketDomain

_TRAINING = TrainingConfig(
    steps=30_000,
    optimizer="soap",
    learning_rate=4e-3,
    weight_decay=0.0,
    warmup=0.02,
    n_queries=256,
    validate_every=1000,
    criterion="rmse",  # at small rates the values are too small for relative errors
    save_every=500,
    bfloat16=False,  # differences need every digit
)


def _problem(coding: Coding) -> Problem:
    return Problem(
        name=coding.name,
        title=f"rates to values of {coding.name.capitalize()} puts",
        n_features=1,
        n_dimensions=1,
        link=coding.link,
        is_coded=True,
    )


def _operator(coding: Coding, **choices: Any) -> AMOConfig:  # noqa: ANN401  # of AMOConfig
    """Return a model that maps two numbers to a field over other coordinates.

    An encoder of the size of its input, and a small trunk: many cheap steps beat few large ones.
    """
    return AMOConfig(
        n_features=1,
        n_dimensions=1,
        n_query_dimensions=coding.n_queries,
        width=32,
        n_heads=2,
        n_tokens=4,
        n_poles=2,
        n_blocks=1,
        state_size=8,
        decoder="modulated",
        trunk_width=64,
        trunk_depth=3,
        **choices,
    )


def _loss(value_unit: float, units: Mapping[str, float], step: float = 5e-7) -> SobolevLoss:
    """Return a loss of values and derivatives; the units are the errors that count as one."""
    return SobolevLoss(value_unit, tuple(units[name] for name in DIRECTIONS), step=step)


def _american_loss(rate_unit: float) -> SobolevLoss:
    units = {"log_moneyness": 1e-3, "volatility": 7.5e-4, "rate": rate_unit, "dividend_yield": 1e-3}
    # rates then move by 1e-4: further, and slopes at small rates are smeared
    return _loss(1.5e-5, units, step=1e-7)


_EUROPEAN = Experiment(
    name=EUROPEAN.name,
    problem=_problem(EUROPEAN),
    kind="amo",
    model=_operator(EUROPEAN),
    training=replace(_TRAINING, batch_size=32, validate_every=2500),
    loss=_loss(
        5e-5, {"log_moneyness": 5e-4, "volatility": 5e-4, "rate": 2e-3, "dividend_yield": 2e-3}
    ),
)
_AMERICAN = Experiment(
    name=AMERICAN.name,
    problem=_problem(AMERICAN),
    kind="amo",
    model=_operator(AMERICAN, n_mixed=16),
    training=replace(_TRAINING, steps=100_000, batch_size=32, validate_every=2500),
    loss=_american_loss(rate_unit=1e-3),
)
_AMERICAN_MLP = replace(
    _AMERICAN,
    name="american-mlp",
    kind="mlp",
    model=PointwiseMLPConfig(  # of the size of the operator's trunk
        n_points=len(STATE_POINTS),
        n_features=1,
        n_dimensions=1,
        n_query_dimensions=AMERICAN.n_queries,
        width=64,
        depth=3,
    ),
    training=replace(_AMERICAN.training, steps=130_000),  # of about the operator's minutes
    loss=_american_loss(rate_unit=8e-4),
)
_MARKET_UNITS = {
    "log_spot": 1e-3, "volatility": 1e-3, "rate": 4e-3, "borrow": 4e-3, "dividends": 5e-4
}  # fmt: skip
_MARKET = Experiment(
    name="american-market",
    problem=Problem(
        name="american-market",
        title="markets to values of American options",
        n_features=market_coding.FEATURES,
        n_dimensions=1,
        link="softplus",
        is_coded=True,
    ),
    kind="amo",
    model=AMOConfig(
        n_features=market_coding.FEATURES,
        n_dimensions=1,
        n_query_dimensions=market_coding.COORDINATES,
        width=32,
        n_heads=2,
        n_tokens=4,
        n_poles=2,
        n_blocks=1,
        mixer="none",  # with them a step costs a fifth more and learns no more: `bench rivals`
        decoder="modulated",
        trunk_width=96,
    ),
    training=replace(
        _TRAINING, steps=200_000, batch_size=96, n_queries=None, validate_every=10_000
    ),
    loss=SobolevLoss(
        3e-5,
        tuple(_MARKET_UNITS[name] for name in market_coding.DIRECTIONS),
        step=5e-7,
        longest=0.01,
    ),
)
_MARKET_MLP = replace(
    _MARKET,
    name="american-market-mlp",
    kind="mlp",
    model=PointwiseMLPConfig(
        n_points=MarketDomain().widened().payments + len(QUARTERS),
        n_features=market_coding.FEATURES,
        n_dimensions=1,
        n_query_dimensions=market_coding.COORDINATES,
        width=128,
        depth=4,
        is_padded=True,
    ),
)
_MARKET_SET = replace(
    _MARKET,
    name="american-market-set",
    kind="set-encoder",
    model=SetEncoderConfig(
        n_features=market_coding.FEATURES,
        n_dimensions=1,
        n_query_dimensions=market_coding.COORDINATES,
    ),
)
EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        _EUROPEAN,
        _AMERICAN,
        _AMERICAN_MLP,
        _MARKET,
        _MARKET_MLP,
        _MARKET_SET,
    )
}


def at_equal_cost(rival: Experiment, ours: Experiment) -> Experiment:
    """Return a rival whose answers cost what those of a modulated AMO cost, trained as that is."""
    if not isinstance(ours.model, AMOConfig):
        raise SettingsError(f"{ours.name} is no AMO")
    width, depth = ours.model.trunk_width, ours.model.trunk_depth
    if isinstance(rival.model, PointwiseMLPConfig):
        model: ModelConfig = replace(rival.model, width=width, depth=depth)
    elif isinstance(rival.model, SetEncoderConfig):
        model = replace(
            rival.model, trunk_width=width, trunk_depth=depth, n_mixed=ours.model.n_mixed
        )
    else:
        raise SettingsError(f"{rival.name} has no trunk to size")
    return replace(rival, model=model, training=ours.training)


def changed(experiment: Experiment, **choices: Any) -> Experiment:  # noqa: ANN401  # of its model
    """Return an experiment whose model has other choices."""
    return replace(experiment, model=replace(experiment.model, **choices))


def experiment_named(name: str) -> Experiment:
    """Return the experiment of that name."""
    if name not in EXPERIMENTS:
        raise SettingsError(f"no surrogate {name!r}; there are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]

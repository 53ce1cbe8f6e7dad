"""Named experiments: what is learned, by which model, how long."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amo.baselines.mlp import PointwiseMLPConfig
from amo.batch import read_operator_arrays
from amo.benchmarks import darcy_small
from amo.data import ShardedDataset
from amo.evaluation import Dataset, Loss, Read, SobolevLoss, relative_l2_loss
from amo.model import AMOConfig
from amo.operator import Link
from amo.training import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Everything that a run needs beside its data.

    Attributes
    ----------
    summary
        One line for ``--help``.
    model, training
        The model and how it is trained.
    open
        How a folder and a split's name become a data set.
    read
        How arrays become a batch.
    loss
        What is minimised.
    kind
        The model's name in ``amo.checkpoint.MODELS``.
    link, is_coded
        What bounds the answer, and whether the data come with queries and values of unit size; see
        ``amo.operator.Operator``.
    """

    summary: str
    model: Any
    training: TrainingConfig
    open: Callable[[Path, str], Dataset] = ShardedDataset
    read: Read = read_operator_arrays
    loss: Loss = relative_l2_loss
    kind: str = "amo"
    link: Link = "identity"
    is_coded: bool = False


def _small(n_features: int, n_dimensions: int) -> AMOConfig:
    """Return a model that learns easy operators in a minute or two on two cores."""
    return AMOConfig(
        n_features=n_features,
        n_dimensions=n_dimensions,
        width=64,
        n_tokens=16,
        n_poles=6,
        n_blocks=2,
        state_size=8,
    )


def _field(n_query_dimensions: int) -> AMOConfig:
    """Return a model from two numbers to a field over its own coordinates, cheap to decode."""
    return AMOConfig(
        n_features=1,
        n_dimensions=1,
        n_query_dimensions=n_query_dimensions,
        width=32,
        n_heads=2,
        n_tokens=16,
        n_poles=6,
        n_blocks=2,
        state_size=8,
    )


_FIELD_TRAINING = TrainingConfig(
    steps=30_000,
    optimizer="soap",
    learning_rate=4e-3,
    weight_decay=0.0,
    warmup=0.02,
    n_queries=256,
    validate_every=1000,
    criterion="rmse",  # at small rates there is next to nothing to be relative to
    save_every=500,
    bfloat16=False,  # differences need every digit
)

PRESETS: dict[str, Preset] = {
    "antiderivative": Preset(
        summary="∫_0^x f of random series at random points (python -m data_gen antiderivative)",
        model=_small(n_features=1, n_dimensions=1),
        training=TrainingConfig(steps=2000, learning_rate=2e-3),
    ),
    "diffusion": Preset(
        summary="k to the solution of -(k u')' = 1 (python -m data_gen diffusion)",
        model=_small(n_features=1, n_dimensions=1),
        training=TrainingConfig(steps=1500, learning_rate=2e-3),
    ),
    "darcy-small": Preset(
        summary="neuraloperator's two-phase Darcy set, 16² (its three .pt files)",
        model=AMOConfig(n_features=1, n_dimensions=2),
        training=TrainingConfig(steps=1300, learning_rate=1e-3, weight_decay=1e-4),
        open=darcy_small.open_split,
    ),
    "european": Preset(
        summary="rates to values of European puts (python -m data_gen european)",
        model=_field(n_query_dimensions=2),
        training=replace(_FIELD_TRAINING, steps=12_000),
        loss=SobolevLoss(value_unit=5e-5, direction_units=(5e-4, 5e-4, 2e-3, 2e-3), step=5e-7),
        link="softplus",
        is_coded=True,
    ),
    "american": Preset(
        summary="rates to values of American puts (python -m data_gen american)",
        model=_field(n_query_dimensions=4),
        training=_FIELD_TRAINING,
        loss=SobolevLoss(value_unit=3e-5, direction_units=(1e-3, 7.5e-4, 2e-3, 2e-3), step=5e-7),
        link="sigmoid",
        is_coded=True,
    ),
}
PRESETS["american-mlp"] = replace(
    PRESETS["american"],
    summary="the same by a plain MLP of equal inference cost, for comparison",
    model=PointwiseMLPConfig(
        n_points=2, n_features=1, n_dimensions=1, n_query_dimensions=4, width=128, depth=4
    ),
    training=replace(_FIELD_TRAINING, steps=50_000),  # a step is cheaper than the operator's
    kind="mlp",
)

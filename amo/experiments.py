"""Named experiments: what is learned, by which model, how long."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amo.batch import read_operator_arrays
from amo.benchmarks import darcy_small
from amo.data import ShardedDataset
from amo.evaluation import Dataset, Loss, Read, relative_l2_loss
from amo.model import AMOConfig
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
    """

    summary: str
    model: Any
    training: TrainingConfig
    open: Callable[[Path, str], Dataset] = ShardedDataset
    read: Read = read_operator_arrays
    loss: Loss = relative_l2_loss
    kind: str = "amo"


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
}

"""A benchmark problem is a value: what is learned, from which arrays, and how it is scored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from amo.batch import Batch
from amo.data import Arrays, ShardedDataset
from amo.distributed import Workers
from amo.evaluation import Dataset, Predict, Read, at_once
from amo.operator import Link, Operator


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem for every model alike.

    Attributes
    ----------
    name, title
        For the command line and for tables.
    folder
        Where its data lie under the folder of all data.
    read
        How arrays become a batch.
    n_features, n_dimensions, n_outputs
        Channels in, coordinates, channels out.
    input_varies
        Whether the input differs from point to point; then the decoder of AMO sees it.
    is_periodic
        Whether the end of every axis is its start again.
    grid
        Points along each axis where samples lie on a grid, in the order of the batch; models that
        know grids only need it.
    open
        How a folder and a split's name become a data set.
    predict
        How a trained operator answers a batch of the test split: at once, or step by step.
    further
        More test splits, with the grid of each: other resolutions, never trained on.
    link, is_coded
        As :class:`amo.experiments.Preset` has them.
    regions
        Parts of the domain whose error is stated, too: masks (batch, n_points) of arrays, or with
        an axis of channels.
    origin
        Whether these are the official files or data made again from the physics.
    quoted
        The paper's relative L2 by model, on its own data and hardware.
    """

    name: str
    title: str
    read: Read
    n_features: int
    n_dimensions: int
    n_outputs: int = 1
    folder: str = ""
    grid: tuple[int, ...] | None = None
    input_varies: bool = True
    is_periodic: bool = False
    open: Callable[[Path, str], Dataset] = ShardedDataset
    predict: Predict = at_once
    further: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    link: Link = "identity"
    is_coded: bool = False
    regions: Mapping[str, Callable[[Arrays], Tensor]] = field(default_factory=dict)
    origin: Literal["official", "regenerated"] = "regenerated"
    quoted: Mapping[str, float] = field(default_factory=dict)


def region_errors(
    problem: Problem, operator: Operator, dataset: Dataset, workers: Workers, size: int
) -> dict[str, float]:
    """Return the root mean square error in each region of a problem, over a whole split."""
    sums = {name: torch.zeros(2, dtype=torch.float64) for name in problem.regions}
    for arrays in dataset.batches(size):
        batch: Batch = problem.read(arrays).to(workers.device)
        error = problem.predict(operator, batch) - batch.values
        for name, region in problem.regions.items():
            chosen = error[region(arrays).to(error.device)].double()
            sums[name] += torch.tensor([float(chosen.square().sum()), chosen.numel()])
    return {name: float((total / count) ** 0.5) for name, (total, count) in sums.items()}

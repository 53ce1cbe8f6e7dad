"""The synthetic stand-in for the glove: films of a stretched sheet, cut into load steps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from amo.data.batch import Batch
from amo.data.datasets import Dataset, ShardedDataset
from amo.data.format import Arrays


class LoadSteps:
    """Films cut into their steps: what was measured before a step, at rest zero, and after it."""

    def __init__(self, films: Dataset) -> None:
        self.films = films
        self.n_steps = next(films.batches(1))["measured"].shape[1]

    def __len__(self) -> int:
        return len(self.films) * self.n_steps

    @property
    def n_samples(self) -> int:
        """The number of films."""
        return self.films.n_samples

    def fingerprint(self) -> dict[str, Any]:
        """Return that of the films."""
        return self.films.fingerprint()

    def batches(self, size: int, seed: int | None = None) -> Iterator[Arrays]:
        """Yield batches of steps, those of a few films at a time shuffled by ``seed``."""
        rng = np.random.default_rng(seed)
        for arrays in self.films.batches(8, seed):
            film = arrays["measured"]
            before = np.concatenate([np.zeros_like(film[:, :1]), film[:, :-1]], axis=1)
            every = np.arange(len(film) * self.n_steps)
            if seed is not None:
                rng.shuffle(every)
            for start in range(0, len(every), size):
                number, step = np.divmod(every[start : start + size], self.n_steps)
                yield {
                    "points": arrays["points"][number],
                    "previous": before[number, step],
                    "displacement": film[number, step],
                }


def open_steps(folder: Path, split: str) -> LoadSteps:
    """Open films made by data_gen, as load steps."""
    return LoadSteps(ShardedDataset(folder, split))


def read_step(arrays: Arrays) -> Batch:
    """Read the previous displacement, and the current one at the edge with zeros inside of it."""
    points = arrays["points"]
    at_edge = ((points < 1e-6) | (points > 1.0 - 1e-6)).any(axis=-1, keepdims=True)
    edge = np.where(at_edge, arrays["displacement"], np.float32(0.0))
    features = np.concatenate([arrays["previous"], edge], axis=-1)
    return Batch(
        points=torch.from_numpy(points),
        features=torch.from_numpy(features),
        values=torch.from_numpy(arrays["displacement"]),
    )

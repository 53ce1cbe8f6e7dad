"""How the fields of the physics sets become batches: on grids, on clouds of points, in time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amo.data.batch import Batch
from amo.data.datasets import Dataset
from amo.data.format import Arrays
from amo.operator import Operator
from amo.training.evaluation import at_once


@dataclass(frozen=True)
class OnGrid:
    """Read fields (samples, *grid) on a tensor grid, the input at the very points of the output.

    Attributes
    ----------
    inputs, outputs
        Names of arrays, each a channel.
    lengths
        Of each axis, which starts at zero.
    is_periodic
        Whether every axis wraps around: its end is its start, and no node.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    lengths: tuple[float, ...]
    is_periodic: bool = False

    def __call__(self, arrays: Arrays) -> Batch:
        """Return the batch."""
        n, *shape = arrays[self.outputs[0]].shape
        return Batch(
            points=_grid(tuple(shape), self.lengths, is_periodic=self.is_periodic).expand(
                n, -1, -1
            ),
            features=_channels(arrays, self.inputs),
            values=_channels(arrays, self.outputs),
        )


@dataclass(frozen=True)
class OnCloud:
    """Read fields (samples, points) at each sample's own points; no inputs: its coordinates."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __call__(self, arrays: Arrays) -> Batch:
        """Return the batch."""
        points = torch.from_numpy(arrays["points"]).flatten(1, -2)
        return Batch(
            points=points,
            features=_channels(arrays, self.inputs) if self.inputs else points,
            values=_channels(arrays, self.outputs),
        )


@dataclass(frozen=True)
class OnNodes:
    """Read where the nodes of a bent mesh are, x and y (samples, n, m), and a field there."""

    output: str

    def __call__(self, arrays: Arrays) -> Batch:
        """Return the batch."""
        points = np.stack([arrays["x"], arrays["y"]], axis=-1)
        return OnCloud((), (self.output,))({**arrays, "points": points})


@dataclass(frozen=True)
class InTime:
    """Read films (samples, x, y, frames) on the unit torus: the first frames to the others."""

    name: str
    n_past: int = 10

    def __call__(self, arrays: Arrays) -> Batch:
        """Return the batch, with frames as channels."""
        film = torch.from_numpy(arrays[self.name]).flatten(1, 2)
        points = _grid(arrays[self.name].shape[1:3], (1.0, 1.0), is_periodic=True)
        return Batch(
            points=points.expand(len(film), -1, -1),
            features=film[..., : self.n_past],
            values=film[..., self.n_past :],
        )


class Windows:
    """Films cut into all their runs of ``length`` frames: the true past, and one frame after it.

    Training on these is teacher forcing.
    """

    def __init__(self, films: Dataset, name: str, length: int) -> None:
        self.films, self.name, self.length = films, name, length
        n_frames = next(films.batches(1))[name].shape[-1]
        self.n_windows = n_frames - length + 1

    def __len__(self) -> int:
        return len(self.films) * self.n_windows

    @property
    def n_samples(self) -> int:
        """The number of films."""
        return self.films.n_samples

    def fingerprint(self) -> dict[str, Any]:
        """Return that of the films."""
        return self.films.fingerprint()

    def batches(self, size: int, seed: int | None = None) -> Iterator[Arrays]:
        """Yield batches of windows, those of a few films at a time shuffled by ``seed``."""
        rng = np.random.default_rng(seed)
        for arrays in self.films.batches(8, seed):
            films = arrays[self.name]
            every = np.arange(len(films) * self.n_windows)
            if seed is not None:
                rng.shuffle(every)
            for start in range(0, len(every), size):
                film, frame = np.divmod(every[start : start + size], self.n_windows)
                frames = frame[:, None] + np.arange(self.length)
                chosen = films[film[:, None], ..., frames]  # (windows, frames, x, y)
                yield {self.name: np.ascontiguousarray(np.moveaxis(chosen, 1, -1))}


def roll_out(operator: Operator, batch: Batch) -> Tensor:
    """Predict frame after frame, each from predictions alone once the given past is used up."""
    past, frames = batch.features, list[Tensor]()
    for _ in range(batch.values.shape[-1]):
        frames.append(at_once(operator, replace(batch, features=past)))
        past = torch.cat([past[..., 1:], frames[-1]], dim=-1)
    return torch.cat(frames, dim=-1)


def _grid(shape: tuple[int, ...], lengths: tuple[float, ...], *, is_periodic: bool) -> Tensor:
    axes = [
        torch.arange(n) * (length / (n if is_periodic else n - 1))
        for n, length in zip(shape, lengths, strict=True)
    ]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)


def _channels(arrays: Arrays, names: tuple[str, ...]) -> Tensor:
    return torch.stack([torch.from_numpy(arrays[name]).flatten(1) for name in names], dim=-1)

"""Samples of an operator as tensors, and the scaling of their channels."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor, nn

from amo.data.format import Arrays
from amo.jets import Number


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Input functions at points, and their images at query points, sample by sample.

    Attributes
    ----------
    points, features
        (batch, n_points, n_dimensions) and (batch, n_points, n_features).
    values
        The truth, (batch, n_queries, n_outputs).
    queries
        (batch, n_queries, n_query_dimensions); None: the input points.
    mask, query_mask
        (batch, n_points) and (batch, n_queries), false where a point is padding.
    offset, scale
        A known part and a known size of each value, shaped like the values: the model learns
        (value - offset) / scale.
    gap
        A known number, for which ``value`` and ``value + gap`` are both positive: the model then
        learns their geometric mean over the scale. Shaped like the values.
    least
        A known lower bound of each value, shaped like the values: an answer below it is raised to
        it, and where a value lies on it, to answer less is no error.
    weights
        How much the error of each value counts, shaped like the values.
    feature_tangents, query_tangents, scale_tangents, gap_tangents, value_tangents
        First derivatives of the five along J directions, on an axis before the last.
    """

    points: Tensor
    features: Tensor
    values: Tensor
    queries: Tensor | None = None
    mask: Tensor | None = None
    query_mask: Tensor | None = None
    offset: Tensor | None = None
    scale: Tensor | None = None
    gap: Tensor | None = None
    least: Tensor | None = None
    weights: Tensor | None = None
    feature_tangents: Tensor | None = None
    query_tangents: Tensor | None = None
    scale_tangents: Tensor | None = None
    gap_tangents: Tensor | None = None
    value_tangents: Tensor | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def inputs(self) -> dict[str, Tensor | None]:
        """What an operator is called with."""
        return {
            "points": self.points,
            "features": self.features,
            "queries": self.queries,
            "mask": self.mask,
            "offset": self.offset,
            "scale": self.scale,
            "gap": self.gap,
        }

    @property
    def value_mask(self) -> Tensor | None:
        """The mask of the values: that of the queries, or of the points if both are the same."""
        return self.mask if self.queries is None else self.query_mask

    def map(self, change: Callable[[Tensor], Tensor], names: Collection[str] = ()) -> "Batch":
        """Return the batch with a function applied to every tensor, or to the named ones."""
        changed = {
            name: change(tensor)
            for name, tensor in vars(self).items()
            if tensor is not None and (not names or name in names)
        }
        return replace(self, **changed)

    def rows(self, chosen: "slice | Tensor") -> "Batch":
        """Return some of the samples."""
        return self.map(lambda tensor: tensor[chosen])

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))

    def thinned(
        self, n_points: int | None, n_queries: int | None, generator: torch.Generator
    ) -> "Batch":
        """Return the batch on a random subset of its points and of its queries.

        If the points are the queries and no number of queries is given, one subset serves both.
        """
        batch = self
        parts = [(_AT_POINTS, n_points), (_AT_QUERIES, n_queries)]
        if batch.queries is None and n_queries is None:
            parts = [((*_AT_POINTS, *_AT_QUERIES), n_points)]
        elif batch.queries is None:
            batch = replace(batch, queries=batch.points, query_mask=batch.mask)
        for names, wanted in parts:
            there = getattr(batch, names[0]).shape[1]
            if wanted is not None and wanted < there:
                kept = torch.randperm(there, generator=generator)[:wanted]
                batch = batch.map(_Columns(kept), names)
        return batch


@dataclass(frozen=True)
class _Columns:
    """Some of the points, or queries, of a tensor."""

    kept: Tensor

    def __call__(self, tensor: Tensor) -> Tensor:
        return tensor[:, self.kept]


_AT_POINTS = ("points", "features", "mask", "feature_tangents")
_AT_QUERIES = (
    "queries",
    "values",
    "query_mask",
    "offset",
    "scale",
    "gap",
    "least",
    "weights",
    "query_tangents",
    "scale_tangents",
    "gap_tangents",
    "value_tangents",
)


def read_operator_arrays(arrays: Arrays) -> Batch:
    """Read arrays that are named like the fields of a batch."""
    known = [f.name for f in fields(Batch)]
    return Batch(**{name: torch.from_numpy(arrays[name]) for name in known if name in arrays})


class Normaliser(nn.Module):
    """x → (x - shift) / scale, channel by channel; its numbers are weights of the checkpoint."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.register_buffer("shift", torch.zeros(n_channels))
        self.register_buffer("scale", torch.ones(n_channels))
        self.shift: Tensor
        self.scale: Tensor

    def forward(self, x: Number) -> Number:
        """Scale (..., n_channels), a tensor or a jet."""
        return (x - self.shift) / self.scale

    def inverse(self, x: Number) -> Number:
        """Undo the scaling."""
        return x * self.scale + self.shift

    def set(self, shift: Tensor, scale: Tensor) -> None:
        """Take new numbers; a channel that does not vary is only shifted."""
        self.shift.copy_(shift)
        self.scale.copy_(torch.where(scale > 0, scale, torch.ones_like(scale)))

    def fit_moments(self, parts: Iterable[Tensor]) -> None:
        """Take mean and standard deviation over rows of parts (n, n_channels)."""
        count = 0
        total = torch.zeros_like(self.shift, dtype=torch.float64)
        squares = torch.zeros_like(total)
        for part in parts:
            wide = part.double()
            count += len(wide)
            total, squares = total + wide.sum(0), squares + wide.square().sum(0)
        mean = total / count
        spread = (squares / count - mean.square()).clamp_min(0.0).sqrt()
        small = 1e-6 * mean.abs()  # rounding, not variation
        self.set(mean, torch.where(spread > small, spread, torch.zeros_like(spread)))

    def fit_box(self, parts: Iterable[Tensor]) -> None:
        """Map the range of parts (n, n_channels) to [-1, 1]."""
        low = torch.full_like(self.shift, np.inf, dtype=torch.float64)
        high = -low
        for part in parts:
            low = torch.minimum(low, part.double().amin(0))
            high = torch.maximum(high, part.double().amax(0))
        self.set((low + high) / 2.0, (high - low) / 2.0)

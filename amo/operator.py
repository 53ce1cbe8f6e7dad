"""An operator in physical units: a model between normalisers that travel with its weights."""

from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch import Tensor, nn

from amo.batch import Batch, Normaliser


class ModelConfig(Protocol):
    """What every model's configuration says about its inputs and outputs."""

    @property
    def n_features(self) -> int:
        """Channels of the input function."""

    @property
    def n_dimensions(self) -> int:
        """Coordinates of an input point."""

    @property
    def n_query_dimensions(self) -> int | None:
        """Coordinates of a query point, None where queries live among the input points."""

    @property
    def n_outputs(self) -> int:
        """Channels of the answer."""


class Operator(nn.Module):
    """Physical units in and out around any model with AMO's call signature.

    Points and queries are mapped to [-1, 1], features and values to zero mean and unit spread, by
    numbers fitted on the training split only.
    """

    def __init__(self, model: nn.Module, config: ModelConfig) -> None:
        super().__init__()
        self.model = model
        self.points = Normaliser(config.n_dimensions)
        own = config.n_query_dimensions
        self.own_queries = None if own is None else Normaliser(own)
        self.features = Normaliser(config.n_features)
        self.values = Normaliser(config.n_outputs)

    @property
    def queries(self) -> Normaliser:
        """The scaling of query points."""
        return self.own_queries or self.points

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return the image (batch, n_queries, n_outputs); see ``amo.model.AMO.forward``."""
        scaled = None if queries is None else self.queries(queries)
        return self.values.inverse(
            self.model(self.points(points), self.features(features), scaled, mask)
        )

    def predict(self, batch: Batch, chunk: int | None = None) -> Tensor:
        """Return the image of a batch without gradients, the queries decoded in chunks."""
        with torch.no_grad():
            encode: Callable[..., Tensor] | None = getattr(self.model, "encode", None)
            if chunk is None or encode is None:
                return self(**batch.inputs)
            points, features = self.points(batch.points), self.features(batch.features)
            latent = encode(points, features, batch.mask, chunk=chunk)
            queries = batch.points if batch.queries is None else batch.queries
            decode: Callable[..., Tensor] = self.model.decode  # type: ignore[assignment]
            return self.values.inverse(decode(latent, self.queries(queries), chunk=chunk))

    def fit_normalisers(self, batches: Callable[[], Iterable[Batch]]) -> None:
        """Fit every normaliser on the training samples; ``batches`` starts a new pass over them."""
        self.points.fit_box(_rows(b.points, b.mask) for b in batches())
        if self.own_queries is not None:
            self.own_queries.fit_box(
                _rows(b.queries, b.query_mask) for b in batches() if b.queries is not None
            )
        self.features.fit_moments(_rows(b.features, b.mask) for b in batches())
        self.values.fit_moments(_rows(b.values, b.value_mask) for b in batches())


def _rows(values: Tensor, mask: Tensor | None) -> Tensor:
    return values.flatten(0, 1) if mask is None else values[mask]

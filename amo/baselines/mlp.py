"""The plainest rival: one multilayer perceptron on the input function and the query point.

It takes a fixed number of input points and ignores where they are, so it is no operator; it is
what anybody would try first on a function of two numbers and a few coordinates.
"""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from amo.errors import SettingsError
from amo.layers.modulated import in_chunks


@dataclass(frozen=True, kw_only=True)
class PointwiseMLPConfig:
    """Sizes of the perceptron.

    Attributes
    ----------
    n_points
        Input points of every sample.
    n_features, n_dimensions, n_query_dimensions, n_outputs
        As :class:`amo.model.AMOConfig` has them.
    width, depth
        Of the hidden layers.
    """

    n_points: int
    n_features: int
    n_dimensions: int
    n_query_dimensions: int
    n_outputs: int = 1
    width: int = 128
    depth: int = 3

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise SettingsError(f"depth must be at least 1, got {self.depth}")


class PointwiseMLP(nn.Module):
    """GELU layers on (features at all points, query point)."""

    def __init__(self, config: PointwiseMLPConfig) -> None:
        super().__init__()
        self.config = config
        n_inputs = config.n_points * config.n_features + config.n_query_dimensions
        sizes = [n_inputs, *[config.width] * config.depth]
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(sizes):
            layers += [nn.Linear(before, after), nn.GELU()]
        self.layers = nn.Sequential(*layers, nn.Linear(config.width, config.n_outputs))

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_queries, n_outputs); see :meth:`amo.model.AMO.forward`."""
        return self.decode(self.encode(points, features, mask), queries)

    def encode(
        self,
        points: Tensor,  # noqa: ARG002  # its place in the list is all it knows of a point
        features: Tensor,
        mask: Tensor | None = None,
        chunk: int | None = None,  # noqa: ARG002  # there is nothing to cut
    ) -> Tensor:
        """Return the features of all points in one row, (batch, n_points × n_features)."""
        if mask is not None or features.shape[1] != self.config.n_points:
            raise SettingsError(f"this MLP takes {self.config.n_points} points and no padding")
        return features.flatten(1)

    turns = True  # decode() takes encodings that turn from query to query

    def decode(
        self,
        latent: Tensor,
        queries: Tensor,
        chunk: int | None = None,
        turns: Tensor | None = None,
        along: Tensor | None = None,
    ) -> Tensor:
        """Return the values at query points; see :meth:`amo.model.AMO.decode`."""
        if chunk is not None and queries.shape[1] > chunk:
            return in_chunks(self.decode, latent, queries, chunk, turns, along)
        beside = latent.unsqueeze(1).expand(-1, queries.shape[1], -1)
        if turns is not None and along is not None:
            beside = beside + along @ turns
        return self.layers(torch.cat([beside, queries], dim=-1))

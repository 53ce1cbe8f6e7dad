"""The plainest rival: one multilayer perceptron on the input function and the query point.

It takes a fixed number of input points, or up to that many with padding, so it is no operator; it
is what anybody would try first on a function of two numbers and a few coordinates.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo import jets
from amo.errors import SettingsError
from amo.jets import Jet
from amo.layers.modulated import in_chunks


@dataclass(frozen=True, kw_only=True)
class PointwiseMLPConfig:
    """Sizes of the perceptron.

    Attributes
    ----------
    n_points
        Input points of every sample.
    is_padded
        Whether samples may have fewer: then each slot holds features and place of its point, and
        whether there is one. If not, the place of a point in the list is all that is known of it.
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
    is_padded: bool = False

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise SettingsError(f"depth must be at least 1, got {self.depth}")


class PointwiseMLP(nn.Module):
    """GELU layers on (features at all points, query point)."""

    def __init__(self, config: PointwiseMLPConfig) -> None:
        super().__init__()
        self.config = config
        slot = config.n_features + (config.n_dimensions + 1 if config.is_padded else 0)
        n_inputs = config.n_points * slot + config.n_query_dimensions
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
        points: Tensor,
        features: Tensor,
        mask: Tensor | None = None,
        chunk: int | None = None,  # noqa: ARG002  # there is nothing to cut
    ) -> Tensor:
        """Return what is known of all points in one row, (batch, n_points × slot)."""
        n_points, is_padded = self.config.n_points, self.config.is_padded
        if features.shape[1] > n_points or (not is_padded and features.shape[1] < n_points):
            raise SettingsError(f"this MLP takes {n_points} points")
        if not is_padded:
            if mask is not None:
                raise SettingsError("this MLP takes no padding")
            return features.flatten(1)
        if mask is None:
            mask = torch.ones_like(points[..., 0], dtype=torch.bool)
        slots = torch.cat([features, points, mask.unsqueeze(-1).to(features)], dim=-1)
        slots = slots.masked_fill(~mask.unsqueeze(-1), 0.0)
        return functional.pad(slots, (0, 0, 0, n_points - slots.shape[1])).flatten(1)

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

    def jet(self, latent: Tensor, queries: Jet, turns: Mapping[int, Tensor]) -> Jet:
        """Return values at query points with derivatives; see :meth:`amo.model.AMO.jet`."""
        beside = queries.parts.new_zeros((*queries.parts.shape[:-1], latent.shape[-1]))
        beside[0] = latent.unsqueeze(1)
        for direction, turn in turns.items():
            beside[1 + direction] = turn.unsqueeze(1)
        x = queries.of(torch.cat([beside, queries.parts], dim=-1))
        for layer in self.layers:
            x = jets.affine(layer, x) if isinstance(layer, nn.Linear) else jets.gelu_(x)
        return x

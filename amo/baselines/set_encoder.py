"""The bare set encoder: a mean over input points modulates a trunk over the query.

It is what is left of AMO's modulated form without lifting, Takenaka–Malmquist projection and
state-space blocks: a network of every point, their mean, and a network of that (Zaheer et al. 2017,
"Deep sets") in front of the same trunk.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from amo.errors import SettingsError
from amo.jets import Jet
from amo.layers.feedforward import MLP
from amo.layers.modulated import ModulationKind, Modulator, Trunk, in_chunks


@dataclass(frozen=True, kw_only=True)
class SetEncoderConfig:
    """Sizes of the set encoder.

    Attributes
    ----------
    n_features, n_dimensions, n_query_dimensions, n_outputs
        As :class:`amo.model.AMOConfig` has them.
    width
        Of the network of every point.
    trunk_width, trunk_depth, modulation, n_mixed
        As :class:`amo.model.AMOConfig` has them.
    """

    n_features: int
    n_dimensions: int
    n_query_dimensions: int | None = None
    n_outputs: int = 1
    width: int = 64
    trunk_width: int = 128
    trunk_depth: int = 4
    modulation: ModulationKind = "scale-shift"
    n_mixed: int = 0

    def __post_init__(self) -> None:
        for name, least in {"trunk_depth": 1, "n_mixed": 0}.items():
            if getattr(self, name) < least:
                raise SettingsError(f"{name} must be at least {least}, got {getattr(self, name)}")


class SetEncoder(nn.Module):
    """Mean over points of a network, modulating a trunk."""

    turns = True  # decode() takes encodings that turn from query to query

    def __init__(self, config: SetEncoderConfig) -> None:
        super().__init__()
        self.config = config
        n_inputs = config.n_features + config.n_dimensions
        self.first = nn.Sequential(MLP(n_inputs, config.width, config.width), nn.GELU())
        self.second = MLP(config.width, config.width, config.width)
        self.trunk = Trunk(
            config.n_query_dimensions or config.n_dimensions,
            config.trunk_width,
            config.trunk_depth,
            config.n_outputs,
            config.modulation,
            config.n_mixed,
        )
        self.modulator = Modulator(config.width, self.trunk)

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_queries, n_outputs); see :meth:`amo.model.AMO.forward`."""
        latent = self.encode(points, features, mask)
        return self.decode(latent, points if queries is None else queries)

    def encode(
        self,
        points: Tensor,
        features: Tensor,
        mask: Tensor | None = None,
        chunk: int | None = None,  # noqa: ARG002  # a point costs a few numbers
    ) -> Tensor:
        """Return the modulations of a set of points; padding is not read."""
        each = torch.cat([features, points], dim=-1)
        if mask is None:
            mask = torch.ones_like(points[..., 0], dtype=torch.bool)
        seen = mask.unsqueeze(-1)
        each = self.second(self.first(each.masked_fill(~seen, 0.0)))
        mean = (each * seen.to(each)).sum(1) / seen.to(each).sum(1).clamp(min=1.0)
        return self.modulator(mean, points, features, mask)

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
        return self.trunk(queries, latent, turns, along)

    def jet(self, latent: Tensor, queries: Jet, turns: Mapping[int, Tensor]) -> Jet:
        """Return values at query points with derivatives; see :meth:`amo.model.AMO.jet`."""
        return self.trunk.jet(queries, latent, turns)

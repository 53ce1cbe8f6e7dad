"""What models over points share: embed, mix points and channels in turn, project."""

from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from amo.configuration import ModelConfig
from amo.errors import SettingsError
from amo.layers.feedforward import MLP


class PointConfig(ModelConfig, Protocol):
    """What the configuration of a model over points says."""

    @property
    def width(self) -> int:
        """Channels of the hidden functions."""


class PointModel(nn.Module):
    """x = MLP(features, points); x + mix(LN x), x + FFN(LN x) in turn; Linear(LN x).

    It answers at its input points and nowhere else; they may be any, and some may be padding.

    Parameters
    ----------
    config
        Sizes.
    mixers
        Modules called with (batch, n_points, width) and the mask, one a layer.
    """

    def __init__(self, config: PointConfig, mixers: Iterable[nn.Module]) -> None:
        super().__init__()
        self.config: Any = config
        width = config.width
        self.embed = MLP(config.n_features + config.n_dimensions, 2 * width, width)
        self.mixers = nn.ModuleList(mixers)
        n = len(self.mixers)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * n + 1))
        self.feedforwards = nn.ModuleList(MLP(width, width, width) for _ in range(n))
        self.project = nn.Linear(width, config.n_outputs)

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_points, n_outputs); see :meth:`amo.model.AMO.forward`."""
        if queries is not None:
            raise SettingsError(
                f"{type(self).__name__} answers at its input points only: it takes no queries"
            )
        given = torch.cat([features, points], dim=-1)
        if mask is not None:  # whatever padding holds is not read
            given = given.masked_fill(~mask.unsqueeze(-1), 0.0)
        x = self.embed(given)
        *norms, last = self.norms
        for mix, feedforward, before, after in zip(
            self.mixers, self.feedforwards, norms[::2], norms[1::2], strict=True
        ):
            x = x + mix(before(x), mask)
            x = x + feedforward(after(x))
        return self.project(last(x))


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Return (batch, heads, n, width / heads) from (batch, n, width)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(-2, -3)


def merge_heads(x: Tensor) -> Tensor:
    """Undo :func:`split_heads`."""
    return x.transpose(-2, -3).flatten(-2)


def check_heads(width: int, n_heads: int) -> None:
    """Refuse a width that does not divide into heads."""
    if width % n_heads:
        raise SettingsError(f"width {width} is no multiple of {n_heads} heads")

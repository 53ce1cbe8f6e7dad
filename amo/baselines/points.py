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


class HeadConfig(PointConfig, Protocol):
    """What the configuration of a model with attention over several heads says."""

    @property
    def n_heads(self) -> int:
        """Heads that the width is divided into."""


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
        refuse_queries(self, queries)
        x = self.embed(what_is_given(points, features, mask))
        *norms, last = self.norms
        for mix, feedforward, before, after in zip(
            self.mixers, self.feedforwards, norms[::2], norms[1::2], strict=True
        ):
            x = x + mix(before(x), mask)
            x = x + feedforward(after(x))
        return self.project(last(x))


def refuse_queries(model: nn.Module, queries: Tensor | None) -> None:
    """Refuse queries of a model that answers at its input points."""
    if queries is not None:
        raise SettingsError(
            f"{type(model).__name__} answers at its input points only: it takes no queries"
        )


def what_is_given(points: Tensor, features: Tensor, mask: Tensor | None) -> Tensor:
    """Return features and coordinates of every point; whatever padding holds is not read."""
    given = torch.cat([features, points], dim=-1)
    return given if mask is None else given.masked_fill(~mask.unsqueeze(-1), 0.0)


def mean_products(keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Return the mean over points of key · valueᵀ, (batch, heads, d, e).

    Keys are (batch, heads, n, d), values (batch, heads, n, e). Queries times this is attention
    without softmax, at a cost linear in the points.
    """
    if mask is None:
        return keys.transpose(-1, -2) @ values / keys.shape[-2]
    seen = mask[:, None, :, None].to(keys.dtype)
    return (seen * keys).transpose(-1, -2) @ values / seen.sum(-2, keepdim=True).clamp_min(1.0)


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

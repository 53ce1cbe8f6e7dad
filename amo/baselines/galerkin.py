"""Galerkin transformer (Cao, 2021): attention without softmax, q (kᵀ v) / n with normed k and v.

The product of keys and values comes first, so the cost is linear in the number of points. It
answers at its input points.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from amo.baselines.points import (
    HeadConfig,
    PointModel,
    check_heads,
    mean_products,
    merge_heads,
    split_heads,
)


@dataclass(frozen=True, kw_only=True)
class GalerkinConfig:
    """Sizes of the model."""

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    n_outputs: int = 1
    width: int = 128
    n_heads: int = 4
    n_layers: int = 6

    def __post_init__(self) -> None:
        check_heads(self.width, self.n_heads)


class GalerkinAttention(nn.Module):
    """q (LN(k)ᵀ LN(v)) / n over several heads: a sum over points that no point stands out in."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        width, self.n_heads = config.width, config.n_heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        size = width // self.n_heads
        self.key_norm, self.value_norm = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Mix (batch, n, width)."""
        q, k, v = (split_heads(f(x), self.n_heads) for f in (self.query, self.key, self.value))
        products = mean_products(self.key_norm(k), self.value_norm(v), mask)
        return self.out(merge_heads(q @ products))


class GalerkinTransformer(PointModel):
    """The operator."""

    def __init__(self, config: GalerkinConfig) -> None:
        super().__init__(config, (GalerkinAttention(config) for _ in range(config.n_layers)))

"""Transolver (Wu et al., 2024): attention among soft slices of the points.

Each head sorts points into slices by learned weights, averages them into one token a slice, lets
the tokens attend to each other, and hands the answer back to the points by the same weights. It
answers at its input points.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.baselines.points import PointModel, check_heads, merge_heads, split_heads


@dataclass(frozen=True, kw_only=True)
class TransolverConfig:
    """Sizes of the model."""

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    n_outputs: int = 1
    width: int = 128
    n_heads: int = 8
    n_layers: int = 8
    n_slices: int = 64

    def __post_init__(self) -> None:
        check_heads(self.width, self.n_heads)


class Slicing(nn.Module):
    """Weights of points in slices, softmax(Linear(x) / τ) in every head, τ learned for each."""

    def __init__(self, width: int, n_heads: int, n_slices: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.place = nn.Linear(width, width)
        self.score = nn.Linear(width // n_heads, n_slices)
        nn.init.orthogonal_(self.score.weight)
        self.temperature = nn.Parameter(torch.full((n_heads, 1, 1), 0.5))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights (batch, heads, n, n_slices) and what was sorted, (…, width / heads).

        The weights of every point sum to one.
        """
        placed = split_heads(self.place(x), self.n_heads)
        return self.weigh(placed), placed

    def weigh(self, placed: Tensor) -> Tensor:
        """Return the weights of what is to be sorted."""
        scores = self.score(placed) / self.temperature.clamp(0.1, 5.0)
        return functional.softmax(scores, dim=-1)


def slice_means(weights: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Return the weighted mean of each slice, (batch, heads, n_slices, d)."""
    if mask is not None:
        weights = weights * mask[:, None, :, None].to(weights.dtype)
    total = weights.sum(-2).unsqueeze(-1) + 1e-5
    return weights.transpose(-1, -2) @ values / total


class PhysicsAttention(nn.Module):
    """Slice, attend among slices, deslice; without ``value``, slices average what was sorted."""

    def __init__(self, config: TransolverConfig) -> None:
        super().__init__()
        width, self.n_heads = config.width, config.n_heads
        size = width // self.n_heads
        self.slicing = Slicing(width, self.n_heads, config.n_slices)
        self.value: nn.Module | None = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.among = nn.Linear(size, 3 * size, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Mix (batch, n, width)."""
        weights, placed = self.slicing(x)
        values = placed if self.value is None else split_heads(self.value(x), self.n_heads)
        tokens = slice_means(weights, values, mask)
        q, k, v = self.among(tokens).chunk(3, dim=-1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        mixed = functional.softmax(scores, dim=-1) @ v
        return self.out(merge_heads(weights @ mixed))


class Transolver(PointModel):
    """The operator."""

    def __init__(self, config: TransolverConfig) -> None:
        super().__init__(config, (PhysicsAttention(config) for _ in range(config.n_layers)))

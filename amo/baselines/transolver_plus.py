"""Transolver++ (Luo et al., 2025): Transolver with sharper slices.

Every point has a temperature of its own, and Gumbel noise in training makes slices commit; tokens
are averages of the very features that were sorted, which saves a projection.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.baselines.points import PointModel
from amo.baselines.transolver import PhysicsAttention, Slicing, TransolverConfig


class EideticSlicing(Slicing):
    """Weights softmax((Linear(x) + Gumbel noise) / τ(x)), the noise in training only."""

    def __init__(self, width: int, n_heads: int, n_slices: int) -> None:
        super().__init__(width, n_heads, n_slices)
        size = width // n_heads
        self.own_temperature = nn.Sequential(
            nn.Linear(size, n_slices), nn.GELU(), nn.Linear(n_slices, 1), nn.GELU()
        )

    def weigh(self, placed: Tensor) -> Tensor:
        """Return the weights of what is to be sorted."""
        scores = self.score(placed)
        if self.training:
            uniform = torch.rand_like(scores).clamp_min(1e-8)
            scores = scores - torch.log(-torch.log(uniform) + 1e-8)
        temperature = (self.temperature + self.own_temperature(placed)).clamp_min(0.01)
        return functional.softmax(scores / temperature, dim=-1)


class EideticAttention(PhysicsAttention):
    """Physics-attention whose tokens are means of the sorted features themselves."""

    def __init__(self, config: TransolverConfig) -> None:
        super().__init__(config)
        self.slicing = EideticSlicing(config.width, config.n_heads, config.n_slices)
        self.value = None


class TransolverPlus(PointModel):
    """The operator."""

    def __init__(self, config: TransolverConfig) -> None:
        super().__init__(config, (EideticAttention(config) for _ in range(config.n_layers)))

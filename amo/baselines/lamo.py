"""LaMO, the latent Mamba operator (Tiwari et al., 2025): Transolver's slices round a Mamba mixer.

Slices of the points become latent tokens, a bidirectional state-space model mixes the tokens, and
the points get the answer back by the same weights. The mixer is AMO's, which runs on a CPU. It
answers at its input points.
"""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from amo.baselines.points import PointModel, merge_heads, split_heads
from amo.baselines.transolver import Slicing, TransolverConfig, slice_means
from amo.layers.ssm import Mixer


@dataclass(frozen=True, kw_only=True)
class LaMOConfig(TransolverConfig):
    """Sizes of the model: Transolver's, and the mixer's."""

    state_size: int = 16
    conv_width: int = 4
    expansion: int = 2
    mixer: Literal["none", "bi"] = "bi"


class LatentMamba(nn.Module):
    """Slice, z + Mixer(LN z) over the slices, deslice."""

    def __init__(self, config: LaMOConfig) -> None:
        super().__init__()
        width, self.n_heads = config.width, config.n_heads
        self.slicing = Slicing(width, self.n_heads, config.n_slices)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.mixer: nn.Module | None = None
        if config.mixer != "none":
            self.mixer = Mixer(
                config.mixer,
                config.n_slices,
                width,
                state_size=config.state_size,
                conv_width=config.conv_width,
                expansion=config.expansion,
            )

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Mix (batch, n, width)."""
        weights, _ = self.slicing(x)
        tokens = merge_heads(slice_means(weights, split_heads(self.value(x), self.n_heads), mask))
        if self.mixer is not None:
            tokens = tokens + self.mixer(tokens)
        return self.out(merge_heads(weights @ split_heads(tokens, self.n_heads)))


class LaMO(PointModel):
    """The operator."""

    def __init__(self, config: LaMOConfig) -> None:
        super().__init__(config, (LatentMamba(config) for _ in range(config.n_layers)))

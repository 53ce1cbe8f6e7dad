"""Fourier Neural Operator (Li et al., 2021), on a regular grid only.

Layers x → GELU(K x + W x): K multiplies the lowest Fourier modes by learned matrices, W is a linear
map of channels at every point; no GELU after the last.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from amo.baselines.grid import (
    ChannelsFirst,
    GridModel,
    SpectralConvolution,
    check_grid,
    padded_lengths,
)


@dataclass(frozen=True, kw_only=True)
class FNOConfig:
    """Sizes of the model; see :class:`amo.baselines.grid.GridConfig` for the first ones.

    Attributes
    ----------
    modes
        Of each sign along each axis.
    n_layers
        Spectral layers.
    """

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    grid: tuple[int, ...]
    n_outputs: int = 1
    width: int = 32
    modes: int = 12
    n_layers: int = 4
    padding: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", check_grid(self, self.modes))


class FourierLayer(nn.Module):
    """GELU(K x + W x), or without the GELU."""

    def __init__(self, config: FNOConfig, *, is_last: bool) -> None:
        super().__init__()
        axes = tuple(range(-config.n_dimensions, 0))
        self.is_last = is_last
        self.spectral = SpectralConvolution(config.width, config.modes, axes)
        self.local = ChannelsFirst(nn.Linear(config.width, config.width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, width, *grid)."""
        y = self.spectral(x) + self.local(x)
        return y if self.is_last else functional.gelu(y)


class FNO(GridModel):
    """The operator."""

    def __init__(self, config: FNOConfig) -> None:
        n = config.n_layers
        layers = (FourierLayer(config, is_last=i == n - 1) for i in range(n))
        super().__init__(config, layers, padded_lengths(config))

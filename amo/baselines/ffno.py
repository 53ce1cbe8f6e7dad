"""Factorised Fourier Neural Operator (Tran et al., 2023), on a regular grid only.

Layers x → x + FFN(Σ_axis K_axis x): one transform for each axis instead of one over all, so modes
cost their number and not its square, and a residual round the whole layer, so depth is safe.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from amo.baselines.grid import (
    ChannelsFirst,
    GridModel,
    SpectralConvolution,
    check_grid,
    padded_lengths,
)
from amo.layers.feedforward import MLP


@dataclass(frozen=True, kw_only=True)
class FFNOConfig:
    """Sizes of the model; see :class:`amo.baselines.fno.FNOConfig`."""

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    grid: tuple[int, ...]
    n_outputs: int = 1
    width: int = 64
    modes: int = 16
    n_layers: int = 4
    padding: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", check_grid(self, self.modes))


class FactorisedLayer(nn.Module):
    """x + FFN(Σ_axis K_axis x)."""

    def __init__(self, config: FFNOConfig) -> None:
        super().__init__()
        self.spectral = nn.ModuleList(
            SpectralConvolution(config.width, config.modes, (axis,))
            for axis in range(-config.n_dimensions, 0)
        )
        self.feedforward = ChannelsFirst(MLP(config.width, 2 * config.width, config.width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, width, *grid)."""
        mixed = sum((one(x) for one in self.spectral), start=x.new_zeros(()))
        return x + self.feedforward(mixed)


class FFNO(GridModel):
    """The operator."""

    def __init__(self, config: FFNOConfig) -> None:
        layers = (FactorisedLayer(config) for _ in range(config.n_layers))
        super().__init__(config, layers, padded_lengths(config))

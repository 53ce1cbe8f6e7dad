"""Implicit Fourier Neural Operator (You et al., 2022), on a regular grid only.

One Fourier layer is repeated, x → x + GELU(K x + W x + c) / depth: Euler's method for the flow
x' = GELU(K x + W x + c) over unit time. All depths share its weights, so a model may be trained
shallow and made deeper: the answers converge, with order one in 1 / depth.

Paper: ReLU. GELU as in the other models here; a smooth flow is what gives Euler's method its order.
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
from amo.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class IFNOConfig:
    """Sizes of the model; see :class:`amo.baselines.fno.FNOConfig`.

    Attributes
    ----------
    depth
        How often the layer is repeated; its paper has 3, 6, 12 and 24.
    """

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    grid: tuple[int, ...]
    n_outputs: int = 1
    width: int = 32
    modes: int = 12
    depth: int = 12
    padding: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", check_grid(self, self.modes))
        if self.depth < 1:
            raise SettingsError(f"depth must be at least 1, got {self.depth}")


class FourierFlow(nn.Module):
    """Euler's method for x' = GELU(K x + W x + c) over unit time, in ``depth`` steps."""

    def __init__(self, config: IFNOConfig) -> None:
        super().__init__()
        self.depth = config.depth
        axes = tuple(range(-config.n_dimensions, 0))
        self.spectral = SpectralConvolution(config.width, config.modes, axes)
        self.local = ChannelsFirst(nn.Linear(config.width, config.width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, width, *grid)."""
        for _ in range(self.depth):
            x = x + functional.gelu(self.spectral(x) + self.local(x)) / self.depth
        return x


class IFNO(GridModel):
    """The operator."""

    def __init__(self, config: IFNOConfig) -> None:
        super().__init__(config, [FourierFlow(config)], padded_lengths(config))

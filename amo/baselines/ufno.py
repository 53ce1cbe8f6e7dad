"""U-FNO (Wen et al., 2022), on a regular grid only.

A Fourier Neural Operator whose later layers add a small U-Net, x → GELU(K x + W x + U x), for what
is too local for a few modes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.baselines.fno import FNOConfig, FourierLayer
from amo.baselines.grid import CONVOLUTIONS, INTERPOLATIONS, GridModel, padded_lengths
from amo.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class UFNOConfig(FNOConfig):
    """Sizes of the model.

    Attributes
    ----------
    n_unet_layers
        How many of the layers, the last ones, have a U-Net.
    """

    n_unet_layers: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.n_unet_layers <= self.n_layers:
            raise SettingsError(
                f"n_unet_layers must be 0 to {self.n_layers}, got {self.n_unet_layers}"
            )


class UNet(nn.Module):
    """Two halvings of the grid and two doublings, with a way across at each size."""

    def __init__(self, width: int, n_dimensions: int) -> None:
        super().__init__()
        convolution = CONVOLUTIONS[n_dimensions]
        self.mode = INTERPOLATIONS[n_dimensions]
        self.down = nn.ModuleList(
            convolution(width, width, 3, stride=2, padding=1) for _ in range(2)
        )
        self.up = nn.ModuleList(convolution(2 * width, width, 3, padding=1) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, width, *grid)."""
        across = []
        for down in self.down:
            across.append(x)
            x = functional.gelu(down(x))
        for up, beside in zip(self.up, reversed(across), strict=True):
            x = functional.interpolate(x, size=beside.shape[2:], mode=self.mode)
            x = functional.gelu(up(torch.cat([x, beside], dim=1)))
        return x


class UFourierLayer(FourierLayer):
    """GELU(K x + W x + U x)."""

    def __init__(self, config: UFNOConfig, *, is_last: bool) -> None:
        super().__init__(config, is_last=is_last)
        self.unet = UNet(config.width, config.n_dimensions)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, width, *grid)."""
        y = self.spectral(x) + self.local(x) + self.unet(x)
        return y if self.is_last else functional.gelu(y)


class UFNO(GridModel):
    """The operator."""

    def __init__(self, config: UFNOConfig) -> None:
        n, n_plain = config.n_layers, config.n_layers - config.n_unet_layers
        plain = [FourierLayer(config, is_last=i == n - 1) for i in range(n_plain)]
        others = [UFourierLayer(config, is_last=i == n - 1) for i in range(n_plain, n)]
        super().__init__(config, [*plain, *others], padded_lengths(config))

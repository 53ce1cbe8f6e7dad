"""State-space blocks given by banks of transfer functions, on any lattice of tokens.

    v = W_b x,  f = F_d … F_1 v,  g = f ⊙ W_g x,  x ← x + W_3 GELU(W_1 g + W_2 x)

F_k filters along axis k in both directions, and the product with W_g x is Mamba's gate. Hidden
functions are (width, batch, *places): a map of channels is one matrix product. On a grid the places
are the tokens; on a cloud they are its points, and v goes to the tokens and f comes back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from torch import Tensor, nn
from torch.nn import functional

from amo.errors import SettingsError
from amo.layers.feedforward import MLP
from amo.layers.transfer_bank import BankBasis, BankPoles, Delays, TransferBank, convolve


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """Sizes and choices of the blocks.

    Attributes
    ----------
    width, n_blocks, n_heads
        Channels, blocks, and groups of channels that share poles.
    n_poles
        Of each head, block and axis.
    poles, delays
        Learned once, adaptive to each input, or left where they start; see
        :class:`amo.layers.transfer_bank.TransferBank`. Axes that are no torus have no delays.
    basis, directions, is_gated
        Orthogonal functions or plain kernels; scans one or two ways; with or without the gate.
    """

    width: int = 40
    n_blocks: int = 4
    n_heads: int = 4
    n_poles: int = 8
    poles: BankPoles = "learned"
    delays: Delays = "none"
    basis: BankBasis = "orthogonal"
    directions: Literal[1, 2] = 2
    is_gated: bool = True

    def __post_init__(self) -> None:
        if self.width % self.n_heads:
            raise SettingsError(f"width {self.width} is no multiple of {self.n_heads} heads")
        if self.n_poles < 2:
            raise SettingsError("at least two poles are needed")
        if self.directions not in (1, 2):
            raise SettingsError(f"directions must be 1 or 2, got {self.directions!r}")
        for name, kind in (("poles", BankPoles), ("delays", Delays), ("basis", BankBasis)):
            if getattr(self, name) not in get_args(kind):
                raise SettingsError(f"{name} must be one of {get_args(kind)}")


class Exchange(Protocol):
    """How functions at points become functions on tokens, and come back."""

    def gather(self, x: Tensor) -> Tensor:
        """Map (width, batch, n_points) to (width, batch, *tokens)."""

    def scatter(self, x: Tensor) -> Tensor:
        """Map (width, batch, *tokens) to (width, batch, n_points)."""


class FilterBlock(nn.Module):
    """One state-space block: filters along all axes, gate, pointwise map, residual stream."""

    def __init__(self, width: int, *, is_gated: bool) -> None:
        super().__init__()
        self.is_gated = is_gated
        self.enter = nn.Linear(width, (3 if is_gated else 2) * width)  # W_b, W_2, W_g
        self.mix = nn.Linear(width, width, bias=False)  # W_1
        self.leave = nn.Linear(width, width)  # W_3

    def forward(
        self, x: Tensor, filters: Sequence[Tensor], exchange: Exchange | None = None
    ) -> Tensor:
        """Map (width, batch, *places), filtered by one kernel (width, [batch,] n_lags) an axis."""
        entered = channels(x, self.enter).chunk(3 if self.is_gated else 2)
        filtered = entered[0] if exchange is None else exchange.gather(entered[0])
        for axis, kernel in enumerate(filters, start=2):
            filtered = convolve(filtered, kernel, axis)
        if exchange is not None:
            filtered = exchange.scatter(filtered)
        if self.is_gated:
            filtered = filtered * entered[2]
        hidden = functional.gelu(channels(filtered, self.mix) + entered[1])
        return x + channels(hidden, self.leave)


class FilterBlocks(nn.Module):
    """All blocks, and the banks that hold their filters along each axis of the tokens."""

    def __init__(
        self, config: FilterConfig, tokens: tuple[int, ...], periodic: tuple[bool, ...]
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.banks = nn.ModuleList(
            TransferBank(
                config.n_blocks,
                config.n_heads,
                config.width,
                config.n_poles,
                n,
                is_periodic=is_periodic,
                poles=config.poles,
                delays=config.delays if is_periodic else "none",
                basis=config.basis,
                directions=config.directions,
            )
            for n, is_periodic in zip(tokens, periodic, strict=True)
        )
        self.blocks = nn.ModuleList(
            FilterBlock(config.width, is_gated=config.is_gated) for _ in range(config.n_blocks)
        )

    def forward(self, x: Tensor, exchange: Exchange | None = None) -> Tensor:
        """Map (width, batch, *places)."""
        tokens = x if exchange is None else exchange.gather(x)
        summary = tokens.flatten(2).mean(-1).T  # what adaptive filters follow
        along = zip(self.banks, self.tokens, strict=True)
        kernels = [bank(n, summary) for bank, n in along]
        for number, block in enumerate(self.blocks):
            x = block(x, [kernel[number] for kernel in kernels], exchange)
        return x


def channels(x: Tensor, layer: nn.Linear | MLP) -> Tensor:
    """Apply a map of channels to the first axis: one matrix product without a copy."""
    if isinstance(layer, MLP):
        return channels(functional.gelu(channels(x, layer.first)), layer.last)
    y = layer.weight @ x.flatten(1)
    if layer.bias is not None:
        y = y + layer.bias.unsqueeze(-1)
    return y.unflatten(1, x.shape[1:])

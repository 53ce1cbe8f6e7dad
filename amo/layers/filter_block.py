"""State-space blocks given by banks of transfer functions, on any lattice of tokens.

    v = W_b x,  f = F_d … F_1 v,  g = f ⊙ W_g x,  x ← x + W_3 GELU(W_1 g + W_2 x)

F_k filters along axis k in both directions, or scans selectively along it, and the product with
W_g x is Mamba's gate. Hidden functions are (width, batch, *places): a map of channels is one matrix
product. On a grid the places are the tokens; on a cloud they are its points, and v goes to the
tokens and f comes back.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, cast, get_args

from torch import Tensor, nn
from torch.nn import functional

from amo.errors import SettingsError
from amo.layers.feedforward import MLP
from amo.layers.ssm import SelectiveSSM
from amo.layers.transfer_bank import BankBasis, BankPoles, Delays, TransferBank, convolve

AxisMixer = Literal["filters", "scan"]
_POLES = {"poles": "learned", "delays": "none", "basis": "orthogonal"}  # what a scan has none of


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
    mixer, state_size
        Banks of filters, or Mamba's selective scans with states of that size, which have no poles.
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
    mixer: AxisMixer = "filters"
    state_size: int = 8

    def __post_init__(self) -> None:
        if self.width % self.n_heads:
            raise SettingsError(f"width {self.width} is no multiple of {self.n_heads} heads")
        if self.n_poles < 2:
            raise SettingsError("at least two poles are needed")
        if self.directions not in (1, 2):
            raise SettingsError(f"directions must be 1 or 2, got {self.directions!r}")
        for name, kind in (
            ("poles", BankPoles),
            ("delays", Delays),
            ("basis", BankBasis),
            ("mixer", AxisMixer),
        ):
            if getattr(self, name) not in get_args(kind):
                raise SettingsError(f"{name} must be one of {get_args(kind)}")
        if self.mixer == "scan":
            for name, only in _POLES.items():
                if getattr(self, name) != only:
                    raise SettingsError(f"a scan has no poles to choose: leave {name} at {only!r}")


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
        self, x: Tensor, mix: Callable[[Tensor], Tensor], exchange: Exchange | None = None
    ) -> Tensor:
        """Map (width, batch, *places); ``mix`` mixes tokens (width, batch, *tokens)."""
        entered = channels(x, self.enter).chunk(3 if self.is_gated else 2)
        mixed = mix(entered[0] if exchange is None else exchange.gather(entered[0]))
        if exchange is not None:
            mixed = exchange.scatter(mixed)
        if self.is_gated:
            mixed = mixed * entered[2]
        hidden = functional.gelu(channels(mixed, self.mix) + entered[1])
        return x + channels(hidden, self.leave)


class AxisScans(nn.Module):
    """Selective scans along every axis in turn, each the mean over its directions."""

    def __init__(self, width: int, n_axes: int, directions: int, state_size: int) -> None:
        super().__init__()
        self.axes = nn.ModuleList(
            nn.ModuleList(
                SelectiveSSM(width, state_size, conv_width=4, expansion=1)
                for _ in range(directions)
            )
            for _ in range(n_axes)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map (width, batch, *tokens)."""
        for axis, scans in enumerate(cast("list[nn.ModuleList]", self.axes), start=2):
            lines = x.movedim((0, axis), (-1, -2))
            flat = lines.flatten(0, -3)
            mixed = scans[0](flat)
            if len(scans) == 2:  # and backwards
                mixed = 0.5 * (mixed + scans[1](flat.flip(1)).flip(1))
            x = mixed.view_as(lines).movedim((-1, -2), (0, axis))
        return x


class FilterBlocks(nn.Module):
    """All blocks, and the banks that hold their filters along each axis of the tokens."""

    def __init__(
        self, config: FilterConfig, tokens: tuple[int, ...], periodic: tuple[bool, ...]
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.banks, self.scans = nn.ModuleList(), nn.ModuleList()
        if config.mixer == "scan":
            self.scans.extend(
                AxisScans(config.width, len(tokens), config.directions, config.state_size)
                for _ in range(config.n_blocks)
            )
        else:
            self.banks.extend(
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
        mixers = self.scans or self._filters(x, exchange)
        for block, mix in zip(self.blocks, mixers, strict=True):
            x = block(x, mix, exchange)
        return x

    def _filters(
        self, x: Tensor, exchange: Exchange | None
    ) -> Iterator[Callable[[Tensor], Tensor]]:
        """Yield the filters of each block along all axes; all banks are evaluated at once."""
        tokens = x if exchange is None else exchange.gather(x)
        summary = tokens.flatten(2).mean(-1).T  # what adaptive filters follow
        along = zip(self.banks, self.tokens, strict=True)
        kernels = [bank(n, summary) for bank, n in along]
        for number in range(len(self.blocks)):
            yield partial(_filtered, kernels=[kernel[number] for kernel in kernels])


def _filtered(x: Tensor, kernels: Sequence[Tensor]) -> Tensor:
    """Return tokens filtered along every axis in turn, by kernels (width, [batch,] n_lags)."""
    for axis, kernel in enumerate(kernels, start=2):
        x = convolve(x, kernel, axis)
    return x


def channels(x: Tensor, layer: nn.Linear | MLP) -> Tensor:
    """Apply a map of channels to the first axis: one matrix product without a copy."""
    if isinstance(layer, MLP):
        return channels(functional.gelu(channels(x, layer.first)), layer.last)
    y = layer.weight @ x.flatten(1)
    if layer.bias is not None:
        y = y + layer.bias.unsqueeze(-1)
    return y.unflatten(1, x.shape[1:])

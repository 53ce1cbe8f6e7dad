"""Bidirectional selective state-space mixer (Mamba-1) over the latent tokens."""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.errors import SettingsError
from amo.layers.precision import at_least_float32, full_precision
from amo.layers.scan import selective_scan, selective_scan_reference

MixerKind = Literal["none", "uni", "bi", "multi"]


class SelectiveSSM(nn.Module):
    """One Mamba-1 mixer: expand, short causal convolution, selective scan, gate, contract.

    Δ, b and c depend on the token, A does not: h_t = exp(Δ_t A) h_{t-1} + Δ_t b_t x_t,
    y_t = <c_t, h_t> + D x_t.

    Parameters
    ----------
    width
        Size of a token.
    state_size, conv_width, expansion
        The usual 16, 4 and 2.
    """

    # The plain loop instead of the fused operator, which differentiates once.
    is_plain: bool = False

    def __init__(self, width: int, state_size: int, conv_width: int, expansion: int) -> None:
        super().__init__()
        n_channels = expansion * width
        self.sizes = [math.ceil(width / 16), state_size, state_size]
        self.expand = nn.Linear(width, 2 * n_channels, bias=False)
        bound = 1.0 / math.sqrt(conv_width)
        self.filter = nn.Parameter(torch.empty(conv_width, n_channels).uniform_(-bound, bound))
        self.filter_bias = nn.Parameter(torch.zeros(n_channels))
        self.select = nn.Linear(n_channels, sum(self.sizes), bias=False)
        self.step = nn.Linear(self.sizes[0], n_channels)
        self.log_decay = nn.Parameter(
            torch.log(torch.arange(1.0, state_size + 1.0)).unsqueeze(-1).repeat(1, n_channels)
        )
        self.skip = nn.Parameter(torch.ones(n_channels))
        self.contract = nn.Linear(n_channels, width, bias=False)
        with torch.no_grad():  # steps between 1e-3 and 1e-1 at the start, as Mamba does
            steps = torch.exp(torch.empty(n_channels).uniform_(math.log(1e-3), math.log(1e-1)))
            self.step.bias.copy_(steps + torch.log(-torch.expm1(-steps)))
            scale = self.sizes[0] ** -0.5
            self.step.weight.uniform_(-scale, scale)

    def forward(self, tokens: Tensor) -> Tensor:
        """Mix (batch, n_tokens, width) causally."""
        signal, gate = self.expand(tokens).chunk(2, dim=-1)
        signal = functional.silu(self._convolve(signal))
        rank, into, out = self.select(signal).split(self.sizes, dim=-1)
        step = functional.softplus(self.step(rank))
        scan = selective_scan_reference if self.is_plain else selective_scan
        with full_precision(tokens):
            decay = -torch.exp(self.log_decay)
            y = scan(*(at_least_float32(x) for x in (step, signal, decay, into, out)))
        return self.contract((y + self.skip * signal) * functional.silu(gate))

    def _convolve(self, signal: Tensor) -> Tensor:
        """Convolve every channel with its own short causal filter."""
        length, taps = signal.shape[1], len(self.filter)
        padded = functional.pad(signal, (0, 0, taps - 1, 0))
        filtered = self.filter_bias + padded[:, :length] * self.filter[0]
        for k in range(1, taps):
            filtered = filtered + padded[:, k : k + length] * self.filter[k]
        return filtered


class Mixer(nn.Module):
    """The mean of unshared mixers of LN(tokens), each over its own order of the tokens.

    ``uni`` reads forwards; ``bi`` forwards and backwards; ``multi`` also along the columns of the
    square of tokens, both ways.
    """

    def __init__(self, kind: MixerKind, n_tokens: int, width: int, **sizes: int) -> None:
        super().__init__()
        orders = scan_orders(kind, n_tokens)
        self.norm = nn.LayerNorm(width)
        self.mixers = nn.ModuleList(SelectiveSSM(width, **sizes) for _ in orders)
        self.register_buffer("orders", torch.stack(orders), persistent=False)
        self.register_buffer(
            "inverses", torch.stack([o.argsort() for o in orders]), persistent=False
        )
        self.orders: Tensor
        self.inverses: Tensor

    def forward(self, tokens: Tensor) -> Tensor:
        """Mix (batch, n_tokens, width)."""
        tokens = self.norm(tokens)
        mixed = [self.mixers[0](tokens)]  # the first order is that of the tokens
        mixed += [
            mixer(tokens[:, order])[:, inverse]
            for mixer, order, inverse in zip(
                self.mixers[1:], self.orders[1:], self.inverses[1:], strict=True
            )
        ]
        return torch.stack(mixed).mean(0)


def scan_orders(kind: MixerKind, n_tokens: int) -> list[Tensor]:
    """Return the orders in which the tokens are read."""
    forward = torch.arange(n_tokens)
    if kind == "uni":
        return [forward]
    if kind == "bi":
        return [forward, forward.flip(0)]
    side = math.isqrt(n_tokens)
    if side * side != n_tokens:
        raise SettingsError(f"mixer 'multi' needs a square number of tokens, got {n_tokens}")
    column = forward.view(side, side).T.flatten()
    return [forward, forward.flip(0), column, column.flip(0)]

"""TM: adaptive poles, the Takenaka–Malmquist functions they span, and the coefficients on them."""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from amo import takenaka_malmquist as tm
from amo.layers.feedforward import MLP
from amo.layers.precision import at_least_float32, full_precision

PoleKind = Literal["adaptive", "learned-static", "random-static"]
BasisKind = Literal["orthogonal", "kernel"]
_GOLDEN_ANGLE = math.pi * (3.0 - math.sqrt(5.0))
_START_RADIUS = 0.5


class Projection(NamedTuple):
    """One block's share of the decomposition.

    Attributes
    ----------
    poles
        (batch, n_poles, 2).
    bases
        Real and imaginary part, (batch, n_poles, n_tokens).
    coefficients
        Real and imaginary part, (batch, n_poles, width).
    captured
        The projection itself, (batch, n_tokens, width).
    """

    poles: Tensor
    bases: tm.Complex
    coefficients: tm.Complex
    captured: Tensor


class TMLayer(nn.Module):
    """T = 2 Re Σ_k <u, B_k> B_k on this block's own poles, continued after those before.

    a = r w tanh|w| / |w| with w predicted from the mean token: inside the disc of radius r, smooth
    at zero. They start at radius one half, at golden angles that go on from block to block.

    Paper: every block predicts all poles up to its own again, which destroys orthonormality across
    blocks; here each adds its own and passes the Blaschke phase on. The mean token makes poles
    independent of the order of tokens.
    """

    def __init__(
        self,
        width: int,
        n_tokens: int,
        n_poles: int,
        *,
        first_pole: int,
        poles: PoleKind = "adaptive",
        basis: BasisKind = "orthogonal",
    ) -> None:
        super().__init__()
        self.n_poles, self.basis = n_poles, basis
        self.radius = tm.largest_radius(n_tokens)
        start = _golden_spiral(first_pole, n_poles, self.radius)
        self.network: nn.Module | None = None
        if poles == "adaptive":
            self.norm = nn.LayerNorm(width)
            network = MLP(width, max(width // 4, 8), 2 * n_poles)
            last = network.last
            with torch.no_grad():
                last.weight.mul_(0.1)
                last.bias.copy_(start.flatten())
            self.network = network
        elif poles == "learned-static":
            self.raw_poles: Tensor = nn.Parameter(start)
        else:
            self.register_buffer("raw_poles", _random_disc(n_poles))

    def poles(self, tokens: Tensor) -> Tensor:
        """Return the poles (batch, n_poles, 2) that the tokens ask for."""
        if self.network is None:
            raw = self.raw_poles.expand(len(tokens), -1, -1)
        else:
            raw = self.network(self.norm(tokens).mean(dim=1)).unflatten(-1, (self.n_poles, 2))
        raw = at_least_float32(raw)
        length = torch.sqrt(raw.square().sum(-1, keepdim=True) + 1e-12)
        return self.radius * torch.tanh(length) / length * raw

    def forward(self, tokens: Tensor, carry: Tensor | None) -> tuple[Projection, Tensor]:
        """Project tokens (batch, n_tokens, width); return the share and the carry to pass on.

        Without a carry this is the first block, and the constant, the function of a pole at zero,
        is projected on as well.
        """
        poles = self.poles(tokens)
        with full_precision(tokens):
            tokens = at_least_float32(tokens)
            angles = tm.circle(tokens.shape[1], tokens)
            is_first = carry is None
            if carry is None:
                carry = angles  # the phase of z, the Blaschke factor of the pole at zero
            if self.basis == "orthogonal":
                bases, carry = tm.takenaka_malmquist(poles, angles, carry)
            else:
                bases = tm.normalised_kernel(poles, angles)
            coefficients = tm.inner_product(tokens, bases)
            captured = tm.synthesise(coefficients, bases)
            if is_first:
                captured = captured + tokens.mean(dim=1, keepdim=True)
        return Projection(poles, bases, coefficients, captured), carry


def _golden_spiral(first: int, count: int, radius: float) -> Tensor:
    """Return raw poles that map to radius one half, or less in a small disc, at golden angles."""
    angle = _GOLDEN_ANGLE * torch.arange(first, first + count)
    length = math.atanh(min(_START_RADIUS / radius, 0.6))
    return length * torch.stack([torch.cos(angle), torch.sin(angle)], dim=-1)


def _random_disc(count: int) -> Tensor:
    """Return raw poles that map to points uniform in the disc."""
    angle = 2.0 * math.pi * torch.rand(count)
    length = torch.atanh(0.999 * torch.sqrt(torch.rand(count)))
    return torch.stack([length * torch.cos(angle), length * torch.sin(angle)], dim=-1)

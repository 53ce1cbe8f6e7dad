"""Banks of Takenaka–Malmquist filters along the axes of a grid.

A filter is a state-space system given by its transfer function: on the circle

    H(ω) = Σ_k C_k γ_k conj B_k(e^{iω}) + conj Σ_k C'_k γ_k conj B_k(e^{iω}),

where B_k is the Takenaka–Malmquist system of the poles a_1 … a_k; its kernel is the real part of
the impulse response. The first sum is causal, the second anti-causal: the two directions in which a
state-space block may scan. γ_k bounds each term by one: max |B_k| = sqrt((1 + |a_k|)/(1 - |a_k|)).

Poles are per length, and an axis has length one: n tokens are 1/n apart. With s = -decay + i
wavenumber a pole on a grid of spacing h is the bilinear transform a = (1 + s h/2) / (1 - s h/2).
Blaschke factors of the half-plane become Blaschke factors of the disc, at the frequency
p = 2i/h tan(ωh/2) for iω, up to a phase that is taken off. The kernels keep a factor 1 + p h/2,
which is set to that of one reference grid, and so is γ. Thus H is one function of p on all grids:
on a torus, a filter moves to a finer grid with an error of second order.

On a torus a filter may also be delayed by a share d of the axis, H e^{-2πimd} at wavenumber m: the
limit of Blaschke products of poles at zero, pure phase. Poles and delays are learned once, or
predicted from each input (adaptive): then every sample has its own kernels.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo import takenaka_malmquist as tm
from amo.errors import SettingsError
from amo.layers.feedforward import MLP
from amo.layers.precision import at_least_float32, full_precision

BankPoles = Literal["learned", "adaptive", "fixed", "random"]
Delays = Literal["none", "learned", "adaptive"]
BankBasis = Literal["orthogonal", "kernel"]
_STENCIL = 3  # poles near zero at the start: a local stencil
_NEAR_ZERO = 1.8  # their decay over one spacing: 2 is a pole at zero, a pure delay
_TINY = 1e-12  # under a square root, for its gradient at a pole at zero
_DENSE = 128  # points up to which a filter is applied as a matrix
# An optimiser such as Adam moves every number alike: what is stored is divided by these.
_COEFFICIENT_RATE, _POLE_RATE, _DELAY_RATE = 5.0, 3.0, 10.0


class Poles(NamedTuple):
    """Decay and wavenumber per unit length, (..., n_poles) each."""

    decay: Tensor
    wavenumber: Tensor

    def on(self, spacing: float | Tensor) -> Tensor:
        """Return the poles on a grid, (..., n_poles, 2), inside the unit disc."""
        decay, turn = 0.5 * spacing * self.decay, 0.5 * spacing * self.wavenumber
        size = (1.0 + decay).square() + turn.square()
        real = (1.0 - decay.square() - turn.square()) / size
        return torch.stack([real, 2.0 * turn / size], dim=-1)


def bound(poles: Tensor) -> Tensor:
    """Return γ = sqrt((1 - |a|) / (1 + |a|)) of poles (..., n_poles, 2)."""
    radius = torch.sqrt(poles.square().sum(-1) + _TINY)
    return torch.sqrt((1.0 - radius) / (1.0 + radius))


def responses(
    poles: Poles,
    spacing: float,
    n: int,
    basis: BankBasis = "orthogonal",
    ratio: float | Tensor = 1.0,
) -> tm.Complex:
    """Return the impulse responses of γ_k conj B_k over n samples, (..., n_poles, n).

    They are those of n equispaced frequencies: what lasts longer than n samples is wrapped around.
    ``ratio`` is that of the reference grid's spacing to this one's.
    """
    on_grid, angles = poles.on(spacing), tm.circle(n, poles.decay)
    if basis == "orthogonal":
        bases = tm.takenaka_malmquist(on_grid, angles)[0]
    else:
        bases = tm.normalised_kernel(on_grid, angles)
    angle = torch.atan2(on_grid[..., 1], 1.0 + on_grid[..., 0])
    phase = 2.0 * torch.cumsum(angle, dim=-1) - angle if basis == "orthogonal" else angle
    size = bound(poles.on(spacing * ratio)) * ratio**-0.5
    scale = torch.polar(size, phase).unsqueeze(-1)
    found = scale * torch.fft.ifft(torch.complex(bases[0], -bases[1]))
    # (1 + s h₀/2) / (1 + s h/2) on this grid: one tap, and none where the grids are the same
    found = 0.5 * ((1.0 + ratio) * found + (1.0 - ratio) * found.roll(1, -1))
    return found.real, found.imag


def kernels(coefficients: Tensor, found: tm.Complex) -> Tensor:
    """Return the real kernels of all channels over n lags, negative lags last.

    Parameters
    ----------
    coefficients
        (..., channels, n_poles, directions, 2): one or two directions, real and imaginary part.
    found
        From :func:`responses`, (..., n_poles, n).
    """
    real, imaginary = coefficients.unbind(-1)  # (..., channels, poles, directions)
    by_direction = torch.einsum("...ckd,...kn->...dcn", real, found[0]) - torch.einsum(
        "...ckd,...kn->...dcn", imaginary, found[1]
    )
    causal = by_direction[..., 0, :, :]
    if by_direction.shape[-3] == 1:
        return causal
    # time backwards: lag m stands where -m was
    return causal + by_direction[..., 1, :, :].flip(-1).roll(1, -1)


def delayed(x: Tensor, delay: Tensor) -> Tensor:
    """Move periodic functions (..., n) to the right by shares ``delay`` (...) of their period."""
    n = x.shape[-1]
    waves = torch.arange(n // 2 + 1, device=x.device, dtype=x.dtype)
    angle = -2.0 * math.pi * delay.unsqueeze(-1) * waves
    phase = torch.complex(torch.cos(angle), torch.sin(angle))  # twice as fast as polar, backwards
    return torch.fft.irfft(torch.fft.rfft(x) * phase, n=n)


def convolve(x: Tensor, kernel: Tensor, axis: int) -> Tensor:
    """Convolve x (width, batch, *grid) along one axis with kernels (width, n lags).

    With as many lags as points the convolution is circular; with twice as many it is linear.
    Kernels (width, batch, n lags) are each sample's own.
    """
    n_points, n_lags = x.shape[axis], kernel.shape[-1]
    with full_precision(x):
        x, kernel = at_least_float32(x), at_least_float32(kernel)
        if n_points <= _DENSE:
            index = torch.arange(n_points, device=x.device)
            matrix = kernel[..., (index[:, None] - index) % n_lags]
            letters = "xyz"[: x.ndim - 2]
            here = letters[axis - 2]
            moved = letters.replace(here, "j")
            own = "cb" if kernel.ndim == 3 else "c"
            return torch.einsum(f"{own}{here}j,cb{moved}->cb{letters}", matrix, x)
        spectrum = torch.fft.rfft(x, n=n_lags, dim=axis)
        shape = [*kernel.shape[:-1], *[1] * (x.ndim + 1 - kernel.ndim)]
        shape[axis] = n_lags // 2 + 1
        gain = torch.fft.rfft(kernel).reshape(shape)
        return torch.fft.irfft(spectrum * gain, n=n_lags, dim=axis).narrow(axis, 0, n_points)


class TransferBank(nn.Module):
    """The filters of all blocks along one axis, evaluated together.

    Parameters
    ----------
    n_blocks, n_heads, width, n_poles
        Channels share poles by head: each head has ``n_poles`` of them in every block.
    n_points
        Along the axis, where poles start: some near zero, the others damped modes whose windows
        halve from head to head.
    is_periodic
        Whether the axis is a torus.
    poles, delays
        Learned once, adaptive to a summary of the input, or left where they start: poles damped
        modes or random, delays none. Delays need a torus.
    directions
        One (causal) or two.
    """

    log_decay: Tensor
    turn: Tensor
    first_wavenumber: Tensor
    reference: Tensor

    def __init__(
        self,
        n_blocks: int,
        n_heads: int,
        width: int,
        n_poles: int,
        n_points: int,
        *,
        is_periodic: bool,
        poles: BankPoles = "learned",
        delays: Delays = "none",
        basis: BankBasis = "orthogonal",
        directions: Literal[1, 2] = 2,
    ) -> None:
        super().__init__()
        if delays != "none" and not is_periodic:
            raise SettingsError("a filter is delayed on a torus only")
        self.is_periodic, self.basis = is_periodic, basis
        decay, wavenumber = _start(n_heads, n_poles, n_points, poles)
        every = (n_blocks, n_heads, n_poles)
        self.register_buffer("reference", torch.tensor(float(n_points)))
        self.register_buffer("first_wavenumber", wavenumber.expand(every).clone())
        log_decay = torch.log(decay).expand(every) / _POLE_RATE
        is_learned = poles in ("learned", "adaptive")
        self._hold("log_decay", log_decay.clone(), learned=is_learned)
        self._hold("turn", torch.zeros(every), learned=is_learned)
        shape = (n_blocks, n_heads, width // n_heads, n_poles, directions, 2)
        scale = 1.0 / math.sqrt(2.0 * directions * n_poles)
        self.coefficients = nn.Parameter(torch.randn(shape) * scale / _COEFFICIENT_RATE)
        self.delay: Tensor | None = None
        if delays != "none":
            spread = torch.rand(n_blocks, width) - 0.5
            spread[:, ::2] = 0.0  # every second channel starts where it is
            self.delay = nn.Parameter(spread / _DELAY_RATE)
        self.pole_shifts = Prediction(width, (*every, 2)) if poles == "adaptive" else None
        self.delay_shifts = Prediction(width, (n_blocks, width)) if delays == "adaptive" else None

    def _hold(self, name: str, value: Tensor, *, learned: bool) -> None:
        if learned:
            self.register_parameter(name, nn.Parameter(value))
        else:
            self.register_buffer(name, value)

    def poles(self, summary: Tensor | None = None) -> Poles:
        """Return the poles of all blocks and heads, ([batch,] n_blocks, n_heads, n_poles).

        ``summary`` (batch, width) is what adaptive ones follow.
        """
        log_decay, turn = at_least_float32(self.log_decay), at_least_float32(self.turn)
        if self.pole_shifts is not None:
            shifts = at_least_float32(self.pole_shifts(_given(summary)))
            log_decay, turn = log_decay + shifts[..., 0], turn + shifts[..., 1]
        decay = torch.exp(_POLE_RATE * log_decay)
        return Poles(decay, self.first_wavenumber + decay * (_POLE_RATE * turn))

    def forward(self, n_points: int, summary: Tensor | None = None) -> Tensor:
        """Return the kernels on a grid of so many points, (n_blocks, width, [batch,] n_lags)."""
        with full_precision(self.coefficients):
            spacing, n_lags = 1.0 / n_points, n_points * (1 if self.is_periodic else 2)
            ratio = n_points / self.reference
            found = responses(self.poles(summary), spacing, n_lags, self.basis, ratio)
            if not self.is_periodic:  # later ones would be read as negative lags
                found = _first(found[0], n_points), _first(found[1], n_points)
            coefficients = _COEFFICIENT_RATE * at_least_float32(self.coefficients)
            kernel = kernels(coefficients, found).flatten(-3, -2)
            if self.delay is not None:
                delay = _DELAY_RATE * at_least_float32(self.delay)
                if self.delay_shifts is not None:
                    delay = delay + at_least_float32(self.delay_shifts(_given(summary)))
                kernel = delayed(kernel, delay)
            return kernel.movedim(0, -2) if kernel.ndim == 4 else kernel


class Prediction(nn.Module):
    """A prediction from a summary, shaped as the numbers that it shifts."""

    def __init__(self, n_inputs: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape
        self.network = MLP(n_inputs, n_inputs, math.prod(shape))
        nn.init.zeros_(self.network.last.weight)  # at first all inputs have the same filters
        nn.init.zeros_(self.network.last.bias)

    def forward(self, summary: Tensor) -> Tensor:
        """Map (batch, n_inputs) to (batch, *shape)."""
        return self.network(summary).unflatten(-1, self.shape)


def _given(summary: Tensor | None) -> Tensor:
    if summary is None:
        raise SettingsError("adaptive filters need a summary of the input")
    return summary


def _first(response: Tensor, n: int) -> Tensor:
    """Return a response whose samples from n on are zero."""
    return functional.pad(response[..., :n], (0, response.shape[-1] - n))


def _start(n_heads: int, n_poles: int, n_points: int, kind: BankPoles) -> tuple[Tensor, Tensor]:
    """Return decays and wavenumbers at the start, (n_heads, n_poles)."""
    if kind == "random":
        radius, angle = torch.rand(n_heads, n_poles).sqrt(), torch.rand(n_heads, n_poles)
        a = torch.polar(radius.clamp(max=0.99), 2.0 * math.pi * (angle - 0.5))
        s = 2.0 * n_points * (a - 1.0) / (a + 1.0)  # the bilinear transform inverted
        return -s.real, s.imag
    octave = 2.0 ** torch.arange(n_heads, dtype=torch.get_default_dtype())
    n_stencil = min(_STENCIL, n_poles - 1)
    near = torch.full((n_heads, n_stencil), _NEAR_ZERO * n_points)
    modes = torch.arange(n_poles - n_stencil)
    damped = (2.0 * octave).clamp(max=_NEAR_ZERO * n_points)[:, None].expand(-1, len(modes))
    decay = torch.cat([near, damped], dim=1)
    wavenumber = torch.cat([torch.zeros_like(near), math.pi * octave[:, None] * modes], dim=1)
    return decay, wavenumber

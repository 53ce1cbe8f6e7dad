"""The selective scan h_t = exp(Δ_t A) h_{t-1} + Δ_t b_t x_t, y_t = <c_t, h_t>, as one operator.

Autograd through a loop keeps a graph node for every step; here the whole recurrence is one node
with a hand-written adjoint, opaque to the compiler: compiled loops on a CPU, tensor operations
elsewhere. It differentiates once; ``selective_scan_reference`` is the plain loop, for higher
derivatives, forward mode and tests.
"""

from typing import Any

import torch
from torch import Tensor

from amo.layers import scan_kernels


def selective_scan(
    step: Tensor, signal: Tensor, decay: Tensor, into: Tensor, out: Tensor
) -> Tensor:
    """Run the recurrence from a zero state.

    Parameters
    ----------
    step
        Δ, (batch, length, channels), positive.
    signal
        x, (batch, length, channels).
    decay
        A, (state, channels), negative.
    into
        b, (batch, length, state).
    out
        c, (batch, length, state).

    Returns
    -------
    y
        (batch, length, channels).
    """
    is_plain = step.device.type == "cpu" and not torch.compiler.is_compiling()
    if is_plain and not torch.is_grad_enabled():
        return _scan_forgetful(step, step * signal, decay, into, out)
    y, _, _ = torch.ops.amo.selective_scan(step, step * signal, decay, into, out)
    return y


def _scan_forgetful(
    step: Tensor, drive: Tensor, decay: Tensor, into: Tensor, out: Tensor
) -> Tensor:
    """Return y where no gradient will be asked for: the states are not kept."""
    y = drive.new_empty(drive.shape)
    scan_kernels.scan_forgetful(*_arrays(drive, _factors(step, decay), into, out, y))
    return y


def _factors(step: Tensor, decay: Tensor) -> Tensor:
    """Return exp(Δ A), (batch, length, state, channels)."""
    return (step.contiguous().unsqueeze(-2) * decay.contiguous()).exp_()


def selective_scan_reference(
    step: Tensor, signal: Tensor, decay: Tensor, into: Tensor, out: Tensor
) -> Tensor:
    """Run the same recurrence step by step, differentiable as often as wanted."""
    factors = torch.exp(step.unsqueeze(-2) * decay).unbind(1)
    drives = ((step * signal).unsqueeze(-2) * into.unsqueeze(-1)).unbind(1)
    state = torch.zeros_like(drives[0])
    outputs = []
    for factor, drive, read in zip(factors, drives, out.unbind(1), strict=True):
        state = factor * state + drive
        outputs.append((state * read.unsqueeze(-1)).sum(-2))
    return torch.stack(outputs, dim=1)


@torch.library.custom_op("amo::selective_scan", mutates_args=())
def _scan(
    step: Tensor, drive: Tensor, decay: Tensor, into: Tensor, out: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return y, and for the adjoint the states and the factors exp(Δ A)."""
    factors = _factors(step, decay)
    if step.device.type == "cpu":
        y, states = drive.new_empty(drive.shape), drive.new_empty(factors.shape)
        scan_kernels.scan(*_arrays(drive, factors, into, out, y, states))
        return y, states, factors
    states = drive.unsqueeze(-2) * into.unsqueeze(-1)
    for t in range(1, states.shape[1]):
        states[:, t] += factors[:, t] * states[:, t - 1]
    return _contract(out, states), states, factors


@torch.library.custom_op("amo::selective_scan_adjoint", mutates_args=())
def _adjoint(
    gradient: Tensor,
    step: Tensor,
    drive: Tensor,
    decay: Tensor,
    into: Tensor,
    out: Tensor,
    states: Tensor,
    factors: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of step, drive, decay, into and out."""
    if step.device.type == "cpu":
        made = _zeros(step), _zeros(drive), _zeros(decay), _zeros(into), _zeros(out)
        given = (gradient, step, drive, decay, into, out, states, factors)
        scan_kernels.adjoint(*_arrays(*given, *made))
        return made
    held = gradient.unsqueeze(-2) * out.unsqueeze(-1)
    for t in range(held.shape[1] - 2, -1, -1):
        held[:, t] += factors[:, t + 1] * held[:, t + 1]
    exponent = held[:, 1:] * factors[:, 1:] * states[:, :-1]  # of Δ_t A; none at the first step
    grad_step = torch.zeros_like(step)
    grad_step[:, 1:] = (exponent * decay).sum(-2)
    return (
        grad_step,
        _contract(into, held),
        (exponent * step[:, 1:].unsqueeze(-2)).sum(dim=(0, 1)),
        (held @ drive.unsqueeze(-1)).squeeze(-1),
        (states @ gradient.unsqueeze(-1)).squeeze(-1),
    )


def _zeros(like: Tensor) -> Tensor:
    return like.new_zeros(like.shape)


def _contract(weights: Tensor, states: Tensor) -> Tensor:
    """Return Σ_n weights[..., n] states[..., n, :]."""
    return (weights.unsqueeze(-2) @ states).squeeze(-2)


def _arrays(*tensors: Tensor) -> list[Any]:
    """Return numpy views; inputs are made contiguous, which outputs already are."""
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


@_scan.register_fake
def _(
    step: Tensor, drive: Tensor, decay: Tensor, into: Tensor, out: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    batch, length, n_channels = drive.shape
    states = drive.new_empty(batch, length, decay.shape[0], n_channels)
    return drive.new_empty(drive.shape), states, torch.empty_like(states)


@_adjoint.register_fake
def _(
    gradient: Tensor,
    step: Tensor,
    drive: Tensor,
    decay: Tensor,
    into: Tensor,
    out: Tensor,
    states: Tensor,
    factors: Tensor,
) -> tuple[Tensor, ...]:
    return tuple(like.new_empty(like.shape) for like in (step, drive, decay, into, out))


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)  # nobody differentiates the states: no zeros for them
    ctx.save_for_backward(*inputs, *output[1:])


def _backward(ctx: Any, gradient: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    if gradient is None:
        return (None,) * 5
    return tuple(torch.ops.amo.selective_scan_adjoint(gradient, *ctx.saved_tensors))


_scan.register_autograd(_backward, setup_context=_save)

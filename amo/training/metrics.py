"""How far predictions are from the truth, sample by sample."""

import torch
from torch import Tensor


def relative_l2(prediction: Tensor, truth: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return ‖prediction - truth‖₂ / ‖truth‖₂ of each sample, (batch,).

    All points, channels and frames of a sample are one vector; the paper's figure is the mean over
    samples. ``mask`` (batch, n_points) is false where a point is padding. A sample whose truth is
    zero has no relative error; it counts as a very large one.
    """
    error, size = _masked(prediction - truth, mask), _masked(truth, mask)
    tiny = torch.finfo(truth.dtype).tiny
    return error.flatten(1).norm(dim=1) / size.flatten(1).norm(dim=1).clamp_min(tiny)


def squared_norm(values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the sum of squares of each sample, (batch,)."""
    return _masked(values, mask).square().flatten(1).sum(dim=1)


def largest_error(prediction: Tensor, truth: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the largest absolute error of each sample, (batch,)."""
    return _masked(prediction - truth, mask).abs().flatten(1).amax(dim=1)


def phase_errors(prediction: Tensor, truth: Tensor, least: float = 1e-2) -> Tensor:
    """Return the mean absolute phase error by wavenumber of periodic functions (batch, n_points).

    A sample counts at a wavenumber where the truth's amplitude is at least ``least`` of the batch's
    largest: rounding has no phase. Where no sample counts, the error is NaN.
    """
    found, wanted = torch.fft.rfft(prediction.double()), torch.fft.rfft(truth.double())
    error = (found * wanted.conj()).angle().abs()
    seen = wanted.abs() >= least * wanted.abs().max()
    return error.where(seen, 0.0).sum(0) / seen.sum(0)


def _masked(values: Tensor, mask: Tensor | None) -> Tensor:
    return values if mask is None else values.masked_fill(~mask.unsqueeze(-1), 0.0)

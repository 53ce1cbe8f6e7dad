"""Takenaka–Malmquist functions seen as filters: compressed shift, transfer function, RTF form.

Complex arithmetic in double precision, for theory, export and tests. The operator itself evaluates
``amo.takenaka_malmquist`` in real arithmetic: polynomial coefficients are ill-conditioned (a
float32 round trip loses 7e-4 with 8 poles and 0.1 with 64), the product form is not.

Poles are complex tensors of shape (n_poles,) here.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class RationalCoefficients(NamedTuple):
    """H(z) = feedthrough + Σ_k numerator_k z⁻ᵏ / (1 + Σ_k denominator_k z⁻ᵏ), k = 1 … n."""

    feedthrough: Tensor
    numerator: Tensor
    denominator: Tensor


def compressed_shift(poles: Tensor) -> Tensor:
    """Return A_jk = <z B_k, B_j>: multiplication by z, projected on the span of the system.

    Lower triangular with the poles as eigenvalues: A_jk = s_j s_k Π_{k<l<j} (-conj a_l) below the
    diagonal, s = sqrt(1 - |a|²).
    """
    scale = torch.sqrt(1.0 - poles.abs() ** 2).to(poles.dtype)
    n = len(poles)
    shift = torch.diag(poles)
    for column in range(n):
        between = torch.ones((), dtype=poles.dtype, device=poles.device)
        for row in range(column + 1, n):
            shift[row, column] = scale[row] * scale[column] * between
            between = between * -poles[row].conj()
    return shift


def exact_gram_matrix(poles: Tensor, n_points: int) -> Tensor:
    """Return <B_j, B_k>_M on M equispaced points without sampling anything.

    Sampling folds every multiple of M onto the constant, so the transposed Gram matrix is the
    Hermitian part of (I + A^M)(I - A^M)⁻¹ with A the compressed shift: the identity up to terms of
    the size of A^M.
    """
    power = torch.linalg.matrix_power(compressed_shift(poles), n_points)
    identity = torch.eye(len(poles), dtype=poles.dtype, device=poles.device)
    cayley = torch.linalg.solve(identity - power, identity + power)
    return ((cayley + cayley.mH) / 2.0).mT


def transfer_function(poles: Tensor, z: Tensor) -> Tensor:
    """Return H_n(z), equal to conj(B_n(z)) on the unit circle, for the last of the given poles.

    H_n(z) = sqrt(1 - |a_n|²) Π_{j<n} (z⁻¹ - conj a_j) / Π_{j≤n} (1 - a_j z⁻¹): causal and stable.

    Paper: its example for n = 2 prints 1/H (numerator and denominator swapped, so unstable) without
    conjugates and without the kernel's factor.
    """
    inverse = 1.0 / z
    last = poles[-1]
    value = torch.sqrt(1.0 - last.abs() ** 2) / (1.0 - last * inverse)
    for pole in poles[:-1]:
        value = value * (inverse - pole.conj()) / (1.0 - pole * inverse)
    return value


def rational_coefficients(poles: Tensor) -> RationalCoefficients:
    """Return the RTF coefficients of the last function of the system.

    Paper: with numerator α and denominator 1 + Σ a_k z⁻ᵏ, splitting off the feedthrough h_0 = α_0
    leaves b_k = α_k - α_0 a_k, where the appendix has b_k = α_k.
    """
    one = torch.ones_like(poles)
    scale = torch.sqrt(1.0 - poles[-1].abs() ** 2)
    denominator = polynomial_product(torch.stack([one, -poles], dim=-1))
    numerator = scale * polynomial_product(torch.stack([-poles.conj(), one], dim=-1)[:-1])
    padded = torch.cat([numerator, numerator.new_zeros(1)])
    feedthrough = padded[0]
    return RationalCoefficients(
        feedthrough, padded[1:] - feedthrough * denominator[1:], denominator[1:]
    )


def polynomial_product(factors: Tensor) -> Tensor:
    """Return the coefficients of Π_j (p_j0 + p_j1 x) by one FFT; factors are (n, 2)."""
    n = factors.shape[0]
    if n == 0:
        return factors.new_ones(1)
    values = torch.fft.fft(factors, n=n + 1, dim=-1)
    return torch.fft.ifft(values.prod(dim=0))


def correlation(signal: Tensor, basis: Tensor) -> Tensor:
    """Return (1/M) Σ_n x[n] conj B(z_{n-ℓ}) for every lag ℓ by FFT; lag zero is <x, B>_M.

    Paper: the time-domain output of the filter, with the 1/M of the inner product.
    """
    n_points = signal.shape[-1]
    return torch.fft.ifft(torch.fft.fft(signal) * torch.fft.fft(basis).conj()) / n_points

"""Identities of the filters behind Takenaka–Malmquist functions, in float64."""

import numpy as np
import pytest
import torch
from scipy.signal import lfilter
from torch import Tensor

from amo import takenaka_malmquist as tm
from amo import transfer_function as tf

COARSE = 16


def poles(n: int, seed: int = 0, radius: float = 0.8) -> Tensor:
    rng = np.random.default_rng(seed)
    return torch.tensor(
        radius * np.sqrt(rng.uniform(0, 1, n)) * np.exp(2j * np.pi * rng.uniform(0, 1, n))
    )


def system(a: Tensor, n_points: int) -> Tensor:
    angles = tm.circle(n_points, a.real)
    bases, _ = tm.takenaka_malmquist(torch.view_as_real(a), angles)
    return torch.complex(*bases)


def circle(n_points: int) -> Tensor:
    return torch.exp(1j * tm.circle(n_points, torch.zeros(1, dtype=torch.float64)))


def taylor(basis: Tensor, n: int) -> Tensor:
    """Coefficients of B at zero, from its values on the circle."""
    return (torch.fft.fft(basis) / len(basis))[:n]


@pytest.mark.parametrize("radius", [0.5, 0.95])
def test_identity_01_gram_matrix_on_a_coarse_grid_has_an_exact_formula(radius: float) -> None:
    a = poles(7, seed=1, radius=radius)
    b = system(a, COARSE)
    sampled = b @ b.mH / COARSE
    assert torch.allclose(tf.exact_gram_matrix(a, COARSE), sampled, atol=1e-12)


def test_compressed_shift_is_multiplication_by_z_projected() -> None:
    a = poles(5, seed=2)
    b = system(a, 4096)
    projected = (b.conj() @ (circle(4096) * b).T) / 4096
    assert torch.allclose(tf.compressed_shift(a), projected, atol=1e-12)
    values = torch.linalg.eigvals(tf.compressed_shift(a))
    assert torch.allclose(values.abs().sort()[0], a.abs().sort()[0], atol=1e-10)


def test_identity_09_correlation_at_lag_zero_is_the_inner_product_and_all_lags_are_sums() -> None:
    basis = system(poles(4, seed=3), 32)[-1]
    torch.manual_seed(0)
    signal = torch.randn(32, dtype=torch.float64)
    lags = tf.correlation(signal, basis)
    c = tm.inner_product(signal[:, None], (basis.real[None], basis.imag[None]))
    assert torch.allclose(lags[0], torch.complex(*c)[0, 0], atol=1e-14)
    for lag in range(32):
        direct = (signal * torch.roll(basis, lag).conj()).mean()
        assert torch.allclose(lags[lag], direct, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_identity_10_rational_coefficients_reproduce_the_conjugate_basis(n: int) -> None:
    a, z = poles(n, seed=n), circle(64)
    expected = system(a, 64)[-1].conj()
    assert torch.allclose(tf.transfer_function(a, z), expected, atol=1e-12)
    rational = tf.rational_coefficients(a)
    powers = z[None] ** -torch.arange(1, n + 1)[:, None]
    value = rational.feedthrough + (rational.numerator @ powers) / (
        1.0 + rational.denominator @ powers
    )
    assert torch.allclose(value, expected, atol=1e-11)


def test_identity_10_last_output_of_the_backward_scan_is_the_inner_product() -> None:
    a, n_points = poles(4, seed=5), 48
    h0, numerator, denominator = (x.numpy() for x in tf.rational_coefficients(a))
    lower = np.concatenate([[1.0], denominator])
    upper = h0 * lower + np.concatenate([[0.0], numerator])
    rng = np.random.default_rng(0)
    signal = rng.standard_normal(n_points)
    output = lfilter(upper, lower, signal[::-1].astype(complex))
    b = taylor(system(a, 4096)[-1], n_points).numpy()
    assert output[-1] == pytest.approx(np.vdot(b, signal), abs=1e-12)


def test_papers_printed_example_is_not_the_transfer_function() -> None:
    a, z = poles(2, seed=6), circle(8)
    p, q = a
    printed = (1 - (p + q) / z + p * q / z**2) / (p * q - (p + q) / z + 1 / z**2)
    assert not torch.allclose(printed, tf.transfer_function(a, z), atol=1e-2)


def test_polynomial_product_is_the_product() -> None:
    factors = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 1.0]], dtype=torch.complex128)
    expected = np.ones(1)
    for row in factors.real.numpy():
        expected = np.convolve(expected, row)
    assert np.allclose(tf.polynomial_product(factors).numpy(), expected, atol=1e-13)

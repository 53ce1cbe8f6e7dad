"""Identities of Takenaka–Malmquist systems, in float64, against complex arithmetic."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from amo import takenaka_malmquist as tm

FINE = 2048


def poles(n: int, seed: int = 0, radius: float = 0.8) -> Tensor:
    rng = np.random.default_rng(seed)
    r, angle = radius * np.sqrt(rng.uniform(0, 1, n)), rng.uniform(0, 2 * np.pi, n)
    return torch.tensor(np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1))


def as_complex(pair: tuple[Tensor, Tensor]) -> Tensor:
    return torch.complex(*pair)


def system(a: Tensor, n_points: int = FINE) -> Tensor:
    bases, _ = tm.takenaka_malmquist(a, tm.circle(n_points, a))
    return as_complex(bases)


def reference(a: Tensor, n_points: int = FINE) -> Tensor:
    """The product formula, literally."""
    z = torch.exp(1j * tm.circle(n_points, a))
    rows, product = [], torch.ones_like(z)
    for pole in torch.view_as_complex(a):
        rows.append(math.sqrt(1 - abs(pole) ** 2) / (1 - pole.conj() * z) * product)
        product = product * (z - pole) / (1 - pole.conj() * z)
    return torch.stack(rows)


def dot(f: Tensor, g: Tensor) -> Tensor:
    return (f * g.conj()).mean(-1)


def test_identity_01_system_is_orthonormal_on_a_fine_grid() -> None:
    b = system(poles(12))
    gram = b @ b.conj().T / FINE
    assert torch.allclose(gram, torch.eye(12, dtype=gram.dtype), atol=1e-12)
    assert tm.gram_error((b.real, b.imag)) < 1e-12


def test_identity_02_amplitude_and_phase_equal_the_product_form() -> None:
    a = poles(16, seed=1, radius=0.95)
    assert torch.allclose(system(a), reference(a), atol=1e-11)
    z = torch.exp(1j * tm.circle(FINE, a))
    factors = torch.exp(1j * tm.blaschke_phase(a, tm.circle(FINE, a)))
    for row, pole in zip(factors, torch.view_as_complex(a), strict=True):
        assert torch.allclose(row, (z - pole) / (1 - pole.conj() * z), atol=1e-12)


def test_identity_03_poles_at_zero_give_the_truncated_fourier_system() -> None:
    a = torch.zeros(6, 2, dtype=torch.float64)
    z = torch.exp(1j * tm.circle(64, a))
    assert torch.allclose(system(a, 64), torch.stack([z**k for k in range(6)]), atol=1e-13)


def test_identity_04_kernel_reproduces_point_values() -> None:
    a = poles(5, seed=2)
    z = torch.exp(1j * tm.circle(FINE, a))
    kernel = as_complex(tm.normalised_kernel(a, tm.circle(FINE, a)))

    def analytic(x: Tensor) -> Tensor:
        return torch.exp(0.7 * x) + 1 / (1.7 - x)

    for row, pole in zip(kernel, torch.view_as_complex(a), strict=True):
        assert dot(row, row).real == pytest.approx(1.0, abs=1e-12)
        expected = torch.sqrt(1 - abs(pole) ** 2) * analytic(pole)
        assert torch.allclose(dot(analytic(z), row), expected, atol=1e-12)


def test_identity_05_gram_schmidt_of_kernels_gives_the_system_up_to_phase() -> None:
    a = poles(6, seed=3)
    orthonormal: list[Tensor] = []
    for kernel in as_complex(tm.normalised_kernel(a, tm.circle(FINE, a))):
        rest = kernel
        for earlier in orthonormal:
            rest = rest - dot(rest, earlier) * earlier
        orthonormal.append(rest / torch.sqrt(dot(rest, rest).real))
    for ours, theirs in zip(system(a), orthonormal, strict=True):
        assert abs(dot(ours, theirs)).item() == pytest.approx(1.0, abs=1e-10)


def test_identity_06_bessel_and_falling_energy_of_the_remainder() -> None:
    a = poles(20, seed=4)
    z = torch.exp(1j * tm.circle(FINE, a))
    f = torch.exp(z) / (1.3 - z)
    coefficients = torch.stack([dot(f, b) for b in system(a)])
    energy = dot(f, f).real
    rest = energy - torch.cumsum(abs(coefficients) ** 2, 0)
    assert (rest > -1e-12).all()
    assert all(later <= earlier + 1e-14 for earlier, later in pairwise(rest.tolist()))
    partial = (coefficients[:, None] * system(a)).sum(0)
    assert torch.allclose(dot(f - partial, f - partial).real, rest[-1], atol=1e-12)


def projected(signal: Tensor, a: Tensor) -> Tensor:
    bases, _ = tm.takenaka_malmquist(a, tm.circle(signal.shape[-2], a))
    return tm.synthesise(tm.inner_product(signal, bases), bases)


def test_identity_08_projector_is_idempotent_self_adjoint_and_needs_the_pole_at_zero() -> None:
    angles = tm.circle(FINE, poles(1))
    zero = torch.zeros(1, 2, dtype=torch.float64)
    _, carry = tm.takenaka_malmquist(zero, angles)
    bases, _ = tm.takenaka_malmquist(poles(8, seed=5), angles, carry)

    def project(u: Tensor) -> Tensor:
        return tm.synthesise(tm.inner_product(u, bases), bases)

    torch.manual_seed(0)
    u, v = torch.randn(2, FINE, 3, dtype=torch.float64)
    assert torch.allclose(project(project(u)), project(u), atol=1e-10)
    assert torch.allclose((project(u) * v).mean(), (u * project(v)).mean(), atol=1e-12)
    without = poles(8, seed=5)
    once = projected(u, without)
    assert not torch.allclose(projected(once, without), once, atol=1e-3)


def test_real_system_needs_fewer_functions_than_points() -> None:
    golden = math.pi * (3 - math.sqrt(5)) * torch.arange(32, dtype=torch.float64)
    a = 0.5 * torch.stack([golden.cos(), golden.sin()], dim=-1)
    angles = tm.circle(64, a)

    def errors(n: int) -> tuple[float, float]:
        bases, _ = tm.takenaka_malmquist(a[:n], angles, angles)
        return float(tm.real_gram_error(bases)), float(tm.gram_error(bases))

    assert errors(16)[0] < 1e-9
    assert 1e-4 < errors(28)[0] < 1e-2
    real, analytic = errors(32)  # 65 real functions on 64 points: the complex Gram does not see it
    assert real > 0.5
    assert analytic < 1e-10


def test_identity_11_reversing_tokens_conjugates_poles_and_coefficients() -> None:
    a = poles(5, seed=10)
    mirrored = a * torch.tensor([1.0, -1.0], dtype=torch.float64)
    torch.manual_seed(0)
    signal = torch.randn(32, dtype=torch.float64)
    backwards = torch.roll(signal.flip(0), 1)  # n becomes -n modulo M
    backward = torch.stack([dot(backwards, b) for b in system(a, 32)])
    forward = torch.stack([dot(signal, b) for b in system(mirrored, 32)])
    assert torch.allclose(backward, forward.conj(), atol=1e-14)


def test_identity_12_rotating_poles_shifts_tokens() -> None:
    n_points, shift = 64, 5
    a = poles(4, seed=6)
    turn = 2 * math.pi * shift / n_points
    rotation = torch.tensor(
        [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]], dtype=torch.float64
    )
    rotated = a @ rotation
    b, moved = system(a, n_points), system(rotated, n_points)
    for k, (row, other) in enumerate(zip(b, moved, strict=True)):
        phase = torch.exp(torch.tensor(1j * turn * k, dtype=torch.complex128))
        assert torch.allclose(other, phase * torch.roll(row, shift), atol=1e-12)


def blaschke(pole: Tensor, z: Tensor) -> Tensor:
    return (z - pole) / (1 - pole.conj() * z)


@pytest.mark.parametrize("seed", range(5))
def test_identity_13_kernels_norms_and_factors_are_lipschitz_in_the_pole(seed: int) -> None:
    a, b = torch.view_as_complex(poles(2, seed=seed, radius=0.95))
    z = torch.exp(1j * tm.circle(FINE, poles(1)))
    distance = (a - b).abs()
    room = (1 - a.abs()) * (1 - b.abs())
    kernels = (1 / (1 - a.conj() * z) - 1 / (1 - b.conj() * z)).abs().max()
    assert kernels <= distance / room
    norms = (torch.sqrt(1 - a.abs() ** 2) - torch.sqrt(1 - b.abs() ** 2)).abs()
    assert norms <= distance / torch.sqrt(1 - torch.maximum(a.abs(), b.abs()) ** 2)
    assert (blaschke(a, z) - blaschke(b, z)).abs().max() <= 4 * distance / room


@pytest.mark.parametrize("seed", range(5))
def test_identity_14_moving_poles_moves_the_system_no_more_than_its_factors(seed: int) -> None:
    a = poles(6, seed=seed)
    moved = a + 0.02 * torch.randn(6, 2, dtype=torch.float64, generator=torch.manual_seed(seed))
    z = torch.exp(1j * tm.circle(FINE, a))
    b, other = system(a), system(moved)
    kernel, kernel_moved = (
        as_complex(tm.normalised_kernel(p, tm.circle(FINE, p))) for p in (a, moved)
    )
    pairs = zip(torch.view_as_complex(a), torch.view_as_complex(moved), strict=True)
    factors = [(blaschke(q, z) - blaschke(p, z)).abs().max() for p, q in pairs]
    for i in range(6):
        change = torch.sqrt(dot(other[i] - b[i], other[i] - b[i]).real)
        own = kernel_moved[i] - kernel[i]
        bound = torch.sqrt(dot(own, own).real) + sum(factors[:i], torch.tensor(0.0))
        assert change <= bound + 1e-12


def test_identity_15_wrong_coefficients_cost_their_own_squared_distance() -> None:
    a = poles(8, seed=11)
    z = torch.exp(1j * tm.circle(FINE, a))
    f = torch.exp(z) / (1.5 - z)
    b = system(a)
    right = torch.stack([dot(f, row) for row in b])
    wrong = right + 0.1 * torch.randn(8, dtype=torch.complex128, generator=torch.manual_seed(0))
    rest = f - (wrong[:, None] * b).sum(0)
    best = dot(f, f).real - (right.abs() ** 2).sum()
    assert torch.allclose(dot(rest, rest).real, best + ((wrong - right).abs() ** 2).sum())


def test_identity_16_quadrature_error_decays_like_radius_to_the_points() -> None:
    a = torch.tensor([[0.8, 0.0]], dtype=torch.float64)
    errors = []
    for n_points in (16, 32, 64):
        b = system(a, n_points)
        errors.append(float(tm.gram_error((b.real, b.imag))))
    for n_points, error in zip((16, 32, 64), errors, strict=True):
        assert error == pytest.approx(2 * 0.8**n_points, rel=0.1)
    assert tm.largest_radius(64) ** 64 == pytest.approx(1e-3)


def test_nested_blocks_are_one_system() -> None:
    a = poles(9, seed=7)
    angles = tm.circle(64, a)
    whole, end = tm.takenaka_malmquist(a, angles)
    first, carry = tm.takenaka_malmquist(a[:4], angles)
    second, carry = tm.takenaka_malmquist(a[4:], angles, carry)
    for part in (0, 1):
        joined = torch.cat([first[part], second[part]])
        assert torch.allclose(joined, whole[part], atol=1e-13)
    assert torch.allclose(carry, end, atol=1e-12)


def test_batches_of_poles_are_independent() -> None:
    a = torch.stack([poles(5, seed=s) for s in range(3)])
    angles = tm.circle(32, a)
    together, _ = tm.takenaka_malmquist(a, angles)
    for row in range(3):
        alone, _ = tm.takenaka_malmquist(a[row], angles)
        assert torch.equal(together[0][row], alone[0])


def test_float32_keeps_its_digits() -> None:
    # A factor (z - a) / (1 - ā z) has about four roundings, which its denominator of at least
    # 1 - r magnifies; 32 of them multiply, and a function is at most √((1 + r) / (1 - r)) large.
    n, r = 32, 0.9
    tolerance = n * 4 * 2.0**-24 / (1 - r) * ((1 + r) / (1 - r)) ** 0.5
    a = poles(n, seed=8, radius=r)
    single, _ = tm.takenaka_malmquist(a.float(), tm.circle(64, a.float()))
    double, _ = tm.takenaka_malmquist(a, tm.circle(64, a))
    assert (single[0] - double[0]).abs().max() < tolerance


def test_gradients_are_right_and_every_step_runs_on_the_meta_device() -> None:
    a = poles(3, seed=9).requires_grad_()

    def bases(p: Tensor) -> tuple[Tensor, Tensor]:
        return tm.takenaka_malmquist(p, tm.circle(16, p))[0]

    assert torch.autograd.gradcheck(bases, (a,))
    meta = torch.zeros(2, 3, 2, device="meta", requires_grad=True)
    pair = bases(meta)
    signal = torch.zeros(2, 16, 4, device="meta")
    out = tm.synthesise(tm.inner_product(signal, pair), pair)
    out.sum().backward()
    assert meta.grad is not None
    assert out.shape == (2, 16, 4)

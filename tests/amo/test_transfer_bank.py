"""Banks of Takenaka–Malmquist filters: what they are in theory, and exactly."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import signal
from torch import Tensor

from amo.errors import SettingsError
from amo.grid_model import GridAMO, GridAMOConfig
from amo.layers import transfer_bank
from amo.layers.transfer_bank import (
    Poles,
    TransferBank,
    bound,
    convolve,
    delayed,
    kernels,
    responses,
)
from amo.transfer_function import transfer_function

N = 256


def some_poles(n: int = 4, seed: int = 0) -> Poles:
    """Poles whose responses have died out after N / 2 samples of a unit length."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(-math.pi, math.pi, n)
    return poles_at(rng.uniform(0.1, 0.75, n) * np.exp(1j * angle))


def poles_at(on_grid: Sequence[complex] | npt.NDArray[Any]) -> Poles:
    """The poles per length that stand there on a grid of N points: the transform inverted."""
    a = torch.as_tensor(on_grid, dtype=torch.complex128)
    s = 2.0 * N * (a - 1.0) / (a + 1.0)
    return Poles(-s.real, s.imag)


def complex_poles(poles: Poles) -> Tensor:
    return torch.view_as_complex(poles.on(1.0 / N))


def coefficients(channels: int, n_poles: int, directions: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (channels, n_poles, directions, 2)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def test_the_response_of_a_bank_is_the_rational_function_of_its_poles() -> None:
    poles = some_poles()
    real, imaginary = responses(poles, 1.0 / N, N)
    spectrum = torch.fft.fft(torch.complex(real, imaginary))
    z = torch.exp(2j * math.pi * torch.arange(N, dtype=torch.float64) / N)
    a = complex_poles(poles)
    for k, gain in enumerate(bound(poles.on(1.0 / N)), start=1):
        phase = (1.0 + a[k - 1]).angle() + 2.0 * (1.0 + a[: k - 1]).angle().sum()
        expected = gain * torch.exp(1j * phase) * transfer_function(a[:k], z)
        assert torch.allclose(spectrum[k - 1], expected, atol=1e-12)


def test_every_term_is_bounded_by_one_and_reaches_it_at_its_own_frequency() -> None:
    poles = some_poles(8)
    real, imaginary = responses(poles, 1.0 / N, N)
    size = torch.fft.fft(torch.complex(real, imaginary)).abs()
    assert (size <= 1.0 + 1e-12).all()
    on_a_node = poles_at([0.9 * np.exp(2j * math.pi * 9 / N)])
    real, imaginary = responses(on_a_node, 1.0 / N, N)
    peak = torch.fft.fft(torch.complex(real, imaginary)).abs()[0]
    assert int(peak.argmax()) == 9
    assert float(peak[9]) == pytest.approx(1.0, abs=1e-11)


def test_one_direction_is_causal_and_the_other_is_its_mirror() -> None:
    found = responses(some_poles(), 1.0 / N, N)
    both = coefficients(3, 4, 2)
    causal = kernels(both[:, :, :1], found)
    assert causal[:, N // 2 :].abs().max() < 1e-12 * causal.abs().max()
    mirrored = kernels(both[:, :, 1:], found)
    backward = kernels(both, found) - causal
    assert torch.allclose(backward[:, 0], mirrored[:, 0])
    assert torch.allclose(backward[:, 1:], mirrored[:, 1:].flip(-1))


def test_poles_at_zero_are_pure_delays() -> None:
    real, imaginary = responses(poles_at(np.zeros(5)), 1.0 / N, N)
    # a square root is kept from zero: γ is one up to 1e-6
    assert torch.allclose(real, torch.eye(5, N, dtype=torch.float64), atol=2e-6)
    assert imaginary.abs().max() < 1e-12


def test_an_impulse_dies_out_as_the_largest_pole() -> None:
    radius, angle = np.exp([-1.0, -0.25, -1.2, -0.8]), np.array([0.3, -1.0, 2.0, 0.0])
    real, imaginary = responses(poles_at(radius * np.exp(1j * angle)), 1.0 / N, N)
    size = torch.hypot(real, imaginary)[-1]
    # the next slowest has lost e^(-0.55 · 40) = 3e-10 against the slowest by then
    late = torch.arange(40, 60)
    slope = np.polyfit(late.numpy(), np.log(size[late].numpy()), 1)[0]
    assert slope == pytest.approx(-0.25, rel=1e-6)


def test_a_first_order_filter_is_held_exactly() -> None:
    a = math.exp(-40.0 / N)
    poles = poles_at([a])
    weight = 1.0 / float(bound(poles.on(1.0 / N))) / math.sqrt(1.0 - a * a)
    one = torch.tensor([[[[weight, 0.0]]]], dtype=torch.float64)
    kernel = kernels(one, responses(poles, 1.0 / N, 2 * N))
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 1, N)))
    expected = signal.lfilter([1.0], [1.0, -a], x.numpy())
    # what lasts longer than 2 N samples is wrapped around: a^(2N) = e^-80
    assert np.abs(convolve(x, kernel, 2).numpy() - expected).max() < 1e-12


def test_two_poles_hold_the_solution_operator_of_a_screened_poisson_equation() -> None:
    """-u'' + κ² u = f on the line has the Green's function exp(-κ |x|) / 2κ: fitted to 1e-6."""
    kappa, spacing = 12.0, 1.0 / N
    found = responses(poles_at([math.exp(-kappa * spacing), 0.0]), spacing, 8 * N)
    lags = torch.arange(8 * N, dtype=torch.float64)
    distance = torch.minimum(lags, 8 * N - lags) * spacing
    truth = torch.exp(-kappa * distance) / (2.0 * kappa)
    columns = torch.stack(
        [kernels(unit.reshape(1, 2, 2, 2), found)[0] for unit in torch.eye(8).double()], dim=1
    )
    fitted = columns @ torch.linalg.lstsq(columns, truth[:, None], driver="gelsd").solution
    assert float((fitted[:, 0] - truth).norm() / truth.norm()) < 1e-6


@pytest.mark.parametrize("axis", [2, 3])
@pytest.mark.parametrize("is_periodic", [True, False])
def test_matrix_and_fourier_paths_agree(
    axis: int, is_periodic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.randn(3, 2, 12, 10, dtype=torch.float64)
    n_lags = x.shape[axis] * (1 if is_periodic else 2)
    kernel = torch.randn(3, n_lags, dtype=torch.float64)
    dense = convolve(x, kernel, axis)
    monkeypatch.setattr(transfer_bank, "_DENSE", 0)
    assert torch.allclose(convolve(x, kernel, axis), dense, atol=1e-12)


def test_an_interval_does_not_wrap_around_and_a_torus_moves_with_its_points() -> None:
    x = torch.randn(2, 1, 16, dtype=torch.float64)
    kernel = torch.randn(2, 32, dtype=torch.float64)
    for channel in range(2):
        lags = torch.cat([kernel[channel, 17:], kernel[channel, :16]])  # -15 … 15
        expected = np.convolve(x[channel, 0].numpy(), lags.numpy())[15:31]
        assert convolve(x, kernel, 2)[channel, 0].numpy() == pytest.approx(expected, abs=1e-12)
    round_trip = kernel[:, :16]
    moved = convolve(x.roll(5, -1), round_trip, 2)
    assert torch.allclose(moved, convolve(x, round_trip, 2).roll(5, -1), atol=1e-12)


def test_one_way_on_an_interval_no_point_is_heard_before_itself() -> None:
    torch.manual_seed(0)
    bank = TransferBank(2, 2, 4, 4, 16, is_periodic=False, directions=1)
    assert bank(16).shape == (2, 4, 32)
    assert (bank(16)[..., 16:] == 0).all()
    impulse = torch.zeros(4, 1, 16)
    impulse[..., 10] = 1.0
    assert convolve(impulse, bank(16)[0], 2)[..., :10].abs().max() == 0.0
    both = TransferBank(2, 2, 4, 4, 16, is_periodic=False)(16)
    assert (both[..., 16] == 0).all()  # the lag that would be both


def test_half_precision_is_left_before_a_filter() -> None:
    for n in (16, 200):  # as a matrix, and by Fourier transform
        x, kernel = torch.randn(2, 1, n), torch.randn(2, 2 * n)
        with torch.autocast("cpu", torch.bfloat16):
            found = convolve(x.bfloat16(), kernel, 2)
        assert found.dtype == torch.float32
        assert torch.equal(found, convolve(x.bfloat16().float(), kernel, 2))


def test_a_filter_moves_to_a_finer_grid_with_an_error_of_second_order() -> None:
    """Poles are per length: on a torus the gain of a wave has a limit."""
    poles = Poles(torch.tensor([3.0, 8.0]).double(), torch.tensor([0.0, 9.0]).double())
    given = coefficients(1, 2, 2)

    def answer(n: int) -> Tensor:
        kernel = kernels(given, responses(poles, 1.0 / n, n, ratio=n / 64))
        return torch.fft.fft(kernel)[0, 3]  # the gain of three waves on the torus

    values = torch.stack([answer(n) for n in (64, 128, 256, 512)])
    steps = (values[1:] - values[:-1]).abs()
    orders = torch.log2(steps[:-1] / steps[1:])
    assert orders.numpy() == pytest.approx(2.0, abs=0.1)


def test_a_delay_moves_waves_and_is_the_limit_of_blaschke_factors() -> None:
    x = torch.arange(N, dtype=torch.float64) / N
    wave = torch.sin(2.0 * math.pi * 5 * x)
    moved = delayed(wave, torch.tensor(0.123, dtype=torch.float64))
    assert torch.allclose(moved, torch.sin(2.0 * math.pi * 5 * (x - 0.123)), atol=1e-12)
    # each factor (1 - s h/2) / (1 + s h/2) of a decay 2/h is a delay of one sample: a pole at zero
    delays = responses(poles_at(np.zeros(6)), 1.0 / N, N)[0][-1]
    pulse = torch.zeros(N, dtype=torch.float64)
    pulse[0] = 1.0
    assert torch.allclose(
        delays, delayed(pulse, torch.tensor(5.0 / N, dtype=torch.float64)), atol=2e-6
    )


def test_factors_with_more_and_more_poles_tend_to_a_delay() -> None:
    """m Blaschke factors of decay 2m/d tend to e^{-sd}, with an error of second order in 1/m."""
    d, waves, n = 0.3, 2, 4096
    moved = delayed(torch.eye(1, n, dtype=torch.float64)[0], torch.tensor(d, dtype=torch.float64))
    limit = torch.fft.fft(moved)[waves]
    errors = []
    for m in (8, 16, 32):
        decay = torch.full((m + 1,), 2.0 * m / d, dtype=torch.float64)
        real, imaginary = responses(Poles(decay, torch.zeros_like(decay)), 1.0 / n, n)
        spectrum = torch.fft.fft(torch.complex(real, imaginary))[:, waves]
        errors.append(float((spectrum[m] / spectrum[0] - limit).abs()))  # m factors
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert orders == pytest.approx(2.0, abs=0.1)


def test_one_learned_delay_holds_a_translation_exactly() -> None:
    bank = TransferBank(1, 1, 1, 2, N, is_periodic=True, delays="learned", directions=1).double()
    with torch.no_grad():
        # a pole at zero, and nothing of the second one
        bank.log_decay.fill_(math.log(2.0 * N) / transfer_bank._POLE_RATE)
        bank.first_wavenumber.zero_()
        bank.coefficients.zero_()
        bank.coefficients[..., 0, 0, 0] = 1.0 / transfer_bank._COEFFICIENT_RATE
        assert bank.delay is not None
        bank.delay.fill_(0.3 / transfer_bank._DELAY_RATE)
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(1, 1, N)))
    expected = delayed(x, torch.tensor(0.3, dtype=torch.float64))
    assert torch.allclose(convolve(x, bank(N)[0], 2), expected, atol=1e-5)  # γ: one up to 1e-6


@pytest.mark.parametrize("n", [16, 200])  # as a matrix, and by Fourier transform
@pytest.mark.parametrize("axis", [2, 3])
def test_kernels_of_each_sample_do_to_it_what_they_do_alone(n: int, axis: int) -> None:
    x = torch.randn(3, 2, *((n, 5) if axis == 2 else (5, n)), dtype=torch.float64)
    kernel = torch.randn(3, 2, 2 * n, dtype=torch.float64)
    both = convolve(x, kernel, axis)
    for sample in range(2):
        alone = convolve(x[:, sample : sample + 1], kernel[:, sample], axis)
        assert torch.allclose(both[:, sample : sample + 1], alone, atol=1e-11)


def test_adaptive_filters_start_as_the_learned_ones_and_then_follow_the_input() -> None:
    torch.manual_seed(0)
    bank = TransferBank(2, 2, 4, 4, 16, is_periodic=True, poles="adaptive", delays="adaptive")
    summary = torch.randn(3, 4)
    found = bank(16, summary)
    assert found.shape == (2, 4, 3, 16)
    assert torch.allclose(found[:, :, 0], found[:, :, 1], atol=1e-6)
    for prediction in (bank.pole_shifts, bank.delay_shifts):
        assert prediction is not None
        torch.nn.init.normal_(prediction.network.last.weight)
    moved = bank(16, summary)
    assert not torch.allclose(moved[:, :, 0], moved[:, :, 1], atol=1e-2)
    assert (bank.poles(summary).on(1.0 / 16).square().sum(-1) < 1.0).all()
    assert torch.allclose(bank(16, summary[1:])[:, :, 0], moved[:, :, 1], atol=1e-6)
    with pytest.raises(SettingsError, match="summary"):
        bank(16)


def test_only_a_torus_has_delays() -> None:
    with pytest.raises(SettingsError, match="torus"):
        TransferBank(1, 1, 2, 2, 8, is_periodic=False, delays="learned")
    mixed = GridAMOConfig(
        n_features=1, n_dimensions=2, grid=(8, 6), width=4, n_heads=2,
        is_periodic=(True, False), delays="learned",
    )  # fmt: skip
    delays = [name for name, _ in GridAMO(mixed).named_parameters() if "delay" in name]
    assert delays == ["blocks.banks.0.delay"]
    with pytest.raises(SettingsError, match="each axis"):
        replace(mixed, is_periodic=(True,))


def test_on_mixed_axes_only_the_closed_one_moves_with_its_points() -> None:
    torch.manual_seed(0)
    config = GridAMOConfig(
        n_features=1, n_dimensions=2, grid=(8, 6), width=4, n_heads=2, is_periodic=(True, False)
    )
    model = GridAMO(config).double()
    places = torch.zeros(1, 48, 2).double()
    x = torch.randn(1, 8, 6, 1).double()

    def image(x: Tensor) -> Tensor:
        return model(places, x.flatten(1, 2)).unflatten(1, (8, 6))

    assert torch.allclose(image(x.roll(3, 1)), image(x).roll(3, 1), atol=1e-12)
    assert not torch.allclose(image(x.roll(3, 2)), image(x).roll(3, 2), atol=1e-3)


@pytest.mark.parametrize("kind", ["learned", "adaptive"])
def test_gradients_of_a_bank_are_right(kind: Literal["learned", "adaptive"]) -> None:
    torch.manual_seed(0)
    bank = TransferBank(1, 1, 2, 3, 6, is_periodic=True, poles=kind, delays=kind).double()
    leaves = [p.detach().clone().requires_grad_() for p in bank.parameters()]
    names = [name for name, _ in bank.named_parameters()]
    summary = torch.randn(2, 2, dtype=torch.float64)

    def kernel(*values: Tensor) -> Tensor:
        found: Tensor = torch.func.functional_call(
            bank, dict(zip(names, values, strict=True)), (6, summary)
        )
        return found

    assert torch.autograd.gradcheck(kernel, leaves)


@pytest.mark.parametrize("grid", [(12,), (9, 6), (5, 4, 6)])
def test_patches_are_taken_apart_and_put_together(grid: tuple[int, ...]) -> None:
    config = GridAMOConfig(
        n_features=1, n_dimensions=len(grid), grid=grid, width=4, n_heads=2, n_poles=2, patch=3
    )
    model = GridAMO(config)
    x = torch.randn(2, 3, *grid)
    assert torch.equal(model._unfold(model._fold(x)), x)
    assert model._fold(x).shape == (2 * 3 ** len(grid), 3, *config.tokens)


def test_a_periodic_model_without_places_moves_with_its_input() -> None:
    torch.manual_seed(0)
    config = GridAMOConfig(
        n_features=1, n_dimensions=1, grid=(16,), width=8, n_heads=2, is_periodic=True
    )
    model = GridAMO(config).double()
    places, x = torch.zeros(2, 16, 1).double(), torch.randn(2, 16, 1).double()
    moved = model(places, x.roll(3, 1))
    assert torch.allclose(moved, model(places, x).roll(3, 1), atol=1e-12)

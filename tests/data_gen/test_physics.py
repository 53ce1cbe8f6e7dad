"""The physics sets: schemes of the order they declare, labels that a second method confirms."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from amo.arrays import FloatArray
from data_gen.__main__ import main
from data_gen.dataset import SPLITS
from data_gen.physics import advection, darcy, elliptic, exponential, fractal_darcy, symbols
from data_gen.physics import navier_stokes as ns
from data_gen.physics import reaction_diffusion as rd
from data_gen.physics.advection import AdvectionSet
from data_gen.physics.airfoil import AirfoilSet
from data_gen.physics.brusselator import BrusselatorSet
from data_gen.physics.darcy import DarcySet
from data_gen.physics.elasticity import ElasticitySet
from data_gen.physics.fractal_darcy import FractalDarcySet
from data_gen.physics.glove import GloveSet
from data_gen.physics.navier_stokes import NavierStokesSet
from data_gen.physics.pipe import PipeSet
from data_gen.physics.plasticity import PlasticitySet
from data_gen.physics.reaction_diffusion import ReactionDiffusionSet
from data_gen.physics.symbols import AdvectionSpeedsSet, HelmholtzSet
from data_gen.registry import SETS
from data_gen.sized import SampleSet

FEW = {"train": 2, "validation": 1, "test": 1}
SMALL: list[SampleSet] = [
    DarcySet(**FEW, resolution=22),
    ElasticitySet(**FEW),
    NavierStokesSet(**FEW, resolution=16, fine=32, frames=3, steps=16),
    PipeSet(**FEW, nodes=17),
    AirfoilSet(**FEW, around=48),
    AdvectionSet(**FEW, points=64),
    AdvectionSpeedsSet(**FEW, points=64),
    HelmholtzSet(**FEW, points=64),
    FractalDarcySet(**FEW, points=64, cells=64),
    ReactionDiffusionSet(**FEW),
    BrusselatorSet(**FEW),
    GloveSet(**FEW, steps=2),
    PlasticitySet(**FEW, columns=10, rows=3, frames=3),
]
COARSE: dict[type[SampleSet], float] = {
    DarcySet: 0.05,
    NavierStokesSet: 0.05,
    PipeSet: 0.2,
    AirfoilSet: 0.3,
}


def orders(errors: list[float]) -> FloatArray:
    """Return log2 of successive ratios of errors, each grid being twice as fine."""
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))


@pytest.mark.parametrize("dataset", SMALL, ids=lambda d: type(d).__name__)
def test_small_set_is_made_checked_and_drawn(dataset: SampleSet) -> None:
    one, again = dataset.make(0), dataset.make(0)
    assert one.arrays.keys() == dataset.units.keys()
    for name, values in one.arrays.items():
        assert np.isfinite(values).all()
        assert np.array_equal(values, again.arrays[name])
    assert {dataset.split(i) for i in range(dataset.n_shards)} == set(SPLITS)
    for check in dataset.check(one.arrays, 1, np.random.default_rng(0)):
        if type(dataset) in COARSE:  # too coarse here for its bound
            check = dataclasses.replace(check, allowed=COARSE[type(dataset)])  # noqa: PLW2901
        assert check.is_met, check
    assert dataset.picture(one.arrays).data
    other = dataclasses.replace(dataset, seed=1).make(0)
    assert any(not np.array_equal(one.arrays[name], other.arrays[name]) for name in dataset.fields)


@pytest.mark.parametrize("dataset", SMALL, ids=lambda d: type(d).__name__)
def test_samples_do_not_depend_on_how_many_there_are(dataset: SampleSet) -> None:
    few, more = (dataclasses.replace(dataset, train=n).samples(1, 1).arrays for n in (1, 2))
    assert all(np.array_equal(few[name], more[name]) for name in few)


def test_list_shows_every_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{shown}" for name in SETS)


def test_verify_puts_sets_into_a_results_file(tmp_path: Path) -> None:
    results = tmp_path / "checks.json"
    for name in ("advection", "elasticity"):
        sizes = ["--train", "2", "--validation", "1", "--test", "1", "--workers", "1"]
        assert main([name, *sizes, "--out", str(tmp_path / name)]) == 0
        assert main(["verify", str(tmp_path / name), "--points", "1", "--json", str(results)]) == 0
    known = json.loads(results.read_text(encoding="utf-8"))["sets"]
    assert list(known) == ["advection", "elasticity"]
    assert known["advection"]["samples"] == 4
    assert all(check["largest"] <= check["allowed"] for check in known["elasticity"]["checks"])


def test_exponential_scheme_has_its_order() -> None:
    # y' = λy + y² with y(0) = 1: y = λ / ((1 + λ) e^{-λt} - 1)
    rate = np.array([-2.0, -0.5, -50.0])
    exact = rate / ((1.0 + rate) * np.exp(-rate) - 1.0)
    errors = []
    for n_steps in (8, 16, 32, 64):
        times = np.array([0.0, 1.0])
        y = exponential.solve(rate, lambda y, _: y**2, np.ones(3), times, n_steps)[-1]
        errors.append(float(np.abs(y - exact)[:2].max()))
    assert orders(errors)[-1] == pytest.approx(exponential.ORDER, abs=0.3)
    assert y[2] == pytest.approx(exact[2], abs=1e-15)  # a stiff mode has decayed


def test_exponential_scheme_is_exact_without_a_nonlinear_part() -> None:
    rate = np.array([0.0, -1e-9, -1.0, -1e4])
    times = np.linspace(0.0, 0.3, 4)
    y = exponential.solve(rate, lambda y, _: 0.0 * y, np.ones(4), times, 1)
    np.testing.assert_allclose(y, np.exp(np.outer(times, rate)), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("way", ["gradients", "factors"])
def test_elliptic_scheme_has_its_order(way: str) -> None:
    errors = []
    for n in (16, 32, 64):
        nodes = np.linspace(0.0, 1.0, n + 1)
        x, y = np.meshgrid(nodes, nodes, indexing="ij")
        u = np.sin(np.pi * x) * np.sin(2.0 * np.pi * y)
        k = 1.0 + 0.5 * x * y
        source = 5.0 * np.pi**2 * k * u - 0.5 * (
            np.pi * y * np.cos(np.pi * x) * np.sin(2.0 * np.pi * y)
            + 2.0 * np.pi * x * np.sin(np.pi * x) * np.cos(2.0 * np.pi * y)
        )
        inner, faces = source[1:-1, 1:-1], elliptic.between_nodes(k)
        found = (
            elliptic.solve(faces, inner, 1e-10)
            if way == "gradients"
            else elliptic.factorise_and_solve(faces, inner)
        )
        assert found.residual <= 1e-10
        errors.append(float(np.abs(found.u - u).max()))
    np.testing.assert_allclose(orders(errors), elliptic.ORDER, atol=0.1)


def test_layers_conduct_harmonically_along_and_arithmetically_across() -> None:
    k = np.ones((16, 16))
    k[1::2] = 3.0  # layers across x
    faces = elliptic.of_cells(k, 4)
    np.testing.assert_allclose(faces.x, 1.5)
    np.testing.assert_allclose(faces.y, 2.0)


def test_gradients_refuse_what_they_cannot_reach() -> None:
    rng = np.random.default_rng(0)
    k = elliptic.between_nodes(np.exp(6.0 * rng.standard_normal((33, 33))))
    with pytest.raises(ArithmeticError, match="factorise instead"):
        elliptic.solve(k, np.ones((31, 31)), 1e-10, max_iterations=20)


def test_darcy_ensemble_has_the_size_of_the_official_one() -> None:
    dataset = DarcySet(resolution=85, finer=2)
    modes = (darcy.field_modes(np.random.default_rng([0, i]), 84) for i in range(150))
    solutions = [dataset._solution(g, 84) for g in modes]
    rms = float(np.sqrt(np.mean(np.square(solutions))))
    assert rms == pytest.approx(6.95e-3, rel=0.03)


def test_darcy_labels_are_good_to_a_thousandth() -> None:
    dataset = DarcySet()
    arrays = dataset.samples(0, 1).arrays
    (check,) = dataset.check(arrays, 1, np.random.default_rng(0))
    assert check.allowed == 1e-3
    assert check.is_met, check
    assert set(np.unique(arrays["coefficient"])) == set(darcy.PHASES)


def test_field_of_cells_is_the_field_of_points() -> None:
    modes = darcy.field_modes(np.random.default_rng(0), 12)
    centres = (np.arange(20) + 0.5) / 20
    np.testing.assert_allclose(
        darcy.at_cells(modes, 20), darcy.at_points(modes, centres), atol=1e-14
    )


def test_force_along_a_single_wave_makes_it_grow_and_viscosity_stops_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ns, "VISCOSITY", 1e-3)
    still = np.zeros((65, 65), dtype=np.complex128)
    w = ns.trajectory(still, 32, 2, 20)
    x = np.arange(32) / 32
    phase = 2.0 * np.pi * (x[:, None] + x)
    rate = 1e-3 * 8.0 * np.pi**2
    shape = 0.1 * (np.sin(phase) + np.cos(phase))
    for frame, t in enumerate((1.0, 2.0)):
        np.testing.assert_allclose(w[..., frame], shape * -np.expm1(-rate * t) / rate, atol=1e-12)


def test_two_waves_carry_each_other() -> None:
    """w = 2 cos 2πx + 2 cos 4πy gives -u·∇w = 6 sin 2πx sin 4πy, by hand."""
    n = 32
    x = np.arange(n) / n
    w = 2.0 * np.cos(2.0 * np.pi * x)[:, None] + 2.0 * np.cos(4.0 * np.pi * x)
    tendency = ns.advection_and_force(n)
    with_force, force = (tendency(modes, 0.0) for modes in (np.fft.rfft2(w), np.zeros((n, 17))))
    found = np.fft.irfft2(with_force - force, s=(n, n))
    expected = 6.0 * np.outer(np.sin(2.0 * np.pi * x), np.sin(4.0 * np.pi * x))
    np.testing.assert_allclose(found, expected, atol=1e-11)


def test_advection_conserves_enstrophy_and_energy() -> None:
    n = 64
    rng = np.random.default_rng(0)
    modes = np.zeros((n, n // 2 + 1), dtype=np.complex128)
    modes[1:8, 1:8] = rng.standard_normal((7, 7)) + 1j * rng.standard_normal((7, 7))
    tendency = ns.advection_and_force(n)
    change = np.fft.irfft2(tendency(modes, 0.0) - tendency(0.0 * modes, 0.0), s=(n, n))
    stream = np.divide(modes, ns._square(n), out=np.zeros_like(modes), where=modes != 0.0)
    for conserved in (modes, stream):
        field = np.fft.irfft2(conserved, s=(n, n))
        assert abs((field * change).sum()) < 1e-12 * np.linalg.norm(field) * np.linalg.norm(change)


def test_navier_stokes_is_refined_in_space_and_time() -> None:
    """To t = 6 on three samples; to t = 20, this is ``python -m data_gen verify``."""
    for number in range(3):
        initial = ns.initial_modes(np.random.default_rng([0, number]))
        coarse, fine = (ns.trajectory(initial, n, 6, n // 2) for n in (64, 128))
        error = np.linalg.norm(coarse - fine[::2, ::2]) / np.linalg.norm(fine[::2, ::2])
        assert error < 1e-2


def test_navier_stokes_refuses_a_grid_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="multiple of 64"):
        NavierStokesSet(fine=100)


def test_advection_is_exact_to_round_off() -> None:
    arrays, error = AdvectionSet().sample(np.random.default_rng(0))
    again = advection.shifted(arrays["initial"], advection.SPEED * advection.TIME)
    np.testing.assert_allclose(again, arrays["final"], atol=1e-12)
    assert error == 0.0


def test_a_wave_at_the_medium_s_own_wavenumber_is_the_one_that_grows() -> None:
    k = np.arange(1.0, 17.0)
    gain = np.abs(HelmholtzSet().symbol(k, 5.0))
    assert k[gain.argmax()] == 5.0
    assert gain.max() == pytest.approx(0.5 / symbols.ABSORPTION)


def test_the_referee_of_helmholtz_is_of_fourth_order() -> None:
    x = np.arange(32) / 32
    source = np.sin(2.0 * np.pi * 3 * x)
    exact = (np.exp(6j * np.pi * x) * HelmholtzSet().symbol(np.array(3.0), 5.3)).imag
    errors = [
        float(np.abs(symbols.by_differences(source, 5.3, refine) - exact).max())
        for refine in (1, 2, 4, 8)
    ]
    np.testing.assert_allclose(orders(errors)[1:], 4.0, atol=0.1)


def test_upwind_is_of_first_order_and_wipes_out_the_spike() -> None:
    errors = []
    for n in (256, 512, 1024):
        x = np.arange(n) / n
        moved = advection.shifted(np.sin(2.0 * np.pi * x), advection.SPEED * advection.TIME)
        errors.append(float(np.abs(advection.upwind(np.sin(2.0 * np.pi * x)) - moved).max()))
    np.testing.assert_allclose(orders(errors), 1.0, atol=0.1)
    x = np.arange(512) / 512
    assert np.abs(advection.upwind(np.sin(2.0 * np.pi * 180 * x))).max() < 1e-6


def test_upwind_is_the_loop_it_stands_for() -> None:
    rng = np.random.default_rng(0)
    u = start = rng.standard_normal(64)
    n_steps = int(np.ceil(advection.TIME * 64 / advection.COURANT))
    courant = advection.TIME * 64 / n_steps
    for _ in range(n_steps):
        u = u - courant * (u - np.roll(u, 1))
    np.testing.assert_allclose(advection.upwind(start), u, atol=1e-12)


def test_rough_field_has_its_band_and_its_slope() -> None:
    n = 256
    power = np.zeros(n // 2)
    for number in range(20):
        field = fractal_darcy.rough_field(np.random.default_rng(number), n, 0.2)
        modes = np.abs(np.fft.fft2(field)) ** 2
        k = np.hypot(*np.meshgrid(*[np.fft.fftfreq(n, 1.0 / n)] * 2))
        ring = np.bincount(k.round().astype(int).ravel(), modes.ravel())[: n // 2]
        power += ring / np.bincount(k.round().astype(int).ravel())[: n // 2]
    assert power[70:].max() < 1e-12 * power[2]
    slope = np.polyfit(np.log(np.arange(4, 60)), np.log(power[4:60]), 1)[0]
    assert slope == pytest.approx(-2.0 * 0.2 - 2.0, abs=0.1)


def test_fractal_darcy_is_solved_to_rounding() -> None:
    shard = FractalDarcySet(**FEW).make(0)
    assert shard.worst_error <= 1e-10
    assert np.ptp(shard.arrays["log_permeability"]) > np.log(1e3)


def test_reaction_and_diffusion_rest_without_a_source_and_are_nearly_linear_when_small() -> None:
    modes = np.zeros((4, 6))
    assert not rd._solution(modes, 2).any()
    half, whole = rd._solution(modes + 0.01, 2), rd._solution(modes + 0.02, 2)
    np.testing.assert_allclose(2.0 * half, whole, rtol=1e-3, atol=1e-7)  # nearly linear when small

"""The pulled cell with a void: its material, its mesh, its equilibrium and its set."""

from typing import Any

import numpy as np
import pytest

from amo.arrays import FloatArray
from data_gen.physics import elasticity
from data_gen.physics.elasticity import (
    C1,
    C2,
    GAUSS_ORDER,
    TRACTION,
    ElasticitySet,
    deformation_gradient,
    draw_waves,
    energy_density,
    find_equilibrium,
    piola,
    solve_cell,
    tangent,
    void_mesh,
    void_radius,
    von_mises,
)

SMALL = ElasticitySet(train=20, validation=1, test=1)
GRADIENTS = np.eye(2)[:, :, None] + 0.2 * np.random.default_rng(0).uniform(-1, 1, (2, 2, 50))
STEP = 1e-6


@pytest.fixture(scope="module")
def arrays() -> dict[str, Any]:
    return SMALL.make(0).arrays


def vector_basis(mesh: Any) -> Any:
    from skfem import Basis, ElementQuad2, ElementVector

    return Basis(mesh, ElementVector(ElementQuad2()), intorder=GAUSS_ORDER)


def cauchy(F: FloatArray) -> FloatArray:
    return np.einsum("ik...,jk...->ij...", piola(F), F)


def nudged(i: int, j: int) -> tuple[FloatArray, FloatArray]:
    change = np.zeros((2, 2, 1))
    change[i, j] = STEP
    return GRADIENTS + change, GRADIENTS - change


@pytest.mark.parametrize(("i", "j"), list(np.ndindex(2, 2)))
def test_piola_is_the_derivative_of_the_energy(i: int, j: int) -> None:
    more, less = nudged(i, j)
    slope = (energy_density(more) - energy_density(less)) / (2 * STEP)
    assert np.allclose(piola(GRADIENTS)[i, j], slope, rtol=1e-6, atol=1e-6 * C1)


@pytest.mark.parametrize(("i", "j"), list(np.ndindex(2, 2)))
def test_tangent_is_the_derivative_of_piola(i: int, j: int) -> None:
    more, less = nudged(i, j)
    slope = (piola(more) - piola(less)) / (2 * STEP)
    assert np.allclose(tangent(GRADIENTS)[:, :, i, j], slope, rtol=1e-6, atol=1e-6 * C1)


def test_energy_is_that_of_an_incompressible_body_in_three_dimensions() -> None:
    F = np.zeros((3, 3, GRADIENTS.shape[-1]))
    F[:2, :2] = GRADIENTS
    F[2, 2] = 1.0 / (F[0, 0] * F[1, 1] - F[0, 1] * F[1, 0])
    C = np.einsum("ki...,kj...->ij...", F, F)
    first = np.einsum("ii...", C)
    second = 0.5 * (first**2 - np.einsum("ij...,ji...", C, C))
    expected = C1 * (first - 3.0) + C2 * (second - 3.0)
    assert np.allclose(energy_density(GRADIENTS), expected, rtol=1e-10)


def test_rest_is_free_of_stress() -> None:
    assert np.abs(piola(np.eye(2))).max() < 1e-9
    assert von_mises(np.diag([0.0, -3.0])) == pytest.approx(3.0)
    assert von_mises(np.array([[0.0, 1.0], [1.0, 0.0]])) == pytest.approx(np.sqrt(3.0))


def test_waves_have_the_printed_covariance() -> None:
    """16 (9 - Δ)^{-1} has the variance Σ_k 16 / (k² + 9) / 2π over kept k of both signs."""
    waves = [draw_waves(np.random.default_rng(n)) for n in range(4000)]
    radius = np.stack([void_radius(w, np.linspace(0.0, 6.0, 5)) for w in waves])
    g = np.log(0.2 / (radius - 0.2) - 1.0)
    k = np.arange(-elasticity.N_WAVES, elasticity.N_WAVES + 1)
    assert g.var(axis=0) == pytest.approx((16.0 / (k**2 + 9.0)).sum() / (2 * np.pi), rel=0.1)
    assert radius.min() > 0.2
    assert radius.max() < 0.4


def test_points_are_inside_the_cell_and_outside_of_the_void(arrays: dict[str, Any]) -> None:
    assert arrays["points"].shape == (20, 972, 2)
    assert arrays["stress"].shape == (20, 972)
    for number, points in enumerate(arrays["points"]):
        waves = draw_waves(np.random.default_rng([SMALL.seed, number]))
        mesh = void_mesh(waves)
        assert mesh.nelements == 108
        corners = mesh.p[:, (np.abs(mesh.p - 0.5) > 0.5 - 1e-9).all(axis=0)]
        assert corners.shape == (2, 4)
        assert ((points > 0.0) & (points < 1.0)).all()
        x, y = points.T.astype(np.float64) - 0.5
        assert (np.hypot(x, y) > void_radius(waves, np.arctan2(y, x))).all()


def test_mesh_fills_what_the_void_leaves() -> None:
    waves = draw_waves(np.random.default_rng(5))
    angle = np.linspace(0.0, 2 * np.pi, 4000, endpoint=False)
    expected = 1.0 - np.pi * (void_radius(waves, angle) ** 2).mean()
    assert vector_basis(void_mesh(waves)).dx.sum() == pytest.approx(expected, rel=1e-3)


def test_patch_affine_displacement_of_the_boundary_is_affine_inside() -> None:
    basis = vector_basis(void_mesh(draw_waves(np.random.default_rng(1))))
    F = np.array([[1.1, 0.05], [-0.02, 0.95]])
    component = np.zeros(basis.N, dtype=int)
    component[basis.get_dofs(elements=True).all("u^2")] = 1
    affine = np.einsum("nk,kn->n", (F - np.eye(2))[component], basis.doflocs)
    held = basis.get_dofs().flatten()
    start = affine + 1e-4 * np.random.default_rng(0).uniform(-1, 1, basis.N)
    start[held] = affine[held]
    moved = find_equilibrium(basis, np.zeros(basis.N), held, start)
    assert np.abs(moved - affine).max() < 1e-9
    stress = cauchy(deformation_gradient(basis, moved))
    assert np.allclose(stress, cauchy(F)[:, :, None, None], rtol=1e-7)


def test_pulled_square_with_free_sides_has_the_stress_of_the_traction() -> None:
    from skfem import FacetBasis, LinearForm, MeshQuad

    mesh = MeshQuad().refined(2)
    basis = vector_basis(mesh)
    top = mesh.facets_satisfying(lambda x: x[1] > 1.0 - 1e-9, boundaries_only=True)
    bottom = mesh.facets_satisfying(lambda x: x[1] < 1e-9, boundaries_only=True)
    left = mesh.facets_satisfying(lambda x: x[0] < 1e-9, boundaries_only=True)
    pull = LinearForm(lambda v, _: TRACTION[1] * v[1]).assemble(
        FacetBasis(mesh, basis.elem, facets=top, intorder=GAUSS_ORDER)
    )
    sliding = [basis.get_dofs(bottom).all("u^2"), basis.get_dofs(left).all("u^1")]
    moved = find_equilibrium(basis, pull, np.concatenate(sliding), np.zeros(basis.N))
    F = deformation_gradient(basis, moved)
    (xx, xy), (_, yy) = cauchy(F)
    assert np.allclose(yy, TRACTION[1], rtol=1e-3)
    assert max(np.abs(xx).max(), np.abs(xy).max()) < 1e-6
    young = 6.0 * (C1 + C2)
    assert np.allclose(F[1, 1] - 1.0, TRACTION[1] / young, rtol=1e-3)
    assert np.allclose(F[0, 0] - 1.0, -0.5 * TRACTION[1] / young, rtol=1e-3)


def test_clamp_carries_the_pull() -> None:
    """The work of the traction is twice the energy, nearly: strains are small."""
    found = solve_cell(void_mesh(draw_waves(np.random.default_rng(2))))
    assert 0.5 * TRACTION[1] * found.stretch == pytest.approx(found.energy, rel=1e-2)


def test_no_equilibrium_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = void_mesh(draw_waves(np.random.default_rng(3)))
    monkeypatch.setattr(elasticity, "_N_NEWTON", 1)
    with pytest.raises(ArithmeticError, match="no equilibrium after 1"):
        solve_cell(mesh)


def test_folded_mesh_is_refused() -> None:
    mesh = void_mesh(draw_waves(np.random.default_rng(3)))
    mesh.doflocs[:, 0] = 0.9
    with pytest.raises(ArithmeticError, match="folded"):
        solve_cell(type(mesh)(mesh.doflocs, mesh.t))


def test_stresses_have_the_size_of_the_published_ones(arrays: dict[str, Any]) -> None:
    assert 150.0 < arrays["stress"].mean() < 260.0
    largest = arrays["stress"].max(axis=1)
    assert largest.min() > 480.0
    assert largest.max() < 1440.0


def test_samples_are_functions_of_seed_and_number(arrays: dict[str, Any]) -> None:
    again = SMALL.samples(3, 2).arrays
    assert again.keys() == SMALL.units.keys()
    for name, values in again.items():
        assert np.array_equal(values, arrays[name][3:5])
    other = ElasticitySet(train=20, validation=1, test=1, seed=1).samples(3, 1).arrays
    assert not np.array_equal(other["points"][0], again["points"][0])


def test_estimated_error_is_small_and_falls_with_the_mesh() -> None:
    waves = draw_waves(np.random.default_rng(4))
    coarse = solve_cell(void_mesh(waves)).error
    fine = solve_cell(void_mesh(waves, n_around=72, n_across=6)).error
    assert fine < 0.5 * coarse < 0.05


def test_check_is_met_and_sees_what_is_wrong(arrays: dict[str, Any]) -> None:
    checks = SMALL.check(arrays, 20, np.random.default_rng(0))
    assert all(check.is_met for check in checks), checks
    assert {check.n_points for check in checks} == {3}
    wrong = {**arrays, "stress": arrays["stress"] * np.float32(1.001)}
    assert not SMALL.check(wrong, 1, np.random.default_rng(0))[1].is_met


def test_picture_shows_four_clouds(arrays: dict[str, Any]) -> None:
    assert len(SMALL.picture(arrays).data) == 4

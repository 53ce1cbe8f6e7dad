"""Metal, elements, equations of motion and die, each against what is known in closed form."""

import numpy as np
import pytest
from scipy.optimize import brentq

from amo.arrays import FloatArray
from data_gen.physics.forging import die as dies
from data_gen.physics.forging import elements, solver
from data_gen.physics.forging.elements import Body, areas, block, deform, longest_step
from data_gen.physics.forging.material import STEEL, Metal, elastic_energy, strained, von_mises

YIELD = STEEL.yield_stress
SHEAR = STEEL.young / (2.0 + 2.0 * STEEL.poisson)
SWING = 1e-3  # mm/ms: strains of 2e-7
ROUNDING = 1e-12  # a few hundred operations on numbers of the size of one


def elastic_stress(metal: Metal, strain: FloatArray) -> FloatArray:
    xx, yy, angle = strain
    plane = metal.young / (1.0 - metal.poisson**2)
    return np.array(
        [
            plane * (xx + metal.poisson * yy),
            plane * (yy + metal.poisson * xx),
            metal.young / (2.0 + 2.0 * metal.poisson) * angle,
        ]
    )


def elastic_strain(metal: Metal, stress: FloatArray) -> FloatArray:
    xx, yy, xy = stress
    return np.array(
        [
            (xx - metal.poisson * yy) / metal.young,
            (yy - metal.poisson * xx) / metal.young,
            (2.0 + 2.0 * metal.poisson) / metal.young * xy,
        ]
    )


def drawn_strains(size: float, n: int = 50) -> list[FloatArray]:
    """Return strains in random directions whose elastic stress is ``size`` yield stresses."""
    drawn = np.random.default_rng(0).standard_normal((n, 3))
    return [s * size * YIELD / von_mises(elastic_stress(STEEL, s)) for s in drawn]


def test_metal_is_elastic_below_yield() -> None:
    for strain in drawn_strains(0.999):
        *stress, d_zz, work = strained(STEEL, 0.0, 0.0, 0.0, *strain)
        np.testing.assert_allclose(stress, elastic_stress(STEEL, strain), atol=ROUNDING * YIELD)
        expected = -STEEL.poisson / STEEL.young * (stress[0] + stress[1])
        assert d_zz == pytest.approx(expected, abs=ROUNDING)
        assert work == 0.0
        energy = float(elastic_energy(STEEL, np.array(stress)))
        assert energy == pytest.approx(0.5 * strain @ np.array(stress), rel=ROUNDING)


@pytest.mark.parametrize("size", [1.001, 1.1, 3.0, 100.0])
def test_return_ends_on_the_yield_surface_along_its_normal(size: float) -> None:
    normal = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 6.0]]) / 3.0
    for strain in drawn_strains(size):
        *found, d_zz, work = strained(STEEL, 0.0, 0.0, 0.0, *strain)
        stress = np.array(found)
        assert von_mises(stress) == pytest.approx(YIELD, rel=1e-11)  # Newton's steps leave 2e-12
        plastic = strain - elastic_strain(STEEL, stress)
        direction = normal @ stress
        multiplier = plastic @ direction / (direction @ direction)
        np.testing.assert_allclose(
            plastic, multiplier * direction, atol=1e-8 * np.abs(strain).max()
        )
        assert 0.0 < work == pytest.approx(float(plastic @ stress), rel=1e-6)
        elastic = -STEEL.poisson / STEEL.young * (stress[0] + stress[1])
        assert d_zz == pytest.approx(elastic - plastic[0] - plastic[1], abs=1e-8 * size)


def test_return_is_the_root_of_its_equation() -> None:
    """Pure shear and equal stretching are the two principal directions: closed forms."""
    *stress, _, work = strained(STEEL, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0 * YIELD / SHEAR)
    np.testing.assert_allclose(stress, [0.0, 0.0, YIELD / np.sqrt(3.0)], atol=1e-8 * YIELD)
    slip = 5.0 * YIELD / SHEAR - stress[2] / SHEAR
    assert work == pytest.approx(stress[2] * slip, rel=1e-8)
    stretch = 5.0 * YIELD / STEEL.young
    xx, yy, xy, *_ = strained(STEEL, 0.0, 0.0, 0.0, stretch, stretch, 0.0)
    np.testing.assert_allclose([xx, yy, xy], [YIELD, YIELD, 0.0], atol=1e-8 * YIELD)
    mixed = np.array([3.0, -1.0, 2.0]) * YIELD / STEEL.young
    trial = elastic_stress(STEEL, mixed)
    bulk = STEEL.young / (1.0 - STEEL.poisson)

    def after(multiplier: float) -> FloatArray:
        even = (trial[0] + trial[1]) / (1.0 + bulk * multiplier / 3.0)
        apart = (trial[0] - trial[1]) / (1.0 + 2.0 * SHEAR * multiplier)
        across = trial[2] / (1.0 + 2.0 * SHEAR * multiplier)
        return np.array([0.5 * (even + apart), 0.5 * (even - apart), across])

    root = brentq(lambda m: float(von_mises(after(m))) - YIELD, 0.0, 1.0 / SHEAR * 100, xtol=1e-18)
    found = strained(STEEL, 0.0, 0.0, 0.0, *mixed)[:3]
    np.testing.assert_allclose(found, after(root), atol=1e-8 * YIELD)


def test_pull_along_a_line_has_the_closed_form() -> None:
    """E ε until σ_Y, then σ_Y; the metal narrows by ν, then by a half."""
    at_yield = YIELD / STEEL.young
    n = 16
    stress, thinning = [0.0, 0.0, 0.0], 0.0
    for k in range(1, 3 * n + 1):
        strain = at_yield / n
        narrowing = STEEL.poisson if k <= n else 0.5
        *stress, d_zz, _ = strained(STEEL, *(*stress, strain, -narrowing * strain, 0.0))
        thinning += d_zz
        np.testing.assert_allclose(stress, [min(k / n, 1.0) * YIELD, 0.0, 0.0], atol=1e-8 * YIELD)
    assert thinning == pytest.approx(-(STEEL.poisson + 1.0) * at_yield, rel=1e-8)


def crooked_block(seed: int = 0) -> Body:
    body = block(STEEL, 6.0, 4.0, columns=6, rows=4)
    shift = np.random.default_rng(seed).uniform(-0.25, 0.25, body.place.shape)
    return body._replace(place=body.place + shift)


def moved_by(body: Body, matrix: FloatArray, step: float = 0.5) -> Body:
    """Return the body after a step in which every node has gone from x to matrix x."""
    after = np.einsum("ik,kjm->ijm", matrix, body.place)
    moved = body._replace(place=after, velocity=(after - body.place) / step)
    deform(moved, STEEL, step)
    return moved


def turn(angle: float) -> FloatArray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def test_patch_uniform_strain_gives_uniform_stress_and_no_hourglass() -> None:
    gradient = 1e-5 * np.array([[3.0, 1.0], [-2.0, -5.0]])
    body = moved_by(crooked_block(), np.eye(2) + gradient)
    strain = np.array([gradient[0, 0], gradient[1, 1], gradient[0, 1] + gradient[1, 0]])
    stress = elastic_stress(STEEL, strain)
    expected = np.broadcast_to(stress[:, None, None], (3, 4, 6))
    # Strains of the middle mesh differ from these by their product with the gradient, 5e-5; places
    # are rounded to 1e-15, a few 1e-10 of these strains.
    np.testing.assert_allclose(body.cells[:3], expected, atol=1e-4 * np.abs(stress).max())
    np.testing.assert_allclose(body.cells[:3], body.cells[:3, :1, :1] + 0 * expected, rtol=1e-7)
    assert np.abs(body.cells[4:6]).max() < 1e-8 * np.abs(stress).max()
    assert np.abs(body.force[:, 1:-1, 1:-1]).max() < 1e-8 * np.abs(stress).max()
    assert np.abs(body.force).max() > 0.1 * np.abs(stress).max()  # the edge has to hold it


def test_rotation_makes_no_stress_and_turns_what_is_there() -> None:
    body = moved_by(crooked_block(), turn(1.0))
    assert np.abs(body.cells[:3]).max() < 1e-9 * YIELD
    assert np.abs(body.cells[4:6]).max() < 1e-9 * YIELD
    np.testing.assert_allclose(body.cells[3], 1.0, rtol=1e-12)
    stressed = crooked_block()
    stressed.cells[0], stressed.cells[1], stressed.cells[2] = 30.0, -10.0, 5.0
    turned = moved_by(stressed, turn(1.0)).cells[:3, 0, 0]
    xx, xy, _, yy = (turn(1.0) @ np.array([[30.0, 5.0], [5.0, -10.0]]) @ turn(-1.0)).ravel()
    np.testing.assert_allclose(turned, [xx, yy, xy], atol=1e-9 * YIELD)


def test_inner_forces_move_and_turn_nothing_as_a_whole() -> None:
    body = crooked_block()
    body.velocity[:] = 3.0 * np.random.default_rng(1).standard_normal(body.velocity.shape)
    step = 0.01 * longest_step(body, STEEL)
    for _ in range(200):
        body.place[:] += step * body.velocity
        deform(body, STEEL, step)
    assert (np.abs(body.cells[4:6]).max(axis=(1, 2)) > 0.0).all()
    assert (body.cells[6] > 0.0).any()
    size = np.abs(body.force).sum()
    assert np.abs(body.force.sum(axis=(1, 2))).max() < ROUNDING * size
    x, y = body.place
    torque = (x * body.force[1] - y * body.force[0]).sum()
    assert abs(torque) < 1e-9 * size


def test_hourglass_is_resisted() -> None:
    body = block(STEEL, 1.0, 1.0, columns=1, rows=1)
    shape = np.array([[1.0, -1.0], [-1.0, 1.0]])
    body.velocity[0] = 1e-6 * shape
    body.place[0] += body.velocity[0]
    deform(body, STEEL, 1.0)
    assert np.abs(body.cells[:3]).max() < 1e-9  # one point does not feel it
    spring = elements.HOURGLASS * STEEL.young / 12.0 * 4e-6
    np.testing.assert_allclose(body.force[0], -spring * shape, rtol=1e-4)
    assert body.cells[7, 0, 0] == pytest.approx(0.5 * spring * 4e-6, rel=1e-4)


def swing(columns: int, n_steps: int, time: float) -> float:
    """Let a bar swing along itself, ν = 0; return the velocity of its first mode, one at first."""
    metal = Metal(poisson=0.0)
    body = block(metal, 10.0, 1.0, columns=columns, rows=1)
    mode = np.cos(np.pi * body.place[0] / 10.0)
    body.velocity[0] = SWING * mode
    far = dies.profile(np.full(8, 100.0), 10.0)
    solver.march(body, metal, far, 0.0, 0.0, 0.0, time / n_steps, n_steps, 0.0)
    weight = body.mass * mode
    return float((weight * body.velocity[0]).sum() / (weight * mode).sum() / SWING)


def test_bar_swings_at_the_frequency_of_its_wave_speed_with_the_declared_order() -> None:
    """The discrete solution is known: sin(ωΔ/2) = cΔ/h sin(πh/2L)."""
    columns, length = 10, 10.0
    speed = np.sqrt(STEEL.young / STEEL.density)
    time = 0.7 * length / speed
    h = length / columns
    limit = np.cos(2.0 * speed / h * np.sin(np.pi * h / (2.0 * length)) * time)
    errors = []
    for n_steps in (16, 32, 64):
        step = time / n_steps
        half = np.arcsin(speed * step / h * np.sin(np.pi * h / (2.0 * length)))
        found = swing(columns, n_steps, time)
        # The mesh's own motion changes frequencies by about the strain; rounded places less.
        assert found == pytest.approx(np.cos(2.0 * half * n_steps), abs=1e-6)
        errors.append(abs(found - limit))
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(order, solver.ORDER, atol=0.05)
    # In space too: what is left at 4 times the columns is (πh/L)²/24 of the phase 0.7 π.
    exact = np.cos(np.pi * speed / length * time)
    assert swing(40, 640, time) == pytest.approx(exact, abs=(np.pi / 40) ** 2 / 24 * 0.7 * np.pi)


def test_die_goes_through_its_heights_and_is_level_beside() -> None:
    heights = np.random.default_rng(3).uniform(0.0, 8.0, 8)
    die = dies.profile(heights, 50.0)
    x = -50.0 / 7.0 * np.arange(8)
    np.testing.assert_allclose(dies.heights_at(die, x), heights, atol=1e-12)
    between = dies.heights_at(die, np.linspace(-80.0, 30.0, 2001))
    assert heights.min() - 1e-12 <= between.min()
    assert between.max() <= heights.max() + 1e-12
    np.testing.assert_allclose(dies.heights_at(die, np.array([0.1, 5.0, 99.0])), heights[0])
    for place in (-63.0, -50.0, -31.4, -7.0, 0.0, 20.0):
        up, down = dies.heights_at(die, np.array([place + 1e-5, place - 1e-5]))
        slope = dies.height_and_slope(die, place)[1]
        assert slope == pytest.approx((up - down) / 2e-5, abs=1e-4)  # s″ is at most some 2 / mm


def test_push_is_the_slope_of_its_energy() -> None:
    die = dies.profile(np.array([0.0, 1.0, 0.5, 2.0, 0.2, 0.1, 1.0, 0.3]), 6.0)
    body = crooked_block()

    def energy() -> float:
        body.force[:] = 0.0
        return float(dies.push(body, die, -3.0, 10.0)[1])

    assert energy() > 0.0
    force = body.force.copy()
    reaction = dies.push(body, die, -3.0, 10.0)[0]
    assert reaction == pytest.approx(-force[1].sum(), rel=ROUNDING)
    inner = force[:, 1:, 1:-1]
    assert not inner.any()
    for place in [(0, 0, 2), (1, 0, 2), (0, 1, 0), (1, 2, 6), (1, 0, 0)]:
        body.place[place] += 1e-5
        more = energy()
        body.place[place] -= 2e-5
        less = energy()
        body.place[place] += 1e-5
        # Differences of an energy of some 100: rounding over 2e-5, and the kink of contact.
        assert force[place] == pytest.approx(-(more - less) / 2e-5, abs=1e-3)


def test_folded_element_allows_no_step() -> None:
    body = block(STEEL, 1.0, 1.0, columns=2, rows=1)
    assert areas(body) == pytest.approx(0.5)
    body.place[0, :, 1] = 0.5
    assert areas(body)[0, 0] < 0.0
    assert longest_step(body, STEEL) == 0.0

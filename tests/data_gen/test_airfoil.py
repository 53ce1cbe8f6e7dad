"""Flow around wing sections: a scheme of the order it declares, closed meshes, and their set."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from amo.arrays import FloatArray
from amo.errors import FailedError, SettingsError
from data_gen.physics import airfoil
from data_gen.physics.airfoil import (
    N_SHIFTS,
    STREAM,
    AirfoilSet,
    Flow,
    at_nodes,
    between_cells,
    c_mesh,
    draw_shifts,
    lifted,
    nested_flows,
    section,
)
from data_gen.physics.c_mesh import cells_between
from data_gen.physics.euler import (
    GAMMA,
    fill_ghosts,
    find_steady,
    residual_of,
    uniform,
)

AROUND = 48  # cells around the section in these tests
SMALL = AirfoilSet(train=1, validation=1, test=1, around=AROUND)
STRAIGHT = np.zeros(N_SHIFTS)
BENT = draw_shifts(np.random.default_rng(0))


@pytest.fixture(scope="module")
def flows() -> tuple[Flow, Flow]:
    """Around NACA 0012."""
    return nested_flows(STRAIGHT, AROUND)


@pytest.fixture(scope="module")
def arrays() -> dict[str, Any]:
    return SMALL.make(0).arrays


def test_the_section_is_naca_0012_and_closed() -> None:
    points = section(STRAIGHT, 240)
    assert np.allclose(points[0], [1.0, 0.0], atol=1e-15)
    assert np.allclose(points[0], points[-1], atol=1e-15)
    assert np.isclose(2.0 * points[:, 1].max(), 0.12, atol=1e-4)  # 12 % thick at 30 % of the chord
    assert abs(points[points[:, 1].argmax(), 0] - 0.3) < 0.01
    assert np.array_equal(points[:, 1], -points[::-1, 1])


def test_nodes_move_by_their_shifts_and_points_between_them_smoothly() -> None:
    rng = np.random.default_rng(1)
    shifts = rng.uniform(-0.05, 0.05, N_SHIFTS)
    x = np.tile(0.5 + 1.5 * np.array([-0.5, -1 / 6, 1 / 6, 0.5]), 2)
    y = np.repeat([-0.1, 0.1], 4)
    assert np.allclose(lifted(np.stack([x, y], axis=-1), shifts), shifts, atol=1e-15)
    points = rng.uniform(-0.1, 1.0, (20, 2))
    cubic = np.polynomial.Polynomial([0.01, -0.02, 0.03, 0.01])
    same = np.tile(cubic(x[:4]), 2)  # the same above and below: a cubic is met exactly
    assert np.allclose(lifted(points, same), cubic(points[:, 0]), atol=1e-14)


def test_cells_fill_the_mesh_and_their_faces_close() -> None:
    mesh = cells_between(c_mesh(BENT, AROUND), AROUND * 5 // 12)
    closed_x = np.diff(mesh.along_x, axis=0) + np.diff(mesh.out_x, axis=1)
    closed_y = np.diff(mesh.along_y, axis=0) + np.diff(mesh.out_y, axis=1)
    size = np.hypot(mesh.out_x, mesh.out_y).max()
    assert max(np.abs(closed_x).max(), np.abs(closed_y).max()) < 1e-12 * size
    half_circle_and_box = 0.5 * np.pi * 40.0**2 + 2.0 * 40.0 * 39.0
    # the section itself is left out, and the circle is a polygon of AROUND sides
    assert np.isclose(mesh.volume.sum(), half_circle_and_box, rtol=(np.pi / AROUND) ** 2)


def test_overlapping_cells_are_refused() -> None:
    nodes = c_mesh(STRAIGHT, AROUND)
    nodes[30, 3] = nodes[30, 5]
    with pytest.raises(FailedError, match="overlap"):
        cells_between(nodes, 20)


def test_identity_the_free_stream_is_steady() -> None:
    """Without a wall, uniform states change by rounding alone, on any mesh."""
    nodes = c_mesh(BENT, AROUND)
    mesh = cells_between(nodes, (len(nodes) - 1) // 2)
    states = uniform(mesh, STREAM)
    fill_ghosts(states, mesh, np.array(STREAM))
    assert np.allclose(states, uniform(mesh, STREAM), rtol=1e-13)
    # a face is at most about 40 long, the smallest cell about 1e-3
    rates = residual_of(states, mesh) * mesh.volume[..., None]
    assert np.abs(rates).max() < 1e-12 * 40.0


def vortex(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return a vortex that stands still: the pressure holds it together, entropy is constant."""
    size = 0.4
    swirl = size * np.exp(0.5 * (1.0 - x**2 - y**2))
    heat = 1.0 - (GAMMA - 1.0) / (2.0 * GAMMA) * swirl**2
    density, u, v = heat ** (1.0 / (GAMMA - 1.0)), -y * swirl, x * swirl
    energy = density * heat / (GAMMA - 1.0) + 0.5 * density * (u**2 + v**2)
    return np.stack([density, density * u, density * v, energy], axis=-1)


def test_fluxes_and_dissipation_are_of_second_order() -> None:
    """A steady vortex on a wavy mesh: its rates of change fall by four as cells are halved."""
    errors = []
    for n in (16, 32, 64):
        ticks = np.linspace(-3.0, 3.0, n + 1)
        step = ticks[1] - ticks[0]
        wide = np.concatenate([ticks[0] + step * np.array([-2, -1]), ticks,
                               ticks[-1] + step * np.array([1, 2])])  # fmt: skip
        a, b = np.meshgrid(wide, wide, indexing="ij")
        nodes = np.stack([a + 0.1 * np.sin(a + b), b + 0.1 * np.cos(a - b)], axis=-1)
        centres = 0.25 * (nodes[1:, 1:] + nodes[:-1, 1:] + nodes[1:, :-1] + nodes[:-1, :-1])
        mesh = cells_between(nodes[2:-2, 2:-2], n // 2)
        rates = residual_of(vortex(centres[..., 0], centres[..., 1]), mesh)
        errors.append(np.sqrt((rates[2:-2, 2:-2] ** 2).mean()))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders[-1] > 1.8
    assert (orders < 3.5).all()


def test_what_leaves_and_enters_far_away() -> None:
    """A cell in the free stream sees it outside; sound that leaves is let out."""
    mesh = cells_between(c_mesh(STRAIGHT, AROUND), AROUND * 5 // 12)
    states = uniform(mesh, STREAM)
    states[2:-2, 2:-2] *= 1.0 + 1e-3  # denser and hotter inside
    fill_ghosts(states, mesh, np.array(STREAM))
    free = uniform(mesh, STREAM)[0, 0]
    behind, ahead = states[1, 10], states[2 + len(mesh.volume) // 2, -2]
    for ghost in (behind, ahead):
        assert (np.abs(ghost / np.where(free == 0.0, 1.0, free) - (free != 0.0)) < 2e-3).all()
    entropy = [
        (GAMMA - 1.0) * (w[3] - 0.5 * (w[1] ** 2 + w[2] ** 2) / w[0]) / w[0] ** GAMMA
        for w in (behind, ahead, states[2, 10], free)
    ]
    assert np.isclose(entropy[0], entropy[2], rtol=1e-12)  # gas leaves behind
    assert np.isclose(entropy[1], entropy[3], rtol=1e-12)  # and enters ahead


def test_naca_0012_has_a_symmetric_flow_with_a_shock_at_mid_chord(
    flows: tuple[Flow, Flow],
) -> None:
    _, flow = flows
    assert np.abs(flow.mach - flow.mach[::-1]).max() < 1e-6
    stored = at_nodes(flow, 1)
    wall = slice(len(stored["x"]) // 2, -(AROUND * 5 // 12))  # from the nose along the upper side
    x, mach = stored["x"][wall, 0], stored["mach"][wall, 0]
    falls = np.flatnonzero((mach[:-1] > 1.0) & (mach[1:] <= 1.0))
    assert len(falls) == 1
    ahead, behind = mach[falls[0]] - 1.0, 1.0 - mach[falls[0] + 1]
    place = (behind * x[falls[0]] + ahead * x[falls[0] + 1]) / (ahead + behind)
    assert 0.45 <= place <= 0.55
    assert 1.1 < mach.max() < 1.3


def test_total_enthalpy_is_that_of_the_stream(flows: tuple[Flow, Flow]) -> None:
    for flow in flows:
        assert np.abs(flow.enthalpy / STREAM.enthalpy - 1.0).max() < 1e-2
    assert STREAM.enthalpy == pytest.approx(3.948, abs=1e-12)


def test_far_away_the_stream_is_free(flows: tuple[Flow, Flow]) -> None:
    _, flow = flows
    assert np.abs(flow.mach[:, -1] - airfoil.MACH).max() < 5e-3


def test_drag_falls_towards_that_of_finer_meshes(flows: tuple[Flow, Flow]) -> None:
    coarse, fine = flows
    assert coarse.drag > fine.drag > 0.008  # finer meshes of others: 0.0083


def test_a_march_that_does_not_arrive_says_so() -> None:
    mesh = cells_between(c_mesh(STRAIGHT, AROUND), AROUND * 5 // 12)
    with pytest.raises(FailedError, match="not steady after 3 steps"):
        find_steady(uniform(mesh, STREAM), mesh, STREAM, 1e-6, most=3)
    broken = uniform(mesh, STREAM)
    broken[30, 10, 0] = -1.0
    with pytest.raises(FailedError, match="residual is nan"):
        find_steady(broken, mesh, STREAM, 1e-6, most=50)


def test_identity_nodes_between_cells_carry_linear_functions() -> None:
    n, m, n_wake = 12, 5, 4
    i, j = np.meshgrid(np.arange(n) + 0.5, np.arange(m) + 0.5, indexing="ij")
    nodes_i, nodes_j = np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij")
    found = between_cells(2.0 * i - 3.0 * j, n_wake)
    expected = 2.0 * nodes_i - 3.0 * nodes_j
    beside_wake = np.s_[n_wake : n - n_wake + 1]
    assert np.allclose(found[:, 1:], expected[:, 1:])
    assert np.allclose(found[beside_wake], expected[beside_wake])
    even = between_cells((i - n / 2) ** 2 + 0.0 * j, n_wake)  # the same on both sides of the wake
    assert np.array_equal(even[:n_wake, 0], even[::-1][:n_wake, 0])


def test_samples_are_bent_sections_in_the_authors_layout(arrays: dict[str, Any]) -> None:
    n = AROUND * 11 // 6
    assert arrays["mach"].shape == (1, n + 1, AROUND * 5 // 12 + 1)
    assert AirfoilSet().around * 11 // 6 + 1 == 221
    nodes = c_mesh(draw_shifts(np.random.default_rng([0, 0])), AROUND)
    assert np.allclose(arrays["x"][0], nodes[..., 0], rtol=1e-6, atol=1e-6)
    assert np.allclose(arrays["y"][0], nodes[..., 1], rtol=1e-6, atol=1e-6)
    wake = slice(0, AROUND * 5 // 12)
    assert np.array_equal(arrays["mach"][0][wake, 0], arrays["mach"][0][::-1][wake, 0])
    assert 0.0 <= arrays["mach"].min() <= 0.5
    assert 1.0 < arrays["mach"].max() < 2.5
    again = SMALL.make(0).arrays
    assert all(np.array_equal(again[name], arrays[name]) for name in arrays)


def test_a_changed_sample_is_noticed(arrays: dict[str, Any]) -> None:
    checks = SMALL.check(arrays, 1, np.random.default_rng(0))
    assert [check.is_met for check in checks[:2]] == [True, True]
    assert checks[2].largest < 0.2  # this mesh is much coarser than the set's
    wrong = {**arrays, "mach": arrays["mach"] * np.float32(1.001)}
    assert not SMALL.check(wrong, 1, np.random.default_rng(0))[0].is_met


def test_sections_without_a_steady_flow_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(airfoil, "_TOLERANCE", -1.0)
    monkeypatch.setattr(airfoil, "find_steady", partial(find_steady, most=5))
    shard = SMALL.make(0)
    assert shard.n_dropped == 1
    assert shard.arrays["mach"].shape == (0, AROUND * 11 // 6 + 1, AROUND * 5 // 12 + 1)


def test_half_of_a_mesh_must_have_whole_cells() -> None:
    with pytest.raises(SettingsError, match="multiple of 24"):
        AirfoilSet(around=100)

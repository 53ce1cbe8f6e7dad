"""The bent pipe: elements of the order they declare, flows that conserve mass, and their set."""

from typing import Any

import numpy as np
import pytest

from amo.arrays import FloatArray
from amo.errors import SettingsError
from data_gen.physics import pipe, taylor_hood
from data_gen.physics.pipe import (
    LENGTH,
    VISCOSITY,
    PipeSet,
    as_fields,
    as_state,
    between_quadratic,
    draw_centre,
    held_at_walls,
    in_order,
    mass_flux,
    nested_flows,
    pipe_spaces,
)
from data_gen.physics.taylor_hood import creeping_flow, find_flow, flow_through

SMALL = PipeSet(train=1, validation=1, test=1, nodes=17, finer=2)


def straight(x: FloatArray) -> FloatArray:
    return 0.0 * x


def bent(x: FloatArray) -> FloatArray:
    return 0.2 * np.sin(2.0 * x)


@pytest.fixture(scope="module")
def arrays() -> dict[str, Any]:
    return SMALL.make(0).arrays


def test_flow_through_a_straight_pipe_is_the_parabola() -> None:
    """u = s (1 - s) and p = 2 ν (10 - x) lie in the spaces, so only round-off is left.

    Newton's method ends at a residual of 1e-10 of the forces, and the smallest stiffness of an
    8 × 8 mesh is some 1e-4 of the largest: 1e-6 leaves room for two more digits lost.
    """
    spaces = pipe_spaces(straight, 8)
    held, start = held_at_walls(spaces)
    creeping = creeping_flow(spaces, start, held, VISCOSITY)
    flow = as_fields(spaces, flow_through(spaces, creeping, held, VISCOSITY).state)
    height = np.linspace(0.0, 1.0, 17)
    expected = np.broadcast_to(height * (1.0 - height), (17, 17))
    np.testing.assert_allclose(flow.u_x, expected, atol=1e-6)
    np.testing.assert_allclose(flow.u_y, 0.0, atol=1e-6)
    np.testing.assert_allclose(flow.p, 2.0 * VISCOSITY * (LENGTH - flow.x), atol=1e-6)


def kovasznay(place: FloatArray, viscosity: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return velocity and pressure behind a grid of cylinders, which solve the equations."""
    x, y = place
    rate = 0.5 / viscosity - np.hypot(0.5 / viscosity, 2.0 * np.pi)
    decay = np.exp(rate * x)
    return (
        1.0 - decay * np.cos(2.0 * np.pi * y),
        rate / (2.0 * np.pi) * decay * np.sin(2.0 * np.pi * y),
        -0.5 * decay**2,
    )


def test_velocity_has_its_order_and_pressure_one_less_in_a_bent_channel() -> None:
    """Doubling a mesh of h = 1/8 leaves terms of higher order: a fifth of the order is allowed."""
    viscosity = 1.0 / 20.0
    errors = []
    for n in (8, 16):
        spaces = pipe_spaces(bent, n, length=1.0)
        bases = (spaces.velocity, spaces.pressure)
        places = [basis.doflocs[:, in_order(basis)] for basis in bases]
        (u_x, u_y, _), (_, _, p) = (kovasznay(place, viscosity) for place in places)
        exact = as_state(spaces, u_x, u_y, p)
        lattice, m = in_order(spaces.velocity), spaces.velocity.N
        ends = (lattice[0], lattice[-1], lattice[:, 0], lattice[:, -1])
        edge = np.unique(np.concatenate(ends))
        held = np.concatenate([edge, m + edge, [2 * m]])  # and one pressure
        start = np.zeros(spaces.size)
        start[held] = exact[held]
        flow = find_flow(spaces, start, held, viscosity)
        assert flow is not None
        place = np.asarray(spaces.velocity.global_coordinates())
        u_x, _, p = kovasznay(place, viscosity)
        velocity = np.asarray(spaces.velocity.interpolate(flow.state[:m])) - u_x
        pressure = np.asarray(spaces.pressure.interpolate(flow.state[2 * m :])) - p
        weights = spaces.velocity.dx
        errors.append([np.sqrt((e**2 * weights).sum()) for e in (velocity, pressure)])
    orders = np.log2(np.array(errors[0]) / np.array(errors[1]))
    np.testing.assert_allclose(orders, [taylor_hood.ORDER, taylor_hood.ORDER - 1], atol=0.5)


def test_newton_converges_quadratically() -> None:
    """Residuals obey e' = C e², so ln(e″/e') / ln(e'/e) tends to two until round-off."""
    spaces = pipe_spaces(draw_centre(np.random.default_rng(0)), 8)
    held, start = held_at_walls(spaces)
    creeping = creeping_flow(spaces, start, held, VISCOSITY)
    flow = flow_through(spaces, creeping, held, VISCOSITY)
    falls = np.diff(np.log([e for e in flow.residuals if e > 1e-12]))
    assert falls[-1] / falls[-2] > 1.6  # one, of a method of first order


def test_mean_flux_over_each_column_of_elements_is_the_same() -> None:
    """A pressure that varies along the pipe only makes it so, whatever the velocity's error."""
    _, flow = nested_flows(draw_centre(np.random.default_rng(1)), 16)
    through = mass_flux(flow.u_x)
    columns = (through[:-2:2] + 4.0 * through[1::2] + through[2::2]) / 6.0
    np.testing.assert_allclose(columns, columns[0], rtol=1e-7)  # the residual's 1e-10, amplified
    assert columns[0] == pytest.approx(1.0 / 6.0, rel=0.05)
    assert np.ptp(through) > 1e-4  # between columns it is conserved as the mesh allows


def test_velocities_between_nodes_are_exact_for_quadratics() -> None:
    coarse, fine = (np.linspace(0.0, 1.0, n) for n in (9, 17))

    def surface(x: FloatArray) -> FloatArray:
        return np.outer(1.0 + x - 3.0 * x**2, 2.0 - x + x**2)

    np.testing.assert_allclose(between_quadratic(surface(coarse)), surface(fine), atol=1e-14)


def test_flow_is_found_by_way_of_more_viscous_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = pipe_spaces(draw_centre(np.random.default_rng(0)), 4)
    held, start = held_at_walls(spaces)
    tried = []

    def only_viscous(*arguments: Any) -> Any:
        viscosity = arguments[3]
        tried.append(viscosity)
        started_cold = len(tried) == 1
        return None if started_cold else find_flow(*arguments)

    monkeypatch.setattr(taylor_hood, "find_flow", only_viscous)
    flow = flow_through(spaces, start, held, VISCOSITY)
    assert tried == [VISCOSITY, 2.0 * VISCOSITY, VISCOSITY]
    assert flow.residuals[-1] < 1e-10
    monkeypatch.setattr(taylor_hood, "find_flow", lambda *_: None)
    with pytest.raises(ArithmeticError, match="no flow found"):
        flow_through(spaces, start, held, VISCOSITY)


def test_pipe_is_a_unit_wide_and_follows_its_centre(arrays: dict[str, Any]) -> None:
    centre = draw_centre(np.random.default_rng([SMALL.seed, 0]))
    x, y = arrays["x"][0], arrays["y"][0]
    np.testing.assert_allclose(x[:, 0], np.linspace(0.0, LENGTH, 17), rtol=1e-6)
    np.testing.assert_allclose(y[:, -1] - y[:, 0], 1.0, atol=1e-6)
    np.testing.assert_allclose(y[:, 8], centre(x[:, 8].astype(float)), atol=1e-5)
    height = np.linspace(0.0, 1.0, 17)
    np.testing.assert_allclose(arrays["u_x"][0, 0], height * (1.0 - height), atol=1e-7)
    assert not arrays["u_x"][0, :, [0, -1]].any()
    assert not arrays["u_y"][0, :, [0, -1]].any()


def test_pipe_refuses_pieces_that_meet_within_an_element() -> None:
    with pytest.raises(SettingsError, match="multiple of 16"):
        PipeSet(nodes=64)


def test_check_sees_a_velocity_that_is_wrong(arrays: dict[str, Any]) -> None:
    wrong = {**arrays, "u_x": arrays["u_x"] * np.float32(1.001)}
    remade = pipe.PipeSet.check(SMALL, wrong, 1, np.random.default_rng(0))[0]
    assert not remade.is_met

"""Four-sided elements with one integration point: strains, Jaumann stresses, nodal forces.

An increment is measured on the mesh half-way through the step (T. Hughes and J. Winget, 1980): a
rotation of any size then strains nothing, and turns the stress with it. One point does not feel the
two hourglass modes; vectors orthogonal to all linear fields do (D. Flanagan and T. Belytschko,
1981). Springs on these resist, which are elastic and yield, each with a small share of what the
mode would meet in an element that feels it.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from amo.arrays import FloatArray
from data_gen.physics.forging.material import Metal, elastic_energy, strained, wave_speed

HOURGLASS = 0.1  # share of the stiffness E t / 12 and of the strength σ t √A / 4 of bending modes
_DESK = 128  # elements worked on together: a length that the compiler knows makes vector code


class Body(NamedTuple):
    """Nodes in rows from top to bottom, each from right to left, and the elements between.

    Attributes
    ----------
    place, velocity, force
        Of nodes, (2, rows + 1, columns + 1).
    mass
        Of nodes.
    cells
        Of elements, (8, rows, columns): Cauchy's stress, xx, yy and xy; thickness, one at rest;
        forces of the springs along x and y; plastic work, and that of the springs.
    """

    place: FloatArray
    velocity: FloatArray
    force: FloatArray
    mass: FloatArray
    cells: FloatArray


def block(metal: Metal, width: float, height: float, columns: int, rows: int) -> Body:
    """Return a body at rest whose top right corner is at (0, height)."""
    x = -np.arange(columns + 1) * (width / columns)
    y = height - np.arange(rows + 1) * (height / rows)
    nodes = (rows + 1, columns + 1)
    quarter = 0.25 * metal.density * width * height / (rows * columns)
    shares = [np.convolve(np.ones(n), np.ones(2)) for n in (rows, columns)]  # 1 at ends, 2 between
    mass = quarter * np.outer(*shares)
    cells = np.zeros((8, rows, columns))
    cells[3] = 1.0
    place = np.stack([np.broadcast_to(x, nodes), np.broadcast_to(y[:, None], nodes)])
    return Body(place, np.zeros((2, *nodes)), np.zeros((2, *nodes)), mass, cells)


@numba.njit(nogil=True, error_model="numpy", forceinline=True)
def _differences(
    top: FloatArray, low: FloatArray, ac: FloatArray, bd: FloatArray, h: FloatArray, n: int
) -> None:
    """Take differences over elements a b c d, counter-clockwise from the lower left.

    c - a and d - b along the diagonals, and a - b + c - d, the hourglass.
    """
    for i in range(n):
        a, b, c, d = low[i + 1], low[i], top[i], top[i + 1]
        ac[i], bd[i], h[i] = c - a, d - b, a - b + c - d


@numba.njit(nogil=True, error_model="numpy", forceinline=True)
def _collect(
    top: FloatArray, low: FloatArray, ac: FloatArray, bd: FloatArray, h: FloatArray, n: int
) -> None:
    """Add to nodal forces what elements resist by: the transpose of the differences."""
    for i in range(n):
        top[i] -= ac[i] + h[i]
        low[i] += bd[i] + h[i]
    for i in range(n):
        top[i + 1] -= bd[i] - h[i]
        low[i + 1] += ac[i] - h[i]


@numba.njit(nogil=True, error_model="numpy", forceinline=True)
def _copy(there: FloatArray, here: FloatArray, n: int) -> None:
    for i in range(n):
        here[i] = there[i]


@numba.njit(nogil=True, error_model="numpy", forceinline=True)
def _respond(desk: FloatArray, n: int, metal: Metal, step: float) -> None:
    """Update the stresses of the elements on the desk, and write their forces over differences.

    Rows of the desk are differences of x, y, u and v, then what :class:`Body` holds of elements.
    """
    ac_x, bd_x, h_x, ac_y, bd_y, h_y, ac_u, bd_u, h_u, ac_v, bd_v, h_v = desk[:12]
    s_xx, s_yy, s_xy, thick, spring_u, spring_v, plastic, hourglass = desk[12:]
    half = 0.5 * step
    for i in range(n):
        # Gradients of the increment on the mesh half-way.
        p_x, p_y = ac_x[i] - half * ac_u[i], ac_y[i] - half * ac_v[i]
        q_x, q_y = bd_x[i] - half * bd_u[i], bd_y[i] - half * bd_v[i]
        g_x, g_y = h_x[i] - half * h_u[i], h_y[i] - half * h_v[i]
        double_area = p_x * q_y - q_x * p_y
        scale = step / double_area
        u_x, u_y = scale * (q_y * ac_u[i] - p_y * bd_u[i]), scale * (p_x * bd_u[i] - q_x * ac_u[i])
        v_x, v_y = scale * (q_y * ac_v[i] - p_y * bd_v[i]), scale * (p_x * bd_v[i] - q_x * ac_v[i])
        bent_u, bent_v = (
            step * h_u[i] - g_x * u_x - g_y * u_y,
            step * h_v[i] - g_x * v_x - g_y * v_y,
        )

        # Stresses turn with the material, and take the strain.
        spin = 0.25 * (u_y - v_x)
        shrink = 1.0 / (1.0 + spin * spin)
        cos, sin = (1.0 - spin * spin) * shrink, 2.0 * spin * shrink
        xx, yy, xy = s_xx[i], s_yy[i], s_xy[i]
        turned = sin * (2.0 * cos * xy + sin * (yy - xx))
        xy = (cos * cos - sin * sin) * xy + cos * sin * (yy - xx)
        xx, yy, xy, d_zz, work = strained(metal, xx + turned, yy - turned, xy, u_x, v_y, u_y + v_x)
        s_xx[i], s_yy[i], s_xy[i] = xx, yy, xy
        t = thick[i] * (1.0 + 0.5 * d_zz) / (1.0 - 0.5 * d_zz)
        plastic[i] += 0.25 * work * double_area * (thick[i] + t)
        thick[i] = t

        # So do the springs.
        old_u, old_v = spring_u[i], spring_v[i]
        old_u, old_v = cos * old_u + sin * old_v, cos * old_v - sin * old_u
        stiffness = HOURGLASS * metal.young / 12.0 * t
        new_u, new_v = old_u + stiffness * bent_u, old_v + stiffness * bent_v
        strength = 0.25 * HOURGLASS * metal.yield_stress * t * math.sqrt(0.5 * double_area)
        share = strength / max(math.sqrt(new_u * new_u + new_v * new_v), strength)
        new_u, new_v = share * new_u, share * new_v
        hourglass[i] += 0.5 * ((old_u + new_u) * bent_u + (old_v + new_v) * bent_v)
        spring_u[i], spring_v[i] = new_u, new_v

        # Forces on the mesh as it is now: of diagonals, and along the hourglass.
        inverse = 1.0 / (ac_x[i] * bd_y[i] - bd_x[i] * ac_y[i])
        xx, yy = 0.5 * t * xx - new_u * h_x[i] * inverse, 0.5 * t * yy - new_v * h_y[i] * inverse
        xy, yx = 0.5 * t * xy - new_u * h_y[i] * inverse, 0.5 * t * xy - new_v * h_x[i] * inverse
        ac_u[i], bd_u[i], h_u[i] = xx * bd_y[i] - xy * bd_x[i], xy * ac_x[i] - xx * ac_y[i], new_u
        ac_v[i], bd_v[i], h_v[i] = yx * bd_y[i] - yy * bd_x[i], yy * ac_x[i] - yx * ac_y[i], new_v


@numba.njit(nogil=True, error_model="numpy")
def deform(body: Body, metal: Metal, step: float) -> None:
    """Strain all elements by the step that has led to where the nodes are; write nodal forces."""
    body.force[:] = 0.0
    n_cells, rows, columns = body.cells.shape
    desk = np.empty((20, _DESK))
    for j in range(rows):
        for start in range(0, columns, _DESK):
            n = min(_DESK, columns - start)
            nodes, cells = slice(start, start + n + 1), slice(start, start + n)
            for k in range(2):
                for field, at in ((body.place, 3 * k), (body.velocity, 3 * k + 6)):
                    top, low = field[k, j, nodes], field[k, j + 1, nodes]
                    _differences(top, low, desk[at], desk[at + 1], desk[at + 2], n)
            for k in range(n_cells):
                _copy(body.cells[k, j, cells], desk[12 + k], n)
            _respond(desk, n, metal, step)
            for k in range(n_cells):
                _copy(desk[12 + k], body.cells[k, j, cells], n)
            for k in range(2):
                top, low, at = body.force[k, j, nodes], body.force[k, j + 1, nodes], 3 * k + 6
                _collect(top, low, desk[at], desk[at + 1], desk[at + 2], n)


def areas(body: Body) -> FloatArray:
    """Return the areas of elements; one that is not positive is folded."""
    ac, bd = _diagonals(body)
    return np.asarray(0.5 * (ac[0] * bd[1] - ac[1] * bd[0]))


def longest_step(body: Body, metal: Metal) -> float:
    """Return a step at which central differences are stable: 2 over a bound of the frequencies.

    No frequency of an element is above twice the wave speed times the norm of the gradients of its
    four shape functions at its middle (Flanagan and Belytschko). Zero if an element is folded.
    """
    with np.errstate(all="ignore"):  # of a block that has burst
        area = areas(body)
        if not (area > 0.0).all():
            return 0.0
        ac, bd = _diagonals(body)
        norm = np.sqrt(0.5 * (ac**2 + bd**2).sum(axis=0)) / area
        return float(1.0 / (wave_speed(metal) * norm.max()))


def _diagonals(body: Body) -> tuple[FloatArray, FloatArray]:
    place = body.place
    return place[:, :-1, :-1] - place[:, 1:, 1:], place[:, :-1, 1:] - place[:, 1:, :-1]


def kinetic_energy(body: Body) -> float:
    """Return ½ m v² of all nodes."""
    return float(0.5 * (body.mass * body.velocity**2).sum())


def stored_energy(body: Body, metal: Metal) -> float:
    """Return the elastic energy of all elements."""
    volume = body.cells[3] * areas(body)
    return float((volume * elastic_energy(metal, body.cells[:3])).sum())

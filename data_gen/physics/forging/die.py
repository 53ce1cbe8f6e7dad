"""A rigid, frictionless die above the block: its profile, and how it pushes back.

A node of the block's edge that is g above the profile s(x) costs ½ k g². The gradient of that
pushes along the normal of the profile: there is no friction, and the force has an energy.
"""

from typing import NamedTuple

import numba
import numpy as np
from scipy.interpolate import PchipInterpolator

from amo.arrays import FloatArray
from data_gen.physics.forging.elements import Body

STIFFNESS = 0.5  # of a node of the edge, in units of Young's modulus
N_HEIGHTS = 8
_N_BESIDE = 2  # pieces on either side of the block, where the profile is level


class Profile(NamedTuple):
    """Cubic pieces of equal width: s = Σ c_k (x - x_piece)^k, the first piece at ``left``."""

    left: float
    piece: float
    coefficients: FloatArray


def profile(heights: FloatArray, width: float) -> Profile:
    """Return the die through heights at equal distances above the block, from right to left.

    The pieces are cubic Hermite with Fritsch and Carlson's slopes, so no height is exceeded; beside
    the block the profile stays level, and its slope is zero at the corners.
    """
    piece = width / (len(heights) - 1)
    padded = np.pad(heights[::-1], _N_BESIDE, mode="edge")
    left = -width - _N_BESIDE * piece
    knots = left + piece * np.arange(len(padded))
    return Profile(left, piece, np.ascontiguousarray(PchipInterpolator(knots, padded).c[::-1]))


@numba.njit(nogil=True, error_model="numpy")
def height_and_slope(die: Profile, x: float) -> tuple[float, float]:
    """Return s and s' at a place."""
    c = die.coefficients
    n_pieces = c.shape[1]
    at = min(max(x, die.left), die.left + die.piece * n_pieces) - die.left
    k = max(0, min(int(at / die.piece), n_pieces - 1))
    z = at - k * die.piece
    height = c[0, k] + z * (c[1, k] + z * (c[2, k] + z * c[3, k]))
    return height, c[1, k] + z * (2.0 * c[2, k] + 3.0 * z * c[3, k])


def heights_at(die: Profile, places: FloatArray) -> FloatArray:
    """Return s at some places."""
    return np.array([height_and_slope(die, x)[0] for x in places])


@numba.njit(nogil=True, error_model="numpy")
def push(body: Body, die: Profile, lowered: float, stiffness: float) -> tuple[float, float]:
    """Add the forces of the die to top and sides; return what pushes it up, and the energy.

    Sides matter where the block has slid beyond the foot of a slope.
    """
    rows, columns = body.mass.shape
    reaction, energy = 0.0, 0.0
    for j in range(rows):
        stride = 1 if j == 0 else columns - 1
        for i in range(0, columns, stride):
            height, slope = height_and_slope(die, body.place[0, j, i])
            gap = body.place[1, j, i] - (height - lowered)
            if gap > 0.0:
                k = 0.5 * stiffness if j == 0 and i in (0, columns - 1) else stiffness
                body.force[0, j, i] += k * gap * slope
                body.force[1, j, i] -= k * gap
                reaction += k * gap
                energy += 0.5 * k * gap * gap
    return reaction, energy

"""Quintic interpolation from value, slope and curvature at two nodes."""

from amo.arrays import FloatArray

Pair = tuple[FloatArray, FloatArray]


def quintic(t: FloatArray, h: FloatArray, value: Pair, slope: Pair, curvature: Pair) -> FloatArray:
    """Interpolate at a fraction ``t`` of the step ``h`` from the first node to the second.

    Order 6, local, and exact for payoffs linear in S when S is the coordinate.
    """
    c0, c1, c2 = value[0], h * slope[0], 0.5 * h**2 * curvature[0]
    rise = value[1] - (c0 + c1 + c2)
    lean = h * slope[1] - (c1 + 2.0 * c2)
    bend = h**2 * curvature[1] - 2.0 * c2
    c3 = 10.0 * rise - 4.0 * lean + 0.5 * bend
    c4 = -15.0 * rise + 7.0 * lean - bend
    c5 = 6.0 * rise - 3.0 * lean + 0.5 * bend
    return c0 + t * (c1 + t * (c2 + t * (c3 + t * (c4 + t * c5))))


def cubic(t: FloatArray, h: FloatArray, value: Pair, slope: Pair) -> FloatArray:
    """Interpolate from value and slope at both ends; order 4."""
    gap = value[1] - value[0] - h * slope[0]
    twist = h * (slope[1] - slope[0])
    return value[0] + t * (h * slope[0] + t * (3 * gap - twist + t * (twist - 2 * gap)))

"""An elastic, perfectly plastic metal in plane stress: von Mises' yield surface and its flow rule.

The backward Euler step of J. Simo and T. Hughes, Computational Inelasticity (1998), section 3.4:
elastic law and flow rule have the same principal directions, so that one equation for the plastic
multiplier is left.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from amo.arrays import FloatArray

_N_NEWTON = 3  # leave at most 2e-12 of the yield stress, whatever the trial stress
_TINY = 1e-30  # keeps a body without stress from dividing by zero; stresses are in MPa


class Metal(NamedTuple):
    """Young's modulus and yield stress in MPa, Poisson's ratio, density in g/mm³."""

    young: float = 200e3
    poisson: float = 0.3
    yield_stress: float = 70.0
    density: float = 7.85e-3


STEEL = Metal()


@numba.njit(nogil=True, error_model="numpy", forceinline=True)
def strained(
    metal: Metal, xx: float, yy: float, xy: float, d_xx: float, d_yy: float, d_xy: float
) -> tuple[float, float, float, float, float]:
    """Add a strain to a stress, and return to the yield surface if that leaves it.

    Parameters
    ----------
    metal
        What is strained.
    xx, yy, xy
        Stress before, on or inside of the yield surface.
    d_xx, d_yy, d_xy
        Increments of strain; the last is the angle γ, twice the component of the tensor.

    Returns
    -------
    tuple
        The three stresses after; the increment of strain across the plane; the plastic work per
        volume.
    """
    shear = metal.young / (2.0 + 2.0 * metal.poisson)
    bulk = metal.young / (1.0 - metal.poisson)
    total = xx + yy + bulk * (d_xx + d_yy)
    apart = xx - yy + 2.0 * shear * (d_xx - d_yy)
    across = xy + shear * d_xy
    even = 0.25 * total**2 + _TINY
    uneven = 0.75 * (apart**2 + 4.0 * across**2)
    ratio = bulk / (6.0 * shear)
    flow = 0.0  # 2 G times the plastic multiplier
    for _ in range(_N_NEWTON):  # 1 / √f is nearly linear in it
        p, q = 1.0 / (1.0 + ratio * flow), 1.0 / (1.0 + flow)
        f = even * p * p + uneven * q * q
        slope = even * ratio * p**3 + uneven * q**3
        flow = max(0.0, flow + (math.sqrt(f) / metal.yield_stress - 1.0) * f / slope)
    after = total / (1.0 + ratio * flow)
    apart /= 1.0 + flow
    plastic = flow / (2.0 * shear)
    d_zz = -metal.poisson / metal.young * (after - xx - yy) - plastic * after / 3.0
    work = 2.0 / 3.0 * plastic * metal.yield_stress**2
    return 0.5 * (after + apart), 0.5 * (after - apart), across / (1.0 + flow), d_zz, work


def elastic_energy(metal: Metal, stress: FloatArray) -> FloatArray:
    """Return the elastic energy per volume of stresses xx, yy and xy, (3, ...)."""
    xx, yy, xy = stress
    square = 0.5 * (xx**2 + yy**2) + (1.0 + metal.poisson) * xy**2
    return np.asarray((square - metal.poisson * xx * yy) / metal.young)


def von_mises(stress: FloatArray) -> FloatArray:
    """Return the size of stresses xx, yy and xy, (3, ...), that is compared to the yield stress."""
    xx, yy, xy = stress
    return np.asarray(np.sqrt(xx**2 - xx * yy + yy**2 + 3.0 * xy**2))


def wave_speed(metal: Metal) -> float:
    """Return the speed of compression waves in a plate, mm/ms: no wave is faster."""
    return math.sqrt(metal.young / (1.0 - metal.poisson**2) / metal.density)

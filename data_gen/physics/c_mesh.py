"""Cells of a C-mesh, for finite volumes."""

from typing import NamedTuple

import numpy as np

from amo.arrays import FloatArray
from amo.errors import FailedError


class CMesh(NamedTuple):
    """The cells between nodes (n + 1, m + 1), first axis along the C, second outwards.

    Attributes
    ----------
    along_x, along_y
        Normals of the faces that cells share with their neighbours along the C, as long as the
        faces, (n + 1, m).
    out_x, out_y
        The same of faces shared with outer neighbours, (n, m + 1).
    volume
        (n, m).
    n_wake
        Inner faces at either end that face each other across the wake; the others are the wall.
    """

    along_x: FloatArray
    along_y: FloatArray
    out_x: FloatArray
    out_y: FloatArray
    volume: FloatArray
    n_wake: int


def cells_between(nodes: FloatArray, n_wake: int) -> CMesh:
    """Return the cells between nodes (n + 1, m + 1, 2)."""
    across, along = np.diff(nodes, axis=1), np.diff(nodes, axis=0)
    one, two = nodes[1:, 1:] - nodes[:-1, :-1], nodes[:-1, 1:] - nodes[1:, :-1]
    volume = 0.5 * (one[..., 0] * two[..., 1] - one[..., 1] * two[..., 0])
    sign = 1.0 if volume[0, 0] > 0.0 else -1.0
    if (sign * volume).min() <= 0.0:
        raise FailedError("cells of the mesh overlap: the section is bent too far")
    return CMesh(
        sign * across[..., 1],
        -sign * across[..., 0],
        -sign * along[..., 1],
        sign * along[..., 0],
        sign * volume,
        n_wake,
    )

"""-div(k grad u) = f on the unit square, u zero on its edge: five points, conserving the flux.

Order two for smooth k. Two ways to solve: conjugate gradients, preconditioned by the Laplacian,
which sine transforms invert, take 18 iterations at a contrast of four on any grid, but thousands at
a contrast of 1e5; there a sparse factorisation is faster.
"""

from typing import NamedTuple

import numpy as np
from scipy import fft, sparse
from scipy.sparse.linalg import splu

from amo.arrays import FloatArray

ORDER = 2


class Conductivity(NamedTuple):
    """k on the faces between nodes of an n × n grid: x (n, n - 1) and y (n - 1, n)."""

    x: FloatArray
    y: FloatArray


class Solution(NamedTuple):
    """u at all (n + 1)² nodes, and the relative residual."""

    u: FloatArray
    residual: float


def between_nodes(k: FloatArray) -> Conductivity:
    """Return harmonic means of neighbouring nodes' values, (n + 1, n + 1)."""
    x, y = (2.0 / (1.0 / a + 1.0 / b) for a, b in ((k[1:], k[:-1]), (k[:, 1:], k[:, :-1])))
    return Conductivity(x[:, 1:-1], y[1:-1])


def of_cells(k: FloatArray, n: int) -> Conductivity:
    """Return the means of a finer, cell-wise k over each face's volume of an n × n grid.

    Harmonic along the flux, then arithmetic across it. Where k jumps, this is several times as
    accurate as using node values only. ``k`` has an even multiple of n cells along each axis.
    """
    every = len(k) // n
    half = every // 2
    x = k[:, half:-half].reshape(n, every, n - 1, every)
    y = k[half:-half].reshape(n - 1, every, n, every)
    return Conductivity(
        (1.0 / (1.0 / x).mean(1)).mean(-1),
        (1.0 / (1.0 / y).mean(3)).mean(1),
    )


def solve(
    k: Conductivity, source: FloatArray, tolerance: float, max_iterations: int = 200
) -> Solution:
    """Solve by conjugate gradients for a source at the inner nodes, (n - 1, n - 1)."""
    n = len(k.x)
    waves = (2.0 - 2.0 * np.cos(np.pi * np.arange(1, n) / n)) * n**2
    laplacian = waves[:, None] + waves
    usual = float(np.exp(np.mean(np.log(k.x))))  # k of the preconditioner

    def precondition(r: FloatArray) -> FloatArray:
        return np.asarray(fft.idstn(fft.dstn(r, type=1) / (usual * laplacian), type=1))

    size = float(np.linalg.norm(source))
    u = precondition(source)
    r = source - _apply(k, u)
    z = precondition(r)
    p, old = z, float((r * z).sum())
    for _ in range(max_iterations):
        if np.linalg.norm(r) <= tolerance * size:
            return _solution(k, source, u)
        image = _apply(k, p)
        length = old / float((p * image).sum())
        u, r = u + length * p, r - length * image
        z = precondition(r)
        new = float((r * z).sum())
        p, old = z + new / old * p, new
    raise ArithmeticError(
        f"{max_iterations} iterations do not reach a residual of {tolerance:.0e}: the contrast "
        f"{k.x.max() / k.x.min():.0e} may be too high, factorise instead"
    )


def factorise_and_solve(k: Conductivity, source: FloatArray) -> Solution:
    """Solve by a sparse factorisation and one step of refinement."""
    n = len(k.x)
    node = np.arange((n - 1) ** 2).reshape(n - 1, n - 1)
    below = np.concatenate([node[1:].ravel(), node[:, 1:].ravel()])
    above = np.concatenate([node[:-1].ravel(), node[:, :-1].ravel()])
    links = sparse.coo_array(
        (np.concatenate([k.x[1:-1].ravel(), k.y[:, 1:-1].ravel()]), (below, above)),
        shape=(node.size, node.size),
    )
    own = k.x[1:] + k.x[:-1] + k.y[:, 1:] + k.y[:, :-1]
    matrix = (sparse.diags_array(own.ravel()) - links - links.T) * n**2
    factors = splu(
        matrix.tocsc(),
        permc_spec="MMD_AT_PLUS_A",  # for symmetric matrices
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    u = factors.solve(source.ravel()).reshape(source.shape)
    r = source - _apply(k, u)
    return _solution(k, source, u + factors.solve(r.ravel()).reshape(r.shape))


def _apply(k: Conductivity, u: FloatArray) -> FloatArray:
    """Return -div(k grad u) at the inner nodes."""
    whole = np.pad(u, 1)
    flux_x = k.x * np.diff(whole, axis=0)[:, 1:-1]
    flux_y = k.y * np.diff(whole, axis=1)[1:-1]
    return np.asarray(-(np.diff(flux_x, axis=0) + np.diff(flux_y, axis=1)) * len(k.x) ** 2)


def _solution(k: Conductivity, source: FloatArray, u: FloatArray) -> Solution:
    residual = float(np.linalg.norm(source - _apply(k, u)) / np.linalg.norm(source))
    return Solution(np.pad(u, 1), residual)

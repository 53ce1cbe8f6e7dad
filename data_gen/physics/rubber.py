"""Incompressible rubber in plane stress: the generalised Mooney-Rivlin model and its equilibrium.

W = c10 (I1 - 3) + c01 (I2 - 3) + c20 (I1 - 3)², times a stiffness that may vary from point to
point. The thickness gives way so that volume stays: C33 = 1 / det C in the plane.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import splu

from amo.arrays import FloatArray
from data_gen.physics.elasticity import deformation_gradient

GAUSS_ORDER = 5  # polynomials integrated exactly by 3 × 3 Gauss points
_RESIDUAL = 1e-10  # relative to all forces, those of the grips included
_N_NEWTON = 15


class Rubber(NamedTuple):
    """Coefficients of the model, in any one unit of stress: with edges held, it cancels."""

    c10: float
    c01: float
    c20: float


class Equilibrium(NamedTuple):
    """A displacement in balance, and the relative residual before each step of Newton's method."""

    moved: FloatArray
    residuals: tuple[float, ...]


def energy_density(F: FloatArray, rubber: Rubber) -> FloatArray:
    """Return W: with t = F:F and J = det F, I1 = t + J^-2 and I2 = t J^-2 + J²."""
    t, J, _ = _invariants(F)
    first, second = t + J**-2 - 3.0, t / J**2 + J**2 - 3.0
    return np.asarray(rubber.c10 * first + rubber.c01 * second + rubber.c20 * first**2)


def piola(F: FloatArray, rubber: Rubber) -> FloatArray:
    """Return P = dW/dF = 2 W_t F + W_J cof F."""
    t, J, G = _invariants(F)
    by_first = rubber.c10 + 2.0 * rubber.c20 * (t + J**-2 - 3.0)
    by_t = by_first + rubber.c01 / J**2
    by_J = -2.0 * by_first / J**3 + 2.0 * rubber.c01 * (J - t / J**3)
    return np.asarray(2.0 * by_t * F + by_J * G)


def tangent(F: FloatArray, rubber: Rubber) -> FloatArray:
    """Return dP/dF, (2, 2, 2, 2, ...)."""
    t, J, G = _invariants(F)
    by_first = rubber.c10 + 2.0 * rubber.c20 * (t + J**-2 - 3.0)
    by_t = by_first + rubber.c01 / J**2
    by_J = -2.0 * by_first / J**3 + 2.0 * rubber.c01 * (J - t / J**3)
    by_tt = 2.0 * rubber.c20
    by_tJ = -(4.0 * rubber.c20 + 2.0 * rubber.c01) / J**3
    by_JJ = 8.0 * rubber.c20 / J**6 + 6.0 * by_first / J**4 + rubber.c01 * (2.0 + 6.0 * t / J**4)
    ones, twist = np.einsum("ik,jl->ijkl", np.eye(2), np.eye(2)), np.zeros((2, 2, 2, 2))
    twist[0, 0, 1, 1] = twist[1, 1, 0, 0] = 1.0  # cof H = twist : H
    twist[0, 1, 1, 0] = twist[1, 0, 0, 1] = -1.0
    lift = (slice(None),) * 4 + (None,) * (F.ndim - 2)
    mixed = np.einsum("ij...,kl...->ijkl...", F, G)
    mixed = mixed + np.einsum("ij...,kl...->ijkl...", G, F)
    return np.asarray(
        2.0 * by_t * ones[lift]
        + by_J * twist[lift]
        + 4.0 * by_tt * np.einsum("ij...,kl...->ijkl...", F, F)
        + 2.0 * by_tJ * mixed
        + by_JJ * np.einsum("ij...,kl...->ijkl...", G, G)
    )


def find_equilibrium(
    basis: Any,  # noqa: ANN401  # skfem.Basis of the displacement
    rubber: Rubber,
    stiffness: FloatArray,
    held: npt.NDArray[np.integer[Any]],
    values: FloatArray,
    start: FloatArray,
) -> Equilibrium:
    """Return the displacement in balance, by Newton's method.

    What is held moves in the first step, and the rest of the sheet with it, to first order.

    Parameters
    ----------
    basis
        Of the displacement, with its Gauss points.
    rubber, stiffness
        The model, and what multiplies it at the Gauss points.
    held, values
        Degrees of freedom, and where they go.
    start
        Displacement to start with, best in balance.

    Raises
    ------
    ArithmeticError
        If the residual is not small enough after some steps.
    """
    from skfem import BilinearForm, LinearForm  # noqa: PLC0415  # slow to load

    inner = LinearForm(lambda v, w: np.einsum("ij...,ij...", w["piola"], v.grad))
    slope = BilinearForm(
        lambda u, v, w: np.einsum("ij...,ijkl...,kl...", v.grad, w["tangent"], u.grad)
    )
    moved = start.copy()
    free = np.setdiff1d(np.arange(basis.N), held)
    jump = values - start[held]
    residuals: list[float] = []
    for _ in range(_N_NEWTON):
        gradient = deformation_gradient(basis, moved)
        forces = inner.assemble(basis, piola=stiffness * piola(gradient, rubber))
        if not jump.any():
            whole = max(float(np.linalg.norm(forces)), np.finfo(float).tiny)  # none at rest
            residuals.append(float(np.linalg.norm(forces[free])) / whole)
            if residuals[-1] <= _RESIDUAL:
                return Equilibrium(moved, tuple(residuals))
        matrix = slope.assemble(basis, tangent=stiffness * tangent(gradient, rubber))
        factors = splu(matrix[free][:, free].tocsc(), permc_spec="MMD_AT_PLUS_A")
        moved[free] -= factors.solve(forces[free] + matrix[free][:, held] @ jump)
        moved[held] += jump
        jump = np.zeros_like(jump)
    raise ArithmeticError(f"no equilibrium after {_N_NEWTON} Newton steps: take smaller load steps")


def _invariants(F: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return F:F, det F and cof F."""
    t, J = (F**2).sum(axis=(0, 1)), F[0, 0] * F[1, 1] - F[0, 1] * F[1, 0]
    cofactor = np.stack([np.stack([F[1, 1], -F[1, 0]]), np.stack([-F[0, 1], F[0, 0]])])
    return t, J, cofactor

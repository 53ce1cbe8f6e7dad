"""Steady incompressible flow on a mesh of quads: (u·∇)u - ν Δu + ∇p = 0, div u = 0.

Velocities are biquadratic and pressures bilinear (Taylor and Hood). Where nothing is held, the flow
leaves freely: ν ∂u/∂n = p n. Mass is conserved only on average over patches of elements, so
γ ∇(div u) is subtracted from the momentum: it vanishes with the error and reduces the divergence.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import bmat
from scipy.sparse.linalg import splu

from amo.arrays import FloatArray

ORDER = 3  # of the velocity, in L2
GRAD_DIV = 0.3  # γ: velocities are of order one half
GAUSS_ORDER = 5  # 3 × 3 points: div u times a pressure is integrated exactly where widths are
_RESIDUAL = 1e-10  # relative to all forces, those of the walls included
_N_NEWTON = 12
_N_DOUBLINGS = 4  # of the viscosity, for the first of a series of easier flows

Indices = npt.NDArray[np.integer[Any]]


class Spaces(NamedTuple):
    """Bases of one component of the velocity and of the pressure, and the matrices that stay."""

    velocity: Any
    pressure: Any
    viscous: Any
    divergence: tuple[Any, Any]
    compression: tuple[tuple[Any, Any], tuple[Any, Any]]

    @property
    def size(self) -> int:
        """How many numbers a state has: both components of the velocity, then the pressure."""
        return int(2 * self.velocity.N + self.pressure.N)


class Flow(NamedTuple):
    """A state in balance, and the relative residual before each step of Newton's method."""

    state: FloatArray
    residuals: tuple[float, ...]


def spaces_on(mesh: Any) -> Spaces:  # noqa: ANN401  # skfem.MeshQuad2
    """Return the spaces on a mesh, with their constant matrices."""
    from skfem import Basis, BilinearForm, ElementQuad1, ElementQuad2  # noqa: PLC0415  # slow

    velocity = Basis(mesh, ElementQuad2(), intorder=GAUSS_ORDER)
    pressure = velocity.with_element(ElementQuad1())

    def product(i: int, j: int) -> Any:  # noqa: ANN401  # scipy.sparse
        return BilinearForm(lambda u, v, _: u.grad[j] * v.grad[i]).assemble(velocity)

    def work(i: int) -> Any:  # noqa: ANN401  # scipy.sparse
        return BilinearForm(lambda u, p, _: -u.grad[i] * p).assemble(velocity, pressure)

    products = (product(0, 0), product(0, 1)), (product(1, 0), product(1, 1))
    return Spaces(velocity, pressure, products[0][0] + products[1][1], (work(0), work(1)), products)


def flow_through(spaces: Spaces, start: FloatArray, held: Indices, viscosity: float) -> Flow:
    """Return the flow, by way of more viscous ones if Newton's method does not find it at once.

    Parameters
    ----------
    spaces
        Of velocity and pressure.
    start
        State to begin with, which has the values of what is held.
    held
        Indices into the state.
    viscosity
        ν.

    Raises
    ------
    ArithmeticError
        If no series of viscosities leads to the flow.
    """
    for n_doublings in range(_N_DOUBLINGS + 1):
        flow: Flow | None = Flow(start, ())
        for k in range(n_doublings, -1, -1):
            if flow is not None:
                flow = find_flow(spaces, flow.state, held, 2.0**k * viscosity)
        if flow is not None:
            return flow
    raise ArithmeticError(
        f"no flow found, not even by way of {2**_N_DOUBLINGS} times the viscosity"
    )


def creeping_flow(spaces: Spaces, start: FloatArray, held: Indices, viscosity: float) -> FloatArray:
    """Return the state of the flow without inertia: Stokes' equations."""
    flow = find_flow(spaces, start, held, viscosity, inertia=0.0)
    if flow is None:
        raise ArithmeticError("Stokes' equations were not solved to round-off")
    return flow.state


def find_flow(
    spaces: Spaces, start: FloatArray, held: Indices, viscosity: float, inertia: float = 1.0
) -> Flow | None:
    """Return the flow by Newton's method, or nothing if the residual does not become small."""
    state = start.copy()
    free = np.setdiff1d(np.arange(spaces.size), held)
    residuals: list[float] = []
    for _ in range(_N_NEWTON):
        forces, tangent = _linearised(spaces, state, viscosity, inertia)
        residuals.append(float(np.linalg.norm(forces[free]) / np.linalg.norm(forces)))
        if residuals[-1] <= _RESIDUAL:
            return Flow(state, tuple(residuals))
        if not np.isfinite(residuals[-1]):
            return None
        factors = splu(
            tangent[free][:, free].tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.01,  # Newton's steps mend what weak pivots lose
            options={"SymmetricMode": True},
        )
        state[free] -= factors.solve(forces[free])
    return None


def _linearised(
    spaces: Spaces, state: FloatArray, viscosity: float, inertia: float
) -> tuple[FloatArray, Any]:
    """Return the forces on all degrees of freedom, and their derivative."""
    from skfem import BilinearForm  # noqa: PLC0415  # slow to load

    carry = BilinearForm(lambda u, v, w: (w["x"] * u.grad[0] + w["y"] * u.grad[1]) * v)
    weigh = BilinearForm(lambda u, v, w: w["slope"] * u * v)
    basis, n = spaces.velocity, spaces.velocity.N
    components = [basis.interpolate(state[i * n : (i + 1) * n]) for i in (0, 1)]
    x, y = (np.asarray(component) for component in components)
    along = viscosity * spaces.viscous + inertia * carry.assemble(basis, x=x, y=y)
    stiff = [[GRAD_DIV * spaces.compression[i][j] for j in (0, 1)] for i in (0, 1)]
    for i in (0, 1):
        stiff[i][i] = stiff[i][i] + along
    matrix = _with_pressure(stiff, spaces.divergence)
    for i, j in np.ndindex(2, 2):
        slope = np.asarray(components[i].grad[j])
        stiff[i][j] = stiff[i][j] + inertia * weigh.assemble(basis, slope=slope)
    return matrix @ state, _with_pressure(stiff, spaces.divergence)


def _with_pressure(stiff: list[list[Any]], divergence: tuple[Any, Any]) -> Any:  # noqa: ANN401
    x, y = divergence
    rows: Any = [[*stiff[0], x.T], [*stiff[1], y.T], [x, y, None]]
    return bmat(rows, format="csr")

"""The pipe benchmark of Geo-FNO: steady flow through a bent channel.

The channel has length 10 and, measured vertically, width 1. Its centre line is cubic between five
nodes with random heights and slopes. Fluid of viscosity 0.005 enters with velocity s (1 - s) along
x, where s is the height above the lower wall, sticks to the walls and leaves freely.

The flow is solved by Taylor and Hood's elements, 64 × 64 of them by default, so that its nodes are
the 129² of the authors' files; every second one is stored unless 129 are asked for. The inlet's
velocity does not follow the walls where they slope, which makes its two corners weakly singular.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray
from amo.errors import SettingsError
from data_gen.dataset import Arrays, Check
from data_gen.physics.taylor_hood import Spaces, creeping_flow, flow_through, spaces_on
from data_gen.sized import SampleSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

VISCOSITY = 0.005
LENGTH = 10.0
N_PIECES = 4
_HEIGHT = 2.0  # of the centre line's nodes, at most
_SLOPE = 1.0
_N_RESOLVED = 2
_ALLOWED_FLUX = 1e-3
_ALLOWED_REFINEMENT = 1e-2  # half of the mesh is off by about this: the corners dominate
_ALLOWED_REMAKE = 1e-5  # stored numbers are single precision

Centre = Callable[[FloatArray], FloatArray]


class PipeFlow(NamedTuple):
    """A flow at the nodes of its mesh, each array with axes along and across the pipe."""

    x: FloatArray
    y: FloatArray
    u_x: FloatArray
    u_y: FloatArray
    p: FloatArray


@dataclass(frozen=True, kw_only=True)
class PipeSet(SampleSet):
    """Velocity and pressure in bent pipes, at the nodes of a mesh that follows the pipe.

    Parameters
    ----------
    nodes
        Nodes stored along each axis, 129 in the authors' files.
    finer
        How many times finer the solver's nodes are.
    """

    shard_size: ClassVar[int] = 25
    least: ClassVar[Mapping[str, int]] = {"nodes": 2, "finer": 1}

    train: int = 1000
    validation: int = 100
    test: int = 200
    nodes: int = 65
    finer: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.nodes - 1) * self.finer % (4 * N_PIECES):
            raise SettingsError(
                f"(nodes - 1) × finer must be a multiple of {4 * N_PIECES}, so that pieces of the "
                f"centre line meet between elements, got nodes {self.nodes} and finer {self.finer}"
            )

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {
            "x": "of each node, axes along the pipe and across from the lower wall",
            "y": "of each node",
            "u_x": "velocity along x; it enters with at most 0.25",
            "u_y": "velocity along y",
            "p": "pressure over density, zero outside of the outlet",
        }

    @property
    def _n_elements(self) -> int:
        return (self.nodes - 1) * self.finer // 2

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one sample; its error is the velocity's distance to that on half the mesh."""
        coarse, fine = nested_flows(draw_centre(rng), self._n_elements)
        every = self.finer
        stored = {name: values[::every, ::every] for name, values in fine._asdict().items()}
        return stored, velocity_distance(coarse, fine)

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Make some samples again, measure their mass flux, and solve them on twice the mesh."""
        n_rows = len(arrays["number"])
        rows = rng.choice(n_rows, size=min(n_points, _N_RESOLVED, n_rows), replace=False)
        remade = flux = refined = 0.0
        for row in rows:
            own = np.random.default_rng([self.seed, int(arrays["number"][row])])
            found, fine = nested_flows(draw_centre(own), 2 * self._n_elements)
            again = found.u_x[:: self.finer, :: self.finer]
            apart = np.abs(arrays["u_x"][row] - again).max() / np.abs(again).max()
            remade = max(remade, float(apart))
            through = mass_flux(found.u_x)
            flux = max(flux, float(np.ptp(through) / through[0]))
            refined = max(refined, velocity_distance(found, fine))
        n = len(rows)
        return [
            Check("velocity, made again", remade, _ALLOWED_REMAKE, n, unit=""),
            Check("mass flux along the pipe", flux, _ALLOWED_FLUX, n, unit=""),
            Check("velocity, refined", refined, _ALLOWED_REFINEMENT, n, unit=" of its norm"),
        ]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw u_x of four samples."""
        from data_gen.physics.previews import draw_clouds  # noqa: PLC0415  # plotly is slow to load

        flat = {name: arrays[name].reshape(len(arrays[name]), -1) for name in ("x", "y", "u_x")}
        points = np.stack([flat["x"], flat["y"]], axis=-1)
        return draw_clouds({"points": points, "u_x": flat["u_x"]}, "u_x")


def draw_centre(rng: np.random.Generator) -> Centre:
    """Draw a centre line: cubic between nodes with random heights and slopes."""
    from scipy.interpolate import CubicHermiteSpline  # noqa: PLC0415  # slow to load

    nodes = np.linspace(0.0, LENGTH, N_PIECES + 1)
    heights = rng.uniform(-_HEIGHT, _HEIGHT, len(nodes))
    line = CubicHermiteSpline(nodes, heights, rng.uniform(-_SLOPE, _SLOPE, len(nodes)))
    return lambda x: np.asarray(line(x))


def nested_flows(centre: Centre, n: int) -> tuple[PipeFlow, PipeFlow]:
    """Return the flow on half of n × n elements, and from there the flow on all of them."""
    half = pipe_spaces(centre, n // 2)
    held, start = held_at_walls(half)
    creeping = creeping_flow(half, start, held, VISCOSITY)
    coarse = as_fields(half, flow_through(half, creeping, held, VISCOSITY).state)
    whole = pipe_spaces(centre, n)
    held, start = held_at_walls(whole)
    finer = (*(between_quadratic(u) for u in (coarse.u_x, coarse.u_y)), coarse.p)
    near = as_state(whole, *finer)
    near[held] = start[held]
    return coarse, as_fields(whole, flow_through(whole, near, held, VISCOSITY).state)


def pipe_spaces(centre: Centre, n: int, length: float = LENGTH) -> Spaces:
    """Return the spaces on n × n elements around a centre line, with vertical cross sections."""
    from skfem import MeshQuad, MeshQuad2  # noqa: PLC0415  # slow to load

    ticks = np.linspace(0.0, 1.0, n + 1)
    flat = MeshQuad2.from_mesh(MeshQuad.init_tensor(ticks, ticks))
    x = length * flat.doflocs[0]
    return spaces_on(MeshQuad2(np.stack([x, centre(x) + flat.doflocs[1] - 0.5]), flat.t))


def held_at_walls(spaces: Spaces) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return what is held, at the inlet and at the walls, and a state with just these values."""
    lattice = in_order(spaces.velocity)
    start = np.zeros(spaces.size)
    height = np.linspace(0.0, 1.0, len(lattice))
    start[lattice[0]] = height * (1.0 - height)
    nodes = np.unique(np.concatenate([lattice[0], lattice[:, 0], lattice[:, -1]]))
    return np.concatenate([nodes, spaces.velocity.N + nodes]), start


def in_order(basis: Any) -> npt.NDArray[np.int64]:  # noqa: ANN401  # skfem.Basis
    """Return the number of each node of a basis, on axes along and across the pipe."""
    x, y = basis.doflocs
    n = round(len(x) ** 0.5)
    columns = np.argsort(x, kind="stable").reshape(n, n)
    return np.take_along_axis(columns, np.argsort(y[columns], axis=1), axis=1)


def as_fields(spaces: Spaces, state: FloatArray) -> PipeFlow:
    """Return a state at the nodes of the velocity."""
    lattice, n = in_order(spaces.velocity), spaces.velocity.N
    x, y = spaces.velocity.doflocs[:, lattice]
    pressure = state[2 * n :][in_order(spaces.pressure)]
    return PipeFlow(x, y, state[lattice], state[n + lattice], _between_linear(pressure))


def as_state(spaces: Spaces, u_x: FloatArray, u_y: FloatArray, p: FloatArray) -> FloatArray:
    """Return the state that has these values at the nodes of velocity and pressure."""
    lattice, n = in_order(spaces.velocity), spaces.velocity.N
    state = np.zeros(spaces.size)
    state[lattice], state[n + lattice] = u_x, u_y
    state[2 * n + in_order(spaces.pressure)] = p
    return state


def between_quadratic(values: FloatArray) -> FloatArray:
    """Return biquadratic elements' values at the nodes of elements half as large."""
    for _ in range(2):
        left, middle, right = values[:-2:2], values[1::2], values[2::2]
        finer = np.empty((2 * len(values) - 1, values.shape[1]))
        finer[::2] = values
        finer[1::4] = 0.375 * left + 0.75 * middle - 0.125 * right
        finer[3::4] = 0.375 * right + 0.75 * middle - 0.125 * left
        values = finer.T
    return values


def _between_linear(values: FloatArray) -> FloatArray:
    for _ in range(2):
        finer = np.empty((2 * len(values) - 1, values.shape[1]))
        finer[::2] = values
        finer[1::2] = 0.5 * (values[1:] + values[:-1])
        values = finer.T
    return values


def mass_flux(u_x: FloatArray) -> FloatArray:
    """Return what flows through each cross section, exactly for biquadratic elements.

    The sections are vertical and the velocity is quadratic on each of their pieces: Simpson's rule.
    """
    weights = np.full(u_x.shape[1], 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    return np.asarray(u_x @ weights / weights.sum())


def velocity_distance(coarse: PipeFlow, fine: PipeFlow) -> float:
    """Return how far velocities on half the mesh are from those on the mesh, by their norm."""
    exact = np.stack([fine.u_x[::2, ::2], fine.u_y[::2, ::2]])
    return float(np.linalg.norm([coarse.u_x, coarse.u_y] - exact) / np.linalg.norm(exact))

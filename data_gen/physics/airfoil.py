"""The airfoil benchmark of Geo-FNO: flow around bent wing sections, faster than sound in places.

A NACA 0012 section in a stream of Mach 0.8 along its chord is bent by moving eight nodes around it
up or down: cubic in x, linear in y. The C-mesh has 120 cells around the section, 50 on either side
of its wake and 50 outwards, up to 40 chords away; its 221 × 51 nodes are those of the authors'
layout. :mod:`data_gen.physics.euler` solves for the means over cells, first on half of the mesh;
means of the cells around a node are stored there.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from amo.arrays import FloatArray
from amo.errors import SettingsError
from data_gen.dataset import Arrays, Check
from data_gen.physics.c_mesh import CMesh, cells_between
from data_gen.physics.euler import (
    GAMMA,
    NotSteadyError,
    Stream,
    find_steady,
    uniform,
)
from data_gen.sized import SampleSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MACH = 0.8
STREAM = Stream(1.0, MACH * GAMMA**0.5, 0.0, 1.0)
N_AROUND = 120  # cells around the section in the authors' files
N_SHIFTS = 8
_FAR = 40.0
_SHIFT = 0.05  # of a node, at most
_NODES_X = 0.5 + 1.5 * np.array([-1.0 / 2.0, -1.0 / 6.0, 1.0 / 6.0, 1.0 / 2.0])
_NODES_Y = 0.1  # below and above the chord
_FIRST_STEP, _STRETCH = 2.0 / 120.0, 1.02  # outwards, in chords, over three quarters of the cells
_TOLERANCE = 1e-6
_WHOLE = 24  # cells around the section: of so many, half and the wake's share are whole
_START = 1e-4  # of the flow on half the mesh
_N_RESOLVED = 1
_ALLOWED_REMAKE = 1e-5  # stored numbers are single precision
_ALLOWED_ENTHALPY = 1e-2
_ALLOWED_REFINEMENT = 5e-2  # of the norm of the Mach number: shocks are a cell or two wide


class Flow(NamedTuple):
    """A steady flow: the nodes of its mesh, the cells between them, and states (n, m, 4) there."""

    nodes: FloatArray
    mesh: CMesh
    states: FloatArray

    @property
    def pressure(self) -> FloatArray:
        """Of each cell."""
        density, momentum_x, momentum_y, energy = np.moveaxis(self.states, -1, 0)
        kinetic = 0.5 * (momentum_x**2 + momentum_y**2) / density
        return np.asarray((GAMMA - 1.0) * (energy - kinetic))

    @property
    def mach(self) -> FloatArray:
        """Of each cell."""
        density, momentum_x, momentum_y, _ = np.moveaxis(self.states, -1, 0)
        speed = np.hypot(momentum_x, momentum_y) / density
        return np.asarray(speed / np.sqrt(GAMMA * self.pressure / density))

    @property
    def enthalpy(self) -> FloatArray:
        """Of unit mass, kinetic energy included; that of the stream where the flow is exact."""
        return np.asarray((self.states[..., 3] + self.pressure) / self.states[..., 0])

    @property
    def drag(self) -> float:
        """The pressure's force along the stream, over the stream's dynamic pressure and chord."""
        wall = slice(self.mesh.n_wake, len(self.states) - self.mesh.n_wake)
        pressure = 1.5 * self.pressure[wall, 0] - 0.5 * self.pressure[wall, 1]
        force = -(pressure * self.mesh.out_x[wall, 0]).sum()
        return float(force / (0.5 * STREAM.density * STREAM.u**2))


@dataclass(frozen=True, kw_only=True)
class AirfoilSet(SampleSet):
    """Flow around wing sections, at the nodes of a C-mesh.

    Sections around which the march finds no steady flow are left out.

    Parameters
    ----------
    around
        Cells around the section, 120 in the authors' files; the others follow.
    finer
        How many times finer the solver's cells are.
    """

    shard_size: ClassVar[int] = 25
    gate: ClassVar[float] = 0.5
    least: ClassVar[Mapping[str, int]] = {"around": _WHOLE, "finer": 1}

    train: int = 400
    validation: int = 50
    test: int = 100
    around: int = N_AROUND
    finer: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.around % _WHOLE:
            raise SettingsError(
                f"around must be a multiple of {_WHOLE}, so that half of the mesh has whole cells, "
                f"got {self.around}"
            )

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {
            "x": "of each node, axes along the C and outwards; the chord is 1",
            "y": "of each node",
            "density": "over the stream's",
            "u_x": "velocity along x; the stream's is 0.9466",
            "u_y": "velocity along y",
            "pressure": "over the stream's",
            "mach": "Mach number",
        }

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one sample; its error is the Mach number's distance to that on half the mesh."""
        shifts = draw_shifts(rng)
        try:
            coarse, fine = nested_flows(shifts, self.finer * self.around)
        except NotSteadyError:
            nodes = c_mesh(shifts, self.around)
            return dict.fromkeys(self.fields, np.zeros(nodes.shape[:2])), math.inf
        return at_nodes(fine, self.finer), mach_distance(coarse, fine)

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Make a sample again, look at its total enthalpy, and solve it on twice the mesh."""
        n_rows = len(arrays["number"])
        rows = rng.choice(n_rows, size=min(n_points, _N_RESOLVED, n_rows), replace=False)
        remade = enthalpy = refined = 0.0
        for row in rows:
            shifts = draw_shifts(np.random.default_rng([self.seed, int(arrays["number"][row])]))
            (_, found), (_, fine) = (
                nested_flows(shifts, k * self.finer * self.around) for k in (1, 2)
            )
            again = at_nodes(found, self.finer)["mach"]
            remade = max(remade, float(np.abs(arrays["mach"][row] - again).max() / again.max()))
            apart = np.abs(found.enthalpy / STREAM.enthalpy - 1.0)
            enthalpy = max(enthalpy, float(apart.max()))
            refined = max(refined, mach_distance(found, fine))
        n = len(rows)
        return [
            Check("Mach number, made again", remade, _ALLOWED_REMAKE, n, unit=""),
            Check("total enthalpy", enthalpy, _ALLOWED_ENTHALPY, n, unit=""),
            Check("Mach number, refined", refined, _ALLOWED_REFINEMENT, n, unit=" of its norm"),
        ]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw the Mach number of four samples near the section."""
        from data_gen.physics.previews import draw_clouds  # noqa: PLC0415  # plotly is slow to load

        n, m = arrays["mach"].shape[1:]
        near = {
            name: arrays[name][:, n // 8 : -(n // 8), : 3 * m // 4].reshape(len(arrays[name]), -1)
            for name in ("x", "y", "mach")
        }
        points = np.stack([near["x"], near["y"]], axis=-1)
        return draw_clouds({"points": points, "mach": near["mach"]}, "mach")


def draw_shifts(rng: np.random.Generator) -> FloatArray:
    """Draw how far the eight nodes move, four below and four above; the first one stays."""
    shifts = rng.uniform(-_SHIFT, _SHIFT, N_SHIFTS)
    shifts[0] = 0.0
    return shifts


def section(shifts: FloatArray, n: int = N_AROUND) -> FloatArray:
    """Return points (n + 1, 2) around a section, from its trailing edge along its lower side."""
    x = 1.0 - np.cos(0.5 * np.pi * np.linspace(0.0, 1.0, n // 2 + 1))  # dense at the nose
    powers = np.stack([np.sqrt(x), x, x**2, x**3, x**4])
    y = 0.6 * np.array([0.2969, -0.1260, -0.3516, 0.2843, -0.1036]) @ powers
    y[-1] = 0.0  # of rounding
    lower, upper = np.stack([x, -y], axis=-1), np.stack([x, y], axis=-1)
    points = np.concatenate([lower[::-1], upper[1:]])
    return points + np.stack([np.zeros(n + 1), lifted(points, shifts)], axis=-1)


def lifted(points: FloatArray, shifts: FloatArray) -> FloatArray:
    """Return how far points move up when the nodes do: Lagrange's cubics in x, linear in y."""
    x, y = points.T
    cubics = np.stack(
        [np.prod([(x - b) / (a - b) for b in _NODES_X if b != a], axis=0) for a in _NODES_X]
    )
    share = 0.5 + 0.5 * y / _NODES_Y
    return np.asarray((1.0 - share) * (shifts[:4] @ cubics) + share * (shifts[4:] @ cubics))


def n_wake_of(around: int) -> int:
    """Return the cells along the wake, and outwards, beside so many around the section."""
    return around * 5 // 12


def c_mesh(shifts: FloatArray, around: int = N_AROUND) -> FloatArray:
    """Return the nodes of the C-mesh around a section, (n + 1, m + 1, 2).

    Lines outwards are straight, from the section and its wake to a half circle around the trailing
    edge and two lines behind it. Cells keep growing at the same rate behind the section, and over
    the last quarter of the way out.
    """
    foil, n = section(shifts, around), n_wake_of(around)
    growth = _growth(foil[-1, 0] - foil[-2, 0], n, _FAR - 1.0)
    behind = 1.0 + np.cumsum(growth)
    wake = np.stack([behind, np.full(len(behind), foil[0, 1])], axis=-1)
    angle = np.pi * (0.5 + np.linspace(0.0, 1.0, len(foil)))
    circle = np.stack([1.0 + _FAR * np.cos(angle), -_FAR * np.sin(angle)], axis=-1)
    below = np.stack([behind, np.full(len(behind), -_FAR)], axis=-1)
    inner = np.concatenate([wake[::-1], foil, wake])
    outer = np.concatenate([below[::-1], circle, below * [1.0, -1.0]])
    scale = N_AROUND / around
    even = scale * _FIRST_STEP * _STRETCH ** (scale * np.arange(3 * n // 4))
    rest = _growth(even[-1], n - len(even), _FAR - even.sum())
    share = np.concatenate([[0.0], np.cumsum(np.concatenate([even, rest])) / _FAR])
    share[-1] = 1.0
    return np.asarray(inner[:, None] + share[:, None] * (outer - inner)[:, None])


def _growth(first: float, n: int, length: float) -> FloatArray:
    """Return n steps that fill a length, each by the same factor longer than the one before.

    The step before them was ``first``.
    """
    from scipy.optimize import brentq  # noqa: PLC0415  # slow to load

    powers = np.arange(1, n + 1)
    factor = brentq(lambda q: float(first * (q**powers).sum() - length), 1.0, 10.0, xtol=1e-14)
    return np.asarray(first * factor**powers)


def nested_flows(shifts: FloatArray, around: int = N_AROUND) -> tuple[Flow, Flow]:
    """Return the flow on half of the mesh, both ways, and from there the flow on all of it."""
    nodes, n_wake = c_mesh(shifts, around), n_wake_of(around)
    coarse = _steady_flow(nodes[::2, ::2], n_wake // 2, None, _START)
    near = coarse.states.repeat(2, axis=0).repeat(2, axis=1)
    return coarse, _steady_flow(nodes, n_wake, near, _TOLERANCE)


def _steady_flow(nodes: FloatArray, n_wake: int, near: FloatArray | None, tolerance: float) -> Flow:
    """March from states nearby, or from the free stream."""
    mesh = cells_between(nodes, n_wake)
    states = uniform(mesh, STREAM)
    if near is not None:
        states[2:-2, 2:-2] = near
    find_steady(states, mesh, STREAM, tolerance)
    return Flow(nodes, mesh, states[2:-2, 2:-2].copy())


def at_nodes(flow: Flow, finer: int) -> Arrays:
    """Return a flow at every ``finer``-th node of its mesh."""
    nodes = flow.nodes[::finer, ::finer]
    cells = {
        "density": flow.states[..., 0],
        "u_x": flow.states[..., 1] / flow.states[..., 0],
        "u_y": flow.states[..., 2] / flow.states[..., 0],
        "pressure": flow.pressure,
        "mach": flow.mach,
    }
    found = {
        name: between_cells(values, flow.mesh.n_wake)[::finer, ::finer]
        for name, values in cells.items()
    }
    return {"x": nodes[..., 0], "y": nodes[..., 1], **found}


def between_cells(values: FloatArray, n_wake: int) -> FloatArray:
    """Return values at the nodes: means of the cells around them, drawn on at the edges.

    Across the wake the cells of the other side are those around a node.
    """
    along = np.concatenate(
        [2.0 * values[:1] - values[1:2], values, 2.0 * values[-1:] - values[-2:-1]]
    )
    along = 0.5 * (along[:-1] + along[1:])
    inner = 2.0 * along[:, :1] - along[:, 1:2]
    for wake in (slice(0, n_wake), slice(len(along) - n_wake, None)):
        inner[wake, 0] = along[::-1][wake, 0]
    outer = 2.0 * along[:, -1:] - along[:, -2:-1]
    out = np.concatenate([inner, along, outer], axis=1)
    return np.asarray(0.5 * (out[:, :-1] + out[:, 1:]))


def mach_distance(coarse: Flow, fine: Flow) -> float:
    """Return how far Mach numbers on half the mesh are from those on the mesh, by their norm."""
    n, m = coarse.mach.shape
    means = fine.mach.reshape(n, 2, m, 2).mean(axis=(1, 3))
    return float(np.linalg.norm(coarse.mach - means) / np.linalg.norm(means))

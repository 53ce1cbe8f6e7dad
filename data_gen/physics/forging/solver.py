"""Central differences in time: the block under the falling die, frame by frame.

Written with velocities at whole steps (velocity Verlet), which is the same scheme: so the step may
change from one leg to the next, and the kinetic energy is known at every frame.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

from amo.arrays import FloatArray
from data_gen.physics.forging import die as dies
from data_gen.physics.forging.die import Profile
from data_gen.physics.forging.elements import (
    Body,
    block,
    deform,
    kinetic_energy,
    longest_step,
    stored_energy,
)
from data_gen.physics.forging.material import STEEL, Metal

ORDER = 2  # in the time step, as long as nothing yields
COURANT = 0.8  # share of the longest stable step at the start of a leg: elements shrink, and the
# die stiffens the edge
_LEGS = 5  # between two frames
_DEEPEST = 0.5  # heights of an element: on an edge that holds, a curved die is a tenth as deep
_FLATTEST = 0.02  # a stable step that small a share of the first means that an element is flat


@dataclass(frozen=True, kw_only=True)
class Forging:
    """A block and a die that has just touched it.

    Attributes
    ----------
    metal
        Of the block.
    width, height
        Of the block, mm.
    columns, rows
        Elements along and across.
    speed
        Of the die, mm/ms, which is m/s.
    duration
        From the first touch to the last frame, ms.
    frames
        At equal times; the first is the touch, before anything has moved.
    """

    metal: Metal = STEEL
    width: float = 50.0
    height: float = 15.0
    columns: int = 100
    rows: int = 30
    speed: float = 3.0
    duration: float = 1.8
    frames: int = 20


class Energies(NamedTuple):
    """What the die has done, and where it is, mJ: the springs of the hourglass dissipate most."""

    work: float
    kinetic: float
    elastic: float
    plastic: float
    hourglass: float
    contact: float

    @property
    def imbalance(self) -> float:
        """What is missing or too much, relative to the work."""
        return abs(sum(self[1:]) / self.work - 1.0)


class Pressed(NamedTuple):
    """What has become of the block.

    Attributes
    ----------
    rest
        Where the nodes were, (2, rows + 1, columns + 1), mm.
    moved
        Their displacements by frame, (frames, 2, rows + 1, columns + 1), mm; zero from where
        the energies end.
    energies
        At every frame but the first, or until an element has folded or is flat.
    body
        In the end.
    overlap
        How deep the die then is in the middle of an edge between two nodes, mm: they are kept out
        of it, what is between them is not. Infinite if the end was not reached.
    """

    rest: FloatArray
    moved: FloatArray
    energies: list[Energies]
    body: Body
    overlap: float

    @property
    def error(self) -> float:
        """The largest imbalance of energy of any frame; infinite without a good end.

        That is, if the end was not reached, or if the die sticks between two nodes of a torn edge.
        """
        if self.overlap > _DEEPEST * self.spacing:
            return float("inf")
        return max(energies.imbalance for energies in self.energies)

    @property
    def spacing(self) -> float:
        """The height of an element at rest, mm."""
        return float(self.rest[1, 0, 0] - self.rest[1, 1, 0])


def press(
    forging: Forging, heights: FloatArray, *, refine: int = 1, contact: float = 1.0
) -> Pressed:
    """Press a die through some heights into the block.

    Parameters
    ----------
    forging
        Block, speed and frames.
    heights
        Of the die at equal distances, from right to left, from any level.
    refine
        How many times as many steps to take as are needed.
    contact
        How many times as stiff the die's contact is; above one it needs more steps.
    """
    metal = forging.metal
    body = block(metal, forging.width, forging.height, forging.columns, forging.rows)
    die = dies.profile(heights - heights.min() + forging.height, forging.width)
    stiffness = contact * dies.STIFFNESS * metal.young
    rest = body.place.copy()
    moved = np.zeros((forging.frames, *rest.shape))
    energies: list[Energies] = []
    leg = forging.duration / ((forging.frames - 1) * _LEGS)
    work = reaction = 0.0
    first = longest = longest_step(body, metal)
    for number in range((forging.frames - 1) * _LEGS):
        n_steps = refine * int(np.ceil(leg / (COURANT * longest)))
        start, step = number * leg, leg / n_steps
        more, reaction, touching = march(
            body, metal, die, stiffness, forging.speed, start, step, n_steps, reaction
        )
        work += more
        longest = longest_step(body, metal)
        if not longest > _FLATTEST * first:
            break
        frame, is_between = divmod(number + 1, _LEGS)
        if not is_between:
            moved[frame] = body.place - rest
            plastic, hourglass = body.cells[6:].sum(axis=(1, 2))
            stored = stored_energy(body, metal)
            energies.append(
                Energies(work, kinetic_energy(body), stored, plastic, hourglass, touching)
            )
    overlap = np.inf
    if len(energies) == forging.frames - 1:
        edge = 0.5 * (body.place[:, 0, 1:] + body.place[:, 0, :-1])
        lowered = forging.speed * forging.duration
        overlap = float((edge[1] + lowered - dies.heights_at(die, edge[0])).max())
    return Pressed(rest, moved, energies, body, overlap)


@numba.njit(nogil=True, error_model="numpy", forceinline=True)
def _kick(body: Body, step: float) -> None:
    """Accelerate all nodes; those at the bottom only slide."""
    last = body.mass.shape[0] - 1
    for j in range(last + 1):
        u, v, mass = body.velocity[0, j], body.velocity[1, j], body.mass[j]
        pull_x, pull_y = body.force[0, j], body.force[1, j]
        rise = 0.0 if j == last else step
        for i in range(len(mass)):
            inverse = 1.0 / mass[i]
            u[i] += step * inverse * pull_x[i]
            v[i] += rise * inverse * pull_y[i]


@numba.njit(nogil=True, error_model="numpy", forceinline=True)
def _drift(body: Body, step: float) -> None:
    for k in range(2):
        for j in range(body.mass.shape[0]):
            place, velocity = body.place[k, j], body.velocity[k, j]
            for i in range(len(place)):
                place[i] += step * velocity[i]


@numba.njit(nogil=True, error_model="numpy")
def march(
    body: Body,
    metal: Metal,
    die: Profile,
    stiffness: float,
    speed: float,
    start: float,
    step: float,
    n_steps: int,
    reaction: float,
) -> tuple[float, float, float]:
    """Take some equal steps.

    Parameters
    ----------
    body
        What is moved, with the forces of the moment.
    metal, die, stiffness, speed
        What acts on it.
    start, step, n_steps
        When, and how far.
    reaction
        The force that holds the die up, at the start.

    Returns
    -------
    tuple
        Work of the die, its reaction at the end, the energy of its contact.
    """
    work, contact = 0.0, 0.0
    for k in range(1, n_steps + 1):
        _kick(body, 0.5 * step)
        _drift(body, step)
        deform(body, metal, step)
        before = reaction
        reaction, contact = dies.push(body, die, speed * (start + k * step), stiffness)
        work += 0.5 * step * speed * (before + reaction)
        _kick(body, 0.5 * step)
    return work, reaction, contact

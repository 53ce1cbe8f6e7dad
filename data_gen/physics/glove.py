"""A synthetic stand-in for measurements on a stretched nitrile glove: no public file is known.

One square sheet is pulled by grips in the middle of its four sides, by a different protocol in
every film: how far the two pairs of grips move, and in which steps. The sheet is generalised
Mooney-Rivlin rubber in plane stress, whose stiffness varies a little from place to place, the same
in all films. Its displacement is read at 21 × 21 points with correlated noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray
from amo.errors import SettingsError
from data_gen.dataset import Arrays, Check
from data_gen.physics.rubber import GAUSS_ORDER, Rubber, find_equilibrium
from data_gen.sized import SampleSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

NITRILE = Rubber(c10=1.0, c01=0.15, c20=0.05)
N_POINTS = 21  # read along each side: the nodes of 10 × 10 biquadratic elements
RATIOS = ((1.0, 1.0), (1.0, 0.66), (1.0, 0.33), (0.66, 1.0), (0.33, 1.0), (1.0, 0.05), (0.05, 1.0))
GRIP = 0.3  # a grip holds what is no farther than this from the middle of its side
NOISE = 0.01  # of a step's root mean square
_FARTHEST = (0.1, 0.2)  # what a grip moves in all, in sides of the sheet
_INHOMOGENEITY = 0.15
_N_WAVES = 4
_N_RESOLVED = 1
_EDGE = 1e-9
_STREAM = 1  # of random numbers for the sheet, beside those of the films
_ALLOWED_REFINEMENT = 0.02
_ALLOWED_REMAKE = 1e-5  # stored numbers are single precision


class Sheet(NamedTuple):
    """A mesh of the sheet, with its nodes on a lattice.

    Attributes
    ----------
    basis
        Of the displacement.
    points
        Its nodes, (side, side, 2), axes x and y.
    numbers
        Of the degrees of freedom there, of the same shape.
    """

    basis: Any
    points: FloatArray
    numbers: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class GloveSet(SampleSet):
    """Films of one stretched sheet of rubber, each pulled by a protocol of its own; synthetic.

    Parameters
    ----------
    steps
        Load steps in each film.
    elements
        Along each side of the sheet.
    """

    shard_size: ClassVar[int] = 2
    least: ClassVar[Mapping[str, int]] = {"steps": 1, "elements": 20}

    train: int = 20
    validation: int = 4
    test: int = 6
    steps: int = 30
    elements: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.elements % 20:
            raise SettingsError(
                "elements must be a multiple of 20, so that what is read and where grips end are "
                f"nodes of half the mesh too, got {self.elements}"
            )

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {
            "points": "of the sheet at rest, (films, 441, 2)",
            "displacement": "after each step, without noise, (films, steps, 441, 2)",
            "measured": "the same with noise",
        }

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one film; its error is the distance to that on half the mesh, at its last step."""
        protocol, waves = draw_protocol(rng, self.steps), draw_waves(self.seed)
        film, coarse = (pull(protocol, waves, n) for n in (self.elements, self.elements // 2))
        points = lattice_sheet(10).points.reshape(-1, 2)
        measured = film + draw_noise(rng, film)
        return {"points": points, "displacement": film, "measured": measured}, _apart(coarse, film)

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Make a film again, and pull it on twice the mesh; both in four equal steps."""
        n_rows = len(arrays["number"])
        rows = rng.choice(n_rows, size=min(n_points, _N_RESOLVED, n_rows), replace=False)
        remade = refined = 0.0
        for row in rows:
            own = np.random.default_rng([self.seed, int(arrays["number"][row])])
            protocol, waves = draw_protocol(own, self.steps), draw_waves(self.seed)
            stored = arrays["displacement"][row]
            way = np.outer(np.linspace(0.25, 1.0, 4), protocol[-1])  # rubber forgets the way
            remade = max(remade, _apart(stored, pull(way, waves, self.elements)))
            refined = max(refined, _apart(stored, pull(way, waves, 2 * self.elements)))
        return [
            Check("last step, made again", remade, _ALLOWED_REMAKE, len(rows), unit=" of its norm"),
            Check("last step, refined", refined, _ALLOWED_REFINEMENT, len(rows), " of its norm"),
        ]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw how far four films' points have moved after the last step."""
        from data_gen.physics.previews import draw_clouds  # noqa: PLC0415  # plotly is slow to load

        last = arrays["measured"][:, -1]
        moved = np.linalg.norm(last, axis=-1)
        return draw_clouds({"points": arrays["points"] + last, "moved": moved}, "moved")


def draw_protocol(rng: np.random.Generator, n_steps: int) -> FloatArray:
    """Draw how far the grips have moved after each step, (steps, 2): along x and along y.

    One of the ratios of the two, how far in all, and steps that are not quite equal.
    """
    ratio = np.array(RATIOS[rng.integers(len(RATIOS))])
    sizes = rng.uniform(0.5, 1.5, n_steps)
    return np.asarray(rng.uniform(*_FARTHEST) * np.outer(np.cumsum(sizes) / sizes.sum(), ratio))


def draw_waves(seed: int) -> FloatArray:
    """Draw the sheet of a set: coefficients of cos πjx cos πky in the stiffness' logarithm."""
    rng = np.random.default_rng([seed, 0, _STREAM])
    k = np.arange(_N_WAVES)
    spread = 1.0 / (1.0 + k[:, None] ** 2 + k**2)
    spread[0, 0] = 0.0
    waves = spread * rng.standard_normal(spread.shape)
    return np.asarray(_INHOMOGENEITY * waves / np.linalg.norm(waves))


def draw_noise(rng: np.random.Generator, film: FloatArray) -> FloatArray:
    """Draw noise that neighbouring points share, by its size a part of each step."""
    from scipy.ndimage import gaussian_filter  # noqa: PLC0415  # slow to load

    n_steps = len(film)
    steps = np.diff(film, axis=0, prepend=np.zeros_like(film[:1]))
    size = NOISE * np.sqrt((steps**2).mean(axis=(1, 2)))
    raw = rng.standard_normal((n_steps, N_POINTS, N_POINTS, 2))
    smooth = gaussian_filter(raw, sigma=(0.0, 1.0, 1.0, 0.0), mode="reflect")
    noise = smooth.reshape(film.shape)
    noise = noise / np.sqrt((noise**2).mean(axis=(1, 2), keepdims=True))
    return np.asarray(size[:, None, None] * noise)


def pull(protocol: FloatArray, waves: FloatArray, n: int) -> FloatArray:
    """Return the displacement of the points after each step, (steps, points, 2)."""
    sheet = lattice_sheet(n)
    stiffness = np.exp(_cosines(waves, np.asarray(sheet.basis.global_coordinates())))
    held, direction = held_by_grips(sheet)
    every = n // 10
    moved = np.zeros(sheet.basis.N)
    film = []
    for along in protocol:
        moved = find_equilibrium(
            sheet.basis, NITRILE, stiffness, held, along @ direction, moved
        ).moved
        film.append(moved[sheet.numbers][::every, ::every].reshape(-1, 2))
    return np.stack(film)


def lattice_sheet(n: int) -> Sheet:
    """Return the sheet [0, 1]² as n × n biquadratic elements."""
    from skfem import Basis, ElementQuad2, ElementVector, MeshQuad  # noqa: PLC0415  # slow to load

    ticks = np.linspace(0.0, 1.0, n + 1)
    mesh = MeshQuad.init_tensor(ticks, ticks)
    basis = Basis(mesh, ElementVector(ElementQuad2()), intorder=GAUSS_ORDER)
    x, y = np.rint(2 * n * basis.doflocs).astype(int)
    component = np.zeros(basis.N, dtype=int)
    component[basis.get_dofs(elements=True).all("u^2")] = 1
    numbers = np.empty((2 * n + 1, 2 * n + 1, 2), dtype=np.int64)
    numbers[x, y, component] = np.arange(basis.N)
    return Sheet(basis, np.moveaxis(basis.doflocs[:, numbers[..., 0]], 0, -1), numbers)


def held_by_grips(sheet: Sheet) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return what grips hold, and by how much a unit of each pair's motion moves it, (2, held).

    A grip moves outwards and does not let the sheet slip along it.
    """
    from_middle = sheet.points - 0.5
    numbers, directions = [], []
    for axis in (0, 1):
        at_end = np.abs(from_middle[..., axis]) > 0.5 - _EDGE
        held = at_end & (np.abs(from_middle[..., 1 - axis]) < GRIP + _EDGE)
        outwards = np.sign(from_middle[held][:, axis])
        for component in (0, 1):
            numbers.append(sheet.numbers[held][:, component])
            direction = np.zeros((2, len(outwards)))
            direction[axis] = outwards if component == axis else 0.0
            directions.append(direction)
    return np.concatenate(numbers), np.concatenate(directions, axis=1)


def _cosines(waves: FloatArray, x: FloatArray) -> FloatArray:
    """Return Σ a_jk cos πjx cos πky at points (2, ...)."""
    along, across = (np.cos(np.pi * x[i][..., None] * np.arange(len(waves))) for i in (0, 1))
    return np.asarray(np.einsum("...j,jk,...k->...", along, waves, across))


def _apart(film: FloatArray, finer: FloatArray) -> float:
    """Return the distance of two films' last steps, by the norm of the second."""
    return float(np.linalg.norm(film[-1] - finer[-1]) / np.linalg.norm(finer[-1]))

"""The plasticity benchmark of Geo-FNO: a block of metal under a falling die, in twenty frames.

A block of 50 × 15 mm in plane stress, E = 200 GPa, ν = 0.3, perfectly plastic at 70 MPa, with
7850 kg/m³, is hit from above by a rigid, frictionless die at 3 m/s. The die is a piecewise cubic
through random heights at eight equal distances; the bottom of the block slides, its sides are free.
100 × 30 four-sided elements with one point each, central differences in time.

Arrays are laid out as in the official file: x runs from 0 to -50 mm and y from 15 mm to 0. Geo-FNO:
how high the dies are and how far they fall is not printed. Chosen here: heights up to 6 mm and a
fall of 5.4 mm. The largest displacement is then 5 to 7 mm under many dies; one that is lowest at a
corner drives the block, which nothing holds, out sideways, up to some 15 mm.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from amo.arrays import FloatArray
from data_gen.dataset import Arrays, Check
from data_gen.physics.forging.die import N_HEIGHTS, heights_at, profile
from data_gen.physics.forging.solver import Forging, press
from data_gen.sized import SampleSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HIGHEST = 6.0  # mm, of a die above its lowest possible point
_N_RESOLVED = 2
_ALLOWED = 0.01  # of the norm of the displacement


@dataclass(frozen=True, kw_only=True)
class PlasticitySet(SampleSet):
    """Dies pressed into a block; the answer is where its nodes are, and how far they have moved."""

    shard_size: ClassVar[int] = 20
    least: ClassVar[Mapping[str, int]] = {"columns": 2, "rows": 1, "frames": 2}
    gate: ClassVar[float] = 0.02

    train: int = 500
    validation: int = 50
    test: int = 100
    columns: int = 100
    rows: int = 30
    frames: int = 20

    @property
    def forging(self) -> Forging:
        """The block, and how it is pressed."""
        return Forging(columns=self.columns, rows=self.rows, frames=self.frames)

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {
            "die": "height of the die above the block at the first frame, (samples, 101), mm",
            "field": "x, y, u_x, u_y of the nodes by frame, (samples, 101, 31, 20, 4), mm",
        }

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one sample; its error is what its energies fail to add up to, see ``Pressed``."""
        heights = draw_heights(rng)
        forging = self.forging
        pressed = press(forging, heights)
        place = pressed.rest + pressed.moved
        field = np.concatenate([place, pressed.moved], axis=1)  # frame, channel, row, column
        die = heights_at(profile(heights - heights.min(), forging.width), pressed.rest[0, 0])
        return {"die": die, "field": field.transpose(3, 2, 0, 1)}, pressed.error

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Press a few dies again with steps half as long, and with a contact twice as stiff."""
        n_rows = len(arrays["number"])
        rows = rng.choice(n_rows, size=min(n_points, _N_RESOLVED, n_rows), replace=False)
        halved = stiffer = 0.0
        for row in rows:
            heights = draw_heights(np.random.default_rng([self.seed, int(arrays["number"][row])]))
            stored = arrays["field"][row, ..., 2:].transpose(2, 3, 1, 0)
            fine, stiff = (press(self.forging, heights, refine=2, contact=c) for c in (1.0, 2.0))
            halved = max(halved, _apart(stored, fine.moved))
            stiffer = max(stiffer, _apart(stored, stiff.moved))
        unit = " of its norm"
        return [
            Check("displacement, half the step", halved, _ALLOWED, len(rows), unit=unit),
            Check("displacement, stiffer contact", stiffer, _ALLOWED, len(rows), unit=unit),
        ]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw some frames of three samples."""
        from data_gen.physics.previews import draw_meshes  # noqa: PLC0415  # plotly is slow

        return draw_meshes(arrays["field"][:3])


def draw_heights(rng: np.random.Generator) -> FloatArray:
    """Return the heights of a random die, mm."""
    return rng.uniform(0.0, HIGHEST, N_HEIGHTS)


def _apart(stored: FloatArray, again: FloatArray) -> float:
    return float(np.linalg.norm(stored - again) / np.linalg.norm(again))

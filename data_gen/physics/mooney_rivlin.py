"""The classical rival on the glove: a uniform Mooney-Rivlin sheet, fitted to what was measured.

The edge of the sheet moves as measured, and equilibrium says where the inside goes. Only ratios of
the coefficients matter then; they are found by least squares on the training films.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from amo.arrays import FloatArray
from amo.data.datasets import ShardedDataset
from data_gen.physics.glove import lattice_sheet
from data_gen.physics.rubber import Rubber, find_equilibrium

_START = (-2.0, -2.0)  # logarithms of c01 and c20 over c10
_BOUNDS = (-8.0, 3.0)
_N_FITTED = 3  # steps of each film: rubber forgets the way


class Assessment(NamedTuple):
    """The fitted sheet, and its mean relative L2 over all steps of the test films."""

    rubber: Rubber
    relative_l2: float
    n_steps: int


def assess(folder: Path) -> Assessment:
    """Fit the sheet to a set's training films, and predict its test films."""
    rubber = fit(_measured(folder, "train"))
    errors = np.concatenate([step_errors(rubber, film) for film in _measured(folder, "test")])
    return Assessment(rubber, float(errors.mean()), len(errors))


def fit(films: Iterable[FloatArray]) -> Rubber:
    """Return the sheet whose inside is nearest to films (steps, points, 2), in some steps each."""
    from scipy.optimize import least_squares  # noqa: PLC0415  # slow to load

    shown = []
    for film in films:
        every = max(1, len(film) // _N_FITTED)
        shown.append(film[every - 1 :: every])

    def residuals(logarithms: FloatArray) -> FloatArray:
        rubber = _from_logarithms(logarithms)
        return np.concatenate([(predict(rubber, film) - film).ravel() for film in shown])

    found = least_squares(residuals, _START, bounds=_BOUNDS, diff_step=(1e-4, 1e-4))
    return _from_logarithms(found.x)


def predict(rubber: Rubber, film: FloatArray) -> FloatArray:
    """Return where a uniform sheet goes whose edge moves as in a film (steps, points, 2)."""
    sheet = lattice_sheet(10)
    edge = sheet.basis.get_dofs().flatten()
    uniform = np.ones(sheet.basis.dx.shape)
    moved, wanted = np.zeros(sheet.basis.N), np.empty(sheet.basis.N)
    frames = []
    for frame in film:
        wanted[sheet.numbers] = frame.reshape(sheet.numbers.shape)
        moved = find_equilibrium(sheet.basis, rubber, uniform, edge, wanted[edge], moved).moved
        frames.append(moved[sheet.numbers].reshape(frame.shape))
    return np.stack(frames)


def step_errors(rubber: Rubber, film: FloatArray) -> FloatArray:
    """Return the relative L2 error at each step of a film."""
    error = np.linalg.norm(predict(rubber, film) - film, axis=(1, 2))
    return np.asarray(error / np.linalg.norm(film, axis=(1, 2)))


def _from_logarithms(logarithms: FloatArray) -> Rubber:
    c01, c20 = np.exp(logarithms)
    return Rubber(c10=1.0, c01=float(c01), c20=float(c20))


def _measured(folder: Path, split: str) -> list[FloatArray]:
    batches = ShardedDataset(folder, split).batches(1)
    return [arrays["measured"][0].astype(np.float64) for arrays in batches]

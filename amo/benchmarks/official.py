"""Official files of operator-learning benchmarks, one function per set.

Each takes the folder where the files were downloaded and a split, "train", "validation" or "test",
and returns float32 arrays, samples first, with no normalisation. Where the official files have no
validation split, it is the last tenth of the training samples and train is the rest, so that
nothing is chosen on the test samples.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from amo.benchmarks.official_files import Cut, Layout, Shape, read_array
from amo.data.datasets import ArrayDataset
from amo.data.format import Arrays
from amo.errors import DataError

_GEO_FNO = "the Geo-FNO data (Li et al. 2022, arXiv 2207.05209)"
_FNO = "the FNO data (Li et al. 2020, arXiv 2010.08895)"
_LNO = "the repository qianyingcao/Laplace-Neural-Operator on GitHub"
_LNO_DRIVE = f"the Google Drive folder that the README names of {_LNO}"

_Choice = TypeVar("_Choice")


class _Size(NamedTuple):
    train: int
    test: int


_SIZES = {
    "elasticity": _Size(1000, 200),
    "plasticity": _Size(900, 80),
    "airfoil": _Size(1000, 200),
    "pipe": _Size(1000, 200),
    "navier_stokes": _Size(1000, 200),
    "darcy": _Size(1000, 200),
}


class _Source(NamedTuple):
    """An array in a file whose first axis is the sample; ``cut`` concerns the axes after it."""

    layout: Layout
    key: str
    cut: Cut = ()


def _npy(file: str, key: str, shape: Shape) -> Layout:
    return Layout(file, {key: shape}, _GEO_FNO)


_CELL_XY = _npy("Random_UnitCell_XY_10.npy", "XY", (972, 2, None))
_CELL_SIGMA = _npy("Random_UnitCell_sigma_10.npy", "sigma", (972, None))

_FORGING = Layout(
    "plas_N987_T20.mat", {"input": (None, 101), "output": (None, 101, 31, 20, 4)}, _GEO_FNO
)
_PLASTICITY = {"die": _Source(_FORGING, "input"), "field": _Source(_FORGING, "output")}

_VORTICITY = Layout("NavierStokes_V1e-5_N1200_T20.mat", {"u": (None, 64, 64, 20)}, _FNO)
_NAVIER_STOKES = {"vorticity": _Source(_VORTICITY, "u")}

_AIRFOIL = {
    "x": _Source(_npy("NACA_Cylinder_X.npy", "X", (None, 221, 51)), "X"),
    "y": _Source(_npy("NACA_Cylinder_Y.npy", "Y", (None, 221, 51)), "Y"),
    "mach": _Source(_npy("NACA_Cylinder_Q.npy", "Q", (None, 5, 221, 51)), "Q", (4,)),
}
_PIPE = {
    "x": _Source(_npy("Pipe_X.npy", "X", (None, 129, 129)), "X"),
    "y": _Source(_npy("Pipe_Y.npy", "Y", (None, 129, 129)), "Y"),
    "velocity": _Source(_npy("Pipe_Q.npy", "Q", (None, 3, 129, 129)), "Q", (0,)),
}

_DARCY_KEYS = {"coefficient": "coeff", "solution": "sol"}
_DARCY_STRIDE = slice(None, None, 5)  # 421 to 85 nodes along an axis
_DARCY_TRAIN, _DARCY_TEST = (
    Layout(
        f"piececonst_r421_N1024_smooth{number}.mat",
        dict.fromkeys(_DARCY_KEYS.values(), (None, 421, 421)),
        _FNO,
    )
    for number in (1, 2)
)

_SUFFIXES = {"train": "train", "validation": "vali", "test": "test"}
_REACTION = Layout(
    "data.mat",
    {f"{letter}_{suffix}": (None, 40, 20) for letter in "fu" for suffix in _SUFFIXES.values()},
    _LNO,
)


def _brusselator(file: str, *suffixes: str) -> Layout:
    arrays: dict[str, Shape] = {f"inputs{suffix}": (None, 39) for suffix in suffixes}
    arrays |= {f"outputs{suffix}": (None, 39, 28, 28) for suffix in suffixes}
    return Layout(file, arrays, _LNO_DRIVE)


_BRUSSELATOR = _brusselator("Brusselator_force_train.npz", "_train", "_test")
_BRUSSELATOR_PAIR = (
    _brusselator("Brusselator_force_train.npz", ""),
    _brusselator("Brusselator_force_test.npz", ""),
)

_GLOVE_KEYS = {name: name for name in ("points", "previous", "displacement")}


def open_elasticity(folder: Path, split: str) -> ArrayDataset:
    """Return ``points`` (n, 972, 2) and ``stress`` (n, 972) of hyperelastic cells with a void."""
    rows = _rows(split, _SIZES["elasticity"])
    read = partial(read_array, folder, at_least=sum(_SIZES["elasticity"]))
    points = read(_CELL_XY, "XY", cut=(slice(None), slice(None), rows))
    stress = read(_CELL_SIGMA, "sigma", cut=(slice(None), rows))
    return ArrayDataset(
        {
            "points": np.ascontiguousarray(points.transpose(2, 0, 1)),
            "stress": np.ascontiguousarray(stress.T),
        }
    )


def open_plasticity(folder: Path, split: str) -> ArrayDataset:
    """Return ``die`` (n, 101) and ``field`` (n, 101, 31, 20, 4): x, y, u_x, u_y by frame."""
    size = _SIZES["plasticity"]
    return ArrayDataset(_read(folder, _PLASTICITY, _rows(split, size), sum(size)))


def open_navier_stokes(folder: Path, split: str) -> ArrayDataset:
    """Return ``vorticity`` (n, 64, 64, 20) on the torus at viscosity 1e-5, frames last."""
    size = _SIZES["navier_stokes"]
    return ArrayDataset(_read(folder, _NAVIER_STOKES, _rows(split, size), sum(size)))


def open_airfoil(folder: Path, split: str) -> ArrayDataset:
    """Return ``points`` (n, 221, 51, 2) and ``mach`` (n, 221, 51) around wing sections."""
    return _open_mesh(folder, split, _AIRFOIL, _SIZES["airfoil"])


def open_pipe(folder: Path, split: str) -> ArrayDataset:
    """Return ``points`` (n, 129, 129, 2) and ``velocity`` (n, 129, 129) along x in bent pipes."""
    return _open_mesh(folder, split, _PIPE, _SIZES["pipe"])


def open_darcy(folder: Path, split: str) -> ArrayDataset:
    """Return ``coefficient`` and ``solution`` (n, 85, 85), every fifth node of 421 × 421."""
    size = _SIZES["darcy"]
    rows = _rows(split, size, slice(size.test))
    layout, n = (_DARCY_TEST, size.test) if split == "test" else (_DARCY_TRAIN, size.train)
    cut = (_DARCY_STRIDE, _DARCY_STRIDE)
    sources = {name: _Source(layout, key, cut) for name, key in _DARCY_KEYS.items()}
    return ArrayDataset(_read(folder, sources, rows, n))


def open_reaction_diffusion(folder: Path, split: str) -> ArrayDataset:
    """Return ``source`` and ``solution`` (n, 40, 20) on space × time, in the official splits.

    Every sample is u = A sin(πx) exp(−gt). Train has g = 0.05, validation and test have g = 1: they
    lie outside the training data.
    """
    return ArrayDataset(_read_reaction(folder, _chosen(split, _SUFFIXES)))


def open_reaction_diffusion_inside(folder: Path, split: str) -> ArrayDataset:
    """Return the same arrays, all from the official training samples: an in-distribution split.

    Counted from 0, samples 2, 7, 12, … are test, 4, 9, 14, … validation and the rest train.
    """
    remainders = _chosen(split, {"train": (0, 1, 3), "validation": (4,), "test": (2,)})
    arrays = _read_reaction(folder, "train")
    return ArrayDataset(
        {
            name: values[np.isin(np.arange(len(values)) % 5, remainders)]
            for name, values in arrays.items()
        }
    )


def open_brusselator(folder: Path, split: str) -> ArrayDataset:
    """Return ``force`` (n, 39) over time and ``field`` (n, 39, 28, 28) of the forced Brusselator.

    The authors' script reads one file with ``inputs_train``, ``outputs_train``, ``inputs_test`` and
    ``outputs_test``. A pair of files, train and test, with ``inputs`` and ``outputs`` each, is read
    too.
    """
    part = _chosen(split, {"train": "train", "validation": "train", "test": "test"})
    train, test = _BRUSSELATOR_PAIR
    if (folder / test.file).is_file():
        layout, suffix = (test if part == "test" else train), ""
    else:
        layout, suffix = _BRUSSELATOR, f"_{part}"
    sources = {
        "force": _Source(layout, f"inputs{suffix}"),
        "field": _Source(layout, f"outputs{suffix}"),
    }
    arrays = _read(folder, sources)
    size = _Size(len(arrays["force"]), 0)
    return ArrayDataset(_taken(arrays, _rows(split, size, slice(None))))


def glove(
    keys: Mapping[str, str] = _GLOVE_KEYS, file: str = "glove.npz"
) -> Callable[[Path, str], ArrayDataset]:
    """Return a function that opens digital image correlation data of a stretched glove.

    No layout is known, so the file's name and keys are free. The function returns ``points``,
    ``previous`` and ``displacement``, each (n, n_points, channels). The last fifth of the samples
    is test, since they follow each other in time.

    Parameters
    ----------
    keys
        The key in the file of ``points``, ``previous`` and ``displacement``.
    file
        The file's name, an npz or a mat.
    """
    if set(keys) != set(_GLOVE_KEYS):
        raise DataError(f"keys are needed of {', '.join(_GLOVE_KEYS)}, got {', '.join(keys)}")
    if Path(file).suffix not in {".npz", ".mat"}:
        raise DataError(f"the glove's file must be an npz or a mat, got {file}")
    layout = Layout(
        file,
        dict.fromkeys(keys.values(), (None, None, None)),
        "a measurement: no public file is known",
    )
    return partial(_open_glove, {name: _Source(layout, keys[name]) for name in _GLOVE_KEYS})


def _open_glove(sources: Mapping[str, _Source], folder: Path, split: str) -> ArrayDataset:
    arrays = _read(folder, sources)
    shapes = {name: values.shape for name, values in arrays.items()}
    if len({shape[:2] for shape in shapes.values()}) != 1:
        found = ", ".join(f"{sources[name].key} {shape}" for name, shape in shapes.items())
        raise DataError(
            f"{folder / sources['points'].layout.file}: arrays must agree in samples and points, "
            f"the first two axes, got {found}"
        )
    n = len(arrays["points"])
    n_test = _part(n, 5)
    return ArrayDataset(_taken(arrays, _rows(split, _Size(n - n_test, n_test))))


open_glove = glove()


def _chosen(split: str, choices: Mapping[str, _Choice]) -> _Choice:
    if split not in choices:
        raise DataError(f"there is no split {split!r}; there are {', '.join(choices)}")
    return choices[split]


def _part(n: int, divisor: int) -> int:
    return -(-n // divisor)  # rounded up: never empty


def _rows(split: str, size: _Size, test: slice | None = None) -> slice:
    """Return a split's rows; ``test`` defaults to the last ones of the file."""
    n_kept = size.train - _part(size.train, 10)
    return _chosen(
        split,
        {
            "train": slice(n_kept),
            "validation": slice(n_kept, size.train),
            "test": test or slice(-size.test, None),
        },
    )


def _read(
    folder: Path, sources: Mapping[str, _Source], rows: slice = slice(None), at_least: int = 1
) -> Arrays:
    return {
        name: read_array(folder, layout, key, cut=(rows, *cut), at_least=at_least)
        for name, (layout, key, cut) in sources.items()
    }


def _taken(arrays: Arrays, rows: slice) -> Arrays:
    return {name: values[rows] for name, values in arrays.items()}


def _open_mesh(
    folder: Path, split: str, sources: Mapping[str, _Source], size: _Size
) -> ArrayDataset:
    rows = _rows(split, size, slice(size.train, sum(size)))
    arrays = _read(folder, sources, rows, sum(size))
    points: npt.NDArray[np.float32] = np.stack([arrays.pop("x"), arrays.pop("y")], axis=-1)
    return ArrayDataset({"points": points, **arrays})


def _read_reaction(folder: Path, suffix: str) -> Arrays:
    return _read(
        folder,
        {
            "source": _Source(_REACTION, f"f_{suffix}"),
            "solution": _Source(_REACTION, f"u_{suffix}"),
        },
    )

"""The small two-phase Darcy set that ships with neuraloperator: 16², tests at 16² and 32².

Files ``darcy_train_16.pt``, ``darcy_test_16.pt``, ``darcy_test_32.pt`` hold a permeability ``x``
(boolean) and a pressure ``y`` (float32). They are torch archives; only their two raw storages are
read, by name and size, and nothing is unpickled.

It is not the paper's Darcy set: another contrast, another resolution.
"""

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amo.data.datasets import ArrayDataset
from amo.data.format import Arrays
from amo.errors import DataError

_ORIGIN = "inside the PyPI wheel neuraloperator 0.3.0, neuralop/datasets/data"
_N_VALIDATION = 100
_STRIDES = {16: 26, 32: 13}  # in a grid of 421 nodes from 0 to 1


class _Source(NamedTuple):
    file: str
    resolution: int
    rows: slice


_SPLITS = {
    "train": _Source("darcy_train_16.pt", 16, slice(None, -_N_VALIDATION)),
    "validation": _Source("darcy_train_16.pt", 16, slice(-_N_VALIDATION, None)),
    "test": _Source("darcy_test_16.pt", 16, slice(None)),
    "test-32": _Source("darcy_test_32.pt", 32, slice(None)),
}


def open_split(folder: Path, split: str) -> ArrayDataset:
    """Return one split as points, features (1: permeable, 0: not) and values (the pressure)."""
    if split not in _SPLITS:
        raise DataError(f"the small Darcy set has no split {split!r}; it has {', '.join(_SPLITS)}")
    source = _SPLITS[split]
    permeability, pressure = _read(folder / source.file, source.resolution)
    permeability, pressure = permeability[source.rows], pressure[source.rows]
    line = np.arange(source.resolution) * _STRIDES[source.resolution] / 420.0
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    n = len(pressure)
    arrays: Arrays = {
        "points": np.broadcast_to(grid.astype(np.float32), (n, *grid.shape)),
        "features": permeability.astype(np.float32).reshape(n, -1, 1),
        "values": pressure.reshape(n, -1, 1),
    }
    return ArrayDataset(arrays)


def _read(path: Path, resolution: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float32]]:
    try:
        with zipfile.ZipFile(path) as archive:
            storages = {Path(name).name: name for name in archive.namelist() if "/data/" in name}
            x, y = (archive.read(storages[key]) for key in ("0", "1"))
    except FileNotFoundError:
        raise DataError(f"{path} is missing: it comes {_ORIGIN}") from None
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"{path} is no torch archive of two tensors: {error}") from error
    cells = resolution**2
    if len(x) % cells or len(y) != 4 * len(x):
        raise DataError(
            f"{path}: expected n × {resolution} × {resolution} booleans and as many float32, got "
            f"{len(x)} and {len(y)} bytes"
        )
    shape = (resolution, resolution, -1)  # samples vary fastest in the storages
    permeability = np.frombuffer(x, np.bool_).reshape(shape).transpose(2, 1, 0)
    pressure = np.frombuffer(y, "<f4").reshape(shape).transpose(2, 1, 0)
    edges = np.abs(pressure[:, 0]).mean(), np.abs(pressure[:, :, 0]).mean()
    if max(edges) > 0.1 * np.abs(pressure).mean():
        raise DataError(f"{path}: the pressure does not vanish on two edges: another layout?")
    return permeability, pressure

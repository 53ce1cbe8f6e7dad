"""Reading one array out of a benchmark's official file: npy, npz, and MATLAB's two formats.

Every array is checked against the shape that the file is known to have, before it is read where
the format allows that, and cut while it is read. Nothing is ever unpickled.
"""

import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.io
from scipy.io.matlab import MatReadError

from amo.errors import DataError

Shape = tuple[int | None, ...]  # None: any number
Cut = tuple[slice | int, ...]

_HDF5 = b"\x89HDF\r\n\x1a\n"
_USER_BLOCK = 512  # MATLAB's own header precedes the HDF5 signature
_UNREADABLE = (  # what the readers raise on a damaged file, or on one of another kind
    OSError, ValueError, TypeError, EOFError, NotImplementedError,
    zipfile.BadZipFile, zlib.error, MatReadError,
)  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """The known layout of an official file.

    Attributes
    ----------
    file
        Its name; the suffix says the format: npy, npz or mat.
    arrays
        The arrays wanted from it and their shapes. The one array of an npy file has no name in it:
        the name here is for messages.
    origin
        Where to download it.
    """

    file: str
    arrays: Mapping[str, Shape]
    origin: str


@dataclass(frozen=True)
class _Request:
    path: Path
    key: str
    layout: Layout
    cut: Cut
    at_least: int

    def check_key(self, found: Iterable[str]) -> None:
        names = sorted(found)
        if self.key not in names:
            raise DataError(
                f"{self.path} has no array {self.key!r}: expected {_described(self.layout)}, "
                f"found {', '.join(names) or 'nothing'}; the file comes from {self.layout.origin}"
            )

    def check_shape(self, found: tuple[int, ...]) -> None:
        expected = self.layout.arrays[self.key]
        if len(found) == len(expected) and all(
            size >= self.at_least if wanted is None else size == wanted
            for size, wanted in zip(found, expected, strict=True)
        ):
            return
        free = f" with n at least {self.at_least}" if self.at_least else ""
        raise DataError(
            f"{self.path}: {self.key} must be {_written(expected)}{free}, got {_written(found)}; "
            f"the file comes from {self.layout.origin}"
        )


def read_array(
    folder: Path, layout: Layout, key: str, *, cut: Cut = (), at_least: int = 0
) -> npt.NDArray[np.float32]:
    """Read one array, or a part of it, as float32.

    An npy file that holds float32 stays mapped into memory.

    Parameters
    ----------
    folder, layout
        Where the file is and what it holds.
    key
        Which of the layout's arrays.
    cut
        What to take along the first axes: rows of samples, strides through space, one channel.
    at_least
        The smallest length of an axis whose length is free.
    """
    path = folder / layout.file
    if not path.is_file():
        raise DataError(
            f"{path} is missing: it holds {_described(layout)} and comes from {layout.origin}"
        )
    try:
        values = _reader(path)(_Request(path, key, layout, cut, at_least))
        if values.dtype.kind not in "biuf":
            raise TypeError(f"{key} holds {values.dtype}, not real numbers")
        return np.ascontiguousarray(values, dtype=np.float32)
    except _UNREADABLE as error:
        raise DataError(
            f"{path} cannot be read ({error}): expected {_described(layout)}; the file comes from "
            f"{layout.origin}"
        ) from error


def _reader(path: Path) -> Callable[[_Request], npt.NDArray[Any]]:
    plain = {".npy": _from_npy, ".npz": _from_npz}.get(path.suffix)
    if plain is not None:
        return plain
    with path.open("rb") as file:
        head = file.read(_USER_BLOCK + len(_HDF5))
    return _from_hdf5 if _HDF5 in {head[: len(_HDF5)], head[_USER_BLOCK:]} else _from_mat5


def _from_npy(request: _Request) -> npt.NDArray[Any]:
    values = np.lib.format.open_memmap(request.path, mode="r")  # refuses objects
    request.check_shape(values.shape)
    return values[request.cut]


def _from_npz(request: _Request) -> npt.NDArray[Any]:
    with np.load(request.path, allow_pickle=False) as content:
        request.check_key(content.files)
        values: npt.NDArray[Any] = content[request.key]
    request.check_shape(values.shape)
    return values[request.cut]


def _from_mat5(request: _Request) -> npt.NDArray[Any]:
    shapes = {name: shape for name, shape, _ in scipy.io.whosmat(request.path)}
    request.check_key(shapes)
    request.check_shape(shapes[request.key])
    content = scipy.io.loadmat(request.path, variable_names=[request.key])
    values: npt.NDArray[Any] = content[request.key]
    return values[request.cut]


def _from_hdf5(request: _Request) -> npt.NDArray[Any]:
    import h5py  # noqa: PLC0415  # few files need it

    with h5py.File(request.path, "r") as content:
        request.check_key(content)
        stored = content[request.key]
        if not isinstance(stored, h5py.Dataset):
            raise TypeError(f"{request.key} is no array")
        request.check_shape(stored.shape[::-1])  # MATLAB's axes are in reverse order
        rest = (slice(None),) * (stored.ndim - len(request.cut))
        values: npt.NDArray[Any] = stored[(*request.cut, *rest)[::-1]]
    return values.T


def _described(layout: Layout) -> str:
    return ", ".join(f"{key} {_written(shape)}" for key, shape in layout.arrays.items())


def _written(shape: Shape) -> str:
    return " × ".join("n" if size is None else str(size) for size in shape) or "a single number"

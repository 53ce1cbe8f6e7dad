"""Official benchmark files: small ones in the same layout are read back as they were written."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest
import scipy.io

from amo.benchmarks import official
from amo.benchmarks.official_files import Layout, read_array
from amo.data.datasets import ArrayDataset
from amo.errors import DataError

Array = npt.NDArray[Any]
Open = Callable[[Path, str], ArrayDataset]
SPLITS = ("train", "validation", "test")
OPENERS: dict[str, Open] = {
    name: getattr(official, f"open_{name}")
    for name in (
        "elasticity", "plasticity", "airfoil", "pipe", "navier_stokes", "darcy",
        "reaction_diffusion", "reaction_diffusion_inside", "brusselator", "glove",
    )
}  # fmt: skip


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three training samples, of which one is for validation, and two for test."""
    for name in official._SIZES:
        monkeypatch.setitem(official._SIZES, name, official._Size(3, 2))


def write_mat73(path: Path, arrays: dict[str, Array]) -> None:
    """As MATLAB does: its own header before the HDF5, axes reversed."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for key, values in arrays.items():
            file.create_dataset(key, data=values.T)
    header = (
        b"MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 .".ljust(124) + b"\x00\x02IM"
    )
    with path.open("r+b") as file:
        file.write(header.ljust(512, b"\x00"))


def check(open_split: Open, folder: Path, expected: dict[str, dict[str, Array]]) -> None:
    """Compare every split with what was written, and its types."""
    assert tuple(expected) == SPLITS
    for split, arrays in expected.items():
        found = open_split(folder, split).arrays
        assert set(found) == set(arrays)
        for name, values in arrays.items():
            assert found[name].dtype == np.float32
            assert found[name].shape == values.shape
            assert np.array_equal(found[name], values.astype(np.float32))


def rows(arrays: dict[str, Array], test: slice) -> dict[str, dict[str, Array]]:
    slices = {"train": slice(2), "validation": slice(2, 3), "test": test}
    return {split: {k: v[part] for k, v in arrays.items()} for split, part in slices.items()}


def test_elasticity_has_its_samples_last(tmp_path: Path) -> None:
    points, stress = numbers(972, 2, 7).astype(np.float64), numbers(972, 7, seed=1)
    np.save(tmp_path / "Random_UnitCell_XY_10.npy", points)
    np.save(tmp_path / "Random_UnitCell_sigma_10.npy", stress)
    arrays = {"points": np.moveaxis(points, -1, 0), "stress": stress.T}
    check(official.open_elasticity, tmp_path, rows(arrays, slice(-2, None)))


def test_plasticity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(official._SIZES, "plasticity", official._Size(2, 1))
    die, field = numbers(3, 101), numbers(3, 101, 31, 20, 4, seed=1)
    scipy.io.savemat(tmp_path / "plas_N987_T20.mat", {"input": die, "output": field})
    parts = (slice(1), slice(1, 2), slice(2, 3))
    expected = {
        split: {"die": die[part], "field": field[part]}
        for split, part in zip(SPLITS, parts, strict=True)
    }
    check(official.open_plasticity, tmp_path, expected)


@pytest.mark.parametrize(
    ("name", "prefix", "grid", "channels", "channel", "value"),
    [
        ("airfoil", "NACA_Cylinder", (221, 51), 5, 4, "mach"),
        ("pipe", "Pipe", (129, 129), 3, 0, "velocity"),
    ],
)
def test_meshes_take_one_channel_after_the_training_samples(
    tmp_path: Path,
    name: str,
    prefix: str,
    grid: tuple[int, int],
    channels: int,
    channel: int,
    value: str,
) -> None:
    x, y = numbers(6, *grid), numbers(6, *grid, seed=1)
    q = numbers(6, channels, *grid, seed=2).astype(np.float64)
    for letter, values in (("X", x), ("Y", y), ("Q", q)):
        np.save(tmp_path / f"{prefix}_{letter}.npy", values)
    arrays = {"points": np.stack([x, y], axis=-1), value: q[:, channel]}
    check(OPENERS[name], tmp_path, rows(arrays, slice(3, 5)))  # the sixth is never used


@pytest.mark.parametrize("write", [scipy.io.savemat, write_mat73])
def test_navier_stokes(tmp_path: Path, write: Callable[..., None]) -> None:
    u = numbers(6, 64, 64, 20)
    write(tmp_path / "NavierStokes_V1e-5_N1200_T20.mat", {"u": u})
    check(official.open_navier_stokes, tmp_path, rows({"vorticity": u}, slice(-2, None)))


@pytest.mark.parametrize("write", [scipy.io.savemat, write_mat73])
def test_darcy_is_cut_to_85_nodes_from_either_format(
    tmp_path: Path, write: Callable[..., None]
) -> None:
    files = {
        number: {"coeff": numbers(n, 421, 421, seed=number), "sol": numbers(n, 421, 421, seed=9)}
        for number, n in ((1, 4), (2, 3))
    }
    for number, content in files.items():
        write(tmp_path / f"piececonst_r421_N1024_smooth{number}.mat", content)
    coarse = {
        number: {
            "coefficient": content["coeff"][:, ::5, ::5],
            "solution": content["sol"][:, ::5, ::5],
        }
        for number, content in files.items()
    }
    expected = rows(coarse[1], slice(0)) | {"test": {k: v[:2] for k, v in coarse[2].items()}}
    assert expected["test"]["solution"].shape == (2, 85, 85)
    check(official.open_darcy, tmp_path, expected)


def write_reaction(folder: Path, sizes: tuple[int, int, int]) -> dict[str, Array]:
    content = {
        f"{letter}_{split}": numbers(n, 40, 20, seed=ord(letter) + n)
        for letter in "fu"
        for split, n in zip(("train", "vali", "test"), sizes, strict=True)
    }
    scipy.io.savemat(folder / "data.mat", content)
    return content


def test_reaction_diffusion_splits_as_named(tmp_path: Path) -> None:
    content = write_reaction(tmp_path, (6, 2, 3))
    expected = {
        split: {"source": content[f"f_{key}"], "solution": content[f"u_{key}"]}
        for split, key in zip(SPLITS, ("train", "vali", "test"), strict=True)
    }
    check(official.open_reaction_diffusion, tmp_path, expected)


def test_reaction_diffusion_inside_splits_the_training_samples(tmp_path: Path) -> None:
    content = write_reaction(tmp_path, (13, 2, 3))
    chosen = ([0, 1, 3, 5, 6, 8, 10, 11], [4, 9], [2, 7, 12])
    expected = {
        split: {"source": content["f_train"][part], "solution": content["u_train"][part]}
        for split, part in zip(SPLITS, chosen, strict=True)
    }
    check(official.open_reaction_diffusion_inside, tmp_path, expected)


@pytest.mark.parametrize("is_pair", [False, True])
def test_brusselator_in_one_file_or_two(tmp_path: Path, is_pair: bool) -> None:
    force, field = numbers(5, 39), numbers(5, 39, 28, 28, seed=1)
    train: dict[str, Any] = {"inputs": force[:3], "outputs": field[:3]}
    test: dict[str, Any] = {"inputs": force[3:], "outputs": field[3:]}
    if is_pair:
        np.savez(tmp_path / "Brusselator_force_train.npz", **train)
        np.savez(tmp_path / "Brusselator_force_test.npz", **test)
    else:
        content = {f"{k}_train": v for k, v in train.items()}
        content |= {f"{k}_test": v for k, v in test.items()}
        np.savez(tmp_path / "Brusselator_force_train.npz", nx=np.array(28), **content)
    check(
        official.open_brusselator, tmp_path, rows({"force": force, "field": field}, slice(3, None))
    )


def glove_arrays() -> dict[str, Any]:
    return {
        "points": numbers(10, 17, 3),
        "previous": numbers(10, 17, 2, seed=1),
        "displacement": numbers(10, 17, 2, seed=2),
    }


@pytest.mark.parametrize("suffix", ["npz", "mat"])
def test_glove_keys_and_file_are_free(tmp_path: Path, suffix: str) -> None:
    arrays = glove_arrays()
    keys = {"points": "xyz", "previous": "u0", "displacement": "u1"}
    content: dict[str, Any] = {keys[name]: values for name, values in arrays.items()}
    if suffix == "npz":
        np.savez(tmp_path / "hand.npz", **content)
    else:
        scipy.io.savemat(tmp_path / "hand.mat", content)
    parts = (slice(7), slice(7, 8), slice(8, 10))
    expected = {
        split: {name: values[part] for name, values in arrays.items()}
        for split, part in zip(SPLITS, parts, strict=True)
    }
    check(official.glove(keys, f"hand.{suffix}"), tmp_path, expected)


def test_glove_arrays_must_agree(tmp_path: Path) -> None:
    arrays = glove_arrays()
    np.savez(tmp_path / "glove.npz", **(arrays | {"previous": arrays["previous"][:, 1:]}))
    with pytest.raises(DataError, match=r"agree in samples and points.*\(10, 16, 2\)"):
        official.open_glove(tmp_path, "train")
    with pytest.raises(DataError, match="keys are needed of points, previous, displacement"):
        official.glove({"points": "xy"})
    with pytest.raises(DataError, match=r"npz or a mat, got glove\.csv"):
        official.glove(file="glove.csv")


@pytest.mark.parametrize("name", OPENERS)
def test_missing_file_says_which_what_and_whence(tmp_path: Path, name: str) -> None:
    file, layout, origin = {
        "elasticity": ("Random_UnitCell_XY_10.npy", "XY 972 × 2 × n", "Geo-FNO"),
        "plasticity": ("plas_N987_T20.mat", "output n × 101 × 31 × 20 × 4", "Geo-FNO"),
        "airfoil": ("NACA_Cylinder_X.npy", "X n × 221 × 51", "Geo-FNO"),
        "pipe": ("Pipe_X.npy", "X n × 129 × 129", "Geo-FNO"),
        "navier_stokes": ("NavierStokes_V1e-5_N1200_T20.mat", "u n × 64 × 64 × 20", "the FNO data"),
        "darcy": ("piececonst_r421_N1024_smooth1.mat", "sol n × 421 × 421", "the FNO data"),
        "reaction_diffusion": ("data.mat", "f_vali n × 40 × 20", "Laplace-Neural-Operator"),
        "reaction_diffusion_inside": ("data.mat", "u_train n × 40 × 20", "Laplace-Neural-Operator"),
        "brusselator": ("Brusselator_force_train.npz", "inputs_train n × 39", "Google Drive"),
        "glove": ("glove.npz", "previous n × n × n", "no public file"),
    }[name]
    with pytest.raises(DataError) as caught:
        OPENERS[name](tmp_path, "train")
    assert all(part in str(caught.value) for part in (file, "is missing", layout, origin))


@pytest.mark.parametrize("name", OPENERS)
def test_unknown_split_names_the_known_ones(tmp_path: Path, name: str) -> None:
    np.savez(tmp_path / "glove.npz", **glove_arrays())
    with pytest.raises(DataError, match="'valid'; there are train, validation, test"):
        OPENERS[name](tmp_path, "valid")


@pytest.mark.parametrize("write", [scipy.io.savemat, write_mat73])
def test_wrong_shape_or_key_is_refused(tmp_path: Path, write: Callable[..., None]) -> None:
    path = tmp_path / "NavierStokes_V1e-5_N1200_T20.mat"
    for n, side, found in ((5, 32, "5 × 32 × 64 × 20"), (4, 64, "4 × 64 × 64 × 20")):
        write(path, {"u": numbers(n, side, 64, 20)})
        message = f"u must be n × 64 × 64 × 20 with n at least 5, got {found}.*FNO data"
        with pytest.raises(DataError, match=message):
            official.open_navier_stokes(tmp_path, "train")
    write(path, {"w": numbers(2, 2), "a": numbers(2, 2)})
    with pytest.raises(DataError, match="no array 'u': expected u n × 64 × 64 × 20, found a, w;"):
        official.open_navier_stokes(tmp_path, "train")


def test_npy_and_npz_of_wrong_shape_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "Pipe_X.npy", numbers(5, 129, 128))
    with pytest.raises(DataError, match=r"X must be n × 129 × 129 .*, got 5 × 129 × 128; "):
        official.open_pipe(tmp_path, "test")
    path = tmp_path / "Brusselator_force_train.npz"
    np.savez(path, inputs_train=numbers(3, 38))
    with pytest.raises(DataError, match=r"inputs_train must be n × 39 .*, got 3 × 38; "):
        official.open_brusselator(tmp_path, "train")
    with pytest.raises(DataError, match=r"no array 'inputs_test': .* found inputs_train; "):
        official.open_brusselator(tmp_path, "test")


def test_pickles_are_refused(tmp_path: Path) -> None:
    objects = np.array([[None] * 39] * 3, dtype=object)
    np.savez(tmp_path / "Brusselator_force_train.npz", inputs_train=objects)
    with pytest.raises(DataError, match=r"cannot be read .*allow_pickle"):
        official.open_brusselator(tmp_path, "train")
    np.save(tmp_path / "Pipe_X.npy", objects)
    with pytest.raises(DataError, match=r"cannot be read .*Python objects"):
        official.open_pipe(tmp_path, "train")


@pytest.mark.parametrize("file", ["Pipe_X.npy", "Brusselator_force_train.npz", "data.mat"])
@pytest.mark.parametrize(
    "content", [b"", b"<html>not found</html>" * 50, b"\x89HDF\r\n\x1a\n" * 70]
)
def test_damaged_files_are_refused(tmp_path: Path, file: str, content: bytes) -> None:
    (tmp_path / file).write_bytes(content)
    name = {"P": "pipe", "B": "brusselator", "d": "reaction_diffusion"}[file[0]]
    with pytest.raises(DataError, match=f"{file} cannot be read"):
        OPENERS[name](tmp_path, "train")


def test_what_is_no_array_of_real_numbers_is_refused(tmp_path: Path) -> None:
    layout = Layout("some.mat", {"z": (None, 2)}, "nowhere")
    scipy.io.savemat(tmp_path / "some.mat", {"z": np.ones((3, 2)) * 1j})
    with pytest.raises(DataError, match="holds complex128, not real numbers"):
        read_array(tmp_path, layout, "z")
    with h5py.File(tmp_path / "some.mat", "w") as file:
        file.create_group("z")
    with pytest.raises(DataError, match="z is no array"):
        read_array(tmp_path, layout, "z")


def test_npy_of_float32_stays_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "some.npy", numbers(8, 3))
    values = read_array(tmp_path, Layout("some.npy", {"a": (None, 3)}, ""), "a", cut=(slice(2, 5),))
    base: Any = values
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert np.array_equal(values, numbers(8, 3)[2:5])


def real_folder() -> Path:
    """Where the real data.mat is, said by whoever has it."""
    folder = os.environ.get("AMO_REACTION_DIFFUSION")
    if not folder:
        pytest.skip("AMO_REACTION_DIFFUSION does not say where the reaction-diffusion set is")
    return Path(folder)


def test_real_reaction_diffusion_is_a_decaying_sine() -> None:
    folder = real_folder()
    splits = {name: official.open_reaction_diffusion(folder, name) for name in SPLITS}
    inside = {name: official.open_reaction_diffusion_inside(folder, name) for name in SPLITS}
    assert [len(split) for split in splits.values()] == [200, 50, 130]
    assert [len(split) for split in inside.values()] == [120, 40, 40]
    x, t = np.linspace(0, 2, 40), np.linspace(0, 1, 20)
    shape = np.sin(np.pi * x)[:, None] * np.exp(-0.05 * t)
    u, f = (splits["train"].arrays[name].astype(np.float64) for name in ("solution", "source"))
    amplitude = np.tensordot(u, shape, 2) / (shape**2).sum()
    assert np.linalg.norm(u - amplitude[:, None, None] * shape) < 1e-4 * np.linalg.norm(u)
    assert np.allclose(amplitude, 0.05 * np.arange(1, 201), rtol=1e-4)
    assert np.linalg.norm(u**2 - (np.pi**2 - 1) * u - f) < 1e-4 * np.linalg.norm(f)

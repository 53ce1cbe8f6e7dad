"""The paper's physics problems as values: on data recreated from the physics, or official files.

Data lie under one folder: ``python -m data_gen darcy`` writes data/darcy; official files are put,
or linked, into the folder that a problem names.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from amo.benchmarks import darcy_small, glove, official
from amo.benchmarks.readers import InTime, OnCloud, OnGrid, OnNodes, Windows, roll_out
from amo.data.batch import Batch
from amo.data.datasets import Dataset, ShardedDataset
from amo.data.format import Arrays
from amo.experiment import Problem

_FRAMES = InTime("vorticity")


def _windows(films: Dataset, split: str) -> Dataset:
    """Return whole films to test on, or windows of them to learn from."""
    return films if split == "test" else Windows(films, _FRAMES.name, _FRAMES.n_past + 1)


def open_films(folder: Path, split: str) -> Dataset:
    """Open trajectories made by data_gen."""
    return _windows(ShardedDataset(folder, split), split)


def open_official_films(folder: Path, split: str) -> Dataset:
    """Open the official trajectories."""
    return _windows(official.open_navier_stokes(folder, split), split)


def read_brusselator(arrays: Arrays) -> Batch:
    """Read every second node; the force at a time is repeated at all nodes of that time."""
    field = np.ascontiguousarray(arrays["field"][:, :, ::2, ::2])
    force = np.broadcast_to(arrays["force"][:, :, None, None], field.shape)
    on_grid = OnGrid(("force",), ("field",), (1.0, 1.0, 1.0))
    return on_grid({"force": np.ascontiguousarray(force), "field": field})


def read_plasticity(arrays: Arrays) -> Batch:
    """Read the die's profile along x, at all frames and heights; outputs are x, y and displacement.

    Frames come first, as in all films on a grid.
    """
    field = torch.from_numpy(arrays["field"]).movedim(3, 1)
    die = torch.from_numpy(arrays["die"])[:, None, :, None].expand(field.shape[:-1])
    on_grid = OnGrid(("die",), ("die",), (1.0, 1.0, 1.0))
    batch = on_grid({"die": die.contiguous().numpy()})
    return replace(batch, values=field.flatten(1, 3))


def displacement_only(arrays: Arrays) -> Tensor:
    """Return the channels u_x and u_y: coordinates dominate the norm of the whole."""
    mask = torch.zeros(arrays["field"].shape, dtype=torch.bool)
    mask[..., 2:] = True
    return mask.flatten(1, 3)


def read_glove(arrays: Arrays) -> Batch:
    """Read the previous displacement, two channels, and the next one."""
    points, previous, displacement = (
        torch.from_numpy(arrays[name]) for name in ("points", "previous", "displacement")
    )
    return Batch(points=points, features=previous, values=displacement)


def read_small_darcy(arrays: Arrays) -> Batch:
    """Read the loader's points, features and values."""
    return Batch(**{name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()})


_DARCY = Problem(
    name="darcy",
    title="Darcy flow, two phases, 85²",
    folder="darcy",
    read=OnGrid(("coefficient",), ("solution",), (1.0, 1.0)),
    n_features=1,
    n_dimensions=2,
    grid=(85, 85),
)
_ELASTICITY = Problem(
    name="elasticity",
    title="stress around a void, 972 points",
    folder="elasticity",
    read=OnCloud((), ("stress",)),
    n_features=2,
    n_dimensions=2,
)
_NAVIER_STOKES = Problem(
    name="navier-stokes",
    title="Navier–Stokes, ν = 1e-5, frames 1–10 to 11–20, tested step by step",
    folder="navier-stokes",
    read=_FRAMES,
    n_features=10,
    n_dimensions=2,
    grid=(64, 64),
    is_periodic=True,
    open=open_films,
    predict=roll_out,
)
_PIPE = Problem(
    name="pipe",
    title="flow through bent pipes, 65²",
    folder="pipe",
    read=OnNodes("u_x"),
    n_features=2,
    n_dimensions=2,
    grid=(65, 65),
)
_AIRFOIL = Problem(
    name="airfoil",
    title="Mach number around wing sections, 221 × 51",
    folder="airfoil",
    read=OnNodes("mach"),
    n_features=2,
    n_dimensions=2,
    grid=(221, 51),
)
_REACTION_DIFFUSION = Problem(
    name="reaction-diffusion",
    title="reaction and diffusion, a random source",
    folder="reaction-diffusion",
    read=OnGrid(("source",), ("solution",), (2.0, 1.0)),
    n_features=1,
    n_dimensions=2,
    grid=(40, 20),
)
_BRUSSELATOR = Problem(
    name="brusselator",
    title="forced Brusselator, 39 × 14 × 14",
    folder="brusselator",
    read=read_brusselator,
    n_features=1,
    n_dimensions=3,
    grid=(39, 14, 14),
)
_ADVECTION = Problem(
    name="advection",
    title="advection with a weak spike at a high wavenumber, 512 points",
    folder="advection",
    read=OnGrid(("initial",), ("final",), (1.0,), is_periodic=True),
    n_features=1,
    n_dimensions=1,
    grid=(512,),
    is_periodic=True,
)
_ADVECTION_SPEEDS = Problem(
    name="advection-speeds",
    title="advection, each sample at its own speed, 256 points",
    folder="advection-speeds",
    read=OnGrid(("initial", "speed"), ("final",), (1.0,), is_periodic=True),
    n_features=2,
    n_dimensions=1,
    grid=(256,),
    is_periodic=True,
)
_HELMHOLTZ = Problem(
    name="helmholtz",
    title="waves with absorption, each sample at its own wavenumber, 256 points",
    folder="helmholtz",
    read=OnGrid(("source", "wavenumber"), ("field",), (1.0,), is_periodic=True),
    n_features=2,
    n_dimensions=1,
    grid=(256,),
    is_periodic=True,
)
_FRACTAL_DARCY = Problem(
    name="fractal-darcy",
    title="Darcy flow through rough rock, irregular points, k and f given",
    folder="fractal-darcy",
    read=OnCloud(("log_permeability", "source"), ("solution",)),
    n_features=2,
    n_dimensions=2,
)
_GLOVE = Problem(
    name="glove",
    title="displacement of a stretched sheet from step to step, synthetic",
    folder="glove",
    read=glove.read_step,
    n_features=4,
    n_dimensions=2,
    n_outputs=2,
    grid=(21, 21),
    open=glove.open_steps,
)
_PLASTICITY = Problem(
    name="plasticity",
    title="a die pressed into a block, 20 frames of 101 × 31",
    folder="plasticity",
    read=read_plasticity,
    n_features=1,
    n_dimensions=3,
    n_outputs=4,
    grid=(20, 101, 31),
    regions={"displacement": displacement_only},
)
REGENERATED = (
    _DARCY,
    _ELASTICITY,
    _NAVIER_STOKES,
    _PIPE,
    _AIRFOIL,
    _ADVECTION,
    _ADVECTION_SPEEDS,
    _HELMHOLTZ,
    _FRACTAL_DARCY,
    replace(
        _FRACTAL_DARCY,
        name="fractal-darcy-hidden",
        title="the same with k and f hidden, as the paper has it: no operator",
        read=OnCloud((), ("solution",)),
    ),
    _REACTION_DIFFUSION,
    _BRUSSELATOR,
    _GLOVE,
    _PLASTICITY,
)


def _of_files(
    problem: Problem,
    name: str,
    open_split: Callable[[Path, str], Dataset],
    *,
    title: str = "",
    folder: str = "",
) -> Problem:
    """Return the same problem on official files, in a folder named after it unless given."""
    return replace(
        problem,
        name=name,
        title=title or problem.title,
        folder=folder or name,
        open=open_split,
        origin="official",
    )


OFFICIAL = (
    Problem(
        name="darcy-small",
        title="neuralop's small Darcy, learned at 16², tested at 16² and 32²",
        folder="darcy-small",
        read=read_small_darcy,
        n_features=1,
        n_dimensions=2,
        grid=(16, 16),
        open=darcy_small.open_split,
        further={"test-32": (32, 32)},
        origin="official",
    ),
    _of_files(
        _REACTION_DIFFUSION,
        "reaction-diffusion-official",
        official.open_reaction_diffusion,
        title="LNO's reaction and diffusion, tested at another decay rate",
    ),
    _of_files(
        _REACTION_DIFFUSION,
        "reaction-diffusion-inside",
        official.open_reaction_diffusion_inside,
        title="the same, tested on training samples left out",
        folder="reaction-diffusion-official",
    ),
    _of_files(_DARCY, "darcy-official", official.open_darcy),
    _of_files(_ELASTICITY, "elasticity-official", official.open_elasticity),
    _of_files(_NAVIER_STOKES, "navier-stokes-official", open_official_films),
    _of_files(_BRUSSELATOR, "brusselator-official", official.open_brusselator),
    _of_files(_PLASTICITY, "plasticity-official", official.open_plasticity),
    replace(
        _of_files(_AIRFOIL, "airfoil-official", official.open_airfoil),
        read=OnCloud((), ("mach",)),
    ),
    Problem(
        name="pipe-official",
        title="flow through bent pipes, 129²",
        folder="pipe-official",
        read=OnCloud((), ("velocity",)),
        n_features=2,
        n_dimensions=2,
        grid=(129, 129),
        open=official.open_pipe,
        origin="official",
    ),
    Problem(
        name="glove-official",
        title="displacement of a stretched glove, measured",
        folder="glove-official",
        read=read_glove,
        n_features=2,
        n_dimensions=2,
        n_outputs=2,
        open=official.open_glove,
        origin="official",
    ),
)
PROBLEMS: Mapping[str, Problem] = {problem.name: problem for problem in (*REGENERATED, *OFFICIAL)}

# The paper's table, on the official files and other hardware: relative L2 by problem and model.
# MWT is printed WMT there.
QUOTED: Mapping[str, Mapping[str, float]] = {
    "elasticity": {
        "fno": 0.0229, "u-fno": 0.0239, "f-fno": 0.0263, "lno": 0.0052, "ono": 0.0118,
        "mwt": 0.0359, "galerkin": 0.0240, "lsm": 0.0218, "oformer": 0.0183,
        "transolver": 0.0062, "transolver++": 0.0064, "lamo": 0.0050, "amo": 0.0043,
    },
    "plasticity": {
        "fno": 0.0074, "u-fno": 0.0039, "f-fno": 0.0047, "lno": 0.0029, "ono": 0.0048,
        "mwt": 0.0076, "galerkin": 0.0120, "lsm": 0.0025, "oformer": 0.0017,
        "transolver": 0.0013, "transolver++": 0.0014, "lamo": 0.0007, "amo": 0.0006,
    },
    "airfoil": {
        "fno": 0.0138, "u-fno": 0.0269, "f-fno": 0.0078, "lno": 0.0051, "ono": 0.0061,
        "mwt": 0.0075, "galerkin": 0.0118, "lsm": 0.0059, "oformer": 0.0183,
        "transolver": 0.0053, "transolver++": 0.0051, "lamo": 0.0041, "amo": 0.0020,
    },
    "pipe": {
        "fno": 0.0067, "u-fno": 0.0056, "f-fno": 0.0070, "lno": 0.0026, "ono": 0.0052,
        "mwt": 0.0077, "galerkin": 0.0098, "lsm": 0.0050, "oformer": 0.0168,
        "transolver": 0.0047, "transolver++": 0.0027, "lamo": 0.0038, "amo": 0.0023,
    },
    "navier-stokes": {
        "fno": 0.0417, "u-fno": 0.2231, "f-fno": 0.2322, "lno": 0.0845, "ono": 0.1195,
        "mwt": 0.1541, "galerkin": 0.1401, "lsm": 0.1535, "oformer": 0.1705,
        "transolver": 0.0879, "transolver++": 0.1010, "lamo": 0.0460, "amo": 0.0278,
    },
    "darcy": {
        "fno": 0.0052, "u-fno": 0.0183, "f-fno": 0.0077, "lno": 0.0049, "ono": 0.0076,
        "mwt": 0.0082, "galerkin": 0.0084, "lsm": 0.0065, "oformer": 0.0124,
        "transolver": 0.0059, "transolver++": 0.0089, "lamo": 0.0039, "amo": 0.0021,
    },
}  # fmt: skip

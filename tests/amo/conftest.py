"""Models and data of a size for tests."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from amo import checkpoint
from amo.baselines.ffno import FFNOConfig
from amo.baselines.fno import FNOConfig
from amo.baselines.galerkin import GalerkinConfig
from amo.baselines.ifno import IFNOConfig
from amo.baselines.lamo import LaMOConfig
from amo.baselines.lno import LNOConfig
from amo.baselines.lsm import LSMConfig
from amo.baselines.mwt import MWTConfig
from amo.baselines.oformer import OFormerConfig
from amo.baselines.ono import ONOConfig
from amo.baselines.set_encoder import SetEncoderConfig
from amo.baselines.transolver import TransolverConfig
from amo.baselines.ufno import UFNOConfig
from amo.checkpoint import Recipe
from amo.cloud_model import CloudAMOConfig
from amo.data.batch import Batch
from amo.data.datasets import ArrayDataset
from amo.grid_model import GridAMOConfig
from amo.model_config import AMOConfig
from amo.operator import Operator

TINY = AMOConfig(
    n_features=2, n_dimensions=2, width=16, n_tokens=16, n_poles=4, n_blocks=2, n_heads=2,
    state_size=4,
)  # fmt: skip
TINY_RIVAL = {"n_features": 2, "n_dimensions": 2, "width": 16, "n_heads": 2}
TINY_GRID = {
    "n_features": 2, "n_dimensions": 2, "width": 8, "grid": (6, 4), "modes": 2, "n_layers": 2,
    "padding": 1,
}  # fmt: skip
TINY_TOKENS = {
    "n_features": 2, "n_dimensions": 2, "width": 8, "grid": (6, 4), "n_blocks": 2, "n_heads": 2,
    "n_poles": 3,
}  # fmt: skip
TINY_CLOUD = {
    "n_features": 2, "n_dimensions": 2, "width": 8, "tokens": (3, 4), "n_blocks": 2, "n_heads": 2,
    "n_poles": 3,
}  # fmt: skip
OPERATORS = {
    "amo": Recipe(kind="amo", config=TINY),
    "amo-position": Recipe(kind="amo", config=replace(TINY, lifting="position")),
    "amo-multi": Recipe(kind="amo", config=replace(TINY, mixer="multi", poles="learned-static")),
    "amo-kernel": Recipe(
        kind="amo", config=replace(TINY, mixer="none", basis="kernel", coefficients="input")
    ),
    "amo-modulated": Recipe(
        kind="amo", config=replace(TINY, decoder="modulated", trunk_width=12, trunk_depth=2)
    ),
    "amo-shifted": Recipe(
        kind="amo",
        config=replace(
            TINY,
            decoder="modulated",
            trunk_width=12,
            trunk_depth=3,
            modulation="shift",
            direct=False,
        ),
    ),
    "amo-mixed": Recipe(
        kind="amo",
        config=replace(TINY, decoder="modulated", trunk_width=12, trunk_depth=3, n_mixed=2),
    ),
    "set-encoder": Recipe(
        kind="set-encoder",
        config=SetEncoderConfig(
            n_features=2, n_dimensions=2, width=8, trunk_width=12, trunk_depth=2
        ),
    ),
    "seeing-amo": Recipe(kind="amo", config=replace(TINY, sees_input=True)),
    "lno": Recipe(kind="lno", config=LNOConfig(**TINY_RIVAL, n_modes=6, n_layers=2)),
    "transolver": Recipe(
        kind="transolver", config=TransolverConfig(**TINY_RIVAL, n_slices=5, n_layers=2)
    ),
    "transolver++": Recipe(
        kind="transolver++", config=TransolverConfig(**TINY_RIVAL, n_slices=5, n_layers=2)
    ),
    "lamo": Recipe(
        kind="lamo", config=LaMOConfig(**TINY_RIVAL, n_slices=5, n_layers=2, state_size=4)
    ),
    "galerkin": Recipe(kind="galerkin", config=GalerkinConfig(**TINY_RIVAL, n_layers=2)),
    "ono": Recipe(kind="ono", config=ONOConfig(**TINY_RIVAL, n_functions=5, n_layers=2)),
    "oformer": Recipe(
        kind="oformer", config=OFormerConfig(**TINY_RIVAL, latent_width=12, n_layers=2)
    ),
    "fno": Recipe(kind="fno", config=FNOConfig(**TINY_GRID)),
    "f-fno": Recipe(kind="f-fno", config=FFNOConfig(**TINY_GRID)),
    "u-fno": Recipe(kind="u-fno", config=UFNOConfig(**TINY_GRID)),
    "mwt": Recipe(
        kind="mwt",
        config=MWTConfig(
            n_features=2, n_dimensions=2, grid=(6, 4), order=2, multiplicity=2, modes=2, n_layers=2
        ),
    ),
    "lsm": Recipe(
        kind="lsm",
        config=LSMConfig(**{**TINY_RIVAL, "width": 8}, grid=(6, 4), n_scales=2, patch=2),
    ),
    "ifno": Recipe(
        kind="ifno",
        config=IFNOConfig(
            n_features=2, n_dimensions=2, grid=(6, 4), width=8, modes=2, depth=3, padding=1
        ),
    ),
    "cloud-amo": Recipe(kind="amo-cloud", config=CloudAMOConfig(**TINY_CLOUD)),
    "cloud-amo-adaptive": Recipe(
        kind="amo-cloud", config=CloudAMOConfig(**TINY_CLOUD, poles="adaptive")
    ),
    "grid-amo": Recipe(kind="amo-grid", config=GridAMOConfig(**TINY_TOKENS)),
    "grid-amo-patched": Recipe(
        kind="amo-grid", config=GridAMOConfig(**TINY_TOKENS, patch=2, basis="kernel", directions=1)
    ),
    "grid-amo-fixed": Recipe(
        kind="amo-grid",
        config=GridAMOConfig(**TINY_TOKENS, poles="fixed", is_periodic=True, is_gated=False),
    ),
    "grid-amo-adaptive": Recipe(
        kind="amo-grid",
        config=GridAMOConfig(
            **TINY_TOKENS, poles="adaptive", delays="adaptive", is_periodic=(True, False)
        ),
    ),
    "grid-amo-scanning": Recipe(
        kind="amo-grid", config=GridAMOConfig(**TINY_TOKENS, mixer="scan", state_size=3)
    ),
    "cloud-amo-scanning": Recipe(
        kind="amo-cloud", config=CloudAMOConfig(**TINY_CLOUD, mixer="scan", directions=1)
    ),
}
N_POINTS = 24  # of the grid
GRID_ONLY = (
    "fno",
    "f-fno",
    "u-fno",
    "mwt",
    "lsm",
    "ifno",
    "grid-amo",
    "grid-amo-patched",
    "grid-amo-fixed",
    "grid-amo-adaptive",
    "grid-amo-scanning",
)
AT_THEIR_POINTS = (
    "seeing-amo",
    "cloud-amo",
    "cloud-amo-adaptive",
    "cloud-amo-scanning",
    "transolver",
    "transolver++",
    "lamo",
    "galerkin",
    "ono",
)
AT_QUERIES = tuple(name for name in OPERATORS if name not in (*GRID_ONLY, *AT_THEIR_POINTS))


@pytest.fixture
def tiny() -> AMOConfig:
    return TINY


@pytest.fixture(params=OPERATORS)
def any_recipe(request: pytest.FixtureRequest) -> Recipe:
    """Every model that the contract holds for."""
    return OPERATORS[request.param]


@pytest.fixture(params=[name for name in OPERATORS if name.startswith("amo")])
def recipe(request: pytest.FixtureRequest) -> Recipe:
    """Every form of AMO."""
    return OPERATORS[request.param]


@pytest.fixture(params=AT_QUERIES)
def query_recipe(request: pytest.FixtureRequest) -> Recipe:
    """Models that answer anywhere."""
    return OPERATORS[request.param]


@pytest.fixture(params=AT_THEIR_POINTS)
def point_recipe(request: pytest.FixtureRequest) -> Recipe:
    """Models that take any points and answer there."""
    return OPERATORS[request.param]


@pytest.fixture(params=GRID_ONLY)
def grid_recipe(request: pytest.FixtureRequest) -> Recipe:
    """Models that know one grid."""
    return OPERATORS[request.param]


@pytest.fixture
def build() -> Callable[..., Operator]:
    def make(recipe: Recipe, seed: int = 0) -> Operator:
        torch.manual_seed(seed)
        operator = checkpoint.build(recipe)
        operator.fit_normalisers(lambda: [sample(3, 30)])
        return operator.eval()

    return make


def sample(n: int, n_points: int, seed: int = 0) -> Batch:
    """Random functions at random points; the answer is a smooth functional of them."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(n, n_points, 2, generator=generator)
    size = torch.rand(n, 1, 1, generator=generator) + 0.5
    features = torch.cat([size * points[..., :1], points.square().sum(-1, keepdim=True)], -1)
    values = size * torch.sin(points.sum(-1, keepdim=True)) + size
    return Batch(points=points, features=features, values=values)


@pytest.fixture
def samples() -> Callable[..., Batch]:
    return sample


@pytest.fixture
def dataset() -> Callable[..., ArrayDataset]:
    def make(n: int, seed: int = 0) -> ArrayDataset:
        batch = sample(n, 20, seed)

        def array(tensor: Tensor) -> np.ndarray:
            return tensor.numpy()

        return ArrayDataset(
            {name: array(getattr(batch, name)) for name in ("points", "features", "values")}
        )

    return make


@pytest.fixture(scope="session")
def diffusion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training set of variable-coefficient diffusion."""
    from data_gen.builder import build as make
    from data_gen.toys import DiffusionSet

    folder = tmp_path_factory.mktemp("sets") / "diffusion"
    make(DiffusionSet(), "diffusion", folder)
    return folder

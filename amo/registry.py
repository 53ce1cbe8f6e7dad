"""Models by name. Importing this loads none of them: each is loaded when first asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from torch import nn

from amo.errors import SettingsError


class Kind(NamedTuple):
    """A model class and its configuration."""

    model: type[nn.Module]
    config: type[Any]


# The module of each model, and the names of its class and its configuration there.
MODELS: Mapping[str, tuple[str, str, str]] = {
    "amo": ("amo.model", "AMO", "AMOConfig"),
    "amo-grid": ("amo.grid_model", "GridAMO", "GridAMOConfig"),
    "amo-cloud": ("amo.cloud_model", "CloudAMO", "CloudAMOConfig"),
    "mlp": ("amo.baselines.mlp", "PointwiseMLP", "PointwiseMLPConfig"),
    "set-encoder": ("amo.baselines.set_encoder", "SetEncoder", "SetEncoderConfig"),
    "fno": ("amo.baselines.fno", "FNO", "FNOConfig"),
    "f-fno": ("amo.baselines.ffno", "FFNO", "FFNOConfig"),
    "u-fno": ("amo.baselines.ufno", "UFNO", "UFNOConfig"),
    "lno": ("amo.baselines.lno", "LNO", "LNOConfig"),
    "transolver": ("amo.baselines.transolver", "Transolver", "TransolverConfig"),
    "transolver++": ("amo.baselines.transolver_plus", "TransolverPlus", "TransolverConfig"),
    "lamo": ("amo.baselines.lamo", "LaMO", "LaMOConfig"),
    "galerkin": ("amo.baselines.galerkin", "GalerkinTransformer", "GalerkinConfig"),
    "ono": ("amo.baselines.ono", "ONO", "ONOConfig"),
    "oformer": ("amo.baselines.oformer", "OFormer", "OFormerConfig"),
    "mwt": ("amo.baselines.mwt", "MWT", "MWTConfig"),
    "lsm": ("amo.baselines.lsm", "LSM", "LSMConfig"),
    "ifno": ("amo.baselines.ifno", "IFNO", "IFNOConfig"),
}


def kind_of(name: str) -> Kind:
    """Return the model of that name."""
    if name not in MODELS:
        raise SettingsError(f"no model {name!r}; there are {', '.join(MODELS)}")
    module, model, config = MODELS[name]
    found = import_module(module)
    return Kind(getattr(found, model), getattr(found, config))

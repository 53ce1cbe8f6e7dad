"""Adaptive Mamba Neural Operators: the operator, its rivals, and one loop that trains them all."""

from typing import TYPE_CHECKING

from amo.lazy import front_door

if TYPE_CHECKING:
    from amo.checkpoint import load as load
    from amo.checkpoint import save as save
    from amo.cloud_model import CloudAMO as CloudAMO
    from amo.cloud_model import CloudAMOConfig as CloudAMOConfig
    from amo.data.batch import Batch as Batch
    from amo.errors import CheckpointError as CheckpointError
    from amo.errors import DataError as DataError
    from amo.errors import SettingsError as SettingsError
    from amo.experiment import Experiment as Experiment
    from amo.experiment import train as train
    from amo.grid_model import GridAMO as GridAMO
    from amo.grid_model import GridAMOConfig as GridAMOConfig
    from amo.model import AMO as AMO
    from amo.model_config import AMOConfig as AMOConfig
    from amo.operator import Operator as Operator
    from amo.training.loop import TrainingConfig as TrainingConfig
    from amo.training.loop import fit as fit

    __version__: str

__all__ = [
    "AMO",
    "AMOConfig",
    "Batch",
    "CheckpointError",
    "CloudAMO",
    "CloudAMOConfig",
    "DataError",
    "Experiment",
    "GridAMO",
    "GridAMOConfig",
    "Operator",
    "SettingsError",
    "TrainingConfig",
    "__version__",
    "fit",
    "load",
    "save",
    "train",
]
__getattr__, __dir__ = front_door(
    __name__,
    {
        "AMO": "amo.model",
        "AMOConfig": "amo.model_config",
        "Batch": "amo.data.batch",
        "CheckpointError": "amo.errors",
        "DataError": "amo.errors",
        "CloudAMO": "amo.cloud_model",
        "CloudAMOConfig": "amo.cloud_model",
        "GridAMO": "amo.grid_model",
        "GridAMOConfig": "amo.grid_model",
        "Experiment": "amo.experiment",
        "Operator": "amo.operator",
        "SettingsError": "amo.errors",
        "TrainingConfig": "amo.training.loop",
        "fit": "amo.training.loop",
        "load": "amo.checkpoint",
        "save": "amo.checkpoint",
        "train": "amo.experiment",
    },
)

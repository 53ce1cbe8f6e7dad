"""Adaptive Mamba Neural Operators: the operator, its rivals, and one loop that trains them all."""

from typing import TYPE_CHECKING

from amo.lazy import front_door

if TYPE_CHECKING:
    from amo.batch import Batch as Batch
    from amo.checkpoint import load as load
    from amo.checkpoint import save as save
    from amo.errors import CheckpointError as CheckpointError
    from amo.errors import SettingsError as SettingsError
    from amo.model import AMO as AMO
    from amo.model import AMOConfig as AMOConfig
    from amo.operator import Operator as Operator
    from amo.training import TrainingConfig as TrainingConfig
    from amo.training import fit as fit

    __version__: str

__all__ = [
    "AMO",
    "AMOConfig",
    "Batch",
    "CheckpointError",
    "Operator",
    "SettingsError",
    "TrainingConfig",
    "__version__",
    "fit",
    "load",
    "save",
]
__getattr__, __dir__ = front_door(
    __name__,
    {
        "AMO": "amo.model",
        "AMOConfig": "amo.model",
        "Batch": "amo.batch",
        "CheckpointError": "amo.errors",
        "Operator": "amo.operator",
        "SettingsError": "amo.errors",
        "TrainingConfig": "amo.training",
        "fit": "amo.training",
        "load": "amo.checkpoint",
        "save": "amo.checkpoint",
    },
)

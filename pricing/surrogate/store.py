"""Where trained models are.

They are looked for in the folder that the environment variable ``AMO_MODELS`` names, or else inside
the installed package, or else in ``models`` of the checkout.
"""

import os
from pathlib import Path


def models_folder() -> Path:
    """Return where the models belong, whether or not they exist."""
    if named := os.environ.get("AMO_MODELS"):
        return Path(named)
    shipped = Path(__file__).parents[1] / "shipped_models"
    return shipped if shipped.is_dir() else Path(__file__).parents[2] / "models"

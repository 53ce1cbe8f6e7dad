"""Where trained models are.

They are looked for in the folder that the environment variable ``AMO_MODELS`` names, or else inside
the installed package, or else in ``models`` of the checkout.
"""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from amo.files import sha256_of


def models_folder() -> Path:
    """Return where the models belong, whether or not they exist."""
    if named := os.environ.get("AMO_MODELS"):
        return Path(named)
    shipped = Path(__file__).parents[1] / "shipped_models"
    return shipped if shipped.is_dir() else Path(__file__).parents[2] / "models"


def models_hash() -> str:
    """Return the SHA-256 of everything in the models' folder that decides a price."""
    return _hash_of(models_folder())


@lru_cache(maxsize=4)
def _hash_of(folder: Path) -> str:
    files = [*folder.glob("*/*.json"), *folder.glob("*/*.safetensors")]
    lines = [f"{path.relative_to(folder).as_posix()} {sha256_of(path)}" for path in sorted(files)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()

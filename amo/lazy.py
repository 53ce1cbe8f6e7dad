"""What is loaded late: modules when first used, and packages that not everybody needs.

``import amo`` must not load torch, nor ``python -m pricing --help`` pandas: a package names what it
offers and where that is, and Python finds it through the package's ``__getattr__`` (PEP 562).
"""

from collections.abc import Callable, Mapping
from importlib import import_module

# Packages of the extras in pyproject.toml, by what is imported.
_EXTRAS = {
    "streamlit": "app",
    "plotly": "app",
    "matplotlib": "train",
    "skfem": "train",
    "h5py": "train",
    "distributed": "cluster",
    "playwright": "dev",
    "websockets": "dev",
}


def way_out(error: ModuleNotFoundError) -> str:
    """Return how to install a package of an extra; raise the error if no extra has it."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        raise error
    return f'this needs {package}: pip install "amo-pricing[{_EXTRAS[package]}]"'


def front_door(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``, given the module of each name."""

    def get(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415  # slow, and seldom asked for

            return version("amo-pricing")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return get, lambda: [*homes, "__version__"]

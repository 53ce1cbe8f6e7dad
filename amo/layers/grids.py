"""What every model on one regular grid asks of its settings and of its inputs."""

import math

from torch import Tensor

from amo.errors import SettingsError


def check_axes(grid: tuple[int, ...], n_dimensions: int) -> None:
    """Refuse a grid that has not one axis for each coordinate, one to three of them."""
    if len(grid) != n_dimensions or not 1 <= len(grid) <= 3:
        raise SettingsError(f"a grid of {n_dimensions} axes is needed (1 to 3), got {grid}")


def require_whole_grid(
    model: str, grid: tuple[int, ...], points: Tensor, queries: Tensor | None, mask: Tensor | None
) -> None:
    """Refuse anything but all points of the grid, in their order."""
    if queries is not None or mask is not None or points.shape[1] != math.prod(grid):
        raise SettingsError(
            f"{model} knows functions on the grid {grid} only: it takes all of its points, no "
            "queries and no padding"
        )

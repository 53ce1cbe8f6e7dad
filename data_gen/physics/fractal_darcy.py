"""Darcy flow through rough, channelled rock: -div(k grad u) = f, u zero on the edge.

k = exp(fractional Gaussian field) × channels × inclusions: Hurst exponent 0.15 to 0.3, wavenumbers
1 to 64, narrow conducting channels, and inclusions that hardly conduct. f is a weak background
with Gaussian sources and sinks. Samples are irregular points. Paper: only (points, u) are given, so
k and f are hidden and the map is not an operator; k and f are stored here as well, for a variant
in which it is. The paper solves by conjugate gradients; at this contrast, about 1e5, they take
thousands of iterations, so a sparse factorisation is used here. The system on the grid is itself
the problem: the rock is as rough as its cells, and on a grid twice as fine u moves by 0.5 to 4 %.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import fft
from scipy.ndimage import map_coordinates

from amo.arrays import FloatArray
from data_gen.dataset import Arrays, Check
from data_gen.physics import elliptic
from data_gen.sized import SampleSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HURST = (0.15, 0.3)
BAND = (1.0, 64.0)
_WIDTH = 0.008  # of a channel, about two cells of the default grid
_CHANNEL, _INCLUSION = 30.0, 0.05  # factors of k


@dataclass(frozen=True, kw_only=True)
class FractalDarcySet(SampleSet):
    """Irregular points with u, k and f there."""

    shard_size: ClassVar[int] = 50
    least: ClassVar[Mapping[str, int]] = {"points": 16, "cells": 16}

    train: int = 1000
    validation: int = 100
    test: int = 200
    points: int = 2048
    cells: int = 256

    @property
    def fields(self) -> Mapping[str, str]:
        """What each array of a sample holds."""
        return {
            "points": "x, y in the unit square, (points, 2)",
            "solution": "u there",
            "log_permeability": "ln k there",
            "source": "f there",
        }

    def sample(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Return one sample; its error is the relative residual of the linear system."""
        nodes = np.linspace(0.0, 1.0, self.cells + 1)
        log_k = log_permeability(rng, nodes)
        f = random_source(rng, nodes)
        k = elliptic.between_nodes(np.exp(log_k))
        u, residual = elliptic.factorise_and_solve(k, f[1:-1, 1:-1])
        points = rng.uniform(size=(self.points, 2))

        def there(field: FloatArray) -> FloatArray:
            return np.asarray(map_coordinates(field, self.cells * points.T, order=1))

        arrays = {
            "points": points,
            "solution": there(u),
            "log_permeability": there(log_k),
            "source": there(f),
        }
        return arrays, residual

    def check(self, arrays: Arrays, n_points: int, rng: np.random.Generator) -> list[Check]:
        """Make up to three samples again, and compare them and their residuals."""
        rows = rng.permutation(len(arrays["number"]))[: min(3, n_points)]
        residual = difference = 0.0
        for row in rows:
            own = np.random.default_rng([self.seed, int(arrays["number"][row])])
            again, error = self.sample(own)
            residual = max(residual, error)
            gap = np.abs(again["solution"] - arrays["solution"][row]).max()
            difference = max(difference, float(gap / np.abs(again["solution"]).max()))
        return [
            Check("residual", residual, 1e-10, len(rows), unit=""),
            Check("solution", difference, 1e-6, len(rows), unit=" of its largest"),
        ]

    def picture(self, arrays: Arrays) -> "Figure":
        """Draw u of four samples."""
        from data_gen.physics.previews import draw_clouds  # noqa: PLC0415  # plotly is slow

        return draw_clouds(arrays, "solution")


def log_permeability(rng: np.random.Generator, nodes: FloatArray) -> FloatArray:
    """Return ln k: a rough field of unit variance, channels across it, inclusions in it."""
    rough = rough_field(rng, len(nodes), rng.uniform(*HURST))
    x, y = np.meshgrid(nodes, nodes, indexing="ij")
    for _ in range(rng.integers(1, 4)):
        angle, offset = rng.uniform(0.0, np.pi), rng.uniform(-0.3, 0.3)
        along = (x - 0.5) * np.cos(angle) + (y - 0.5) * np.sin(angle)
        across = (y - 0.5) * np.cos(angle) - (x - 0.5) * np.sin(angle) - offset
        bend = 0.05 * np.sin(2.0 * np.pi * (rng.uniform(1.0, 3.0) * along + rng.uniform()))
        rough = rough + np.log(_CHANNEL) * np.exp(-0.5 * ((across - bend) / _WIDTH) ** 2)
    for _ in range(rng.integers(3, 9)):
        centre, radius = rng.uniform(0.1, 0.9, size=2), rng.uniform(0.02, 0.08)
        inside = (x - centre[0]) ** 2 + (y - centre[1]) ** 2 < radius**2
        rough = rough + np.log(_INCLUSION) * inside
    return np.asarray(rough)


def rough_field(rng: np.random.Generator, n: int, hurst: float) -> FloatArray:
    """Return a periodic field of unit variance, E|coefficient of k|² ∝ |k|^{-2H-2} in the band."""
    k = np.hypot(np.fft.fftfreq(n, 1.0 / n)[:, None], np.arange(n // 2 + 1))
    is_in = (k >= BAND[0]) & (k <= BAND[1])
    spread = np.where(is_in, np.maximum(k, 1.0) ** (-hurst - 1.0), 0.0)
    field = fft.irfft2(spread * fft.rfft2(rng.standard_normal((n, n))), s=(n, n))
    return np.asarray(field / field.std())


def random_source(rng: np.random.Generator, nodes: FloatArray) -> FloatArray:
    """Return a background of 0.1 and several narrow sources and sinks."""
    f = np.full((len(nodes), len(nodes)), 0.1)
    for _ in range(rng.integers(3, 8)):
        centre, width = rng.uniform(0.15, 0.85, size=2), rng.uniform(0.01, 0.03)
        bumps = [np.exp(-0.5 * ((nodes - c) / width) ** 2) for c in centre]
        strength = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5) / (2.0 * np.pi * width**2)
        f += strength * np.outer(*bumps)
    return f

"""Multiwavelet operator (Gupta et al., 2021; MWT, also printed WMT), on a regular grid only.

Every cell of the grid holds the coefficients of k Legendre polynomials along each axis. Halving the
grid splits them into the coefficients of the same polynomials on cells twice as long, s, and those
of the multiwavelets that are missing then, d. At each scale three kernels act, A: d → d, B: s → d
and C: d → s, and a linear map T at the coarsest; then the scales are put together again. All scales
share the kernels, so the weights know no grid.

Paper: the coarsest scale has one cell. It has two along the shortest axis here, the fewest on which
a mode besides the mean exists. In more than one dimension every product of a polynomial and a
multiwavelet is kept, so that nothing is lost without kernels; the products share a kernel, and the
linear map behind it tells them apart.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.polynomial import legendre
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from amo.baselines.grid import ChannelsFirst, GridModel, SpectralConvolution, check_grid
from amo.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class MWTConfig:
    """Sizes of the model.

    Attributes
    ----------
    order
        k, how many polynomials a cell has along an axis: degrees 0 to k - 1.
    multiplicity
        Functions that are decomposed side by side; each has order^n_dimensions channels.
    modes
        Of each sign along each axis, in the kernels of a scale that is long enough.
    n_layers
        Decompositions one after another.
    """

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    grid: tuple[int, ...]
    n_outputs: int = 1
    order: int = 4
    multiplicity: int = 4
    modes: int = 12
    n_layers: int = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", check_grid(self, self.modes))
        if min(self.order, self.multiplicity, self.n_layers) < 1:
            raise SettingsError(
                "order, multiplicity and n_layers must be at least 1, got "
                f"{self.order}, {self.multiplicity} and {self.n_layers}"
            )

    @property
    def width(self) -> int:
        """Channels of a cell."""
        return self.multiplicity * self.order**self.n_dimensions


def multiwavelet_filters(order: int) -> NDArray[np.float64]:
    """Return the orthogonal filters (2, k, 2, k) of Legendre multiwavelets with k polynomials.

    On a cell [0, 1], φ_i(x) = √(2i + 1) P_i(2x - 1). Its halves h = 0, 1 have √2 φ_j(2x - h).
    ``filters[0, i, h, j]`` is the product of φ_i with those, ``filters[1, i, h, j]`` that of ψ_i,
    the part of φ_{k+i} that is orthogonal to φ_0 … φ_{k-1} and to all earlier ψ on the halves
    (Alpert, 1993): so ψ_i has k + i vanishing moments. Gram–Schmidt on the columns below is a QR
    decomposition, and the quadrature is exact: the products have degree 3k - 2 at most, 2k Gauss
    nodes integrate 4k - 1.
    """
    nodes, weights = legendre.leggauss(2 * order)
    local = _polynomials(0.5 * (nodes + 1.0), order)
    products = np.empty((2, order, 2 * order))  # half, polynomial on it, polynomial on the cell
    for half in (0, 1):
        whole = _polynomials(0.25 * (nodes + 1.0) + 0.5 * half, 2 * order)
        products[half] = np.einsum("n,jn,in->ji", 0.5 * weights / np.sqrt(2.0), local, whole)
    basis, triangle = np.linalg.qr(products.reshape(2 * order, 2 * order))
    signed = basis * np.sign(np.diag(triangle))  # QR leaves signs open: Gram–Schmidt's are positive
    return np.ascontiguousarray(signed.T).reshape(2, order, 2, order)


def joint_filters(order: int, n_dimensions: int) -> NDArray[np.float64]:
    """Return the orthogonal matrix from 2^d cells of k^d coefficients to 2^d parts of as many.

    The first part is made of polynomials along every axis, the others of at least one ψ.
    """
    one = multiwavelet_filters(order)
    joint: NDArray[np.float64] = np.ones(())
    for _ in range(n_dimensions):
        joint = np.multiply.outer(joint, one)
    grouped = [axis for kind in range(4) for axis in range(kind, joint.ndim, 4)]
    size = (2 * order) ** n_dimensions
    return joint.transpose(grouped).reshape(size, size)


def decompose(x: Tensor, filters: Tensor) -> Tensor:
    """Return the parts (batch, 2^d, channels, *grid / 2) of (batch, channels, *grid); s is first.

    Channels are (multiplicity, k^d), and ``filters`` are joint ones.
    """
    n = x.ndim - 2
    x = x.unflatten(1, (-1, len(filters) >> n))
    for axis in reversed(range(3, 3 + n)):
        x = x.unflatten(axis, (-1, 2))
    cells, halves = range(3, 3 + 2 * n, 2), range(4, 4 + 2 * n, 2)
    parts = x.permute(0, 1, *cells, *halves, 2).flatten(2 + n) @ filters.T
    parts = parts.unflatten(-1, (1 << n, -1)).movedim((-2, -1), (1, 3))
    return parts.flatten(2, 3)


def reconstruct(parts: Tensor, filters: Tensor) -> Tensor:
    """Undo :func:`decompose`."""
    n = parts.ndim - 3
    x = parts.unflatten(2, (-1, len(filters) >> n)).movedim((1, 3), (-2, -1))
    x = x.flatten(-2) @ filters  # orthogonal: the inverse is the transpose
    x = x.unflatten(-1, (*[2] * n, -1))
    pairs = [axis for k in range(n) for axis in (2 + k, 2 + n + k)]
    x = x.permute(0, 1, 2 + 2 * n, *pairs)
    for axis in range(3, 3 + n):
        x = x.flatten(axis, axis + 1)
    return x.flatten(1, 2)


class PartKernel(nn.Module):
    """A spectral convolution of every part, GELU, and a linear map of all parts at a cell."""

    def __init__(self, config: MWTConfig, n_from: int, n_to: int) -> None:
        super().__init__()
        axes = tuple(range(-config.n_dimensions, 0))
        self.spectral = SpectralConvolution(config.width, config.modes, axes)
        self.mix = ChannelsFirst(nn.Linear(n_from * config.width, n_to * config.width))
        self.n_to = n_to

    def forward(self, parts: Tensor) -> Tensor:
        """Map (batch, n_from, width, *grid) to (batch, n_to, width, *grid)."""
        filtered = functional.gelu(self.spectral(parts.flatten(0, 1)))
        together = filtered.unflatten(0, parts.shape[:2]).flatten(1, 2)
        return self.mix(together).unflatten(1, (self.n_to, -1))


class MultiwaveletLayer(nn.Module):
    """Decompose, A d + B s and C d at every scale, T at the coarsest, reconstruct."""

    filters: Tensor

    def __init__(self, config: MWTConfig, *, is_last: bool) -> None:
        super().__init__()
        self.is_last = is_last
        filters = joint_filters(config.order, config.n_dimensions)
        dtype = torch.get_default_dtype()
        self.register_buffer("filters", torch.tensor(filters, dtype=dtype), persistent=False)
        n_details = (1 << config.n_dimensions) - 1
        self.from_details = PartKernel(config, n_details, n_details)
        self.details_from_s = PartKernel(config, 1, n_details)
        self.s_from_details = PartKernel(config, n_details, 1)
        self.coarsest = ChannelsFirst(nn.Linear(config.width, config.width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, width, *grid), whose axes are powers of two from 4 on."""
        scales = []
        while min(x.shape[2:]) > 2:
            parts = decompose(x, self.filters.to(x.dtype))
            s, details = parts[:, :1], parts[:, 1:]
            new = self.from_details(details) + self.details_from_s(s)
            scales.append((self.s_from_details(details), new))
            x = s.squeeze(1)
        x = self.coarsest(x)
        for s, details in reversed(scales):
            parts = torch.cat([x.unsqueeze(1) + s, details], dim=1)
            x = reconstruct(parts, self.filters.to(x.dtype))
        return x if self.is_last else functional.gelu(x)


class MWT(GridModel):
    """The operator; zeros fill the grid up to powers of two."""

    def __init__(self, config: MWTConfig) -> None:
        n = config.n_layers
        layers = (MultiwaveletLayer(config, is_last=i == n - 1) for i in range(n))
        super().__init__(config, layers, tuple(power_of_two(length) for length in config.grid))


def power_of_two(n: int) -> int:
    """Return the smallest power of two that is not below n, and at least 4: a scale to halve."""
    return max(4, 1 << (n - 1).bit_length())


def _polynomials(x: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return φ_0 … φ_{n-1} at points of [0, 1], (n, points)."""
    sizes = np.sqrt(2.0 * np.arange(n) + 1.0)
    return (legendre.legvander(2.0 * x - 1.0, n - 1) * sizes).T

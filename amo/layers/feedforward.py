"""Pointwise networks: the multilayer perceptron and the positional encoding network (PEN)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class MLP(nn.Module):
    """Linear, GELU, linear: the paper's MLP and FFN."""

    def __init__(self, n_inputs: int, n_hidden: int, n_outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(n_inputs, n_hidden)
        self.last = nn.Linear(n_hidden, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., n_inputs) to (..., n_outputs)."""
        return self.last(self.hidden(x))

    def hidden(self, x: Tensor) -> Tensor:
        """Return what the last layer maps, (..., n_hidden)."""
        return functional.gelu(self.first(x))


class PositionEncoding(nn.Module):
    """PEN: an MLP on coordinates and their sines and cosines at octaves of half a wave.

    Parameters
    ----------
    n_dimensions
        Coordinates of a point, scaled to [-1, 1].
    width
        Size of the embedding.
    n_octaves
        Wavelengths 4, 2, 1, … of the box's half side.
    """

    def __init__(self, n_dimensions: int, width: int, n_octaves: int = 4) -> None:
        super().__init__()
        self.n_octaves = n_octaves
        self.network = MLP(n_dimensions * (1 + 2 * n_octaves), width, width)

    def forward(self, points: Tensor) -> Tensor:
        """Embed points (..., n_dimensions) as (..., width)."""
        octaves = torch.arange(self.n_octaves, device=points.device, dtype=points.dtype)
        phases = (points.unsqueeze(-1) * (0.5 * math.pi * 2.0**octaves)).flatten(-2)
        return self.network(torch.cat([points, torch.sin(phases), torch.cos(phases)], dim=-1))


def anchors(n_anchors: int, n_dimensions: int) -> Tensor:
    """Return well-spread points of [-1, 1]^d.

    Where the count is a d-th power, a cell-centred grid traversed back and forth, so that
    neighbours in order are neighbours in space; where not, the Kronecker sequence of the
    generalised golden ratio, sorted along the first axis.
    """
    side = round(n_anchors ** (1.0 / n_dimensions))
    if side**n_dimensions == n_anchors:
        index = torch.arange(n_anchors)
        columns = []
        for axis in range(n_dimensions):
            digit = index // side ** (n_dimensions - 1 - axis)
            turn = digit // side % 2  # every second line runs backwards
            digit = digit % side
            columns.append(torch.where(turn == 1, side - 1 - digit, digit))
        return (torch.stack(columns, dim=-1) + 0.5) * (2.0 / side) - 1.0
    ratio = 2.0
    for _ in range(60):  # the root of x^{d+1} = x + 1
        ratio = (1.0 + ratio) ** (1.0 / (n_dimensions + 1))
    steps = torch.tensor([ratio ** -(k + 1) for k in range(n_dimensions)], dtype=torch.float64)
    points = (0.5 + torch.arange(n_anchors, dtype=torch.float64).unsqueeze(-1) * steps) % 1.0
    return (2.0 * points[points[:, 0].argsort()] - 1.0).float()


def anchor_spacing(n_anchors: int, n_dimensions: int) -> float:
    """Return the side of the cell that one anchor has in [-1, 1]^d."""
    return 2.0 / n_anchors ** (1.0 / n_dimensions)

"""AMO on a cloud of points: the blocks of AMO on a grid, filtering on tokens that points attend to.

Tokens stand on a lattice over [-1, 1]^d. A point attends to the tokens around it,

    w_nm = softmax_m(-β |x_n - y_m|² / spacing²),

with a learned sharpness β. In every block a function at the points is averaged by these weights on
the tokens, filtered there along every axis, and interpolated back by the same weights; everything
else happens at the points. Paper: points become tokens once, and tokens become points once.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from amo.errors import SettingsError
from amo.layers.feedforward import MLP, PositionEncoding
from amo.layers.filter_block import FilterBlocks, FilterConfig, channels
from amo.layers.grids import check_axes
from amo.layers.precision import at_least_float32, full_precision

_SHARPNESS = 2.0  # at the start: a point halfway between two tokens hears little of a third
_FAR = 20.0  # e^-20 is nothing, and a processor is slow with numbers that almost underflow
_TINY = 1e-6  # of a token that no point is near


@dataclass(frozen=True, kw_only=True)
class CloudAMOConfig(FilterConfig):
    """Sizes and choices of an AMO on a cloud, beside those of its blocks.

    Attributes
    ----------
    n_features, n_outputs, n_dimensions
        Channels of the input function and of the answer, and coordinates of a point.
    tokens
        Along each axis of the lattice.
    """

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    tokens: tuple[int, ...]
    n_outputs: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tokens", tuple(self.tokens))
        check_axes(self.tokens, self.n_dimensions)


class Attended:
    """The exchange between the points of a batch and the tokens, by given weights.

    Parameters
    ----------
    weights
        (batch, n_points, n_tokens), one in sum over the tokens; zero at points that are padding.
    tokens
        Along each axis.
    """

    def __init__(self, weights: Tensor, tokens: tuple[int, ...]) -> None:
        self.weights, self.tokens = weights, tokens
        self.shares = weights / (weights.sum(dim=1, keepdim=True) + _TINY)

    def gather(self, x: Tensor) -> Tensor:
        """Return means around the tokens, (width, batch, *tokens)."""
        with full_precision(x):
            found = torch.einsum("cbn,bnm->cbm", at_least_float32(x), self.shares)
        return found.unflatten(-1, self.tokens)

    def scatter(self, x: Tensor) -> Tensor:
        """Return what is between the tokens, (width, batch, n_points)."""
        with full_precision(x):
            return torch.einsum("cbm,bnm->cbn", at_least_float32(x.flatten(2)), self.weights)


class CloudAMO(nn.Module):
    """The operator at the points of its input."""

    anchors: Tensor

    def __init__(self, config: CloudAMOConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        axes = [(torch.arange(n) + 0.5) * (2.0 / n) - 1.0 for n in config.tokens]
        lattice = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)
        self.register_buffer("anchors", lattice, persistent=False)
        self.log_sharpness = nn.Parameter(torch.tensor(math.log(_SHARPNESS)))
        self.encoding = PositionEncoding(config.n_dimensions, width)
        self.lift = MLP(config.n_features + width, width, width)
        self.blocks = FilterBlocks(config, config.tokens, (False,) * len(config.tokens))
        self.project = MLP(width, 2 * width, config.n_outputs)

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_points, n_outputs); see :meth:`amo.model.AMO.forward`."""
        if queries is not None:
            raise SettingsError("this AMO answers at the points of its input: it takes no queries")
        if mask is not None:
            points = points.masked_fill(~mask.unsqueeze(-1), 0.0)
            features = features.masked_fill(~mask.unsqueeze(-1), 0.0)
        exchange = Attended(self.weights(points, mask), self.config.tokens)
        lifted = self.lift(torch.cat([features, self.encoding(points)], dim=-1))
        x = self.blocks(lifted.movedim(-1, 0), exchange)
        return channels(x, self.project).movedim(0, -1)

    def weights(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return how much every point hears of every token, (batch, n_points, n_tokens)."""
        with full_precision(points):
            counts = torch.tensor(self.config.tokens, device=points.device)
            scale = 0.5 * counts * torch.exp(0.5 * at_least_float32(self.log_sharpness))
            here, there = at_least_float32(points) * scale, self.anchors * scale
            # |here|² is the same for all tokens
            scores = 2.0 * here @ there.T - there.square().sum(-1)
            best = scores.amax(dim=-1, keepdim=True)
            is_far = scores < best - _FAR
            weights = torch.softmax(scores.masked_fill(is_far, -torch.inf), dim=-1)
        return weights if mask is None else weights * mask.unsqueeze(-1)

"""Cross-attention with a sense of distance: the door in and out of the latent tokens."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.layers.precision import at_least_float32, full_precision


class CrossAttention(nn.Module):
    """softmax(q kᵀ / √d - |x - a|² / 2ℓ²) v over several heads, each with its own length ℓ.

    The distance between places x and a is folded into longer queries and keys,

        -|x - a|² / 2 = x·a - |x|² / 2 - |a|² / 2,

    so torch's fused kernel does all the work and no matrix of distances exists. Lengths are
    learned; they start spread between less than the spacing of the tokens and the size of the box,
    so heads look near and far from the first step.

    Paper: plain dot products. Measured: those start out nearly uniform, and a model then spends
    most of its training learning where things are.

    Scores stay in float32 or above: near and far are differences of large terms.
    """

    # Scores and softmax spelt out instead of the fused kernel, which differentiates once.
    is_plain: bool = False

    def __init__(self, width: int, n_heads: int, spacing: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        spread = torch.linspace(math.log(0.4 * spacing), math.log(2.0), n_heads)
        self.log_length = nn.Parameter(spread)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        query_places: Tensor,
        key_places: Tensor,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Attend from (batch, n, width) to (batch, m, width); mask (batch, m) is true to see.

        Places are (batch, n, d) and (batch, m, d).
        """
        v = self.split(values)
        if self.is_plain:
            scores = self.scores(queries, keys, query_places, key_places)
            return self.merge(softmax(hide(scores, mask, dim=1), dim=-1) @ v)
        q, k = self._with_places(queries, keys, query_places, key_places)
        padding = q.shape[-1] - v.shape[-1]  # the fused kernel wants equal sizes
        seen = None if mask is None else mask[:, None, None, :]
        with full_precision(q):
            mixed = functional.scaled_dot_product_attention(
                q, k, functional.pad(v, (0, padding)), attn_mask=seen, scale=1.0
            )
        return self.merge(mixed[..., : v.shape[-1]])

    def scores(
        self, queries: Tensor, keys: Tensor, query_places: Tensor, key_places: Tensor
    ) -> Tensor:
        """Return what the softmax is taken of, (batch, heads, n, m)."""
        q, k = self._with_places(queries, keys, query_places, key_places)
        with full_precision(q):
            return q @ k.transpose(-1, -2)

    def split(self, values: Tensor) -> Tensor:
        """Return the values of every head, (batch, heads, m, width / heads)."""
        return self._heads(self.value(values))

    def merge(self, mixed: Tensor) -> Tensor:
        """Return (batch, n, width) from every head's mixture."""
        return self.out(mixed.transpose(-2, -3).flatten(-2))

    def _heads(self, x: Tensor) -> Tensor:
        return at_least_float32(x).unflatten(-1, (self.n_heads, -1)).transpose(-2, -3)

    def _with_places(
        self, queries: Tensor, keys: Tensor, query_places: Tensor, key_places: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return queries and keys whose product holds the distance term."""
        q, k = self._heads(self.query(queries)), self._heads(self.key(keys))
        precision = torch.exp(-2.0 * self.log_length)[:, None, None]
        half_q = -0.5 * query_places.square().sum(-1, keepdim=True)
        half_k = -0.5 * key_places.square().sum(-1, keepdim=True)
        near_q = torch.cat([query_places, half_q, torch.ones_like(half_q)], dim=-1)
        near_k = torch.cat([key_places, torch.ones_like(half_k), half_k], dim=-1)
        scale = 1.0 / math.sqrt(q.shape[-1])
        return (
            torch.cat([scale * q, precision * near_q.unsqueeze(-3)], dim=-1),
            torch.cat([k, near_k.unsqueeze(-3).expand(-1, self.n_heads, -1, -1)], dim=-1),
        )


def softmax(scores: Tensor, dim: int) -> Tensor:
    """Return exp(s) / Σ exp(s), differentiable forwards and then backwards.

    torch.softmax is not: its forward derivative overwrites what the backward pass needs.
    """
    weights = torch.exp(scores - scores.detach().amax(dim, keepdim=True))
    return weights / weights.sum(dim, keepdim=True)


def hide(scores: Tensor, mask: Tensor | None, dim: int | None = None) -> Tensor:
    """Return scores (..., n, m) that see no padding; mask is (..., m), lacking ``dim``."""
    if mask is None:
        return scores
    seen = mask if dim is None else mask.unsqueeze(dim)
    lowest = torch.finfo(scores.dtype).min  # finite, so a sample of padding alone stays finite
    return scores.masked_fill(~seen.unsqueeze(-2), lowest)


class StreamingSoftmax:
    """Σ_n softmax_n(scores) values over pieces of n, in the memory of one piece."""

    def __init__(self) -> None:
        self.largest: Tensor | None = None
        self.weight: Tensor | None = None
        self.total: Tensor | None = None

    def add(self, scores: Tensor, values: Tensor) -> None:
        """Take in a piece: scores (..., m, n), values (..., n, d)."""
        largest = scores.amax(-1, keepdim=True)
        if self.largest is not None:
            largest = torch.maximum(largest, self.largest)
        weights = torch.exp(scores - largest)
        weight, total = weights.sum(-1, keepdim=True), weights @ values
        if self.largest is not None and self.weight is not None and self.total is not None:
            fade = torch.exp(self.largest - largest)
            weight, total = weight + fade * self.weight, total + fade * self.total
        self.largest, self.weight, self.total = largest, weight, total

    def result(self) -> Tensor:
        """Return the mean so far, (..., m, d)."""
        if self.weight is None or self.total is None:
            raise ValueError("a mean of nothing: no piece was added")
        return self.total / self.weight

"""A decoder whose cost does not depend on the encoder: a plain network that the encoding modulates.

The encoder ends in numbers that scale and shift the layers of a trunk over the query point. A query
then costs the trunk alone, and a trunk that is only shifted is a multilayer perceptron whose biases
depend on the input function: a perceptron on input and query is a special case of it.
"""

from collections.abc import Callable
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.layers.feedforward import MLP

ModulationKind = Literal["shift", "scale-shift"]


class Modulator(nn.Module):
    """Encoding (batch, n_tokens, width) to modulations (batch, depth, 1 or 2, trunk width).

    With ``n_direct`` numbers of an input point (its features and place), a sum over the points of a
    network of these goes past the tokens: sampled densely or not, it is their mean.
    """

    def __init__(
        self,
        n_latent: int,
        trunk_width: int,
        trunk_depth: int,
        kind: ModulationKind,
        n_direct: int = 0,
    ) -> None:
        super().__init__()
        self.shape = (trunk_depth, 1 if kind == "shift" else 2, trunk_width)
        self.direct = MLP(n_direct, trunk_width, trunk_width) if n_direct else None
        n_inputs = n_latent + (trunk_width if n_direct else 0)
        self.network = MLP(n_inputs, trunk_width, trunk_depth * self.shape[1] * trunk_width)

    def forward(
        self, latent: Tensor, points: Tensor, features: Tensor, mask: Tensor | None
    ) -> Tensor:
        """Return the modulations; padding is not read."""
        known = latent.flatten(1)
        if self.direct is not None:
            each = self.direct(torch.cat([features, points], dim=-1))
            if mask is None:
                mean = each.mean(1)
            else:
                seen = mask.unsqueeze(-1).to(each)
                mean = (each * seen).sum(1) / seen.sum(1).clamp(min=1.0)
            known = torch.cat([known, mean], dim=-1)
        return self.network(known).unflatten(-1, self.shape)


class Trunk(nn.Module):
    """h ← GELU((1 + scale) ∘ (W h + b) + shift), layer by layer, then a linear map."""

    def __init__(self, n_inputs: int, width: int, depth: int, n_outputs: int) -> None:
        super().__init__()
        sizes = [n_inputs, *[width] * (depth - 1)]
        self.layers = nn.ModuleList(nn.Linear(size, width) for size in sizes)
        self.last = nn.Linear(width, n_outputs)

    def forward(
        self,
        queries: Tensor,
        modulations: Tensor,
        turns: Tensor | None = None,
        along: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_queries, n_outputs) from modulations (batch, depth, 1 or 2, width).

        With ``turns`` (batch, k, depth, 1 or 2, width) and ``along`` (batch, n_queries, k), every
        query has modulations of its own, moved by along @ turns. The derivative in ``along``, at
        zero, is that of the answer as the input function changes.
        """
        h = queries
        for number, layer in enumerate(cast("list[nn.Linear]", self.layers)):
            change = modulations[:, number].unsqueeze(1)
            if turns is not None and along is not None:
                moved = along @ turns[:, :, number].flatten(2)
                change = change + moved.unflatten(-1, change.shape[2:])
            h = layer(h)
            if change.shape[2] == 2:
                h = h * (1.0 + change[:, :, 1])
            h = functional.gelu(h + change[:, :, 0])
        return self.last(h)


def in_chunks(
    decode: Callable[..., Tensor],
    latent: Tensor,
    queries: Tensor,
    chunk: int,
    turns: Tensor | None,
    along: Tensor | None,
) -> Tensor:
    """Decode at most ``chunk`` queries at a time."""
    parts = queries.split(chunk, dim=1)
    moves = [None] * len(parts) if along is None else along.split(chunk, dim=1)
    return torch.cat(
        [
            decode(latent, part, turns=turns, along=move)
            for part, move in zip(parts, moves, strict=True)
        ],
        dim=1,
    )

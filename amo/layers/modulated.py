"""A decoder whose cost does not depend on the encoder: a plain network that the encoding modulates.

The encoder ends in numbers that scale and shift the layers of a trunk over the query point. A query
then costs the trunk alone, and a trunk that is only shifted is a multilayer perceptron whose biases
depend on the input function: a perceptron on input and query is a special case of it.
"""

from collections.abc import Callable, Mapping
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo import jets
from amo.jets import Jet
from amo.layers.feedforward import MLP

ModulationKind = Literal["shift", "scale-shift"]
_CARRIED = 1 << 13  # parts of jets at once on a CPU: what its cache holds


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
            each = self.direct.hidden(torch.cat([features, points], dim=-1))
            if mask is None:
                mean = each.mean(1)
            else:
                seen = mask.unsqueeze(-1).to(each)
                mean = (each * seen).sum(1) / seen.sum(1).clamp(min=1.0)
            # the mean of what the last layer gives is what it gives of the mean
            known = torch.cat([known, self.direct.last(mean)], dim=-1)
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
        if not torch.is_grad_enabled() and turns is None:
            return self.jet(Jet(queries.unsqueeze(0), 0, ()), modulations, {}).value
        h = queries
        for number, layer in enumerate(cast("list[nn.Linear]", self.layers)):
            change = modulations[:, number].unsqueeze(1)
            if turns is not None and along is not None:
                moved = along @ turns[:, :, number].flatten(2)
                change = change + moved.unflatten(-1, change.shape[2:])
            h = functional.gelu(_modulated(layer, h, change))
        return self.last(h)

    def jet(self, queries: Jet, modulations: Tensor, turns: Mapping[int, Tensor]) -> Jet:
        """Return the answer with its derivatives, in one pass and without gradients.

        ``turns`` are the derivatives of the modulations, shaped like them, in those directions in
        which they change; no second derivative may be asked for in these.
        """
        n_parts, n_states, n_queries, _ = queries.parts.shape
        if queries.parts.device.type == "cpu":
            n_queries = min(n_queries, max(1, _CARRIED // (n_parts * n_states)))
        memory = queries.parts.new_empty(2, n_parts * n_states * n_queries * self.last.in_features)
        some = queries.parts.split(n_queries, dim=2)
        found = [self._carried(queries.of(parts), modulations, turns, memory) for parts in some]
        return queries.of(torch.cat([jet.parts for jet in found], dim=2))

    def _carried(
        self, h: Jet, modulations: Tensor, turns: Mapping[int, Tensor], memory: Tensor
    ) -> Jet:
        """Carry jets through all layers, to and fro between two halves of a memory."""
        n = h.parts.shape[:-1].numel() * self.last.in_features
        for number, layer in enumerate(cast("list[nn.Linear]", self.layers)):
            h = jets.affine(layer, h, memory[number % 2, :n])
            change = modulations[:, number].unsqueeze(1)
            moved = {i: _moved(h.value, turn[:, number].unsqueeze(1)) for i, turn in turns.items()}
            if change.shape[2] == 2:
                h.parts.mul_(1.0 + change[:, :, 1])
            h.parts[0] += change[:, :, 0]
            for direction, part in moved.items():
                h.parts[1 + direction] += part
            h = jets.gelu_(h)
        return jets.affine(self.last, h)


def _modulated(layer: nn.Linear, h: Tensor, change: Tensor) -> Tensor:
    """Return (1 + scale) ∘ (W h + b) + shift, for (batch, 1 or n_queries, 1 or 2, width).

    Samples with more queries than the trunk is wide get weights (1 + scale) ∘ W of their own, which
    saves a pass over all queries.
    """
    shift = change[:, :, 0]
    if change.shape[2] == 1:
        return layer(h) + shift
    scale = 1.0 + change[:, :, 1]
    if change.shape[1] > 1 or h.shape[1] <= layer.out_features:
        return layer(h) * scale + shift
    return torch.baddbmm(layer.bias * scale + shift, h, layer.weight.T * scale)


def _moved(value: Tensor, turn: Tensor) -> Tensor:
    """Return the derivative of (1 + scale) ∘ value + shift in scale and shift."""
    return turn[:, :, 0] + value * turn[:, :, 1] if turn.shape[2] == 2 else turn[:, :, 0]


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

"""A decoder whose cost does not depend on the encoder: a plain network that the encoding modulates.

The encoder ends in numbers that scale and shift the layers of a trunk over the query point. A query
then costs the trunk alone, and a trunk that is only shifted is a multilayer perceptron whose biases
depend on the input function: a perceptron on input and query is a special case of it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo import jets
from amo.jets import Jet
from amo.layers.feedforward import MLP

ModulationKind = Literal["shift", "scale-shift"]
_Carrier: TypeAlias = Callable[[Jet, Tensor], Jet]
_CARRIED = 1 << 13  # parts of jets at once on a CPU: what its cache holds


class Modulator(nn.Module):
    """Encoding (batch, n_tokens, width) to the numbers that modulate a trunk, (batch, n).

    With ``n_direct`` numbers of an input point (its features and place), a sum over the points of a
    network of these goes past the tokens: sampled densely or not, it is their mean.
    """

    def __init__(self, n_latent: int, trunk: "Trunk", n_direct: int = 0) -> None:
        super().__init__()
        width = trunk.width
        self.direct = MLP(n_direct, width, width) if n_direct else None
        n_inputs = n_latent + (width if n_direct else 0)
        self.network = MLP(n_inputs, width, trunk.n_modulations)

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
        return self.network(known)


class Change(NamedTuple):
    """What modulates one layer, (batch, k, ...); None where it has no such thing."""

    shift: Tensor
    scale: Tensor | None
    mix: Tensor | None


class Trunk(nn.Module):
    """h ← GELU((1 + scale) ∘ (W h + b) + shift), layer by layer, then a linear map.

    With ``n_mixed``, every layer but the first has more matrices V_k, and W + Σ_k mix_k V_k stands
    for its W. A sample then has weights of its own, and a query costs no more than without.
    """

    def __init__(
        self,
        n_inputs: int,
        width: int,
        depth: int,
        n_outputs: int,
        kind: ModulationKind = "scale-shift",
        n_mixed: int = 0,
    ) -> None:
        super().__init__()
        sizes = [n_inputs, *[width] * (depth - 1)]
        self.layers = nn.ModuleList(nn.Linear(size, width) for size in sizes)
        self.last = nn.Linear(width, n_outputs)
        self.width, self.n_mixed = width, n_mixed
        self.n_each = 2 if kind == "scale-shift" else 1
        self.mixed = nn.ParameterList()  # of each layer its V_k, one below the other
        if n_mixed:
            bound = width**-0.5
            self.mixed.extend(
                torch.empty(n_mixed * width, width).uniform_(-bound, bound)
                for _ in range(depth - 1)
            )

    @property
    def n_modulations(self) -> int:
        """How many numbers modulate all layers."""
        depth = len(self.layers)
        return depth * self.n_each * self.width + (depth - 1) * self.n_mixed

    def changes(self, modulations: Tensor) -> list[Change]:
        """Return what modulates each layer, from (batch, k, n_modulations)."""
        depth = len(self.layers)
        n_mixed = (depth - 1) * self.n_mixed
        plain, mix = modulations.split([self.n_modulations - n_mixed, n_mixed], dim=-1)
        plain = plain.unflatten(-1, (depth, self.n_each, self.width))
        return [
            Change(
                shift=plain[..., number, 0, :],
                scale=plain[..., number, 1, :] if self.n_each == 2 else None,
                mix=mix[..., self.n_mixed * (number - 1) :][..., : self.n_mixed]
                if number and self.n_mixed
                else None,
            )
            for number in range(depth)
        ]

    def forward(
        self,
        queries: Tensor,
        modulations: Tensor,
        turns: Tensor | None = None,
        along: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_queries, n_outputs) from modulations (batch, n_modulations).

        With ``turns`` (batch, k, n_modulations) and ``along`` (batch, n_queries, k), every query
        has modulations of its own, moved by along @ turns. The derivative in ``along``, at zero, is
        that of the answer as the input function changes.
        """
        if not torch.is_grad_enabled() and turns is None:
            return self.jet(Jet(queries.unsqueeze(0), 0, ()), modulations, {}).value
        h = queries
        changes = self.changes(modulations.unsqueeze(1))
        if turns is None or along is None:
            for number, change in enumerate(changes):
                h = functional.gelu(self._layer(number, h, change))
        else:
            for number, (change, turn) in enumerate(zip(changes, self.changes(turns), strict=True)):
                h = functional.gelu(self._turned_layer(number, h, change, turn, along))
        return self.last(h)

    def jet(self, queries: Jet, modulations: Tensor, turns: Mapping[int, Tensor]) -> Jet:
        """Return the answer with its derivatives, in one pass and without gradients.

        ``turns`` are the derivatives of the modulations, shaped like them, in those directions in
        which they change; no second derivative may be asked for in these.
        """
        n_parts, n_states, n_queries, _ = queries.parts.shape
        if queries.parts.device.type == "cpu":
            n_queries = min(n_queries, max(1, _CARRIED // (n_parts * n_states)))
        turning = {i: self.changes(turn.unsqueeze(1)) for i, turn in turns.items()}
        layers = [
            self._carrier(number, change, {i: every[number] for i, every in turning.items()})
            for number, change in enumerate(self.changes(modulations.unsqueeze(1)))
        ]
        memory = queries.parts.new_empty(2, n_parts * n_states * n_queries * self.width)
        found = []
        for parts in queries.parts.split(n_queries, dim=2):
            h, n = queries.of(parts), parts.shape[:-1].numel() * self.width
            for number, carry in enumerate(layers):  # to and fro between two halves of a memory
                h = jets.gelu_(carry(h, memory[number % 2, :n]))
            found.append(jets.affine(self.last, h).parts)
        return queries.of(torch.cat(found, dim=2))

    def _layer(self, number: int, h: Tensor, change: Change) -> Tensor:
        """Return a layer of (batch, n_queries, inputs), before its GELU.

        Samples with more queries than the layer is wide get (1 + scale) ∘ W of their own, which
        saves a pass over all queries.
        """
        layer = cast("nn.Linear", self.layers[number])
        shift, scale = change.shift, None if change.scale is None else 1.0 + change.scale
        bias: Tensor = layer.bias
        weight: Tensor = layer.weight
        if change.mix is not None:
            weight = self._mixture(number, change.mix, weight)
        if scale is not None and h.shape[1] > layer.out_features:
            weight, bias, scale = weight * scale.mT, bias * scale, None
        if weight.ndim == 3 and scale is None:
            return torch.baddbmm(bias + shift, h, weight.mT)
        y = layer(h) if weight.ndim == 2 else torch.baddbmm(bias, h, weight.mT)
        return y + shift if scale is None else y * scale + shift

    def _turned_layer(
        self, number: int, h: Tensor, change: Change, turn: Change, along: Tensor
    ) -> Tensor:
        """Return a layer whose modulations every query moves by ``along`` times ``turn``."""
        y: Tensor = self.layers[number](h)
        if change.mix is not None and turn.mix is not None:
            y = torch.baddbmm(y, h, self._mixture(number, change.mix).mT)
            turned = self._mixture(number, turn.mix).unflatten(0, turn.mix.shape[:2])
            each = h.unsqueeze(1) @ turned.mT  # (batch, k, n_queries, width)
            y = y + (along.mT.unsqueeze(-1) * each).sum(1)
        if change.scale is not None and turn.scale is not None:
            y = y * (1.0 + change.scale + along @ turn.scale)
        return y + change.shift + along @ turn.shift

    def _mixture(self, number: int, mix: Tensor, start: Tensor | None = None) -> Tensor:
        """Return start + Σ_k mix_k V_k, (batch × k, width, width), from (batch, k, n_mixed)."""
        matrices = self.mixed[number - 1].unflatten(0, (self.n_mixed, self.width)).flatten(1)
        mix = mix.flatten(0, 1)
        found = mix @ matrices if start is None else torch.addmm(start.flatten(), mix, matrices)
        return found.unflatten(1, (self.width, self.width))

    def _carrier(self, number: int, change: Change, turns: dict[int, Change]) -> _Carrier:
        """Return what carries jets through a layer, before its GELU, into a memory."""
        layer = cast("nn.Linear", self.layers[number])
        if change.mix is None:
            return partial(_carried, layer, change, turns)
        scale = torch.ones_like(change.shift) if change.scale is None else 1.0 + change.scale
        weight = self._mixture(number, change.mix, layer.weight)
        turned = {}
        for i, turn in turns.items():
            moved = scale.mT * self._mixture(number, cast("Tensor", turn.mix))
            bias = turn.shift
            if turn.scale is not None:
                moved, bias = moved + turn.scale.mT * weight, bias + turn.scale * layer.bias
            turned[i] = _Affine(moved.mT, bias)
        own = _Affine((scale.mT * weight).mT, scale * layer.bias + change.shift)
        return partial(_carried_apart, own, turned)


class _Affine(NamedTuple):
    """An affine map of each sample: h @ weight + bias."""

    weight: Tensor
    bias: Tensor


def _carried(
    layer: nn.Linear, change: Change, turns: Mapping[int, Change], h: Jet, memory: Tensor
) -> Jet:
    """Carry jets through a layer that scale and shift change, all parts in one product."""
    h = jets.affine(layer, h, memory)
    moved = {
        i: turn.shift if turn.scale is None else turn.shift + h.value * turn.scale
        for i, turn in turns.items()
    }
    if change.scale is not None:
        h.parts.mul_(1.0 + change.scale)
    h.parts[0] += change.shift
    for direction, part in moved.items():
        h.parts[1 + direction] += part
    return h


def _carried_apart(own: _Affine, turns: Mapping[int, _Affine], h: Jet, memory: Tensor) -> Jet:
    """Carry jets through a layer whose weights differ from sample to sample."""
    made = h.of(memory.view(*h.parts.shape[:-1], own.weight.shape[-1]))
    torch.baddbmm(own.bias, h.value, own.weight, out=made.parts[0])
    for before, after in zip(h.parts[1:], made.parts[1:], strict=True):
        torch.bmm(before, own.weight, out=after)
    for direction, turn in turns.items():
        made.first(direction).baddbmm_(h.value, turn.weight).add_(turn.bias)
    return made


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

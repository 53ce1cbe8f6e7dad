"""A trained operator applied to options: encodings of market states, and values above a formula."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amo import jets
from amo.arrays import BoolArray, FloatArray
from amo.jets import Jet
from amo.operator import Operator, smaller_of
from pricing import bounds
from pricing.options import Options
from pricing.progress import Advance
from pricing.surrogate import grouping
from pricing.surrogate.encoding import STATE_POINTS, Coding, code_rate, mirrored
from pricing.surrogate.grouping import Pack

STEP = 2.0**-13  # of the input function, for its derivative in float64; exact in most sums


class Rows(NamedTuple):
    """The terms of options as tensors (states, rows), or jets of them."""

    spot: Any
    strike: Any
    expiry: Any
    rate: Any
    dividend_yield: Any
    volatility: Any
    is_call: Tensor


@dataclass(frozen=True)
class Network:
    """The weights, and what their answers mean. Any thread may use it: no call changes it.

    Attributes
    ----------
    coding
        What its numbers mean.
    operator, differentiable, double
        The same weights three times: with fused operations, with operations that differentiate
        twice, and the first in float64, for differences.
    """

    coding: Coding
    operator: Operator
    differentiable: Operator
    double: Operator

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.operator.points.shift.device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the network; everything around it is float64."""
        return self.operator.points.shift.dtype

    def run(
        self,
        work: Callable[[list[Pack]], int],
        options: Options,
        workers: int | None,
        progress: Advance,
    ) -> None:
        """Do some work on all rows, gathered by market state; on a CPU, in threads."""
        put, _ = mirrored(*options.terms)
        gathered = grouping.gather(put.rate, put.dividend_yield, options.is_call)
        grouping.run(work, gathered, len(options), self.device, workers, progress)

    def encoded(
        self, options: Options, some: Sequence[Pack], derivatives: Sequence[str]
    ) -> Iterator[tuple[Pack, Tensor, dict[str, Tensor]]]:
        """Yield packs of rows with the encodings of their states, and of states around these."""
        states = np.concatenate([pack.states for pack in some])
        put, _ = mirrored(*options.take(states).terms)
        is_call = options.is_call[states]
        rates = np.stack([put.rate, put.dividend_yield], axis=1)
        # which of the mirrored put's two rates moves with the option's rate or yield
        moves = {"r": is_call, "q": ~is_call}
        moves = {name: moves[name] for name in moves if name in derivatives}
        latent, turned = self._encode(code_rate(rates), moves)
        ends = np.cumsum([len(pack.rows) for pack in some])
        for pack, end in zip(some, ends, strict=True):
            part = slice(end - len(pack.rows), end)
            yield pack, latent[part], {name: pair[:, part] for name, pair in turned.items()}

    def _encode(
        self, values: FloatArray, moves: dict[str, BoolArray]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return encodings of input functions and, for every move, of two functions around each.

        The latter are (2, states, ...) in float64: one of the two rates moved by ``STEP`` to either
        side, the second where the mask is true. All are encoded in one batch, which is faster. The
        encodings themselves are then rounded from float64, which does not depend on the batch.
        """
        centre = torch.from_numpy(values).to(self.device)
        if not moves:
            return self._encode_all(self.operator, centre.to(self.dtype)), {}
        inputs = [centre]
        for is_second in moves.values():
            moved = torch.from_numpy(np.column_stack([~is_second, is_second])).to(centre)
            inputs += [centre + STEP * moved, centre - STEP * moved]
        every = self._encode_all(self.double, torch.cat(inputs)).unflatten(0, (-1, len(values)))
        around = every[1:].unflatten(0, (-1, 2))
        return every[0].to(self.dtype), dict(zip(moves, around, strict=True))

    @staticmethod
    def _encode_all(operator: Operator, values: Tensor) -> Tensor:
        points = torch.tensor(STATE_POINTS).to(values).unsqueeze(-1)
        with torch.no_grad():
            return operator.encode(points.expand(len(values), -1, -1), values.unsqueeze(-1))

    def tensors(self, options: Options, pack: Pack) -> Rows:
        """Return the terms of a pack's options, on the device of the weights."""
        return Rows(*(torch.from_numpy(term[pack.rows]).to(self.device) for term in options.terms))

    def above(self, operator: Operator, rows: Rows, latent: Tensor) -> Tensor:
        """Return the values of options (states, rows) above the closed form."""
        put, unit = mirrored(*rows, torch)
        queries = self.coding.queries(put, torch).to(latent.dtype)
        answer = operator.decode(latent, queries).squeeze(-1).double()
        value = self.coding.scale(put, torch) * answer
        if self.coding.gap is not None:
            value = smaller_of(value, self.coding.gap(put, torch))
        worth: Tensor = unit * value
        return worth

    @property
    def has_jets(self) -> bool:
        """Whether :meth:`jet` gives values with their derivatives."""
        return self.operator.turns

    def jet(self, rows: Rows, latent: Tensor, turns: Mapping[int, Tensor]) -> Jet:
        """Return :meth:`above` of rows that are jets, with ``turns`` as the operator takes them."""
        put, unit = mirrored(*rows, jets)
        queries = self.coding.queries(put, jets).map(lambda parts: parts.to(latent.dtype))
        answer = self.operator.jet(latent, queries, turns)
        value = self.coding.scale(put, jets) * answer.map(lambda parts: parts.squeeze(-1).double())
        if self.coding.gap is not None:
            value = smaller_of(value, self.coding.gap(put, jets))
        worth: Jet = unit * value
        return worth

    def priced(self, options: Options, above: FloatArray) -> FloatArray:
        """Return prices within their bounds."""
        price = self.coding.offset(*options.terms, ("price",))["price"] + above
        if self.coding.is_american:
            exercised = bounds.intrinsic(options.spot, options.strike, options.is_call)
            return np.maximum(price, exercised)
        return np.minimum(price, bounds.bounds(options)[1])

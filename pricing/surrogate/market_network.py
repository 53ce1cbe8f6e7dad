"""The network of the market model: encodings of slices, values of contracts, and derivatives.

What moves the market also turns the encodings. How they turn is found by differences in float64,
once for every slice; all else is differentiated backwards through the coding and the decoder.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from amo.arrays import FloatArray, IntArray
from amo.operator import Operator
from pricing import bounds
from pricing.options import Options, Values
from pricing.progress import Advance
from pricing.slopes import Slopes
from pricing.surrogate import grouping
from pricing.surrogate.grouping import Pack
from pricing.surrogate.market_coding import Coded, Terms, code, input_function, terms_of

_STEPS = {"log_spot": 2.0**-10, "rate": 2.0**-14, "borrow": 2.0**-14}  # through the encoder


@dataclass(frozen=True)
class MarketNetwork:
    """The weights, and what their answers mean. Any thread may use it: no call changes it.

    Attributes
    ----------
    operator, double
        The same weights in float32 and, for differences, in float64.
    """

    operator: Operator
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
        """Do some work on all rows, gathered by slice; on a CPU, in threads."""
        slices = options.market_slices
        gathered = grouping.gather(slices.number, options.expiry, options.spot, slices.start)
        grouping.run(work, gathered, len(options), self.device, workers, progress)

    def encoded(self, options: Options, some: Sequence[Pack]) -> Iterator[tuple[Pack, Tensor]]:
        """Yield packs of rows with the encodings of their slices."""
        latent = self.encode(terms_of(options, _states(some), self.device))
        ends = np.cumsum([len(pack.rows) for pack in some])
        for pack, end in zip(some, ends, strict=True):
            yield pack, latent[end - len(pack.rows) : end]

    def encode(self, terms: Terms) -> Tensor:
        """Return the encodings of slices."""
        points, features, mask = input_function(terms)
        with torch.no_grad():
            return self.operator.encode(points.to(self.dtype), features.to(self.dtype), mask)

    def turned(self, terms: Terms, leaves: Sequence[str], *, twice: bool) -> dict[str, Tensor]:
        """Return the derivatives of encodings in the moves of a market, for every slice.

        "log_spot" twice is the second derivative in it; all are encoded in one batch.
        """
        moves = [name for name in leaves if name != "volatility"]
        if not moves:
            return {}
        ends = [terms.moved(**{name: k * _STEPS[name]}) for name in moves for k in (1.0, -1.0)]
        inputs = [input_function(end) for end in (terms, *ends)]
        points, features, mask = (torch.cat(parts) for parts in zip(*inputs, strict=True))
        with torch.no_grad():
            around = self.double.encode(points, features, mask).unflatten(0, (len(inputs), -1))
        found = {
            name: (around[2 * k + 1] - around[2 * k + 2]) / (2.0 * _STEPS[name])
            for k, name in enumerate(moves)
        }
        if twice and "log_spot" in moves:
            k = moves.index("log_spot")
            bend = around[2 * k + 1] - 2.0 * around[0] + around[2 * k + 2]
            found["log_spot twice"] = bend / _STEPS["log_spot"] ** 2
        return found

    def above(self, terms: Terms, latent: Tensor) -> Tensor:
        """Return values per unit strike."""
        coded = code(terms)
        answer = self.operator.decode(latent, coded.queries.to(latent.dtype))
        return _value(coded, answer)

    def priced(self, options: Options, value: FloatArray) -> FloatArray:
        """Return prices: values per unit strike, not below what exercise pays."""
        paid = bounds.intrinsic(options.spot, options.strike, options.is_call)
        return np.asarray(np.maximum(options.strike * value, paid))

    def differentiated(
        self, terms: Terms, latent: Tensor, turned: dict[str, Tensor], names: Sequence[str]
    ) -> Values:
        """Return derivatives of values per unit strike, by name: "log_spot volatility" is mixed."""
        leaves = {
            leaf: torch.zeros_like(terms.log_moneyness, requires_grad=True)
            for leaf in dict.fromkeys(word for name in names for word in name.split())
        }
        along = {name: leaves[name] for name in turned if name in leaves}
        if "log_spot twice" in turned:
            along["log_spot twice"] = 0.5 * leaves["log_spot"].square()
        coded = code(terms.moved(**leaves))
        turns, moved = None, None
        if along:
            turns = torch.stack([turned[name] for name in along], dim=1).to(self.dtype)
            moved = torch.stack(list(along.values()), dim=-1).to(self.dtype)
        queries = coded.queries.to(self.dtype)
        answer = self.operator.decode(latent, queries, turns=turns, along=moved)
        value = _value(coded, answer)
        seconds = [name for name in names if " " in name]
        firsts = torch.autograd.grad(value.sum(), list(leaves.values()), create_graph=bool(seconds))
        first = dict(zip(leaves, firsts, strict=True))
        found = {name: first[name] for name in names if " " not in name}
        for name in seconds:
            once, again = name.split()
            found[name] = torch.autograd.grad(first[once].sum(), leaves[again], retain_graph=True)[
                0
            ]
        return {name: tensor.detach().cpu().numpy() for name, tensor in found.items()}

    def pack_slopes(self, options: Options, pack: Pack, weight: FloatArray) -> Slopes:
        """Differentiate Σ weight × value of a pack in every number that its slices hold."""
        terms = terms_of(options, pack.rows, self.device)
        leaves = {
            name: getattr(terms, name).clone().requires_grad_() for name in Slopes._fields[1:]
        }
        terms = terms._replace(**leaves)
        points, features, mask = input_function(terms)
        latent = self.operator.encode(points.to(self.dtype), features.to(self.dtype), mask)
        counted = torch.from_numpy(np.where(pack.is_row, weight[pack.rows], 0.0)).to(self.device)
        total = (counted * self.above(terms, latent)).sum()
        found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
        slopes = (
            torch.zeros_like(leaf) if slope is None else slope
            for slope, leaf in zip(found, leaves.values(), strict=True)
        )
        columns = {
            name: slope[:, 0].cpu().numpy() for name, slope in zip(leaves, slopes, strict=True)
        }
        made = options.market_slices.n_payments[pack.states][:, None]
        is_made = np.arange(columns["cash"].shape[1]) < made  # the others only fill up
        for name in ("cash", "rate_to", "borrow_to"):
            columns[name] = np.where(is_made, columns[name], 0.0)
        return Slopes(pack.states, **columns)


def _value(coded: Coded, answer: Tensor) -> Tensor:
    """Return values per unit strike from the decoder's answers."""
    value = coded.offset + coded.scale * answer.squeeze(-1).double()
    return torch.maximum(value, coded.floor)


def _states(some: Sequence[Pack]) -> IntArray:
    """Return one row of each slice of some packs, (slices, 1)."""
    return np.concatenate([pack.states for pack in some])[:, None]


def first_rows(terms: Terms) -> Terms:
    """Return the terms with one row of each slice: all that an input function needs."""
    return Terms(*(column[:, :1] for column in terms))

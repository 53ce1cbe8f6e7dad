"""The player: trained operators that price books.

A price goes this way. Rows of one market state share one encoding of it; a call's state is that of
the put it mirrors (:func:`pricing.encoding.mirrored`). The decoder answers every row,
:meth:`Surrogate._above` makes of its answer what the option is worth above a closed form, and
:meth:`Surrogate._combine` adds the closed form. Greeks are the derivatives of these very numbers:
through the decoder backwards, through the encoder by differences in float64, and by formula for
the closed form; then they are put into their bounds (:func:`pricing.limits.project`). Rows that
are to be exercised need none.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from amo import checkpoint
from amo.errors import CheckpointError
from amo.operator import Operator, smaller_of
from pricing import black_scholes, limits, packs
from pricing.contracts import BoolArray, FloatArray, Options
from pricing.domain import Domain
from pricing.encoding import (
    AMERICAN,
    EUROPEAN,
    STATE_POINTS,
    Coding,
    code_rate,
    mirrored,
    rate_slope,
)
from pricing.packs import IntArray, Pack
from pricing.roots import Bracket, find_roots
from pricing.stated_error import StatedError
from pricing.threads import in_threads

_STOPPED = 1e-5  # per unit strike: an American with less time value has the Greeks of exercise
_BOUNDARY = 0.02  # root of the first of the time values from which the boundary is read
_TOLERANCE = 1e-6  # of implied volatilities and of the logarithm of boundaries
_RESIDUAL = 1e-8  # per unit strike: far below the model's error
_STEP = 2.0**-13  # of the input function, for its derivative in float64; exact in most sums
_NEAR_EUROPEAN, _NEAR_AMERICAN = (0.97, 1.03), (0.6, 1.001)  # of the closed form's volatility

Values = dict[str, FloatArray]
Progress = Callable[[int], None] | None

# Derivatives of the value that a quantity is made of: S spot, v volatility, T expiry, r rate,
# q dividend yield. The first is its own.
_DERIVATIVES: dict[str, tuple[str, ...]] = {
    "price": (),
    "delta": ("S",),
    "gamma": ("SS",),
    "vega": ("v",),
    "theta": ("S", "SS"),
    "rho": ("r",),
    "dividend_rho": ("q",),
    "vanna": ("Sv",),
    "volga": ("vv",),
    "charm": ("ST",),
}
_SIGN = {"charm": -1.0}  # time passes as expiry shrinks


class _Rows(NamedTuple):
    """The terms of options as tensors (states, rows)."""

    spot: Tensor
    strike: Tensor
    expiry: Tensor
    rate: Tensor
    dividend_yield: Tensor
    volatility: Tensor
    is_call: Tensor


@dataclass(frozen=True)
class Surrogate:
    """One trained operator that prices one exercise style.

    Any thread may use it: no call changes it.

    Attributes
    ----------
    coding
        What its numbers mean.
    operator, differentiable, double
        The same weights three times: with fused operations, with those that differentiate twice,
        and the first in float64, for differences.
    domain
        Where it was trained; it is not asked elsewhere.
    metrics
        Its measured errors, see :mod:`pricing.assessment`.
    """

    coding: Coding
    operator: Operator
    differentiable: Operator
    double: Operator
    domain: Domain
    metrics: dict[str, Any]

    @classmethod
    def load(
        cls, folder: Path, device: torch.device | str = "cpu", *, is_measured: bool = True
    ) -> Self:
        """Read a model folder; the training set says what its numbers mean.

        One that ``is_measured`` has metrics; they are read.
        """
        operator, recipe = checkpoint.load(folder, device)
        data = recipe.notes.get("data", {}) if isinstance(recipe.notes, dict) else {}
        learned = data.get("set") if isinstance(data, dict) else None
        settings = data.get("settings", {}) if learned is not None else {}
        version = settings.get("coding", 1) if isinstance(settings, dict) else None
        coding = next((c for c in (EUROPEAN, AMERICAN) if c.name == learned), None)
        if coding is None or (coding.link, coding.version) != (recipe.link, version):
            raise CheckpointError(
                f"{folder} learned the set {learned!r} in coding {version} with link "
                f"{recipe.link!r}: that is no surrogate of options as this version reads them; "
                "`make models` trains them"
            )
        operator.requires_grad_(requires_grad=False)
        differentiable = deepcopy(operator)
        differentiable.use_plain_operations()
        double = deepcopy(operator).double()
        try:
            domain = Domain.from_dict(recipe.domain)
        except (AttributeError, TypeError, ValueError) as error:
            raise CheckpointError(f"{folder} states no domain of options: {error}") from error
        metrics = checkpoint.read_metrics(folder) if is_measured else {}
        return cls(coding, operator, differentiable, double, domain, metrics)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.operator.points.shift.device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the network; everything around it is float64."""
        return self.operator.points.shift.dtype

    def outside(self, options: Options) -> list[tuple[BoolArray, str]]:
        """Return masks of rows outside of the model's domain, each with its reason."""
        put, _ = mirrored(*options.terms)
        coordinates = {
            "rate": put.rate,
            "dividend_yield": put.dividend_yield,
            "volatility": put.volatility,
            "expiry": put.time_to_expiry,
            "log_moneyness": put.log_moneyness,
        }
        reasons = []
        for name, values in coordinates.items():
            low, high = getattr(self.domain, name)
            text = f"{name} of the (mirrored) put is outside of the model's [{low:g}, {high:g}]"
            reasons.append((~((values >= low) & (values <= high)), text))
        return reasons

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        progress: Progress = None,
        workers: int | None = None,
    ) -> Values:
        """Return price and Greeks of options inside the domain; NaN where the network gives one."""
        wanted = tuple(dict.fromkeys(d for name in quantities for d in _DERIVATIVES[name]))
        price = np.empty(len(options))
        above = {name: np.zeros(len(options)) for name in wanted}

        def work(some: list[Pack]) -> int:
            for pack, latent, turned in self._encoded(options, some, wanted):
                self._evaluate_pack(options, pack, latent, turned, price, above)
            return sum(int(pack.lengths.sum()) for pack in some)

        self._run(work, options, workers, progress)
        return self._combine(options, quantities, price, above)

    def _evaluate_pack(
        self,
        options: Options,
        pack: Pack,
        latent: Tensor,
        turned: dict[str, Tensor],
        price: FloatArray,
        above: Values,
    ) -> None:
        """Write the prices of a pack's rows, and their derivatives above the closed form."""
        with torch.no_grad():
            value = self._above(self.operator, self._tensors(options, pack), latent)
        some = options.take(pack.rows.ravel())
        found = self._price(some, value.cpu().numpy().ravel())
        pack.put(found.reshape(pack.rows.shape), into=price)
        is_live = pack.is_row & ~self._is_stopped(some, found).reshape(pack.rows.shape)
        if above and is_live.any():
            live, is_kept = pack.narrowed(is_live)
            slopes = self._differentiate(
                self._tensors(options, live),
                latent[is_kept],
                {name: pair[:, is_kept] for name, pair in turned.items()},
                tuple(above),
            )
            for name, values in slopes.items():
                live.put(values, into=above[name])

    def _run(
        self,
        work: Callable[[list[Pack]], int],
        options: Options,
        workers: int | None,
        progress: Progress,
    ) -> None:
        """Do some work on all rows, gathered by market state: in threads where that is the CPU."""
        put, _ = mirrored(*options.terms)
        gathered = packs.gather(put.rate, put.dividend_yield, options.is_call)
        tasks = packs.together(gathered, len(options))
        on_cpu = self.device.type == "cpu"
        for n_done in in_threads(work, tasks, workers) if on_cpu else map(work, tasks):
            if progress is not None:
                progress(n_done)

    def price_error(self, options: Options) -> FloatArray:
        """Return the error that 99 of 100 rows like these stay below, as measured."""
        put, unit = mirrored(*options.terms)
        return np.asarray(unit * self._stated_error.of(put, self.coding.scale(put, np)))

    @cached_property
    def _stated_error(self) -> StatedError:
        if "stated_error" not in self.metrics:
            raise CheckpointError(
                f"the {self.coding.name} model has no measured errors: run `python -m pricing "
                "assess` on its folder"
            )
        return StatedError.from_dict(self.metrics["stated_error"])

    def implied_volatility(
        self,
        options: Options,
        price: FloatArray,
        progress: Progress = None,
        workers: int | None = None,
    ) -> tuple[FloatArray, BoolArray]:
        """Return the volatility inside the domain at which each option has its price, or NaN.

        Also where that is because the network gave no number.

        Only the decoder repeats: volatility is one of its coordinates. The search begins near the
        closed form's volatility, which an American's does not exceed.
        """

        def place(some: Options, volatility: FloatArray) -> Options:
            return some.with_values(volatility=volatility)

        def excess(some: Options, above: FloatArray, rows: IntArray) -> FloatArray:
            return np.asarray((self._price(some, above) - price[rows]) / some.strike)

        low, high = (np.full(len(options), end) for end in self.domain.volatility)
        closed = black_scholes.implied_volatility(price, *options.quoted_terms)
        closed = np.where(np.isnan(closed), high, closed)
        below, above = _NEAR_AMERICAN if self.coding.is_american else _NEAR_EUROPEAN
        near = np.clip(below * closed, low, high), np.clip(above * closed, low, high)
        return self._roots(options, near, (low, high), place, excess, progress, workers)

    def exercise_boundary(self, options: Options) -> FloatArray:
        """Return the spot at which exercise begins; NaN where it is outside of the domain.

        ``options.spot`` is not read. At the boundary the time value has a double zero, so its root
        is about linear in log-spot: that is read at three levels, well above the model's error,
        and continued to zero.
        """
        if not self.coding.is_american:
            raise ValueError("only Americans have an exercise boundary")

        def place(some: Options, x: FloatArray) -> Options:
            return some.with_values(spot=some.strike * np.exp(np.where(some.is_call, -x, x)))

        def log_moneyness_at(time_value: float) -> FloatArray:
            def excess(some: Options, above: FloatArray, _: IntArray) -> FloatArray:
                price = self.coding.offset(*some.terms, ("price",))["price"] + above
                put, unit = mirrored(*some.terms)
                return np.asarray(price / unit + np.expm1(put.log_moneyness) - time_value)

            start = np.full(len(options), self.domain.log_moneyness[0])
            bracket = (start, np.zeros(len(options)))
            return self._roots(options, bracket, bracket, place, excess)[0]

        near, middle, far = (log_moneyness_at((n * _BOUNDARY) ** 2) for n in (1, 2, 3))
        return place(options, 3.0 * near - 3.0 * middle + far).spot

    def _roots(
        self,
        options: Options,
        near: Bracket,
        wide: Bracket,
        place: Callable[[Options, FloatArray], Options],
        excess: Callable[[Options, FloatArray, IntArray], FloatArray],
        progress: Progress = None,
        workers: int | None = None,
    ) -> tuple[FloatArray, BoolArray]:
        """Solve excess(x) = 0 for every row, where ``place`` puts x into options; NaN if none.

        Also return where the network gave no number.
        """
        result = np.full(len(options), np.nan)
        is_lost = np.zeros(len(options), dtype=np.bool_)

        def work(some: list[Pack]) -> int:
            for pack, latent, _ in self._encoded(options, some, ()):
                rows = pack.rows[pack.is_row]
                value = self._decoder(pack, latent)

                def at(
                    x: FloatArray,
                    position: IntArray,
                    rows: IntArray = rows,
                    value: Callable[[Options, IntArray], FloatArray] = value,
                ) -> FloatArray:
                    placed = place(options.take(rows[position]), x)
                    above = value(placed, position)
                    is_lost[rows[position]] |= ~np.isfinite(above)
                    return excess(placed, above, rows[position])

                result[rows] = find_roots(
                    at,
                    (near[0][rows], near[1][rows]),
                    (wide[0][rows], wide[1][rows]),
                    tolerance=_TOLERANCE,
                    residual=_RESIDUAL,
                )
            return sum(int(pack.lengths.sum()) for pack in some)

        self._run(work, options, workers, progress)
        return result, is_lost

    def _decoder(self, pack: Pack, latent: Tensor) -> Callable[[Options, IntArray], FloatArray]:
        """Return what decodes some of a pack's options, given by their numbers in the pack."""
        # rows of one state stand together, here and in whatever is left of them
        numbers = Pack(np.cumsum(pack.is_row).reshape(pack.rows.shape) - 1, pack.lengths)

        def value(some: Options, position: IntArray) -> FloatArray:
            is_left = np.zeros(pack.lengths.sum(), dtype=np.bool_)
            is_left[position] = True
            left, is_kept = numbers.narrowed(pack.is_row & is_left[numbers.rows])
            among = np.cumsum(is_left) - 1  # from numbers of rows to places among those left
            left = Pack(among[left.rows], left.lengths)
            with torch.no_grad():
                above = self._above(self.operator, self._tensors(some, left), latent[is_kept])
            values = np.empty(len(some))
            left.put(above.cpu().numpy(), into=values)
            return values

        return value

    def _encoded(
        self, options: Options, some: Sequence[Pack], derivatives: Sequence[str]
    ) -> Iterator[tuple[Pack, Tensor, dict[str, Tensor]]]:
        """Yield packs of rows with their states' encodings, and those of states around them."""
        states = np.concatenate([pack.states for pack in some])
        put, _ = mirrored(*options.take(states).terms)
        is_call = options.is_call[states]
        rates = np.stack([put.rate, put.dividend_yield], axis=1)
        # which number of the state of the mirrored put moves with the option's rate or yield
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
        """Return encodings of input functions, and in float64 of two around each for every move.

        Those are (2, states, ...), one of the two rates moved by ``_STEP`` to either side, the
        second where the mask says so. All are encoded at once: an encoder is cheaper by the dozen.
        """
        centre = torch.from_numpy(values).to(self.device)
        latent = self._encode_all(self.operator, centre.to(self.dtype))
        if not moves:
            return latent, {}
        inputs = []
        for is_second in moves.values():
            moved = torch.from_numpy(np.column_stack([~is_second, is_second])).to(centre)
            inputs += [centre + _STEP * moved, centre - _STEP * moved]
        around = self._encode_all(self.double, torch.cat(inputs)).unflatten(0, (-1, 2, len(values)))
        return latent, dict(zip(moves, around, strict=True))

    @staticmethod
    def _encode_all(operator: Operator, values: Tensor) -> Tensor:
        points = torch.tensor(STATE_POINTS).to(values).unsqueeze(-1)
        with torch.no_grad():
            return operator.encode(points.expand(len(values), -1, -1), values.unsqueeze(-1))

    def _tensors(self, options: Options, pack: Pack) -> _Rows:
        return _Rows(*(torch.from_numpy(term[pack.rows]).to(self.device) for term in options.terms))

    def _above(self, operator: Operator, rows: _Rows, latent: Tensor) -> Tensor:
        """Return what options (states, rows) are worth above the closed form."""
        put, unit = mirrored(*rows, torch)
        queries = self.coding.queries(put, torch).to(latent.dtype)
        answer = operator.decode(latent, queries).squeeze(-1).double()
        value = self.coding.scale(put, torch) * answer
        if self.coding.gap is not None:
            value = smaller_of(value, self.coding.gap(put, torch))
        worth: Tensor = unit * value
        return worth

    def _differentiate(
        self, rows: _Rows, latent: Tensor, turned: dict[str, Tensor], wanted: Sequence[str]
    ) -> Values:
        """Return the wanted derivatives of the value above the closed form, (states, rows) each."""
        leaves = {
            "S": rows.spot,
            "v": rows.volatility,
            "T": rows.expiry,
            "r": rows.rate,
            "q": rows.dividend_yield,
        }
        for letter in set("".join(wanted)):
            leaves[letter].requires_grad_()
        found: dict[str, Tensor] = {}
        letters = sorted({name[0] for name in wanted})
        slopes = torch.autograd.grad(
            self._above(self.differentiable, rows, latent).sum(),
            [leaves[letter] for letter in letters],
            create_graph=any(len(name) > 1 for name in wanted),
        )
        for letter, slope in zip(letters, slopes, strict=True):
            found[letter] = slope
            seconds = [name for name in wanted if len(name) > 1 and name[0] == letter]
            if seconds:
                curvatures = torch.autograd.grad(
                    slope.sum(), [leaves[name[1]] for name in seconds], retain_graph=True
                )
                found.update(zip(seconds, curvatures, strict=True))
        still = _Rows(*(tensor.detach() for tensor in rows))
        for letter, pair in turned.items():
            found[letter] = found[letter] + self._between(still, leaves[letter].detach(), pair)
        return {name: found[name].detach().cpu().numpy() for name in wanted}

    def _between(self, rows: _Rows, rate: Tensor, pair: Tensor) -> Tensor:
        """Return the derivative of :meth:`_above` by a rate through the encoding of its state.

        A central difference in float64, exact to about eight digits. Torch's forward mode is one
        for all threads, and a second pass backwards costs as much.
        """
        with torch.no_grad():
            forth, back = (self._above(self.double, rows, latent) for latent in pair)
            slope: Tensor = rate_slope(rate) * (forth - back) / (2.0 * _STEP)
        return slope

    def _price(self, options: Options, above: FloatArray) -> FloatArray:
        """Return prices within their bounds."""
        price = self.coding.offset(*options.terms, ("price",))["price"] + above
        if self.coding.is_american:
            exercised = limits.intrinsic(options.spot, options.strike, options.is_call)
            return np.maximum(price, exercised)
        return np.minimum(price, limits.bounds(options)[1])

    def _combine(
        self, options: Options, quantities: Sequence[str], price: FloatArray, above: Values
    ) -> Values:
        """Add the closed form to Greeks; theta follows by the equation that they solve."""
        S, r, q = options.spot, options.rate, options.dividend_yield
        names = {*quantities, *(("delta", "gamma") if "theta" in quantities else ())}
        closed = self.coding.offset(*options.terms, tuple(names - {"price", "theta"}))
        values = {
            name: closed[name] + _SIGN.get(name, 1.0) * above[_DERIVATIVES[name][0]]
            for name in closed
        }
        values["price"] = price
        values = limits.project(options, values)
        if "theta" in quantities:
            values["theta"] = (
                r * values["price"]
                - (r - q) * S * values["delta"]
                - 0.5 * (options.volatility * S) ** 2 * values["gamma"]
            )
        if self.coding.is_american:
            self._stop(options, values)
        return {name: values[name] for name in quantities}

    def _is_stopped(self, options: Options, price: FloatArray) -> BoolArray:
        """Return which options are worth no more than their exercise, up to the model's error."""
        if not self.coding.is_american:
            return np.zeros(len(options), dtype=np.bool_)
        exercised = limits.intrinsic(options.spot, options.strike, options.is_call)
        small = _STOPPED * np.where(options.is_call, options.spot, options.strike)
        return np.asarray((exercised > 0) & (price - exercised < small))

    def _stop(self, options: Options, values: Values) -> None:
        """Give Americans that are to be exercised the Greeks of what they are exchanged for."""
        if "theta" in values:  # more time is never worth less
            values["theta"] = np.minimum(values["theta"], 0.0)
        is_stopped = self._is_stopped(options, values["price"])
        for name in values.keys() - {"price"}:
            greek = np.where(options.is_call, 1.0, -1.0) if name == "delta" else 0.0
            values[name] = np.where(is_stopped, greek, values[name])

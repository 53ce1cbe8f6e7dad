"""The market model: a trained operator that prices American options under curves and dividends.

Rows of one market, expiry and spot share one encoding of what they see of the market. The decoder
answers every row, and :mod:`pricing.surrogate.market_coding` turns the answer into a value. A Greek
is the derivative of that value: backwards through the coding and the decoder. What moves the market
also turns the encoding; how it turns is found by differences in float64, once for every slice.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from amo import checkpoint
from amo.arrays import BoolArray, FloatArray, IntArray
from amo.errors import CheckpointError
from pricing import black_scholes, bounds, cash_dividends
from pricing.options import Options, Values
from pricing.progress import Advance
from pricing.roots import find_roots
from pricing.slopes import Slopes
from pricing.surrogate.exercise import held, stopped
from pricing.surrogate.grouping import Pack
from pricing.surrogate.inverse import BOUNDARY, Answer, Packs, Search, roots
from pricing.surrogate.market_coding import code, terms_of
from pricing.surrogate.market_domain import CODING, MarketDomain
from pricing.surrogate.market_errors import LATTICE, place_of
from pricing.surrogate.market_network import MarketNetwork, first_rows
from pricing.surrogate.stated_error import StatedError

NAME = "american-market"  # of the training set, the experiment and the model folder
LEAVES = {  # what is differentiated for each quantity, of the moves of Terms.moved
    "price": (),
    "delta": ("log_spot",),
    "gamma": ("log_spot",),
    "theta": ("log_spot",),
    "vega": ("volatility",),
    "rho": ("rate",),
    "dividend_rho": ("borrow",),
    "vanna": ("log_spot", "volatility"),
    "volga": ("volatility",),
    "charm": ("log_spot",),
}
_SECOND = ("gamma", "theta", "vanna", "volga", "charm")  # need second derivatives
_SPEED = 5e-3  # of the spot, by which gamma is differenced for charm


@dataclass(frozen=True)
class MarketSurrogate(MarketNetwork):
    """One trained operator, for American options under markets. Any thread may use it.

    Attributes
    ----------
    domain
        Where it was trained; it is not used elsewhere.
    metrics
        Its measured errors, see :mod:`pricing.analysis.market_assessment`.
    """

    domain: MarketDomain
    metrics: dict[str, Any]

    @classmethod
    def load(
        cls, folder: Path, device: torch.device | str = "cpu", *, is_measured: bool = True
    ) -> Self:
        """Read a model folder; the training set says what its numbers mean."""
        operator, recipe = checkpoint.load(folder, device)
        data = recipe.notes.get("data", {})
        learned, settings = data.get("set"), data.get("settings", {})
        if (learned, settings.get("coding"), recipe.link) != (NAME, CODING, "softplus"):
            raise CheckpointError(
                f"{folder} learned the set {learned!r} in coding {settings.get('coding')}: that is "
                "no market model as this version reads them; `make models` trains it"
            )
        if not operator.turns:
            raise CheckpointError(f"{folder} holds a model whose encodings do not turn")
        try:
            domain = MarketDomain.from_dict(recipe.domain)
        except (AttributeError, TypeError, ValueError) as error:
            raise CheckpointError(f"{folder} states no domain of markets: {error}") from error
        operator.requires_grad_(requires_grad=False)
        metrics = checkpoint.read_metrics(folder) if is_measured else {}
        return cls(operator, deepcopy(operator).double(), domain, metrics)

    def outside(self, options: Options) -> list[tuple[BoolArray, str]]:
        """Return masks of rows outside the domain, each with its reason."""
        return self.domain.outside(options)

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        progress: Advance = None,
        workers: int | None = None,
    ) -> Values:
        """Return price and Greeks of options inside the domain; NaN where the network gives one."""
        leaves = tuple(dict.fromkeys(leaf for name in quantities for leaf in LEAVES[name]))
        twice = any(name in _SECOND for name in quantities)
        names = _derivatives(leaves, quantities)
        price = np.empty(len(options))
        slopes = {name: np.zeros(len(options)) for name in names}

        def work(some: list[Pack]) -> int:
            for pack, latent in self.encoded(options, some):
                terms = terms_of(options, pack.rows, self.device)
                with torch.no_grad():
                    value = self.above(terms, latent).cpu().numpy()
                found = self.priced(options.take(pack.rows.ravel()), value.ravel())
                pack.put(found.reshape(pack.rows.shape), into=price)
                if leaves:
                    turned = self.turned(first_rows(terms), leaves, twice=twice)
                    for name, values in self.differentiated(terms, latent, turned, names).items():
                        pack.put(values, into=slopes[name])
            return sum(int(pack.lengths.sum()) for pack in some)

        self.run(work, options, workers, progress)
        return self._combined(options, quantities, price, slopes, workers)

    def _combined(
        self,
        options: Options,
        quantities: Sequence[str],
        price: FloatArray,
        slopes: Values,
        workers: int | None,
    ) -> Values:
        """Turn derivatives into Greeks; theta follows from the equation that they solve."""
        S, K, slices = options.spot, options.strike, options.market_slices
        r, b, variance = slices.rate_now, slices.borrow_now, options.volatility**2
        values: Values = {"price": price}
        if "log_spot" in slopes:
            values["delta"] = K * slopes["log_spot"] / S
        if "log_spot log_spot" in slopes:
            values["gamma"] = K * (slopes["log_spot log_spot"] - slopes["log_spot"]) / S**2
            values["theta"] = (
                r * price - (r - b) * S * values["delta"] - 0.5 * variance * S**2 * values["gamma"]
            )
        for name, slope in (("vega", "volatility"), ("rho", "rate"), ("dividend_rho", "borrow")):
            if slope in slopes:
                values[name] = K * slopes[slope]
        if "vanna" in quantities:
            values["vanna"] = K * slopes["log_spot volatility"] / S
        if "volga" in quantities:
            values["volga"] = K * slopes["volatility volatility"]
        if "charm" in quantities:
            speed = self._speed(options, workers)
            values["charm"] = (
                b * values["delta"]
                - (r - b + variance) * S * values["gamma"]
                - 0.5 * variance * S**2 * speed
            )
        stopped(options, values, held(options, price))
        return {name: values[name] for name in quantities}

    def _speed(self, options: Options, workers: int | None) -> FloatArray:
        """Return the third derivative in spot, as a difference of gammas."""
        up, down = (
            self.evaluate(
                options.with_values(spot=(1.0 + k * _SPEED) * options.spot),
                ("gamma",),
                workers=workers,
            )
            for k in (1, -1)
        )
        return np.asarray((up["gamma"] - down["gamma"]) / (2.0 * _SPEED * options.spot))

    def slopes(self, options: Options, weight: FloatArray, workers: int | None = None) -> Slopes:
        """Differentiate Σ weight × price in every number that the slices hold.

        One backward pass through decoder, coding and encoder gives them all. What is to be
        exercised at once does not move.
        """
        price = self.evaluate(options, ("price",), workers=workers)["price"]
        counted = weight * options.strike * held(options, price)
        parts: list[Slopes] = []

        def work(some: list[Pack]) -> int:
            parts.extend(self.pack_slopes(options, pack, counted) for pack in some)
            return sum(int(pack.lengths.sum()) for pack in some)

        self.run(work, options, workers, None)
        parts.sort(key=lambda part: int(part.row[0]))  # threads end in any order
        width = max((part.cash.shape[1] for part in parts), default=0)
        columns: list[Any] = [
            np.concatenate([_widened(getattr(part, name), name, width) for part in parts])
            for name in Slopes._fields
        ]
        return Slopes(*columns)

    def exercise_boundary(self, options: Options) -> FloatArray:
        """Return the spot at which exercise begins; NaN where it is outside the domain.

        Read as :func:`pricing.surrogate.inverse.exercise_boundary` does. The spot moves the
        dividends over it, so every trial is encoded anew.
        """
        sign = np.where(options.is_call, 1.0, -1.0)
        low, high = self.domain.log_moneyness
        far = np.where(options.is_call, high, -low)

        def placed(x: FloatArray, rows: IntArray) -> Options:
            some = options.take(rows)
            return some.with_values(spot=some.strike * np.exp(sign[rows] * x))

        def at(time_value: float) -> FloatArray:
            def excess(x: FloatArray, rows: IntArray) -> FloatArray:
                some = placed(x, rows)
                price = self.evaluate(some, ("price",))["price"]
                paid = bounds.intrinsic(some.spot, some.strike, some.is_call)
                return np.asarray(time_value - (price - paid) / some.strike)

            ends = np.zeros(len(options)), far
            return find_roots(excess, ends, ends, tolerance=1e-6, residual=1e-9)

        near, middle, off = (at((n * BOUNDARY) ** 2) for n in (1, 2, 3))
        return placed(3.0 * near - 3.0 * middle + off, np.arange(len(options))).spot

    def implied_volatility(
        self,
        options: Options,
        price: FloatArray,
        progress: Advance = None,
        workers: int | None = None,
    ) -> tuple[FloatArray, BoolArray]:
        """Return the volatility inside the domain at which each option has its price, or NaN.

        Also return which are NaN because the network gave no number. Only coding and decoder are
        called repeatedly: an encoding does not know the volatility.
        """

        def excess(some: Options, value: FloatArray, rows: IntArray) -> FloatArray:
            return np.asarray((self.priced(some, value) - price[rows]) / some.strike)

        low, high = (np.full(len(options), end) for end in self.domain.volatility)
        closed = black_scholes.implied_volatility(price, *options.quoted_terms)
        start = np.clip(np.where(np.isnan(closed), high, closed), low, high)
        vega = black_scholes.evaluate(*options.quoted_terms[:5], start, options.is_call, ("vega",))
        search = Search(
            near=(np.maximum(0.6 * start, low), np.minimum(1.01 * start, high)),
            wide=(low, high),
            place=lambda some, volatility: some.with_values(volatility=volatility),
            excess=excess,
            guess=(start, np.maximum(vega["vega"] / options.strike, 1e-3)),
        )
        return roots(self.run, self._answers, options, search, progress, workers)

    def _answers(self, options: Options) -> Packs:
        """Return how the model answers the options of packs."""

        def packs(some: list[Pack]) -> Iterator[tuple[Pack, Answer]]:
            for pack, latent in self.encoded(options, some):
                yield pack, partial(self._answer, latent)

        return packs

    def _answer(self, latent: Tensor, some: Options, left: Pack, is_kept: BoolArray) -> FloatArray:
        with torch.no_grad():
            return self.above(terms_of(some, left.rows, self.device), latent[is_kept]).cpu().numpy()

    def price_error(self, options: Options) -> FloatArray:
        """Return the error that 99 of 100 rows like these stay below, as measured.

        What the formula of the floor may miss is added: where early exercise is worth nothing, that
        is all the error there is.
        """
        share = self._stated_error.of(place_of(options), self.scale(options))
        missed = cash_dividends.evaluate(options, options.market_slices, ("price_error",))
        return np.asarray(options.strike * share + missed["price_error"])

    def scale(self, options: Options) -> FloatArray:
        """Return the size of the network's part per unit strike, row by row."""
        found = np.empty(len(options))

        def work(some: list[Pack]) -> int:
            for pack in some:
                with torch.no_grad():
                    pack.put(code(terms_of(options, pack.rows)).scale.numpy(), into=found)
            return sum(int(pack.lengths.sum()) for pack in some)

        self.run(work, options, None, None)
        return found

    @cached_property
    def _stated_error(self) -> StatedError:
        if "stated_error" not in self.metrics:
            raise CheckpointError(
                "the market model has no measured errors: run `python -m pricing assess` on its "
                "folder"
            )
        bars = np.reshape(self.metrics["stated_error"]["bars"], LATTICE.shape)
        return StatedError(LATTICE, bars)


def _widened(column: FloatArray, name: str, width: int) -> FloatArray:
    """Return a column of slopes with as many payments as the widest part has."""
    if name not in ("cash", "rate_to", "borrow_to"):
        return column
    return np.asarray(np.pad(column, ((0, 0), (0, width - column.shape[1]))))


def _derivatives(leaves: Sequence[str], quantities: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the derivatives that quantities are made of."""
    names = list(leaves)
    if {"gamma", "theta", "charm"} & set(quantities):
        names.append("log_spot log_spot")
    if "vanna" in quantities:
        names.append("log_spot volatility")
    if "volga" in quantities:
        names.append("volatility volatility")
    return tuple(names)

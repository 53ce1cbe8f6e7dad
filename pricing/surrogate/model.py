"""Surrogates: trained operators that price books.

This is how a price is made. Rows of one market state share one encoding of it; a call's state is
that of the put it mirrors (:func:`pricing.surrogate.encoding.mirrored`). The decoder answers every
row, :meth:`pricing.surrogate.network.Network.above` turns the answer into the option's value above
a closed form, and :meth:`Surrogate._combine` adds the closed form. Greeks are the derivatives of
these very numbers: backwards through the decoder, by differences in float64 through the encoder,
and by formula for the closed form; they are then moved into their bounds
(:func:`pricing.bounds.project`). Rows that are to be exercised need none of this.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from amo import checkpoint
from amo.arrays import BoolArray, FloatArray
from amo.errors import CheckpointError
from pricing import bounds
from pricing.options import Options, Values
from pricing.progress import Advance
from pricing.surrogate import inverse
from pricing.surrogate.domain import Domain
from pricing.surrogate.encoding import (
    AMERICAN,
    EUROPEAN,
    mirrored,
)
from pricing.surrogate.exercise import held, stopped
from pricing.surrogate.greeks import DERIVATIVES, differentiate
from pricing.surrogate.grouping import Pack
from pricing.surrogate.network import Network
from pricing.surrogate.stated_error import StatedError

_SIGN = {"charm": -1.0}  # time passes as expiry shrinks


@dataclass(frozen=True)
class Surrogate(Network):
    """One trained operator that prices one exercise style.

    Attributes
    ----------
    domain
        Where it was trained; it is not used elsewhere.
    metrics
        Its measured errors, see :mod:`pricing.analysis.assessment`.
    """

    domain: Domain
    metrics: dict[str, Any]

    @classmethod
    def load(
        cls, folder: Path, device: torch.device | str = "cpu", *, is_measured: bool = True
    ) -> Self:
        """Read a model folder; the training set says what its numbers mean.

        Its metrics are read only if it ``is_measured``.
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

    def outside(self, options: Options) -> list[tuple[BoolArray, str]]:
        """Return masks of rows outside the surrogate's domain, each with its reason."""
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
        progress: Advance = None,
        workers: int | None = None,
    ) -> Values:
        """Return price and Greeks of options inside the domain; NaN where the network gives one."""
        wanted = tuple(dict.fromkeys(d for name in quantities for d in DERIVATIVES[name]))
        price = np.empty(len(options))
        above = {name: np.zeros(len(options)) for name in wanted}

        def work(some: list[Pack]) -> int:
            for pack, latent, turned in self.encoded(options, some, wanted):
                self._evaluate_pack(options, pack, latent, turned, price, above)
            return sum(int(pack.lengths.sum()) for pack in some)

        self.run(work, options, workers, progress)
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
        value, slopes = differentiate(
            self, self.tensors(options, pack), latent, turned, tuple(above)
        )
        some = options.take(pack.rows.ravel())
        pack.put(self.priced(some, value.ravel()).reshape(pack.rows.shape), into=price)
        for name, values in slopes.items():
            pack.put(values, into=above[name])

    def implied_volatility(
        self,
        options: Options,
        price: FloatArray,
        progress: Advance = None,
        workers: int | None = None,
    ) -> tuple[FloatArray, BoolArray]:
        """Return volatilities, NaN for none; see :func:`inverse.implied_volatility`."""
        return inverse.implied_volatility(self, self.domain, options, price, progress, workers)

    def exercise_boundary(self, options: Options) -> FloatArray:
        """Return the spot at which exercise begins; see :func:`inverse.exercise_boundary`."""
        return inverse.exercise_boundary(self, self.domain, options)

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

    def _combine(
        self, options: Options, quantities: Sequence[str], price: FloatArray, above: Values
    ) -> Values:
        """Add the closed form to Greeks; theta follows from the equation that they solve."""
        S, r, q = options.spot, options.rate, options.dividend_yield
        names = {*quantities, *(("delta", "gamma") if "theta" in quantities else ())}
        closed = self.coding.offset(*options.terms, tuple(names - {"price", "theta"}))
        values = {
            name: closed[name] + _SIGN.get(name, 1.0) * above[DERIVATIVES[name][0]]
            for name in closed
        }
        values["price"] = price
        values = bounds.project(options, values)
        if "theta" in quantities:
            values["theta"] = (
                r * values["price"]
                - (r - q) * S * values["delta"]
                - 0.5 * (options.volatility * S) ** 2 * values["gamma"]
            )
        if self.coding.is_american:
            self._stop(options, values)
        return {name: values[name] for name in quantities}

    def _held(self, options: Options, price: FloatArray) -> FloatArray:
        return held(options, price) if self.coding.is_american else np.ones(len(options))

    def _stop(self, options: Options, values: Values) -> None:
        """Give American options that are to be exercised the Greeks of their payoff."""
        if "theta" in values:  # more time never lowers the value
            values["theta"] = np.minimum(values["theta"], 0.0)
        stopped(options, values, held(options, values["price"]))

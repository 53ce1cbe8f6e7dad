"""Contract to operator coordinates, and the output form that keeps no-arbitrage bounds.

One place for both sides: training data are coded and surrogate answers decoded by these functions,
so the two cannot drift apart.

The market state (rate, dividend yield) is the operator's input function, given at two points. The
field it gives is the value of puts of unit strike over :class:`Put`'s other coordinates. With a
positive ``output``, and ``scale`` its natural size,

    American put = European put + scale × output,
    European put = √((gap/2)² + (scale × output)²) - gap/2.

The gap is the excess of the European call over the put, S e^{-qτ} - K e^{-rτ}, so that
scale × output is the geometric mean √(call × put): a smooth and even function of the log-forward,
with no kink where the option is at the money. Whatever the output, the put is positive, smooth and
in parity with its call. Calls follow from call(S, K, r, q) = put(K, S, q, r).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from amo.arrays import FloatArray
from amo.configuration import Link
from pricing import black_scholes

MAX_RATIO = 8.0  # of |ln F| / (σ√τ): beyond this, no time value is left to learn
STATE_POINTS = (-1.0, 1.0)  # where the input function is given: rate, dividend yield
_LEAST_RATE = 2.5e-4  # added to both rates where their ratio is taken: there may be none
_SMALL_RATE = 0.03  # below it the input function is about linear in the rate, above in ln rate
DIRECTIONS = ("log_moneyness", "volatility", "rate", "dividend_yield")  # of first derivatives


class Coded(NamedTuple):
    """Similarity coordinates and the output form of European options, per unit strike.

    price / strike = offset + scale × output: ``offset`` is the discounted payoff of the forward,
    below which no price falls, and ``scale`` = e^{-rτ} √F σ√τ removes size and time decay, so that
    the output is a smooth function of two coordinates with values in [0, 0.4]. At expiry the scale
    is zero and the payoff exact.
    """

    log_forward: FloatArray  # ln F, F the forward over the strike
    deviation: FloatArray  # σ√τ
    ratio: FloatArray  # ln F / (σ√τ), cut at ±MAX_RATIO
    offset: FloatArray
    scale: FloatArray


def code_european(
    log_moneyness: FloatArray,
    time_to_expiry: FloatArray,
    rate: FloatArray,
    dividend_yield: FloatArray,
    volatility: FloatArray,
    is_call: npt.ArrayLike,
) -> Coded:
    """Return coordinates and output form; arguments broadcast."""
    log_forward = log_moneyness + (rate - dividend_yield) * time_to_expiry
    deviation = np.broadcast_to(volatility * np.sqrt(time_to_expiry), log_forward.shape)
    forward = np.exp(log_forward)
    discount = np.exp(-rate * time_to_expiry)
    sign = np.where(is_call, 1.0, -1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(log_forward / deviation, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return Coded(
        log_forward=log_forward,
        deviation=deviation,
        ratio=np.clip(ratio, -MAX_RATIO, MAX_RATIO),
        offset=discount * np.maximum(sign * (forward - 1.0), 0.0),
        scale=discount * np.sqrt(forward) * deviation,
    )


class Put(NamedTuple):
    """Puts of unit strike: numpy arrays or torch tensors that broadcast."""

    log_moneyness: Any
    time_to_expiry: Any
    rate: Any
    dividend_yield: Any
    volatility: Any

    @property
    def terms(self) -> tuple[Any, float, Any, Any, Any, Any, bool]:
        """The arguments of the closed form, in its order."""
        x, expiry, rate, dividend_yield, volatility = self
        return np.exp(x), 1.0, expiry, rate, dividend_yield, volatility, False


def code_rate(rate: Any, xp: ModuleType = np) -> Any:  # noqa: ANN401  # array or tensor
    """Return ln(1 + rate / 3 %), the input function: premiums change fastest at small rates."""
    return xp.log1p(rate / _SMALL_RATE)


def rate_slope(rate: Any) -> Any:  # noqa: ANN401  # array or tensor
    """Return the derivative of :func:`code_rate`."""
    return 1.0 / (_SMALL_RATE + rate)


def rate_of(code: FloatArray) -> FloatArray:
    """Undo :func:`code_rate`."""
    return np.asarray(_SMALL_RATE * np.expm1(code))


def mirrored(
    spot: Any,  # noqa: ANN401  # arrays or tensors
    strike: Any,  # noqa: ANN401
    expiry: Any,  # noqa: ANN401
    rate: Any,  # noqa: ANN401
    dividend_yield: Any,  # noqa: ANN401
    volatility: Any,  # noqa: ANN401
    is_call: Any,  # noqa: ANN401
    xp: ModuleType = np,
) -> tuple[Put, Any]:
    """Return the put of unit strike, and the unit to multiply its value by.

    A put is divided by its strike; a call becomes the put of the same value,
    call(S, K, r, q) = put(K, S, q, r).
    """
    log_moneyness = xp.log(spot / strike)
    put = Put(
        xp.where(is_call, -log_moneyness, log_moneyness),
        expiry,
        xp.where(is_call, dividend_yield, rate),
        xp.where(is_call, rate, dividend_yield),
        volatility,
    )
    return put, xp.where(is_call, spot, strike)


@dataclass(frozen=True, kw_only=True)
class Coding:
    """How one exercise style is coded.

    ``queries``, ``scale`` and ``gap`` are pure functions of a put and of the array module, numpy or
    torch, so the same lines make training data and are differentiated when serving.

    Attributes
    ----------
    name
        Of the training set, the preset and the model folder.
    version
        Increases when the same numbers change meaning: models of another version are refused.
    queries
        The coordinates of the field, each of about unit size, on a new last axis.
    scale
        The size of the output; for an American option the most its price can exceed the offset.
    gap
        The excess of the call over the put, where the output is their geometric mean.
    n_queries
        How many coordinates the field has.
    link
        What maps the model's output into its possible range: positive, or between 0 and 1.
    unit, reach
        For training: the unit of price errors, and the length of a step along log-moneyness and
        along volatility. Near expiry prices vary on the scale of σ√τ.
    """

    name: str
    version: int
    is_american: bool
    queries: Callable[[Put, ModuleType], Any]
    scale: Callable[[Put, ModuleType], Any]
    gap: Callable[[Put, ModuleType], Any] | None
    n_queries: int
    link: Link
    unit: Callable[[Put], FloatArray]
    reach: Callable[[Put], tuple[FloatArray, FloatArray]]

    def offset(
        self,
        spot: FloatArray,
        strike: npt.ArrayLike,
        expiry: FloatArray,
        rate: FloatArray,
        dividend_yield: FloatArray,
        volatility: FloatArray,
        is_call: npt.ArrayLike,
        quantities: Sequence[str],
    ) -> dict[str, FloatArray]:
        """Return the closed form that the output is added to: European values, or zeros."""
        if self.is_american:
            return black_scholes.evaluate(
                spot, strike, expiry, rate, dividend_yield, volatility, is_call, quantities
            )
        terms = (spot, strike, expiry, rate, dividend_yield, volatility)
        shape = np.broadcast_shapes(*map(np.shape, terms))
        return {name: np.zeros(shape) for name in quantities}

    def query_tangents(self, put: Put) -> FloatArray:
        """Return the derivatives of the queries, (..., directions, coordinates)."""
        return np.stack([_derivative(self.queries, put, name) for name in DIRECTIONS], axis=-2)


def tangents(function: Callable[[Put, ModuleType], Any], put: Put) -> FloatArray:
    """Return the derivatives of a scale or gap, (..., directions)."""
    return np.stack([_derivative(function, put, name) for name in DIRECTIONS], axis=-1)


def _derivative(
    function: Callable[[Put, ModuleType], Any], put: Put, name: str, step: float = 1e-30
) -> FloatArray:
    """Differentiate by a complex step: Im f(x + ih) / h has no cancellation."""
    wide = Put(*np.broadcast_arrays(*put))
    moved = wide._replace(**{name: getattr(wide, name) + 1j * step})
    return np.asarray(function(moved, np).imag / step)


def _deviation(put: Put, xp: ModuleType) -> Any:  # noqa: ANN401  # array or tensor
    """Return σ√τ."""
    return put.volatility * xp.sqrt(put.time_to_expiry)


def _log_forward(put: Put) -> Any:  # noqa: ANN401
    return put.log_moneyness + (put.rate - put.dividend_yield) * put.time_to_expiry


def _bounded(ratio: Any, xp: ModuleType) -> Any:  # noqa: ANN401
    return MAX_RATIO * xp.tanh(ratio / MAX_RATIO) / 3.0


def _side_by_side(columns: list[Any], xp: ModuleType) -> Any:  # noqa: ANN401
    """Stack columns on a new last axis; arrays may still have to be broadcast, tensors are."""
    return xp.stack(np.broadcast_arrays(*columns) if xp is np else columns, -1)


def _european_queries(put: Put, xp: ModuleType) -> Any:  # noqa: ANN401
    """Return coordinates that grow with |ln F| / (σ√τ) and with σ√τ.

    √(call × put) over its scale depends on nothing else, is even in the first and analytic in the
    second down to zero: so are the coordinates.
    """
    deviation = _deviation(put, xp)
    ratio = _log_forward(put) / deviation
    distance = xp.sqrt(1.0 + ratio * ratio)
    return _side_by_side([_bounded(distance, xp) - 1.3, xp.log1p(deviation / 0.3) - 1.0], xp)


def _european_scale(put: Put, xp: ModuleType) -> Any:  # noqa: ANN401
    """Return e^{-rτ} √F σ√τ: size and time decay of the time value."""
    return _deviation(put, xp) * xp.exp(0.5 * _log_forward(put) - put.rate * put.time_to_expiry)


def _european_gap(put: Put, xp: ModuleType) -> Any:  # noqa: ANN401
    """Return e^{-rτ} (F - 1): the value of a forward."""
    return xp.exp(-put.rate * put.time_to_expiry) * xp.expm1(_log_forward(put))


def above_limit(put: Put, xp: ModuleType = np) -> Any:  # noqa: ANN401
    """Return how far ln(S/K) lies above ln(r/q), to which the exercise boundary tends if r < q.

    An exercised put of unit strike earns r and costs q S/K, which are equal there. Where rates are
    small, the premium depends on their ratio: this resolves what the rates themselves do not.
    """
    ratio = (put.rate + _LEAST_RATE) / (put.dividend_yield + _LEAST_RATE)
    return put.log_moneyness - xp.log(ratio)


def _american_queries(put: Put, xp: ModuleType) -> Any:  # noqa: ANN401
    """Return ln F / (σ√τ), ln σ√τ, √τ, ln S/K and what exercise pays; there is no similarity form.

    What it pays is given twice: as (q S/K - r) / (q S/K + r), the tanh of half of
    :func:`above_limit`, and as the distance above the limit in units of σ√τ.
    """
    deviation = _deviation(put, xp)
    inverse = 1.0 / deviation
    above = above_limit(put, xp)
    columns = [
        _bounded(_log_forward(put) * inverse, xp),
        xp.log(deviation) + 1.3,
        xp.sqrt(put.time_to_expiry) - 0.9,
        put.log_moneyness,
        xp.tanh(0.5 * above),
        _bounded(above * inverse, xp),
    ]
    return _side_by_side(columns, xp)


def _american_scale(put: Put, xp: ModuleType) -> Any:  # noqa: ANN401
    """Return 1 - e^{-rτ}: no right to exercise early is worth more than the strike's interest."""
    return -xp.expm1(-put.rate * put.time_to_expiry) + 0.0 * put.log_moneyness


EUROPEAN = Coding(
    name="european",
    version=2,  # version 1 learned the put above its payoff
    is_american=False,
    queries=_european_queries,
    scale=_european_scale,
    gap=_european_gap,
    n_queries=2,
    link="softplus",
    unit=lambda put: np.hypot(_deviation(put, np), _european_gap(put, np)),
    reach=lambda put: (_deviation(put, np), put.volatility),
)
AMERICAN = Coding(
    name="american",
    version=2,  # version 1 did not see what exercise pays
    is_american=True,
    queries=_american_queries,
    scale=_american_scale,
    gap=None,
    n_queries=6,
    link="sigmoid",
    unit=lambda put: np.ones_like(put.log_moneyness),
    reach=lambda put: (np.minimum(1.0, _deviation(put, np) / 0.025), np.ones_like(put.volatility)),
)

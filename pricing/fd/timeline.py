"""Time steps from expiry to now that stop at every payment and at every moment to be kept.

Steps grow from expiry to the last ex-date, because the exercise boundary moves like √τ there, and
are even before it. The first two after a kink (the payoff, a payment) are damped, and those after a
stop that follows at once: each is replaced by two implicit half steps. Contracts solved together
share the number of steps between two stops, not their lengths.
"""

from dataclasses import dataclass

import numpy as np

from amo.arrays import BoolArray, FloatArray, IntArray
from pricing.markets.slices import Slices

_DAMPED = 2  # steps after a kink
_FEWEST = 6  # steps between two kinks, at the least: with fewer, errors grow with the payments


@dataclass(frozen=True)
class Stops:
    """Where the march stops, backwards in time; arrays are (contracts, stops).

    Attributes
    ----------
    time
        Years from now, falling.
    cash, proportion
        What is paid then; nothing at moments that are only kept.
    keep
        The number of the kept moment, -1 at payments.
    """

    time: FloatArray
    cash: FloatArray
    proportion: FloatArray
    keep: IntArray

    @classmethod
    def of(cls, slices: Slices, kept: FloatArray) -> "Stops":
        """Merge payments with moments to be kept (contracts, moments); of a tie, payments first.

        What is kept of the moment of a payment is the value before it.
        """
        time = np.concatenate([slices.time, kept], axis=1)
        order = np.argsort(-time, axis=1, kind="stable")
        nothing = np.zeros_like(kept)
        names = np.broadcast_to(np.arange(kept.shape[1]), kept.shape)
        columns = (
            time,
            np.concatenate([slices.cash, nothing], axis=1),
            np.concatenate([slices.proportion, nothing], axis=1),
            np.concatenate([np.full(slices.time.shape, -1), names], axis=1),
        )
        return cls(*(np.take_along_axis(column, order, axis=1) for column in columns))

    @property
    def is_kink(self) -> BoolArray:
        """Where something is paid."""
        return np.asarray((self.cash > 0) | (self.proportion > 0))


@dataclass(frozen=True)
class Steps:
    """Steps of contracts solved together; arrays are (contracts, steps) but for ``cut``.

    Attributes
    ----------
    start, end
        Years from now, start > end: the march goes backwards.
    theta
        1 where the step is implicit, ½ for Crank–Nicolson.
    cut
        (steps,): which stop the step reaches, -1 on the way to one and at the last.
    """

    start: FloatArray
    end: FloatArray
    theta: FloatArray
    cut: IntArray


def lay_steps(stops: Stops, expiry: FloatArray, n_time: int, refinement: int) -> Steps:
    """Lay about ``n_time`` steps, each cut into ``refinement`` equal parts of its own scale."""
    one = np.zeros((len(expiry), 1))
    tau = expiry[:, None] - np.concatenate([expiry[:, None], stops.time, one], axis=1)
    tau = np.maximum.accumulate(np.maximum(tau, 0.0), axis=1)
    is_kink = np.concatenate([np.ones_like(one, dtype=np.bool_), stops.is_kink], axis=1)
    graded = _until_last_payment(tau, is_kink)
    graded_scale = np.sqrt(tau * graded)  # steps up to a moment, in years of even ones
    scale = np.where(tau <= graded, graded_scale, tau) / np.maximum(expiry[:, None], 1e-300)
    need = np.diff(scale, axis=1).max(axis=0)
    since, share = _since_payment(tau, is_kink)
    least = np.ceil(_FEWEST * share - 1e-9).max(axis=0)
    fewest = np.maximum(least, np.where(is_kink.any(axis=0), _DAMPED, 1))
    is_damped = is_kink | (since < expiry[:, None] / n_time)  # of an interval, its first steps
    counts = np.maximum(np.round(n_time * need / max(need.sum(), 1e-300)), fewest).astype(int)
    ends, theta, cut = [], [], []
    for number, count in enumerate((counts * refinement).tolist()):
        levels = _levels(tau[:, number], tau[:, number + 1], graded[:, 0], count)
        index = np.arange(1, count + 1, dtype=np.float64)
        n_damped = min(_DAMPED, count) if is_damped[:, number].any() else 0
        index = np.sort(np.concatenate([index, np.arange(n_damped) + 0.5]))
        before, after = np.floor(index).astype(int), np.ceil(index).astype(int)
        ends.append(0.5 * (levels[:, before] + levels[:, after]))
        implicit = is_damped[:, number, None] & (index <= n_damped)
        theta.append(np.where(implicit, 1.0, 0.5))
        reached = np.full(len(index), -1)
        reached[-1] = number if number < len(counts) - 1 else -1
        cut.append(reached)
    end = expiry[:, None] - np.concatenate(ends, axis=1)
    return Steps(
        start=np.concatenate([expiry[:, None], end[:, :-1]], axis=1),
        end=end,
        theta=np.concatenate(theta, axis=1),
        cut=np.concatenate(cut),
    )


def _since_payment(tau: FloatArray, is_kink: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return for each interval between stops the time since a kink, and its share of the time.

    The share is that of the way from the kink before it to the one after it.
    """
    before = np.maximum.accumulate(np.where(is_kink, tau[:, :-1], 0.0), axis=1)
    later = np.concatenate([np.where(is_kink[:, 1:], tau[:, 1:-1], np.inf), tau[:, -1:]], axis=1)
    after = np.minimum.accumulate(later[:, ::-1], axis=1)[:, ::-1]
    span = after - before
    share = np.divide(np.diff(tau, axis=1), span, where=span > 0, out=np.ones_like(span))
    return tau[:, :-1] - before, share


def _until_last_payment(tau: FloatArray, is_kink: BoolArray) -> FloatArray:
    """Return the time from the last payment to expiry, (contracts, 1): all of it without any."""
    at_payments = np.where(is_kink[:, 1:] & (tau[:, 1:-1] > 0), tau[:, 1:-1], np.inf)
    last = at_payments.min(axis=1, keepdims=True, initial=np.inf)
    return np.asarray(np.minimum(last, tau[:, -1:]))


def _levels(start: FloatArray, end: FloatArray, graded: FloatArray, count: int) -> FloatArray:
    """Return ``count`` + 1 times to expiry from start to end: even in √τ where steps grow."""
    share = np.arange(count + 1) / count
    even = start[:, None] + (end - start)[:, None] * share
    a, b = np.sqrt(start)[:, None], np.sqrt(end)[:, None]
    grows = (end <= graded)[:, None]
    return np.where(grows, (a + (b - a) * share) ** 2, even)

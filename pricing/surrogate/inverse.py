"""A network's answers inverted: implied volatilities and exercise boundaries.

Only the decoder is called repeatedly: volatility and spot are among its coordinates.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from amo.arrays import BoolArray, FloatArray, IntArray
from pricing import black_scholes
from pricing.options import Options
from pricing.progress import Advance
from pricing.roots import Bracket, find_roots, secant_roots
from pricing.surrogate.domain import Domain
from pricing.surrogate.encoding import mirrored
from pricing.surrogate.grouping import Pack
from pricing.surrogate.network import Network

BOUNDARY = 0.02  # square root of the first time value from which the boundary is read
_TOLERANCE = 1e-6  # of implied volatilities and of the logarithm of boundaries
_STEP = 3e-4  # of implied volatilities: a last secant of that length is far more exact
_FLATTEST = 1e-3  # vega per unit strike that a first step is taken with, at the least
_RESIDUAL = 1e-8  # per unit strike: far below the surrogate's error
_NEAR_EUROPEAN, _NEAR_AMERICAN = (0.97, 1.03), (0.6, 1.001)  # of the closed form's volatility


# The values of some options, in packs of states: (options, positions, which states are among them).
Answer = Callable[[Options, Pack, BoolArray], FloatArray]
Packs = Callable[[list[Pack]], Iterator[tuple[Pack, Answer]]]
# Finds a root for each row: of the excess at some x, and of the rows it is asked for.
Find = Callable[[Callable[[FloatArray, IntArray], FloatArray], IntArray], FloatArray]


class Search(NamedTuple):
    """What is searched for every row.

    Attributes
    ----------
    near, wide
        Where the root probably is, and where it must be.
    place
        Puts x into options.
    excess
        Of the options with x, their values and their rows: zero at the root.
    guess
        Of x, and of the slope of the excess there.
    """

    near: Bracket
    wide: Bracket
    place: Callable[[Options, FloatArray], Options]
    excess: Callable[[Options, FloatArray, IntArray], FloatArray]
    guess: tuple[FloatArray, FloatArray] | None = None


def implied_volatility(
    network: Network,
    domain: Domain,
    options: Options,
    price: FloatArray,
    progress: Advance = None,
    workers: int | None = None,
) -> tuple[FloatArray, BoolArray]:
    """Return the volatility inside the domain at which each option has its price, or NaN.

    Also return which are NaN because the network gave no number.

    Only the decoder is called repeatedly: volatility is one of its coordinates. The search begins
    near the closed form's volatility, which that of an American option does not exceed.
    """

    def place(some: Options, volatility: FloatArray) -> Options:
        return some.with_values(volatility=volatility)

    def excess(some: Options, above: FloatArray, rows: IntArray) -> FloatArray:
        return np.asarray((network.priced(some, above) - price[rows]) / some.strike)

    low, high = (np.full(len(options), end) for end in domain.volatility)
    closed = black_scholes.implied_volatility(price, *options.quoted_terms)
    closed = np.where(np.isnan(closed), high, closed)
    below, above = _NEAR_AMERICAN if network.coding.is_american else _NEAR_EUROPEAN
    near = np.clip(below * closed, low, high), np.clip(above * closed, low, high)
    start = np.clip(closed, low, high)
    vega = black_scholes.evaluate(*options.quoted_terms[:5], start, options.is_call, ("vega",))
    slope = np.maximum(vega["vega"] / options.strike, _FLATTEST)
    search = Search(near, (low, high), place, excess, (start, slope))
    return roots(network.run, partial(_answers, network), options, search, progress, workers)


def exercise_boundary(network: Network, domain: Domain, options: Options) -> FloatArray:
    """Return the spot at which exercise begins; NaN where it is outside the domain.

    ``options.spot`` is not read. At the boundary the time value has a double zero, so its square
    root is about linear in log-spot: it is read at three levels, well above the surrogate's error,
    and extrapolated to zero.
    """
    if not network.coding.is_american:
        raise ValueError("only Americans have an exercise boundary")

    def place(some: Options, x: FloatArray) -> Options:
        return some.with_values(spot=some.strike * np.exp(np.where(some.is_call, -x, x)))

    def log_moneyness_at(time_value: float) -> FloatArray:
        def excess(some: Options, above: FloatArray, _: IntArray) -> FloatArray:
            price = network.coding.offset(*some.terms, ("price",))["price"] + above
            put, unit = mirrored(*some.terms)
            return np.asarray(price / unit + np.expm1(put.log_moneyness) - time_value)

        start = np.full(len(options), domain.log_moneyness[0])
        bracket = (start, np.zeros(len(options)))
        search = Search(bracket, bracket, place, excess)
        return roots(network.run, partial(_answers, network), options, search)[0]

    near, middle, far = (log_moneyness_at((n * BOUNDARY) ** 2) for n in (1, 2, 3))
    return place(options, 3.0 * near - 3.0 * middle + far).spot


def _answers(network: Network, options: Options) -> Packs:
    """Return how a network answers the options of packs above the closed form."""

    def packs(some: list[Pack]) -> Iterator[tuple[Pack, Answer]]:
        for pack, latent, _ in network.encoded(options, some, ()):
            yield pack, partial(_above, network, latent)

    return packs


def _above(
    network: Network, latent: Tensor, some: Options, left: Pack, is_kept: BoolArray
) -> FloatArray:
    with torch.no_grad():
        rows = network.tensors(some, left)
        return network.above(network.operator, rows, latent[is_kept]).cpu().numpy()


def roots(
    run: Callable[[Callable[[list[Pack]], int], Options, int | None, Advance], None],
    answers: Callable[[Options], Packs],
    options: Options,
    search: Search,
    progress: Advance = None,
    workers: int | None = None,
) -> tuple[FloatArray, BoolArray]:
    """Solve excess(x) = 0 for every row; NaN if there is no x.

    With a guess, secants come first, and the bracketed search is for the few rows where they do
    not end, gathered anew. Also return where the network gave no number.
    """
    result = np.full(len(options), np.nan)
    is_lost = np.zeros(len(options), dtype=np.bool_)

    def solve(chosen: IntArray, find: Find, progress: Advance) -> None:
        among = options.take(chosen)
        packs = answers(among)

        def work(some: list[Pack]) -> int:
            for pack, answer in packs(some):
                rows = chosen[pack.rows[pack.is_row]]
                at = _excess(pack, answer, options, rows, search, is_lost)
                result[rows] = find(at, rows)
            return sum(int(pack.lengths.sum()) for pack in some)

        run(work, among, workers, progress)

    def by_secants(at: Callable[..., FloatArray], rows: IntArray) -> FloatArray:
        ends = search.wide[0][rows], search.wide[1][rows]
        start, slope = (values[rows] for values in cast("Bracket", search.guess))
        return secant_roots(at, start, slope, ends, tolerance=_STEP, residual=_RESIDUAL)

    def in_brackets(at: Callable[..., FloatArray], rows: IntArray) -> FloatArray:
        near, wide = ((low[rows], high[rows]) for low, high in (search.near, search.wide))
        return find_roots(at, near, wide, tolerance=_TOLERANCE, residual=_RESIDUAL)

    every = np.arange(len(options))
    if search.guess is None:
        solve(every, in_brackets, progress)
        return result, is_lost
    solve(every, by_secants, progress)
    if np.isnan(result).any():
        solve(np.flatnonzero(np.isnan(result)), in_brackets, None)
    return result, is_lost


def _excess(
    pack: Pack,
    answer: Answer,
    options: Options,
    rows: IntArray,
    search: Search,
    is_lost: BoolArray,
) -> Callable[[FloatArray, IntArray], FloatArray]:
    """Return the excess at some x of some of a pack's rows, noting where there is no number."""
    value = _of_some(pack, answer)

    def at(x: FloatArray, position: IntArray) -> FloatArray:
        placed = search.place(options.take(rows[position]), x)
        found = value(placed, position)
        is_lost[rows[position]] |= ~np.isfinite(found)
        return search.excess(placed, found, rows[position])

    return at


def _of_some(pack: Pack, answer: Answer) -> Callable[[Options, IntArray], FloatArray]:
    """Return a function that answers some of a pack's options, given by their numbers in it."""
    # rows of one state are adjacent, here and among those left
    numbers = Pack(np.cumsum(pack.is_row).reshape(pack.rows.shape) - 1, pack.lengths)

    def value(some: Options, position: IntArray) -> FloatArray:
        is_left = np.zeros(pack.lengths.sum(), dtype=np.bool_)
        is_left[position] = True
        left, is_kept = numbers.narrowed(pack.is_row & is_left[numbers.rows])
        among = np.cumsum(is_left) - 1  # from row numbers to positions among those left
        left = Pack(among[left.rows], left.lengths)
        values = np.empty(len(some))
        left.put(answer(some, left, is_kept), into=values)
        return values

    return value

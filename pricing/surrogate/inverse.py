"""A network's answers inverted: implied volatilities and exercise boundaries.

Only the decoder is called repeatedly: volatility and spot are among its coordinates.
"""

from collections.abc import Callable

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

_BOUNDARY = 0.02  # square root of the first time value from which the boundary is read
_TOLERANCE = 1e-6  # of implied volatilities and of the logarithm of boundaries
_STEP = 3e-4  # of implied volatilities: a last secant of that length is far more exact
_FLATTEST = 1e-3  # vega per unit strike that a first step is taken with, at the least
_RESIDUAL = 1e-8  # per unit strike: far below the surrogate's error
_NEAR_EUROPEAN, _NEAR_AMERICAN = (0.97, 1.03), (0.6, 1.001)  # of the closed form's volatility


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
    return _roots(
        network, options, near, (low, high), place, excess, progress, workers, (start, slope)
    )


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
        return _roots(network, options, bracket, bracket, place, excess)[0]

    near, middle, far = (log_moneyness_at((n * _BOUNDARY) ** 2) for n in (1, 2, 3))
    return place(options, 3.0 * near - 3.0 * middle + far).spot


def _roots(
    network: Network,
    options: Options,
    near: Bracket,
    wide: Bracket,
    place: Callable[[Options, FloatArray], Options],
    excess: Callable[[Options, FloatArray, IntArray], FloatArray],
    progress: Advance = None,
    workers: int | None = None,
    guess: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, BoolArray]:
    """Solve excess(x) = 0 for every row, where ``place`` puts x into options; NaN if none.

    With a guess of x and of the slope there, secants come first, and the bracketed search is for
    the rows where they do not end. Also return where the network gave no number.
    """
    result = np.full(len(options), np.nan)
    is_lost = np.zeros(len(options), dtype=np.bool_)

    def work(some: list[Pack]) -> int:
        for pack, latent, _ in network.encoded(options, some, ()):
            rows = pack.rows[pack.is_row]
            value = _decoder(network, pack, latent)

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

            ends = (wide[0][rows], wide[1][rows])
            if guess is not None:
                start, slope = (values[rows] for values in guess)
                result[rows] = secant_roots(
                    at, start, slope, ends, tolerance=_STEP, residual=_RESIDUAL
                )
            left = np.flatnonzero(np.isnan(result[rows]))

            def among(
                x: FloatArray,
                position: IntArray,
                left: IntArray = left,
                at: Callable[[FloatArray, IntArray], FloatArray] = at,
            ) -> FloatArray:
                return at(x, left[position])

            if len(left):
                result[rows[left]] = find_roots(
                    among,
                    (near[0][rows[left]], near[1][rows[left]]),
                    (ends[0][left], ends[1][left]),
                    tolerance=_TOLERANCE,
                    residual=_RESIDUAL,
                )
        return sum(int(pack.lengths.sum()) for pack in some)

    network.run(work, options, workers, progress)
    return result, is_lost


def _decoder(
    network: Network, pack: Pack, latent: Tensor
) -> Callable[[Options, IntArray], FloatArray]:
    """Return a function that decodes some of a pack's options, given by their numbers in it."""
    # rows of one state are adjacent, here and among those left
    numbers = Pack(np.cumsum(pack.is_row).reshape(pack.rows.shape) - 1, pack.lengths)

    def value(some: Options, position: IntArray) -> FloatArray:
        is_left = np.zeros(pack.lengths.sum(), dtype=np.bool_)
        is_left[position] = True
        left, is_kept = numbers.narrowed(pack.is_row & is_left[numbers.rows])
        among = np.cumsum(is_left) - 1  # from row numbers to positions among those left
        left = Pack(among[left.rows], left.lengths)
        with torch.no_grad():
            above = network.above(network.operator, network.tensors(some, left), latent[is_kept])
        values = np.empty(len(some))
        left.put(above.cpu().numpy(), into=values)
        return values

    return value

"""Random markets with regular dividends, and contracts under them: to learn from and to measure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from amo.arrays import FloatArray, IntArray
from pricing.markets.curve import Curves
from pricing.markets.slices import Slices
from pricing.options import Options
from pricing.surrogate.market_domain import MarketDomain

SPOT = 100.0
AXES = ("expiry", "rate", "rate_then", "borrow", "kind", "first", "cash_yield", "growth")
_PERIODS = (0.25, 0.5, 1.0)  # years between dividends
_OFTEN = (0.55, 0.75, 0.85)  # how many markets have at most these; the others have no dividends
_LAST = 1.0 - 2.0**-30  # of even numbers
_NODES = 4  # of a curve, at random times
_SLOPE, _NOISE = 0.03, 0.02  # of forwards: from now to expiry, and of each in units of the highest


class Drawn(NamedTuple):
    """Markets per unit spot: arrays (markets, …)."""

    expiry: FloatArray
    time: FloatArray
    cash: FloatArray
    rates: Curves
    borrows: Curves


def random_schedules(
    domain: MarketDomain,
    n: int,
    rng: np.random.Generator,
    n_contracts: int = 8,
    *,
    on_ends: bool = False,
) -> Options:
    """Draw ``n`` American options of spot 100 inside a domain, several under each market.

    With ``on_ends``, every coordinate has an even chance of lying on an end of its range, and so
    do volatility and moneyness.
    """
    n_markets = 64 + 3 * n // n_contracts  # some lie outside
    u = rng.random((len(AXES), n_markets))
    if on_ends:
        u = np.where(rng.random(u.shape) < 0.5, np.where(rng.random(u.shape) < 0.5, 0.0, 1.0), u)
    even = dict(zip(AXES, np.minimum(u, _LAST), strict=True))
    options = draw_contracts(domain, draw_markets(domain, even, rng), n_contracts, rng)
    if on_ends:
        options = _pushed(domain, options, rng)
    slices = options.market_slices
    options = options.with_values(spot=SPOT * options.spot, strike=SPOT * options.strike)
    options = options.with_slices(replace(slices, cash=SPOT * slices.cash))
    inside = ~np.any([mask for mask, _ in domain.outside(options)], axis=0)
    if inside.sum() < n:
        raise ValueError(f"only {inside.sum()} of {len(options)} contracts are in the domain")
    return options.take(np.flatnonzero(inside)[:n])


def _pushed(domain: MarketDomain, options: Options, rng: np.random.Generator) -> Options:
    """Put half of the volatilities and a third of the strikes on ends and special values."""
    n = len(options)
    low, high = domain.volatility
    volatility = np.where(rng.random(n) < 0.5, rng.choice([low, high], n), options.volatility)
    forward = (options.rate - options.dividend_yield) * options.expiry
    special = [*(0.999999 * end for end in domain.log_moneyness), 0.0, 1e-9]
    x = np.where(rng.random(n) < 0.2, -forward, rng.choice(special, n))
    x = np.clip(x, special[0], special[1])
    is_moved = rng.random(n) < 1 / 3
    return options.with_values(
        volatility=volatility, strike=np.where(is_moved, options.spot * np.exp(-x), options.strike)
    )


def draw_markets(
    domain: MarketDomain, u: Mapping[str, FloatArray], rng: np.random.Generator
) -> Drawn:
    """Draw expiries, curves and schedules: from even numbers in [0, 1), and noise."""
    n = len(u["expiry"])
    low, high = np.sqrt(domain.expiry)
    expiry = (low + (high - low) * u["expiry"]) ** 2  # long ones have the larger premiums
    kind = np.searchsorted(_OFTEN, u["kind"], side="right")
    period = np.array([*_PERIODS, np.inf])[kind]
    number = np.arange(domain.payments)
    regular = np.where(np.isinf(period), 0.0, period)
    jitter = rng.uniform(-0.04, 0.04, (n, len(number)))
    steps = regular[:, None] * (number + jitter)
    time = np.where(np.isinf(period)[:, None], np.inf, steps + (regular * u["first"])[:, None])
    time = np.maximum(time, 0.0)
    growth = (1.3 * u["growth"] - 0.3)[:, None]
    size = domain.cash_yield * (u["cash_yield"] * regular)[:, None]
    cash = size * (1.0 + 0.5 * growth * steps) * (1.0 + rng.uniform(-0.2, 0.2, time.shape))
    is_made = time <= expiry[:, None]
    return Drawn(
        expiry,
        np.where(is_made, time, expiry[:, None]),
        np.where(is_made, np.maximum(cash, 0.0), 0.0),
        _curves(domain.rate, u["rate"], u["rate_then"], expiry, rng),
        _curves(domain.borrow, u["borrow"], u["borrow"], expiry, rng),
    )


def _curves(
    bounds: tuple[float, float],
    now: FloatArray,
    then: FloatArray,
    expiry: FloatArray,
    rng: np.random.Generator,
) -> Curves:
    """Draw forwards between nodes at random times: on a line, with noise."""
    n, top = len(now), bounds[1]
    ends = [bounds[0] + (top - bounds[0]) * end**1.5 for end in (now, then)]  # more small ones
    close = ends[0] + np.clip(ends[1] - ends[0], -_SLOPE, _SLOPE)
    share = np.sort(rng.random((n, _NODES - 1)), axis=1)
    share = np.concatenate([share, np.full((n, 1), 1.01)], axis=1)
    middle = 0.5 * (share + np.concatenate([np.zeros((n, 1)), share[:, :-1]], axis=1))
    forward = ends[0][:, None] + (close - ends[0])[:, None] * middle
    forward = np.clip(forward + rng.normal(0.0, _NOISE * top, forward.shape), bounds[0], top)
    times = np.concatenate([np.zeros((n, 1)), expiry[:, None] * share], axis=1)
    totals = np.cumsum(np.diff(times, axis=1) * forward, axis=1)
    return Curves(times, np.concatenate([np.zeros((n, 1)), totals], axis=1))


def draw_contracts(
    domain: MarketDomain,
    drawn: Drawn,
    n_contracts: int,
    rng: np.random.Generator,
) -> Options:
    """Draw contracts of unit spot under markets; half of the strikes around the forward."""
    n = len(drawn.expiry)
    shape = (n, n_contracts)
    low, high = (end**0.25 for end in domain.volatility)
    volatility = (low + (high - low) * rng.random(shape)) ** 4
    expiry = np.broadcast_to(drawn.expiry[:, None], shape)
    deviation = volatility * np.sqrt(expiry)
    number = np.arange(n)
    carry = drawn.rates.integral(drawn.expiry, number) - drawn.borrows.integral(
        drawn.expiry, number
    )
    forward = (carry - drawn.cash.sum(axis=1))[:, None]
    around = forward + 1.3 * deviation * rng.normal(size=shape)
    widest = max(map(abs, domain.log_moneyness))
    over = rng.uniform(-widest, widest, shape)
    x = np.where(rng.random(shape) < 0.5, around, over)
    x = np.where(np.abs(x) > widest, over, x)
    is_call = np.arange(n_contracts) % 2 == 0
    options = Options.of(
        spot=1.0,
        strike=np.exp(x),
        expiry=expiry,
        rate=0.0,
        dividend_yield=0.0,
        volatility=volatility,
        is_call=np.broadcast_to(is_call, shape),
        is_american=True,
    )
    return _under(options, drawn, np.repeat(number, n_contracts))


def _under(options: Options, drawn: Drawn, number: IntArray) -> Options:
    """Put options of unit spot under markets, each under that of its number."""
    cash = drawn.cash[number]
    slices = Slices(
        rates=drawn.rates,
        borrows=drawn.borrows,
        number=number,
        time=drawn.time[number],
        cash=cash,
        proportion=np.zeros_like(cash),
        n_payments=(drawn.cash[number] > 0).sum(axis=1),
        start=np.zeros(len(options)),
    )
    return options.with_slices(slices).at_forwards()

"""Random contracts and books, for measuring."""

from collections.abc import Mapping

import numpy as np

from pricing.markets.market import Market
from pricing.markets.slices import Slices
from pricing.options import Options

STRIKE = 100.0
N_STATES = 200  # market states of a book
BOX: Mapping[str, tuple[float, float]] = {
    "log_moneyness": (-0.5, 0.5),
    "expiry": (0.05, 2.0),
    "volatility": (0.1, 0.6),
    "rate": (0.0, 0.10),
    "dividend_yield": (0.0, 0.08),
}


def random_from(
    ranges: Mapping[str, tuple[float, float]],
    n: int,
    rng: np.random.Generator,
    *,
    is_american: bool,
) -> Options:
    """Draw contracts of strike 100 evenly from ranges, calls and puts."""
    drawn = {name: rng.uniform(*bounds, n) for name, bounds in ranges.items()}
    return Options.of(
        spot=STRIKE * np.exp(drawn.pop("log_moneyness")),
        strike=STRIKE,
        is_call=rng.random(n) < 0.5,
        is_american=is_american,
        **drawn,
    )


def random_options(n: int, seed: int, *, is_american: bool) -> Options:
    """Draw contracts from :data:`BOX`."""
    return random_from(BOX, n, np.random.default_rng(seed), is_american=is_american)


def random_book(n_rows: int, n_states: int = N_STATES, seed: int = 0) -> Options:
    """Draw a book of American options whose rows share market states."""
    rng = np.random.default_rng(seed)
    options = random_from(BOX, n_rows, rng, is_american=True)
    states = random_from(BOX, n_states, rng, is_american=True)
    state = rng.integers(n_states, size=n_rows)
    return options.with_values(rate=states.rate[state], dividend_yield=states.dividend_yield[state])


def random_markets(
    n_markets: int, seed: int, *, is_american: bool, n_contracts: int = 4, n_payments: int = -1
) -> Options:
    """Return contracts under random markets: sloped curves, up to eight payments in two years.

    Spots are 100. ``n_payments`` draws that many before each expiry instead.
    """
    rng = np.random.default_rng(seed)
    m = n_markets * n_contracts
    expiry = rng.uniform(0.02, 2.0, m)
    markets = []
    for number in range(n_markets):
        count = int(rng.integers(0, 9)) if n_payments < 0 else n_payments
        until = 2.0
        if n_payments >= 0:
            expiry[number * n_contracts : (number + 1) * n_contracts] = until = rng.uniform(
                0.5, 2.0
            )
        level, slope = rng.uniform(0.01, 0.08), rng.uniform(-0.004, 0.01)
        cash = 100.0 * rng.uniform(0.0, 0.06) * until / max(count, 1)
        times = np.sort(rng.uniform(0.005, until, count))
        markets.append(
            Market(
                spot=100.0,
                rate={0.25: level, 1.0: level + slope, 2.0: level + 1.3 * slope},
                borrow={0.5: 0.01, 2.0: 0.01 + rng.uniform(0.0, 0.005)},
                dividends=[(float(time), cash) for time in times],
            )
        )
    options = Options.of(
        spot=100.0,
        strike=100.0 * np.exp(rng.uniform(-0.35, 0.35, m)),
        expiry=expiry,
        rate=0.0,
        dividend_yield=0.0,
        volatility=rng.uniform(0.1, 0.6, m),
        is_call=rng.random(m) < 0.5,
        is_american=is_american,
    )
    which = np.repeat(np.arange(n_markets), n_contracts)
    return options.with_slices(Slices.of(markets, which, expiry)).at_forwards()

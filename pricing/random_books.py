"""Random contracts and books, for measuring."""

from collections.abc import Mapping

import numpy as np

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

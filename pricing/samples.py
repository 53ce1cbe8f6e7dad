"""Random contracts and books, for measuring and for trying out."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pricing.contracts import Options

STRIKE = 100.0
STATES = 200  # market states of a book
BOX: Mapping[str, tuple[float, float]] = {
    "log_moneyness": (-0.5, 0.5),
    "expiry": (0.05, 2.0),
    "volatility": (0.1, 0.6),
    "rate": (0.0, 0.10),
    "dividend_yield": (0.0, 0.08),
}


def draw(
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
    return draw(BOX, n, np.random.default_rng(seed), is_american=is_american)


def draw_book(n_rows: int, n_states: int = STATES, seed: int = 0) -> Options:
    """Draw a book of American options whose rows share market states."""
    rng = np.random.default_rng(seed)
    options = draw(BOX, n_rows, rng, is_american=True)
    states = draw(BOX, n_states, rng, is_american=True)
    state = rng.integers(n_states, size=n_rows)
    return options.with_values(rate=states.rate[state], dividend_yield=states.dividend_yield[state])


def frame_of(options: Options) -> pd.DataFrame:
    """Return options as a book."""
    return pd.DataFrame(
        {
            "spot": options.spot,
            "strike": options.strike,
            "expiry": options.expiry,
            "rate": options.rate,
            "dividend_yield": options.dividend_yield,
            "volatility": options.volatility,
            "option_type": np.where(options.is_call, "call", "put"),
            "exercise": np.where(options.is_american, "american", "european"),
        }
    )

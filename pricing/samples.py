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


def sample_book() -> pd.DataFrame:
    """Return a small book to try things on: long and short, both styles, one row out of reach."""
    rng = np.random.default_rng(11)
    spots = {"ALFA": 102.0, "BRAVO": 48.5, "CHARLIE": 310.0}
    yields = {"ALFA": 0.02, "BRAVO": 0.0, "CHARLIE": 0.035}
    names = rng.choice(list(spots), size=60)
    spot = np.array([spots[name] for name in names])
    book = pd.DataFrame(
        {
            "underlying": names,
            "quantity": rng.choice([-50, -20, -10, 10, 20, 50, 100], size=60),
            "option_type": rng.choice(["call", "put"], size=60),
            "exercise": rng.choice(["american", "american", "european"], size=60),
            "spot": spot,
            "strike": (spot * rng.choice([0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25], size=60)).round(1),
            "expiry": rng.choice([14, 30, 61, 91, 182, 365, 730], size=60) / 365,
            "rate": 0.035,
            "dividend_yield": [yields[name] for name in names],
            "volatility": rng.uniform(0.15, 0.45, size=60).round(3),
        }
    )
    book.loc[59, "expiry"] = 5.0  # longer than the surrogates know
    return book.rename_axis("position")

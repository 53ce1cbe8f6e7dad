"""A book and a chain of quotes to try things on."""

import numpy as np
import pandas as pd

from pricing import black_scholes


def sample_book() -> pd.DataFrame:
    """Return a small book to try things on: long and short, both styles, one row out of domain."""
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
    book.loc[59, "expiry"] = 5.0  # longer than the surrogates' domain
    return book.rename_axis("position")


def sample_chain() -> pd.DataFrame:
    """Return a made-up chain of European quotes with a skew, two of them bad on purpose."""
    spot, rate, dividend_yield = 100.0, 0.03, 0.01
    grid = [
        (expiry, strike, kind)
        for expiry in (1 / 12, 0.25, 0.5, 1.0, 2.0)
        for strike in np.arange(70.0, 135.0, 5.0)
        for kind in ("put", "call")
    ]
    expiry, strike = (np.array([row[i] for row in grid], dtype=np.float64) for i in (0, 1))
    is_call = np.array([row[2] == "call" for row in grid])
    x = np.log(strike / spot) / np.sqrt(np.maximum(expiry, 0.25))
    volatility = 0.20 + 0.02 * np.sqrt(expiry) - 0.10 * x + 0.12 * x**2
    price = black_scholes.evaluate(
        spot, strike, expiry, rate, dividend_yield, volatility, is_call, ("price",)
    )["price"]
    chain = pd.DataFrame(
        {
            "spot": spot,
            "strike": strike,
            "expiry": expiry.round(6),
            "rate": rate,
            "dividend_yield": dividend_yield,
            "option_type": np.where(is_call, "call", "put"),
            "exercise": "european",
            "price": price.round(4),
        }
    )
    chain = chain[chain["price"] >= 0.01].reset_index(drop=True)
    chain.loc[3, "price"] = 120.0  # above the upper bound
    chain.loc[len(chain) - 1, "price"] = 0.0  # at or below the lower bound
    return chain

"""Books, markets and a chain of quotes to try things on."""

import numpy as np
import pandas as pd

from pricing import black_scholes
from pricing.engines.base import evaluate
from pricing.engines.registry import get_engine
from pricing.markets.market import Market
from pricing.options import Options

_SEEN = "2025-10-06 16:00"


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


def sample_markets() -> dict[str, Market]:
    """Return two made-up markets: quarterly dividends as Apple's, and large half-yearly ones."""
    rate = {
        "2025-11-06": 0.0410,
        "2026-01-06": 0.0398,
        "2026-04-06": 0.0385,
        "2026-10-06": 0.0369,
        "2027-10-06": 0.0361,
        "2028-10-06": 0.0364,
    }
    quarterly = ["2025-11-10", "2026-02-09", "2026-05-11", "2026-08-10"]
    quarterly += ["2026-11-09", "2027-02-08", "2027-05-10", "2027-08-09"]
    cash = [0.26] * 2 + [0.27] * 4 + [0.28] * 2
    half_yearly = ["2026-03-05", "2026-08-13", "2027-03-04", "2027-08-12"]
    return {
        "AAPL": Market(
            spot=256.7,
            rate=rate,
            borrow=0.002,
            dividends=list(zip(quarterly, cash, strict=True)),
            as_of=_SEEN,
        ),
        "MINE": Market(
            spot=68.4,
            rate=rate,
            borrow={"2026-01-06": 0.004, "2027-10-06": 0.007},
            dividends=list(zip(half_yearly, [2.1, 1.5, 2.0, 1.4], strict=True)),
            as_of=_SEEN,
        ),
    }


def sample_listed_book() -> pd.DataFrame:
    """Return a book of American options on :func:`sample_markets`, with dates for expiries."""
    rows = [
        (name, quantity, kind, strike, expiry, volatility)
        for name, strikes, level in (
            ("AAPL", (220.0, 240.0, 260.0, 280.0), 0.29),
            ("MINE", (60.0, 68.0, 76.0), 0.33),
        )
        for expiry in ("2025-11-21", "2026-01-16", "2026-06-18", "2027-01-15")
        for strike, quantity, volatility in zip(
            strikes, (10, -20, 30, -10), (level + 0.04, level, level - 0.02, level - 0.02),
            strict=False,
        )
        for kind in ("put", "call")
    ]  # fmt: skip
    columns = ["underlying", "quantity", "option_type", "strike", "expiry", "volatility"]
    book = pd.DataFrame(rows, columns=columns).assign(exercise="american")
    return book.rename_axis("position")


def sample_quotes() -> pd.DataFrame:
    """Return a made-up chain of American quotes in Yahoo's layout: a skew, spreads, no dividends.

    It is priced under AAPL's market of :func:`sample_markets`, as of 6 October 2025; like Yahoo's
    file it says nothing about the spot, the rate or the dividends.
    """
    market = sample_markets()["AAPL"]
    rows = []
    for day in ("2025-10-17", "2025-10-31", "2025-11-21", "2025-12-19", "2026-01-16", "2026-03-20",
                "2026-06-18", "2027-01-15"):  # fmt: skip
        years = market.years_to(day)
        step = 2.5 if years < 0.1 else 5.0 if years < 0.5 else 10.0
        reach = 0.3 * np.sqrt(years) * market.spot
        low = step * np.ceil((market.spot - 2.5 * reach) / step)
        strikes = np.arange(low, market.spot + 2.5 * reach, step)
        rows += [(day, years, strike, kind) for strike in strikes for kind in ("call", "put")]
    table = pd.DataFrame(rows, columns=["day", "years", "strike", "kind"])
    forward = market.forwards(table["years"].to_numpy())
    x = np.log(table["strike"] / forward) / np.sqrt(table["years"])
    volatility = 0.27 + 0.03 * np.exp(-8.0 * table["years"]) - 0.11 * x + 0.1 * x**2
    options = Options.under(
        market,
        strike=table["strike"],
        expiry=table["years"],
        is_call=table["kind"] == "call",
        is_american=True,
        volatility=np.clip(volatility, 0.12, 0.8),
    )
    price = evaluate(get_engine("fd-fast"), options, ("price",), workers=1)[0]["price"]
    noise = np.random.default_rng(6).uniform(-0.3, 0.3, len(price))
    half = np.maximum(0.01, 0.006 * price)
    mid = price + noise * half
    symbol = pd.to_datetime(table["day"]).dt.strftime("AAPL%y%m%d")
    symbol += table["kind"].str[0].str.upper()
    symbol += (1000 * table["strike"]).round().astype(int).astype(str).str.zfill(8)
    return pd.DataFrame(
        {
            "contractSymbol": symbol,
            "strike": table["strike"],
            "bid": np.floor(100.0 * np.maximum(mid - half, 0.0)) / 100.0,
            "ask": np.ceil(100.0 * (mid + half)) / 100.0,
            "openInterest": 100,
        }
    )


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

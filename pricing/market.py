"""A market of quotes: smiles, their term structure, and a surface through them."""

import numpy as np
import pandas as pd

from pricing import black_scholes
from pricing.contracts import FloatArray
from pricing.reading import read_options

_LEVELS = np.linspace(-0.4, 0.4, 33)  # ln(K/F) at which a surface is drawn


def smiles(inverted: pd.DataFrame) -> pd.DataFrame:
    """Return quotes with a volatility, ready to draw.

    Parameters
    ----------
    inverted
        What :func:`pricing.batch.implied_vol_frame` returned.

    Returns
    -------
    DataFrame
        ``expiry``, ``strike``, ``log_moneyness`` (ln K/F of the forward), ``option_type``,
        ``implied_volatility`` and ``is_out_of_the_money``, by expiry and strike.
    """
    kept = inverted[inverted["implied_volatility"].notna()]
    options, _ = read_options(kept, unread=("volatility", "exercise"))
    forward = options.spot * np.exp((options.rate - options.dividend_yield) * options.expiry)
    x = np.log(options.strike / forward)
    table = pd.DataFrame(
        {
            "expiry": options.expiry,
            "strike": options.strike,
            "log_moneyness": x,
            "option_type": np.where(options.is_call, "call", "put"),
            "implied_volatility": kept["implied_volatility"].to_numpy(),
            "is_out_of_the_money": np.where(options.is_call, x >= 0, x <= 0),
        }
    )
    return table.sort_values(["expiry", "strike"], ignore_index=True)


def term_structure(smile: pd.DataFrame) -> pd.DataFrame:
    """Return the volatility at the forward for each expiry that has quotes on both sides of it."""
    surface = volatility_surface(smile, np.zeros(1))
    return surface.rename(columns={0.0: "volatility"}).dropna().reset_index()


def volatility_surface(smile: pd.DataFrame, levels: FloatArray = _LEVELS) -> pd.DataFrame:
    """Return volatilities by expiry (down) and ln K/F (across), linear between quotes.

    Of a strike's quotes the one out of the money counts, which has the smaller spread. Nothing is
    extrapolated: beyond an expiry's outermost quotes it is NaN.
    """
    rows = {}
    for expiry, quotes in smile.groupby("expiry"):
        preferred = quotes.sort_values("is_out_of_the_money", ascending=False, kind="stable")
        line = preferred.drop_duplicates("strike").sort_values("log_moneyness")
        x, y = line["log_moneyness"].to_numpy(), line["implied_volatility"].to_numpy()
        rows[expiry] = np.interp(levels, x, y, left=np.nan, right=np.nan)
    surface = pd.DataFrame.from_dict(rows, orient="index", columns=levels)
    return surface.rename_axis("expiry")


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
    chain.loc[len(chain) - 1, "price"] = 0.0  # below the lower one, or at it
    return chain

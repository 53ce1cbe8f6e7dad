"""Smiles of quotes, their term structure, and a surface through them."""

import numpy as np
import pandas as pd

from amo.arrays import FloatArray
from pricing.reading import read_options

_LEVELS = np.linspace(-0.4, 0.4, 33)  # ln(K/F) at which a surface is drawn


def smiles(inverted: pd.DataFrame) -> pd.DataFrame:
    """Return quotes with a volatility, ready to draw.

    Parameters
    ----------
    inverted
        What :func:`pricing.frames.implied_vol_frame` returned.

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

    Of the quotes at a strike, the one out of the money counts: its spread is smaller. Nothing is
    extrapolated: beyond an expiry's outermost quotes the surface is NaN.
    """
    rows = {}
    for expiry, quotes in smile.groupby("expiry"):
        preferred = quotes.sort_values("is_out_of_the_money", ascending=False, kind="stable")
        line = preferred.drop_duplicates("strike").sort_values("log_moneyness")
        x, y = line["log_moneyness"].to_numpy(), line["implied_volatility"].to_numpy()
        rows[expiry] = np.interp(levels, x, y, left=np.nan, right=np.nan)
    surface = pd.DataFrame.from_dict(rows, orient="index", columns=levels)
    return surface.rename_axis("expiry")

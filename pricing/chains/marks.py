"""Implied volatilities of a chain's bids, mids and asks under its fitted market."""

import numpy as np
import pandas as pd

from amo.arrays import BoolArray, FloatArray
from pricing import bounds
from pricing.chains.reading import Chain
from pricing.engines.base import evaluate
from pricing.engines.registry import get_engine
from pricing.implied_vol import implied_volatility
from pricing.markets.market import Market
from pricing.options import Options
from pricing.progress import Advance

SIDES = ("bid", "mid", "ask")
LIQUID_SPREAD = 0.1  # of the mid: a quote that is as tight as this, or
LIQUID_TICKS = 0.10  # as tight as this in currency, is liquid
LIQUID_DELTA = 0.05  # of the European option: further out nothing trades
_UNREADABLE = ("unreadable", "expired")


def implied_marks(
    chain: Chain,
    market: Market,
    *,
    engine: str = "fd-fast",
    workers: int | None = None,
    progress: Advance = None,
) -> pd.DataFrame:
    """Return every readable quote of a chain with the volatilities of its bid, mid and ask.

    Quotes that were left out of the fit are inverted too, and keep their ``reason``.

    Returns
    -------
    DataFrame
        The chain's columns and

        - ``forward`` and ``log_moneyness`` ln(K/F);
        - ``bid_vol``, ``mid_vol``, ``ask_vol``: a bid at or below what exercise pays has
          volatility 0, other prices that no volatility explains NaN;
        - ``status``: "vol" where the mid has one; "interval" where only the ask has, and the
          volatility lies between ``bid_vol`` and ``ask_vol``; else why there is none;
        - ``european_price``: what the European option is worth at ``mid_vol``;
        - ``vega`` and ``delta`` of that option, per 1.00 of volatility and of spot;
        - ``is_liquid``: used in the fit, bid and mid with volatilities, spread at most 10 % of the
          mid or ten cents, and |delta| of the out-of-the-money option at least 0.05;
        - ``is_out``: whether it is the out-of-the-money one of its strike.
    """
    left = chain.left_out[~chain.left_out["reason"].isin(_UNREADABLE)]
    table = pd.concat([chain.quotes.assign(reason=""), left]).sort_values(
        ["years", "strike", "option_type"], kind="stable"
    )
    options = _options(market, table)
    table["forward"] = market.forwards(options.expiry)
    table["log_moneyness"] = np.log(options.strike / table["forward"])
    vols, reasons = _inverted(table, options, engine, workers, progress)
    for side in SIDES:
        table[f"{side}_vol"] = vols[side]
    has_mid, has_ask = np.isfinite(vols["mid"]), np.isfinite(vols["ask"])
    table["status"] = np.where(has_mid, "vol", np.where(has_ask, "interval", reasons))
    usual = np.where(has_mid, vols["mid"], 0.3)
    european = options.with_values(
        volatility=usual, is_american=np.zeros(len(options), dtype=np.bool_)
    )
    found, _ = evaluate(get_engine("analytic"), european, ("price", "delta", "vega"))
    for name, values in found.items():
        label = "european_price" if name == "price" else name
        table[label] = np.where(has_mid, values, np.nan)
    table["is_out"] = options.is_call == (options.strike >= table["forward"].to_numpy())
    table["is_liquid"] = _liquid(table)
    return table


def _options(market: Market, table: pd.DataFrame) -> Options:
    return Options.under(
        market,
        strike=table["strike"],
        expiry=table["years"],
        is_call=table["option_type"] == "call",
        is_american=table["exercise"] == "american",
    )


def _inverted(
    table: pd.DataFrame, options: Options, engine: str, workers: int | None, progress: Advance
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Return volatilities by side, and why an ask has none."""
    n = len(options)
    prices = np.concatenate([table[side].to_numpy(np.float64) for side in SIDES])
    three = options.take(np.tile(np.arange(n), len(SIDES)))
    found = implied_volatility(
        get_engine(engine), three, prices, workers=workers, progress=progress
    )
    vols = dict(zip(SIDES, found.volatility.reshape(len(SIDES), n), strict=True))
    reasons = np.full(3 * n, "no volatility", dtype=object)
    for problem in found.problems:
        reasons[problem.rows] = problem.reason
    low = bounds.bounds(options)[0]
    no_value = np.isnan(vols["bid"]) & (table["bid"].to_numpy(np.float64) <= low * (1 + 1e-6))
    vols["bid"] = np.where(no_value, 0.0, vols["bid"])
    return vols, reasons[2 * n :]


def _liquid(table: pd.DataFrame) -> BoolArray:
    spread = table["ask"] - table["bid"]
    tight = (spread <= LIQUID_SPREAD * table["mid"]) | (spread <= LIQUID_TICKS)
    size = table["delta"].abs()
    out = np.where(table["is_out"], size, 1.0 - size)  # the deltas of a pair add up to about one
    is_known = (table["status"] == "vol") & (table["bid_vol"] > 0)
    return np.asarray((table["reason"] == "") & is_known & tight & (out >= LIQUID_DELTA))

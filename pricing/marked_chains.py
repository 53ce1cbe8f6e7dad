"""From a chain of quotes to marks: fitted market, implied volatilities, surface, and how good."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pricing.chains.fitting import MarketFit, fit_market
from pricing.chains.marks import implied_marks
from pricing.chains.reading import Chain
from pricing.markets.market import CurveLike
from pricing.vol_surfaces.surface import Method, VolSurface, fit_surface

_TWO_WEEKS = 14.0 / 365.0


@dataclass(frozen=True)
class MarkedChain:
    """What a desk starts its day with.

    Attributes
    ----------
    chain
        The quotes as they were read.
    fit
        The market that they imply, and how well.
    marks
        Every readable quote with its volatilities, see :func:`pricing.implied_marks`, and
        ``model_vol``, the surface's, ``model_price`` of the European option and ``inside``:
        whether the surface lies between bid and ask.
    surface
        The surface through them.
    violations
        Arbitrage that the surface allows, see :meth:`pricing.VolSurface.arbitrage`.
    """

    chain: Chain
    fit: MarketFit
    marks: pd.DataFrame
    surface: VolSurface
    violations: pd.DataFrame

    def summary(self) -> dict[str, float]:
        """Return how good the marks are, as shares of one and points of volatility."""
        marks, table = self.marks, self.fit.table
        sign = np.where(marks["option_type"] == "call", 1.0, -1.0)
        spot = self.fit.market.spot
        paid = np.maximum(sign * (spot - marks["strike"]), 0.0)
        worthy = marks[(marks["ask"] > paid).to_numpy(np.bool_)]
        liquid = marks[marks["is_liquid"]]
        later = table[table["years"] > _TWO_WEEKS]
        return {
            "quotes": float(len(marks)),
            "expiries": float(marks["years"].nunique()),
            "inverted": float(worthy["status"].isin(["vol", "interval"]).mean()),
            "gap": float(100.0 * later["gap"].median()),
            "liquid": float(len(liquid)),
            "inside": float(liquid["inside"].mean()),
            "off": float(100.0 * (liquid["model_vol"] - liquid["mid_vol"]).abs().median()),
            "violations": float(len(self.violations)),
        }


def mark_chain(
    chain: Chain,
    *,
    rate: CurveLike | None = None,
    dividends: Iterable[Sequence[Any]] = (),
    spot: float | None = None,
    method: Method = "local",
    engine: str = "fd-fast",
    workers: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> MarkedChain:
    """Fit a market to a chain, invert its quotes, and fit a surface through them.

    Parameters
    ----------
    chain, rate, dividends, spot, engine
        See :func:`pricing.fit_market`.
    method
        See :class:`pricing.VolSurface`.
    progress
        Told what begins.
    """

    def tell(text: str) -> None:
        if progress is not None:
            progress(text)

    tell("fitting the market")
    fit = fit_market(
        chain, rate=rate, dividends=dividends, spot=spot, engine=engine, workers=workers
    )
    tell("implied volatilities")
    marks = implied_marks(chain, fit.market, engine=engine, workers=workers)
    tell("volatility surface")
    surface = fit_surface(marks, fit.market, method)
    marks = _with_surface(marks, surface)
    tell("looking for arbitrage")
    return MarkedChain(chain, fit, marks, surface, surface.arbitrage())


def _with_surface(marks: pd.DataFrame, surface: VolSurface) -> pd.DataFrame:
    """Return marks with what a surface says about them."""
    strike, years = (marks[name].to_numpy(np.float64) for name in ("strike", "years"))
    vol = surface.vol(strike, years)
    is_call = (marks["option_type"] == "call").to_numpy(np.bool_)
    return marks.assign(
        model_vol=vol,
        model_price=surface.price(strike, years, is_call=is_call),
        inside=(vol >= marks["bid_vol"]) & (vol <= marks["ask_vol"]),
    )

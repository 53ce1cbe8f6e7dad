"""The market that a chain of quotes implies: spot, and rate and borrow per expiry.

European quotes of one strike obey C - P = D (F - K): a line in the strike. American ones do not, so
their early exercise is priced and taken off first; it depends on the market that is sought, and the
two are found in turns. Around the forward early exercise is small, and few turns are enough.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amo.arrays import BoolArray, FloatArray, IntArray
from amo.errors import SettingsError
from pricing.chains.parity import pairs_of, robust_mean, robust_slope
from pricing.chains.reading import Chain
from pricing.columns import OptionFrameError
from pricing.engines.base import evaluate
from pricing.engines.registry import get_engine
from pricing.implied_vol import implied_volatility
from pricing.markets.curve import Curve
from pricing.markets.market import CurveLike, Market
from pricing.options import Options

_NEAREST = 9  # strikes around the forward, with both a call and a put
_REACH = 1.0  # of the deviation to expiry: strikes further off are not used while three are left
_FEWEST = 3
_TURNS = 8
_SETTLED = 5e-6  # relative change of all forwards
_STEP = 2e-4  # relative, of a forward
_TICK = 1e-5  # of the spot: no quote is better than this
_UNSURE = 0.02  # standard error of a borrow rate that is not called determined
_UNSURE_RATE = 0.01
_SPOT_TIME = 0.2  # years: expiries up to here tell the spot
_SPOT_BORROW = 0.01  # what borrow may be before anything is known


@dataclass(frozen=True)
class MarketFit:
    """A market and how well quotes determine it.

    Attributes
    ----------
    market
        What the quotes imply; it has a node of the borrow curve at every expiry with pairs.
    table
        One row per expiry: ``expiry``, ``years``, ``pairs`` used, ``forward``, ``forward_error``
        (one standard error), ``rate``, ``borrow`` and ``borrow_error`` (zero rates per year),
        ``residual`` (root mean square of parity, in currency), ``gap`` (median distance of call
        and put volatilities at the strikes used) and a ``note``.
    underlying
        Its name.
    assumed
        What the quotes do not say, in words.
    """

    market: Market
    table: pd.DataFrame
    underlying: str
    assumed: tuple[str, ...]


def fit_market(
    chain: Chain,
    *,
    rate: CurveLike | None = None,
    dividends: Iterable[Sequence[Any]] = (),
    spot: float | None = None,
    engine: str = "fd-fast",
    workers: int | None = None,
) -> MarketFit:
    """Fit spot (if unknown), rate (if European and not given) and borrow per expiry to a chain.

    Parameters
    ----------
    chain
        Quotes of one underlying, from :func:`pricing.read_chain`.
    rate
        A number or a curve; American quotes need one.
    dividends
        As :class:`pricing.Market` takes them; what they leave of the forwards is borrow.
    spot
        The underlying's price; without it that of the chain, or what the first expiries imply.
    engine
        Prices early exercise.
    """
    quotes = chain.quotes
    names = sorted(set(quotes["underlying"].astype(str)))
    if len(names) > 1:
        raise OptionFrameError(
            f"a market is fitted to one underlying, and the chain has {', '.join(names)}: take one "
            f"by chain.of({names[0]!r})"
        )
    is_american = bool((quotes["exercise"] == "american").any())
    if is_american and rate is None:
        raise SettingsError("American quotes do not determine the rate: say rate=, 0.04 for 4 %")
    pairs = pairs_of(quotes)
    if not len(pairs):
        raise OptionFrameError(
            "no strike has both a call and a put with a bid: nothing tells the forward"
        )
    given = spot
    if given is None and "spot" in quotes and quotes["spot"].notna().any():
        given = float(quotes["spot"].median())
    fit = _Fit(
        chain, pairs, rate, tuple(dividends), given, engine, workers, is_american=is_american
    )
    fit.solve()
    assumed = [] if given is not None else ["the spot is what the first expiries imply"]
    if is_american and not fit.dividends:
        assumed.append("no dividends given: borrow stands for them too")
    return MarketFit(fit.market, fit.table(), names[0], tuple(assumed))


class _Fit:
    """The state of one fit: forwards per expiry, and the market that has them."""

    def __init__(
        self,
        chain: Chain,
        pairs: pd.DataFrame,
        rate: CurveLike | None,
        dividends: tuple[Sequence[Any], ...],
        spot: float | None,
        engine: str,
        workers: int | None,
        *,
        is_american: bool,
    ) -> None:
        self.chain, self.pairs, self.engine = chain, pairs, get_engine(engine)
        self.given_rate, self.dividends, self.given_spot = rate, dividends, spot
        self.is_american, self.workers = is_american, workers
        self.years = np.unique(pairs["years"].to_numpy(np.float64))
        self.dates = pairs.drop_duplicates("years")["expiry"].to_numpy()
        self.place = np.searchsorted(self.years, pairs["years"].to_numpy(np.float64))
        self.strike, self.call, self.put = (
            pairs[name].to_numpy(np.float64) for name in ("strike", "call", "put")
        )
        level = float(np.median(self.strike)) if spot is None else spot
        self.variance = pairs["variance"].to_numpy(np.float64) + (_TICK * level) ** 2
        self.premium = np.zeros(len(pairs))  # early exercise of the call less that of the put
        self.gap = np.full(len(pairs), np.nan)
        self.rate, self.rate_error = self._rates()
        n = len(self.years)
        self.forward, self.error, self.residual = (np.full(n, np.nan) for _ in range(3))
        self.used: BoolArray = np.zeros(len(pairs), dtype=np.bool_)

    def solve(self) -> None:
        """Find forwards and early exercise in turns."""
        self._choose(np.array([self._crossing(place) for place in range(len(self.years))]))
        self._forwards()
        self.market = self._market()
        if not self.is_american:
            self._early_exercise()  # for the gap of volatilities
            return
        self._choose(self.forward)
        slope = self._slope()
        for _ in range(_TURNS):
            tried = self.forward.copy()
            self._early_exercise()
            self._forwards()
            self.forward = tried - (self.forward - tried) / slope
            self.market = self._market()
            if np.max(np.abs(self.forward / tried - 1.0)) < _SETTLED:
                break
        self.error = self.error / -slope  # noise moves early exercise along

    def _slope(self) -> FloatArray:
        """Return the derivative of what parity adds to each forward by that forward, about -1.

        Every other forward is moved at a time: a neighbour moves the borrow between the two.
        """
        self._early_exercise()
        self._forwards()
        parity, market = self.forward, self.market
        tried = market.forwards(self.years)
        slope = np.full_like(tried, -1.0)
        for some in (np.arange(len(tried)) % 2 == colour for colour in (0, 1)):
            if some.any():
                self.forward = np.where(some, (1.0 + _STEP) * tried, tried)
                self.market = self._market(market.spot)
                self._early_exercise()
                self._forwards()
                slope[some] += ((self.forward - parity) / (_STEP * tried))[some]
        self.forward, self.market = tried, market
        return np.asarray(np.clip(slope, -2.0, -0.25))

    def _rates(self) -> tuple[Curve, FloatArray]:
        """Return the rate curve, given or from the slopes of C - P, and standard errors."""
        if self.given_rate is not None:
            known = Market(spot=1.0, rate=self.given_rate, as_of=self.chain.as_of).rate
            return known, np.zeros(len(self.years))
        found, errors = {}, np.full(len(self.years), np.nan)
        for place, years in enumerate(self.years):
            here = self.place == place
            if here.sum() < _FEWEST:
                continue
            slope, error = robust_slope(
                self.strike[here], (self.call - self.put)[here], self.variance[here]
            )
            errors[place] = error / max(-slope, 1e-9) / years
            if errors[place] < _UNSURE_RATE and slope < 0:
                found[float(years)] = -math.log(-slope) / float(years)
        return Curve.of(found or 0.0), errors

    def _crossing(self, place: int) -> float:
        """Return about where call and put are worth the same."""
        here = np.flatnonzero(self.place == place)
        best = here[np.argmin(np.abs(self.call - self.put)[here])]
        return float(self.strike[best] + self.call[best] - self.put[best])

    def _choose(self, forward: FloatArray) -> None:
        """Mark the strikes around the forwards that are used."""
        self.used[:] = False
        for place, level in enumerate(forward):
            here = np.flatnonzero(self.place == place)
            distance = np.abs(self.strike[here] - level)
            order = here[np.argsort(distance, kind="stable")]
            straddle = (self.call + self.put)[order[0]]
            reach = _REACH * 1.25 * straddle  # a straddle is 0.8 of the deviation
            near = np.abs(self.strike[order] - level) <= reach
            near[:_FEWEST] = True
            self.used[order[near][:_NEAREST]] = True

    def _forwards(self) -> None:
        """Set forwards and their standard errors from parity at the chosen strikes."""
        discount = np.exp(-self.rate.integral(self.years))
        self.forward = self.forward.copy()
        for place in range(len(self.years)):
            rows = np.flatnonzero(self.used & (self.place == place))
            each = self.strike[rows] + (self.call - self.put - self.premium)[rows] / discount[place]
            variance = self.variance[rows] / discount[place] ** 2
            self.forward[place], self.error[place], residual = robust_mean(each, variance)
            self.residual[place] = residual * discount[place]
        if (self.forward <= 0).any():
            day = self.dates[np.argmin(self.forward)]
            raise OptionFrameError(
                f"calls and puts of {pd.Timestamp(day):%Y-%m-%d} imply a forward below zero: check "
                "which are calls, or leave that expiry out"
            )

    def _early_exercise(self) -> None:
        """Set what early exercise is worth at the chosen strikes, at their volatilities.

        A strike of which neither side has a volatility is not used, unless its expiry has no other:
        then early exercise counts as nothing there.
        """
        rows = np.flatnonzero(self.used)
        legs = [self._options(rows, is_call=is_call) for is_call in (True, False)]
        vols = [
            implied_volatility(self.engine, leg, price, workers=self.workers).volatility
            for leg, price in zip(legs, (self.call[rows], self.put[rows]), strict=True)
        ]
        with np.errstate(invalid="ignore"):
            self.gap[rows] = np.abs(vols[0] - vols[1])
        known = np.isfinite(vols)
        has_vol: BoolArray = np.asarray(known.any(axis=0))
        served = np.isin(self.place[rows], self.place[rows[has_vol]])
        self.used[rows[served & ~has_vol]] = False
        if not self.is_american or not has_vol.any():
            return
        mean = np.where(known, vols, 0.0).sum(axis=0)[has_vol] / known.sum(axis=0)[has_vol]
        worth = []
        for leg in legs:
            at = leg.take(has_vol).with_values(volatility=mean)
            european = at.with_values(is_american=np.zeros(len(at), dtype=np.bool_))
            prices = [
                evaluate(self.engine, some, ("price",), workers=self.workers)[0]["price"]
                for some in (at, european)  # by one engine: its errors cancel
            ]
            worth.append(np.maximum(prices[0] - prices[1], 0.0))
        self.premium[rows[has_vol]] = worth[0] - worth[1]

    def _options(self, rows: IntArray, *, is_call: bool) -> Options:
        return Options.under(
            self.market,
            strike=self.strike[rows],
            expiry=self.years[self.place[rows]],
            is_call=is_call,
            is_american=self.is_american,
        )

    def _market(self, spot: float | None = None) -> Market:
        """Return the market whose forwards are those found, with a spot that is known or found."""
        if spot is None:
            spot = self._spot() if self.given_spot is None else self.given_spot
        market = Market(spot=spot, rate=self.rate, dividends=self.dividends, as_of=self.chain.as_of)
        total = np.zeros(len(self.years))
        for _ in range(20):
            curve = Curve(tuple(self.years.tolist()), tuple((total / self.years).tolist()))
            market = market.replaced(borrow=curve)
            model = market.forwards(self.years)
            if (model <= 0).any():
                raise SettingsError("the dividends are worth more than the spot: check their cash")
            step = np.log(model / self.forward)
            total += step
            if np.max(np.abs(step)) < 1e-13:
                break
        return market

    def _spot(self) -> float:
        """Return the spot from which the first forwards start, with as little borrow as may be."""
        near = self.years <= max(_SPOT_TIME, self.years[0])
        years, forward = self.years[near], self.forward[near]
        plain = Market(spot=float(forward[0]), rate=self.rate, dividends=self.dividends,
                       as_of=self.chain.as_of)  # fmt: skip
        for _ in range(3):  # dividends bend the logarithm a little
            carry = np.array([math.log(plain.forward(t) / plain.spot) for t in years.tolist()])
            y, weight = np.log(forward) - carry, (forward / self.error[near]) ** 2
            # y = ln spot - borrow * years, with borrow near zero
            rows = np.column_stack([np.ones_like(years), -years]) * np.sqrt(weight)[:, None]
            rows = np.vstack([rows, [0.0, 1.0 / _SPOT_BORROW]])
            found = np.linalg.lstsq(rows, np.append(y * np.sqrt(weight), 0.0), rcond=None)[0]
            plain = plain.replaced(spot=math.exp(found[0]))
        return plain.spot

    def table(self) -> pd.DataFrame:
        """Return what was found for each expiry."""
        borrow_error = self.error / self.forward / self.years
        rows = []
        for place in range(len(self.years)):
            here = self.used & (self.place == place)
            known = self.gap[here & np.isfinite(self.gap)]
            note = []
            if borrow_error[place] > _UNSURE:
                note.append("the quotes do not determine the borrow")
            if self.given_rate is None and not self.rate_error[place] < _UNSURE_RATE:
                note.append("the rate is that of other expiries")
            gap = float(np.median(known)) if len(known) else np.nan
            rows.append((int(here.sum()), gap, "; ".join(note)))
        counts, gaps, notes = zip(*rows, strict=True)
        return pd.DataFrame(
            {
                "expiry": self.dates,
                "years": self.years,
                "pairs": counts,
                "forward": self.forward,
                "forward_error": self.error,
                "rate": self.rate.zero_rate(self.years),
                "borrow": self.market.borrow.zero_rate(self.years),
                "borrow_error": borrow_error,
                "residual": self.residual,
                "gap": gaps,
                "note": notes,
            }
        )

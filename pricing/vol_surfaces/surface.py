"""A volatility surface under its market: volatilities, prices and densities at any strike."""

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits

from amo.arrays import BoolArray, FloatArray
from amo.errors import FileError, SettingsError
from amo.files import write_text
from pricing.columns import OptionFrameError
from pricing.markets.market import Market
from pricing.vol_surfaces import arbitrage
from pricing.vol_surfaces.essvi import ESSVI
from pricing.vol_surfaces.local import LocalVariance
from pricing.vol_surfaces.pure import PureStrikes
from pricing.vol_surfaces.quotes import FLOOR, SmileQuotes
from pricing.vol_surfaces.smoother import Smoother
from pricing.vol_surfaces.svi import SVI

Method = Literal["local", "essvi", "svi", "smoother"]
METHODS: tuple[Method, ...] = get_args(Method)
_KINDS: Mapping[str, Any] = {
    "local": LocalVariance, "essvi": ESSVI, "svi": SVI, "smoother": Smoother
}  # fmt: skip
_FEWEST = 3  # quotes of an expiry
_VERSION = 1


class Model(Protocol):
    """Total variance of the pure stock, and the model as JSON holds it."""

    def total_variance(self, log_moneyness: FloatArray, years: FloatArray) -> FloatArray:
        """Return w, element by element of two arrays of one shape."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""


@dataclass(frozen=True)
class VolSurface:
    """A surface through quotes of one underlying.

    Attributes
    ----------
    market
        The market under which its volatilities are meant.
    method
        One of ``local`` (flexible, free of arbitrage), ``essvi`` (three numbers per expiry, free of
        arbitrage), ``svi`` (per expiry) and ``smoother`` (a Gaussian process): the last two may
        have arbitrage, see :meth:`arbitrage`.
    years
        The expiries that were fitted.
    model
        Total variance over pure log-moneyness and time.
    """

    market: Market
    method: Method
    years: FloatArray
    model: Model

    def total_variance(self, log_moneyness: npt.ArrayLike, years: npt.ArrayLike) -> FloatArray:
        """Return σ²T of the pure stock at log-moneyness ln x and times; see ``pure.py``."""
        y, time = np.broadcast_arrays(
            np.asarray(log_moneyness, dtype=np.float64), np.asarray(years, dtype=np.float64)
        )
        found = np.full(y.shape, np.nan)
        is_live = (time > 0) & np.isfinite(y)
        found[is_live] = self.model.total_variance(y[is_live], time[is_live])
        return found

    def vol(self, strike: npt.ArrayLike, expiry: npt.ArrayLike) -> FloatArray:
        """Return the volatility with which every engine prices a strike under the market.

        Expiries are years, dates or times. NaN where the strike is worth less than the dividends
        still to come, or the option has expired.
        """
        strikes, years = np.broadcast_arrays(
            np.asarray(strike, dtype=np.float64), self.years_to(expiry)
        )
        flat = PureStrikes.of(self.market, strikes.ravel(), years.ravel())
        found = np.full(flat.strike.shape, np.nan)
        rows = np.flatnonzero((flat.years > 0) & np.isfinite(flat.log_moneyness))
        if len(rows):
            some = flat.take(rows)
            found[rows] = some.volatility(self.total_variance(some.log_moneyness, some.years))
        return found.reshape(strikes.shape)

    def price(
        self, strike: npt.ArrayLike, expiry: npt.ArrayLike, *, is_call: npt.ArrayLike
    ) -> FloatArray:
        """Return European prices."""
        at = self._at(strike, expiry)
        sides: BoolArray = np.broadcast_to(np.asarray(is_call, dtype=np.bool_), at.strike.shape)
        return at.price(self.total_variance(at.log_moneyness, at.years), sides)

    def density(self, strike: npt.ArrayLike, expiry: npt.ArrayLike) -> FloatArray:
        """Return the risk-neutral density of the spot at expiry, per unit of currency."""
        at = self._at(strike, expiry)
        y = at.log_moneyness
        w = self.total_variance(y, at.years)
        d2 = -y / np.sqrt(w) - 0.5 * np.sqrt(w)
        normal = np.exp(-0.5 * d2**2) / np.sqrt(2.0 * np.pi * w)
        g = arbitrage.durrleman(self.total_variance, y, at.years)
        return np.asarray(g * normal / (at.strike - at.later))

    def local_volatility(self, strike: npt.ArrayLike, expiry: npt.ArrayLike) -> FloatArray:
        """Return Dupire's local volatility of the pure stock, √(∂w/∂T / g)."""
        at = self._at(strike, expiry)
        y, step = at.log_moneyness, 1e-3 * at.years
        later, earlier = (self.total_variance(y, at.years + k * step) for k in (1.0, -1.0))
        slope = (later - earlier) / (2.0 * step)
        g = arbitrage.durrleman(self.total_variance, y, at.years)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(np.where((slope >= 0) & (g > 0), slope / g, np.nan))

    def forward_variance(self, start: npt.ArrayLike, end: npt.ArrayLike) -> FloatArray:
        """Return the variance per year between two expiries, at the forward."""
        first, last = self.years_to(start), self.years_to(end)
        both = [self.total_variance(np.zeros_like(time), time) for time in (first, last)]
        return np.asarray((both[1] - both[0]) / (last - first))

    def arbitrage(self) -> pd.DataFrame:
        """List arbitrage on a fine grid; see :func:`pricing.vol_surfaces.arbitrage.violations`."""
        return arbitrage.violations(self.total_variance, self.years)

    def years_to(self, expiry: npt.ArrayLike) -> FloatArray:
        """Return years to expiries given in years, as dates or as times."""
        given = np.asarray(expiry)
        if np.issubdtype(given.dtype, np.number):
            return given.astype(np.float64)
        flat = [self.market.years_to(when) for when in pd.Series(given.ravel())]
        return np.array(flat).reshape(given.shape)

    def _at(self, strike: npt.ArrayLike, expiry: npt.ArrayLike) -> PureStrikes:
        return PureStrikes.of(
            self.market, np.asarray(strike, dtype=np.float64), self.years_to(expiry)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the surface as JSON holds it."""
        return {
            "version": _VERSION,
            "method": self.method,
            "years": self.years.tolist(),
            "market": self.market.to_dict(),
            "model": self.model.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote."""
        missing = {"version", "method", "years", "market", "model"} - set(content)
        if missing or content["version"] != _VERSION or content["method"] not in _KINDS:
            raise SettingsError(
                f"this is no volatility surface of version {_VERSION}: {sorted(content)[:8]}"
            )
        return cls(
            Market.from_dict(content["market"]),
            content["method"],
            np.array(content["years"], dtype=float),
            _KINDS[content["method"]].from_dict(content["model"]),
        )

    def save(self, path: str | Path) -> None:
        """Write the surface as JSON."""
        write_text(json.dumps(self.to_dict()) + "\n", Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a surface that :meth:`save` wrote."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls.from_dict(content)
        except FileNotFoundError:
            raise FileError(f"no such file: {path}") from None
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            if isinstance(error, SettingsError):
                raise
            raise FileError(f"cannot read {path}: {error}") from error


def fit_surface(marks: pd.DataFrame, market: Market, method: Method = "local") -> VolSurface:
    """Fit a surface to the volatilities of a chain.

    Parameters
    ----------
    marks
        From :func:`pricing.implied_marks`: the out-of-the-money quotes that were not left out.
    market
        The market under which they were inverted.
    method
        See :class:`VolSurface`.
    """
    if method not in METHODS:
        raise SettingsError(f"no method {method!r}; there are {', '.join(METHODS)}")
    quotes = _quotes(marks, market)
    with threadpool_limits(1, "blas"):  # small matrices: several threads only wait for each other
        model = fitted_model(quotes, method)
    return VolSurface(market, method, quotes.years, model)


def fitted_model(quotes: SmileQuotes, method: Method) -> Model:
    """Return total variance fitted to quotes by a method."""
    found: Model = _KINDS[method].fitted(quotes)
    return found


def _quotes(marks: pd.DataFrame, market: Market) -> SmileQuotes:
    """Return the quotes that a surface is fitted to, in its coordinates."""
    used = marks[(marks["reason"] == "") & (marks["status"] == "vol") & marks["is_out"]]
    counts = used.groupby("years")["strike"].transform("size")
    used = used[counts >= _FEWEST].sort_values(["years", "strike"])
    if not len(used):
        raise OptionFrameError(
            f"no expiry has {_FEWEST} out-of-the-money quotes with a volatility: nothing to fit"
        )
    time, vol = (used[name].to_numpy(np.float64) for name in ("years", "mid_vol"))
    at = PureStrikes.of(market, used["strike"].to_numpy(np.float64), time)
    y, own = at.log_moneyness, np.sqrt(at.variance(vol) / time)
    bid = np.nan_to_num(used["bid_vol"].to_numpy(np.float64))
    ask = used["ask_vol"].to_numpy(np.float64)
    ask = np.where(np.isfinite(ask), ask, 2.0 * vol - bid)
    error = np.maximum(0.5 * (ask - bid), FLOOR) * own / vol
    good = np.isfinite(own) & np.isfinite(y) & np.isfinite(error)
    years, place = np.unique(time[good], return_inverse=True)
    return SmileQuotes(years, place.astype(np.intp), y[good], own[good], error[good])


def mark_book(
    book: pd.DataFrame,
    surfaces: Mapping[str, VolSurface] | VolSurface,
    *,
    underlying: str = "underlying",
    strike: str = "strike",
    expiry: str = "expiry",
) -> pd.DataFrame:
    """Return a book with ``volatility`` read off surfaces, one per underlying or one for all."""
    marked = book.copy()
    if isinstance(surfaces, VolSurface):
        names, table = np.zeros(len(book), dtype=object), {0: surfaces}
    else:
        if underlying not in book:
            raise OptionFrameError(f"the book has no column {underlying!r} to pick a surface by")
        names, table = book[underlying].to_numpy(dtype=object), dict(surfaces)  # type: ignore[assignment]
        if unknown := sorted({str(name) for name in names} - {str(name) for name in table}):
            raise OptionFrameError(f"no surface for {', '.join(unknown[:5])}; there are {[*table]}")
    for needed in (strike, expiry):
        if needed not in book:
            raise OptionFrameError(f"the book has no column {needed!r}")
    volatility = np.full(len(book), np.nan)
    for name, surface in table.items():
        here = np.flatnonzero(names == name)
        if len(here):
            dates = book[expiry].iloc[here]
            years = _book_years(surface, dates)
            volatility[here] = surface.vol(book[strike].iloc[here].to_numpy(np.float64), years)
    marked["volatility"] = volatility
    return marked


def _book_years(surface: VolSurface, expiries: "pd.Series[Any]") -> FloatArray:
    if pd.api.types.is_numeric_dtype(expiries):
        return expiries.to_numpy(np.float64)
    known: dict[Any, float] = {}
    for when in expiries.unique():
        stamp = when if isinstance(when, str | dt.date) else pd.Timestamp(when)
        known[when] = surface.market.years_to(stamp)
    return expiries.map(known).to_numpy(np.float64)

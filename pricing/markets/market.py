"""One underlying's market: spot, rates, borrow, dividends, and the moment it is seen at.

Between dividends the spot is lognormal with drift rate - borrow. At an ex-date it falls to
S⁺ = max((1 - proportion) S - cash, 0), and an American option may be exercised just before.
"""

import datetime as dt
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from amo.arrays import FloatArray
from amo.errors import SettingsError
from pricing.markets import clock
from pricing.markets.clock import When
from pricing.markets.curve import Curve

CurveLike = float | Mapping[Any, float] | Curve


class Dividend(NamedTuple):
    """A payment: when the spot falls, in years from the market's moment, and by how much."""

    time: float
    cash: float
    proportion: float = 0.0


@dataclass(frozen=True, init=False)
class Market:
    """What options on one underlying are priced under.

    Attributes
    ----------
    spot
        Price of the underlying, > 0.
    rate, borrow
        Curves of the risk-free rate and of the cost of borrowing the stock (or a continuous
        dividend yield).
    dividends
        Payments by time; those of one moment are added up.
    as_of
        The moment at which all this is seen, None where times are in years only.
    """

    spot: float
    rate: Curve
    borrow: Curve
    dividends: tuple[Dividend, ...]
    as_of: dt.datetime | None

    def __init__(
        self,
        *,
        spot: float,
        rate: CurveLike = 0.0,
        borrow: CurveLike = 0.0,
        dividends: Iterable[Sequence[Any]] = (),
        as_of: str | dt.date | None = None,
    ) -> None:
        """Read what people write.

        Parameters
        ----------
        spot
            Price of the underlying, > 0.
        rate, borrow
            A number, or a mapping of years or dates to zero rates: continuously compounded, per
            year, 0.05 is 5 %.
        dividends
            ``(when, cash)`` or ``(when, cash, proportion)``: ``when`` is a number of years or the
            ex-date, cash in the currency of the spot, proportion a share of the spot below 1.
        as_of
            A date (its close, 16:00 in New York) or a time (New York's unless it has a zone).
            Needed where anything else is a date.
        """
        if not (_is_number(spot) and math.isfinite(spot) and spot > 0):
            raise SettingsError(f"spot must be a number > 0, got {spot!r}")
        seen = None if as_of is None else clock.moment(as_of, "as_of")
        found = {
            "spot": float(spot),
            "rate": _curve(rate, "rate", seen),
            "borrow": _curve(borrow, "borrow", seen),
            "dividends": _payments(dividends, seen),
            "as_of": seen,
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def years_to(self, expiry: When, close: dt.time = clock.CLOSE) -> float:
        """Return the years from the market's moment to an expiry: years, a date or a time."""
        if _is_number(expiry):
            return float(expiry)  # type: ignore[arg-type]
        if self.as_of is None:
            raise SettingsError(
                f"the expiry {expiry!r} is a date, and the market has no as_of: give it one, or "
                "write years"
            )
        return clock.years(self.as_of, clock.moment(expiry, "expiry", close))  # type: ignore[arg-type]

    def before(self, expiry: float) -> tuple[Dividend, ...]:
        """Return the payments up to an expiry in years, that of the expiry included."""
        return tuple(payment for payment in self.dividends if payment.time <= expiry)

    def after(self, time: float, spot: float | None = None) -> "Market":
        """Return the market as it will be at a later moment, its forwards come true.

        A dividend of that very moment is still to be paid. The spot stays unless another is given.
        """
        if not (_is_number(time) and time >= 0):
            raise SettingsError(f"a later moment is some years from now, >= 0; got {time!r}")
        left = [(p.time - time, p.cash, p.proportion) for p in self.dividends if p.time >= time]
        seen = None if self.as_of is None else clock.later(self.as_of, time)
        return Market(
            spot=self.spot if spot is None else spot,
            rate=self.rate.after(time),
            borrow=self.borrow.after(time),
            dividends=left,
            as_of=seen,
        )

    def forward(self, expiry: float) -> float:
        """Return the forward price to an expiry in years, as if the spot could fall below zero."""
        value, time = self.spot, 0.0
        for payment in self.before(expiry):
            value *= self._growth(time, payment.time)
            value = (1.0 - payment.proportion) * value - payment.cash
            time = payment.time
        return value * self._growth(time, expiry)

    def forwards(self, expiries: FloatArray) -> FloatArray:
        """Return the forward prices to expiries in years, of any shape."""
        known = {time: self.forward(time) for time in np.unique(expiries).tolist()}
        found = np.array([known[time] for time in expiries.ravel().tolist()])
        return found.reshape(expiries.shape)

    def _growth(self, start: float, end: float) -> float:
        carry = (self.rate.integral([start, end]) - self.borrow.integral([start, end])).tolist()
        return math.exp(carry[1] - carry[0])

    def replaced(self, **changes: Any) -> "Market":  # noqa: ANN401  # as the constructor takes
        """Return the market with some of its parts replaced."""
        known = {
            "spot": self.spot,
            "rate": self.rate,
            "borrow": self.borrow,
            "dividends": self.dividends,
            "as_of": self.as_of,
        }
        return Market(**{**known, **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return the market as JSON holds it: times in years, with every digit."""
        return {
            "spot": self.spot,
            "rate": dict(zip(map(str, self.rate.times), self.rate.rates, strict=True)),
            "borrow": dict(zip(map(str, self.borrow.times), self.borrow.rates, strict=True)),
            "dividends": [list(payment) for payment in self.dividends],
            "as_of": None if self.as_of is None else self.as_of.isoformat(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote, or what a person wrote in the same words."""
        known = {"spot", "rate", "borrow", "dividends", "as_of"}
        if unknown := sorted(set(content) - known):
            raise SettingsError(f"a market has no {', '.join(unknown)}; it has {sorted(known)}")
        if "spot" not in content:
            raise SettingsError("a market needs a spot")
        return cls(**content)


def _is_number(given: object) -> bool:
    return isinstance(given, numbers.Real) and not isinstance(given, bool | np.bool_)


def _curve(given: CurveLike, name: str, as_of: dt.datetime | None) -> Curve:
    """Read a curve; keys that are dates become years, and texts of numbers too."""
    try:
        if isinstance(given, Mapping):
            given = {_years(key, name, as_of): rate for key, rate in given.items()}
        return Curve.of(given)
    except SettingsError as error:
        raise SettingsError(f"{name}: {error}") from None


def _years(when: object, name: str, as_of: dt.datetime | None) -> float:
    """Return years from a number, a text of one, or a date."""
    if _is_number(when):
        return float(when)  # type: ignore[arg-type]
    try:
        return float(when)  # type: ignore[arg-type]  # whatever refuses is a date
    except (TypeError, ValueError):
        pass
    if as_of is None:
        raise SettingsError(f"{name} has the date {when!r}: give the market as_of, or write years")
    return clock.years(as_of, clock.moment(when, name))  # type: ignore[arg-type]  # refused there


def _payments(given: Iterable[Sequence[Any]], as_of: dt.datetime | None) -> tuple[Dividend, ...]:
    """Read dividends, sorted by time, those of one moment added up."""
    by_time: dict[float, Dividend] = {}
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise SettingsError(f"dividends= takes a list of (when, cash), got {given!r}")
    for payment in given:
        if (
            not isinstance(payment, Sequence)
            or isinstance(payment, str)
            or len(payment) not in (2, 3)
        ):
            raise SettingsError(
                f"a dividend is (when, cash) or (when, cash, proportion), not {payment!r}"
            )
        time = _ex_time(payment[0], as_of)
        cash, proportion = (_number(x, payment) for x in (*payment[1:], 0.0)[:2])
        if not (math.isfinite(cash) and cash >= 0):
            raise SettingsError(f"the cash of a dividend must be >= 0, got {payment[1]!r}")
        if not 0 <= proportion < 1:
            raise SettingsError(
                "the proportion of a dividend must be in [0, 1), 0.02 meaning 2 %; got "
                f"{payment[2]!r}"
            )
        if not (math.isfinite(time) and time >= 0):
            raise SettingsError(f"the dividend {payment!r} lies before the market's moment")
        known = by_time.get(time, Dividend(time, 0.0))
        share = 1.0 - (1.0 - known.proportion) * (1.0 - proportion)
        by_time[time] = Dividend(time, known.cash + cash, share)
    return tuple(by_time[time] for time in sorted(by_time))


def _number(given: object, payment: Sequence[Any]) -> float:
    try:
        return float(given)  # type: ignore[arg-type]  # whatever refuses is no number
    except (TypeError, ValueError, OverflowError):
        raise SettingsError(f"the dividend {payment!r} has {given!r}, which is no number") from None


def _ex_time(when: object, as_of: dt.datetime | None) -> float:
    """Return when the spot falls: years as they are, an ex-date at the close before it.

    A stock that goes ex tomorrow falls before anything else can happen: at once.
    """
    if _is_number(when):
        return float(when)  # type: ignore[arg-type]
    if as_of is None:
        raise SettingsError(
            f"the dividend of {when!r} has a date: give the market as_of, or write years"
        )
    date = clock.moment(when, "the date of a dividend").astimezone(clock.NEW_YORK).date()  # type: ignore[arg-type]
    if date <= as_of.astimezone(clock.NEW_YORK).date():
        raise SettingsError(
            f"the ex-date {date} is not after as_of {as_of.date()}: the spot has fallen already"
        )
    return max(clock.years(as_of, clock.before_open(date)), 0.0)

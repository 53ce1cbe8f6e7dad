"""The box of market states and contracts that a data set covers and a surrogate knows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from amo.errors import SettingsError

Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Domain:
    """Closed ranges of every input; expiry reaches down to, but not including, zero.

    Stored with a data set and with every model trained on it. Units of :mod:`pricing.columns`.
    """

    rate: Range = (0.0, 0.15)
    dividend_yield: Range = (0.0, 0.15)
    volatility: Range = (0.05, 1.5)
    expiry: Range = (0.0, 3.0)
    log_moneyness: Range = (-1.5, 1.5)

    def __post_init__(self) -> None:
        for field in fields(self):
            low, high = getattr(self, field.name)
            if not low < high:
                raise SettingsError(f"{field.name} must rise: got {low:g} to {high:g}")
        if self.volatility[0] <= 0:
            raise SettingsError(f"volatility must be > 0: got {self.volatility[0]:g}")
        if self.expiry[0] < 0:
            raise SettingsError(f"expiry must be >= 0: got {self.expiry[0]:g}")
        if self.rate[0] < 0 or self.dividend_yield[0] < 0:
            raise SettingsError(
                "rate and dividend_yield must be >= 0: negative ones may open a second exercise "
                f"boundary; got {self.rate[0]:g} and {self.dividend_yield[0]:g}"
            )

    def widened(self) -> "Domain":
        """Return a larger box to train on: at the ends of its data a model sees one side only.

        Rates stay at or above zero, where early exercise has no value and the form is exact.
        """
        margin = 0.075 * (self.log_moneyness[1] - self.log_moneyness[0])
        return Domain(
            rate=(self.rate[0], 1.15 * self.rate[1]),
            dividend_yield=(self.dividend_yield[0], 1.15 * self.dividend_yield[1]),
            volatility=(self.volatility[0] / 1.2, 1.15 * self.volatility[1]),
            expiry=(self.expiry[0], 1.15 * self.expiry[1]),
            log_moneyness=(self.log_moneyness[0] - margin, self.log_moneyness[1] + margin),
        )

    def as_dict(self) -> dict[str, list[float]]:
        """Return the ranges in JSON form."""
        return {name: list(bounds) for name, bounds in asdict(self).items()}

    @classmethod
    def from_dict(cls, ranges: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`as_dict`."""
        return cls(**{name: (float(low), float(high)) for name, (low, high) in ranges.items()})

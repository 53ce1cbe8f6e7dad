"""What a surface is fitted to: total variances of out-of-the-money quotes, expiry by expiry."""

from dataclasses import dataclass

import numpy as np

from amo.arrays import FloatArray, IntArray

FLOOR = 5e-4  # of volatility: no quote is better than this
LOSS_SCALE = 3.0  # errors of quotes beyond which a residual counts less


@dataclass(frozen=True)
class SmileQuotes:
    """Quotes sorted by expiry, in the coordinates of a surface.

    Attributes
    ----------
    years
        Of every expiry, rising.
    place
        Which of them each quote has.
    log_moneyness
        y = ln x of the pure strike x, see :mod:`pricing.vol_surfaces.pure`.
    volatility
        √(total variance / years) of the mid.
    error
        What the volatility may be off: half of bid to ask, at least a floor.
    """

    years: FloatArray
    place: IntArray
    log_moneyness: FloatArray
    volatility: FloatArray
    error: FloatArray

    def __len__(self) -> int:
        return len(self.place)

    @property
    def time(self) -> FloatArray:
        """Years to the expiry of every quote."""
        return np.asarray(self.years[self.place])

    def at_the_money(self) -> FloatArray:
        """Return about the total variance at the forward of every expiry."""
        found = []
        for place, time in enumerate(self.years):
            here = self.place == place
            y, vol = self.log_moneyness[here], self.volatility[here]
            reach = np.maximum(np.abs(y), 0.1 * np.median(vol) * np.sqrt(time))
            weight = 1.0 / (reach * self.error[here]) ** 2
            found.append(time * float(np.sum(weight * vol) / np.sum(weight)) ** 2)
        return np.array(found)

"""How a book's value moves with what its options see of their markets."""

from typing import NamedTuple

from amo.arrays import FloatArray, IntArray

QUARTERS = (0.25, 0.5, 0.75, 1.0)  # of the expiry, where curves are read


class Slopes(NamedTuple):
    """Derivatives of a sum of prices in what its slices hold, one line for each slice.

    Attributes
    ----------
    row
        One row of the slice.
    cash, rate_to, borrow_to
        Of every payment: per unit of cash over the spot, and of the integrals up to it.
    rate, borrow, rate_along, borrow_along
        Of the integrals up to expiry, and up to its quarters.
    """

    row: IntArray
    cash: FloatArray
    rate_to: FloatArray
    borrow_to: FloatArray
    rate: FloatArray
    borrow: FloatArray
    rate_along: FloatArray
    borrow_along: FloatArray

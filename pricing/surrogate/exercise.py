"""American options that are to be exercised: where they are, and their Greeks there."""

import numpy as np

from amo.arrays import FloatArray
from pricing import bounds
from pricing.options import Options, Values

_STOPPED = 7e-6  # per unit strike, about two price errors of the American surrogate: options with
# less time value get the Greeks of their payoff


def held(options: Options, price: FloatArray) -> FloatArray:
    """Return 0 for American options worth no more than exercise, up to a surrogate's error, and 1.

    Between one and two such errors it rises in a straight line: Greeks do not jump where the last
    digit of a price would decide.
    """
    exercised = bounds.intrinsic(options.spot, options.strike, options.is_call)
    small = _STOPPED * np.where(options.is_call, options.spot, options.strike)
    share = np.clip((price - exercised) / small - 1.0, 0.0, 1.0)
    return np.where(exercised > 0, share, 1.0)


def stopped(options: Options, values: Values, share: FloatArray) -> None:
    """Give options that are to be exercised the Greeks of their payoff; ``share`` is held()."""
    for name in values.keys() - {"price"}:
        greek = np.where(options.is_call, 1.0, -1.0) if name == "delta" else 0.0
        values[name] = np.where(share > 0, share * values[name] + (1.0 - share) * greek, greek)

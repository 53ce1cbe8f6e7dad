"""Low-discrepancy points that any shard can make by itself."""

import numpy as np
from scipy.stats import qmc

from amo.arrays import FloatArray


def sobol(seed: int, stream: int, start: int, count: int, dimension: int) -> FloatArray:
    """Return points ``start`` … ``start + count`` of a scrambled Sobol sequence in [0, 1)^d.

    Streams of one seed are independent scramblings. ``start`` and ``count`` must be multiples of
    one power of two, which keeps every shard's own points balanced.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, stream]))
    sampler = qmc.Sobol(dimension, scramble=True, rng=rng)
    if start:
        sampler.fast_forward(start)
    return np.asarray(sampler.random(count))


def power_of_two_below(n: int) -> int:
    """Return the largest power of two that is at most ``n``, and at least 1."""
    return 1 << (max(n, 1).bit_length() - 1)

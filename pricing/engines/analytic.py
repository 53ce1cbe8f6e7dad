"""The engine "analytic": the closed form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pricing import cash_dividends
from pricing.engines.base import Failures, Refusals, closed_form
from pricing.options import Options, Values
from pricing.progress import Advance

_CHUNK = 1 << 14  # rows whose temporaries stay in cache


@dataclass(frozen=True)
class AnalyticEngine:
    """The closed form; European only."""

    name: str = "analytic"
    keeps_bounds: Literal[True] = True
    takes_markets: Literal[True] = True
    stated_error: str = "nothing without cash dividends; with them what the expansion leaves out"

    def refusals(self, options: Options) -> Refusals:
        """Refuse American options, for which there is no formula, and spots below the dividends."""
        is_ruined = np.zeros(len(options), dtype=np.bool_)
        if options.slices is not None:
            is_ruined = options.slices.flat_terms(options.spot, options.expiry)[2]
        return [
            (
                options.is_american,
                (
                    "the analytic engine prices European options only: for American ones use "
                    'engine="fd" or engine="quantlib"'
                ),
            ),
            (
                is_ruined & ~options.is_american,
                (
                    "the dividends before expiry are worth more than the spot, where the formula "
                    'does not hold: use engine="fd"'
                ),
            ),
        ]

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        *,
        workers: int | None = None,  # noqa: ARG002  # one thread saturates the memory bus
        progress: Advance = None,
    ) -> tuple[Values, Failures]:
        """Return the closed form, in slices that stay in cache."""
        if options.slices is not None and not options.slices.is_plain.all():
            values = cash_dividends.evaluate(options, options.slices, quantities)
            if progress is not None:
                progress(len(options))
            return values, {}
        values = {name: np.zeros(len(options)) for name in quantities}
        known = [name for name in quantities if name != "price_error"]
        for start in range(0, len(options), _CHUNK):
            rows = slice(start, start + _CHUNK)
            part = closed_form(options.take(rows), known)
            for name in known:
                values[name][rows] = part[name]
            if progress is not None:
                progress(min(_CHUNK, len(options) - start))
        return values, {}

"""The engine "analytic": the closed form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pricing.engines.base import Failures, Refusals, closed_form
from pricing.options import Options, Values
from pricing.progress import Advance

_CHUNK = 1 << 14  # rows whose temporaries stay in cache


@dataclass(frozen=True)
class AnalyticEngine:
    """The closed form; European only."""

    name: str = "analytic"
    keeps_bounds: Literal[True] = True

    def refusals(self, options: Options) -> Refusals:
        """Refuse American options: there is no formula."""
        return [
            (
                options.is_american,
                (
                    "the analytic engine prices European options only: for American ones use "
                    'engine="fd" or engine="quantlib"'
                ),
            )
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
        values = {name: np.empty(len(options)) for name in quantities}
        for start in range(0, len(options), _CHUNK):
            rows = slice(start, start + _CHUNK)
            part = closed_form(options.take(rows), quantities)
            for name in quantities:
                values[name][rows] = part[name]
            if progress is not None:
                progress(min(_CHUNK, len(options) - start))
        return values, {}

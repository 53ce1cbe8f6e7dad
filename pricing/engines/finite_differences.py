"""The engines "fd" and "fd-fast": our finite differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from amo.arrays import FloatArray
from pricing import fd
from pricing.engines.base import Failures, Refusals
from pricing.options import Options, Values
from pricing.progress import Advance

_BOUNDARY = fd.FDSettings(n_space=192, n_time=96)


@dataclass(frozen=True)
class FDEngine:
    """Our finite differences; both exercise styles, with an error estimate at three levels."""

    name: str = "fd"
    settings: fd.FDSettings = fd.ACCURATE
    stated_error: str = "estimated for this very row from grids of three sizes"
    takes_markets: Literal[True] = True
    surface_quantities: tuple[str, ...] = fd.POINT_QUANTITIES

    def refusals(self, options: Options) -> Refusals:
        """Refuse what the grid does not resolve; see :func:`pricing.fd.refusals`."""
        return fd.refusals(options)

    def evaluate(
        self,
        options: Options,
        quantities: Sequence[str],
        *,
        workers: int | None = None,
        progress: Advance = None,
    ) -> tuple[Values, Failures]:
        """Solve every option on its own grids."""
        is_plain = np.ones(len(options), dtype=np.bool_)
        if options.slices is not None:
            is_plain = options.slices.is_plain
        values = {name: np.empty(len(options)) for name in quantities}
        for rows in map(np.flatnonzero, (is_plain, ~is_plain)):
            some = options if len(rows) == len(options) else options.take(rows)
            part = self._solved(some, quantities, workers, progress) if len(rows) else {}
            for name, column in part.items():
                values[name][rows] = column
        answers = [value for name, value in values.items() if name != "price_error"]
        lost = np.flatnonzero(~np.isfinite(answers).all(axis=0))
        return values, {int(row): f"{self.name} found no finite answer" for row in lost}

    def _solved(
        self,
        options: Options,
        quantities: Sequence[str],
        workers: int | None,
        progress: Advance,
    ) -> Values:
        """Solve rows that all need markets, or none of which does."""
        if options.slices is None or options.slices.is_plain.all():
            return fd.evaluate(
                options, quantities, self.settings, workers=workers, progress=progress
            )
        return fd.evaluate_under_markets(
            options,
            options.slices,
            quantities,
            fd.under_markets(self.settings),
            workers=workers,
            progress=progress,
        )

    def surface(
        self,
        options: Options,
        spot: FloatArray,
        time: FloatArray,
        quantities: Sequence[str],
        *,
        workers: int | None = None,
        progress: Advance = None,
    ) -> Values:
        """Read V(S, t) off one solve a contract; see :func:`pricing.fd.evaluate_points`."""
        settings = fd.under_markets(self.settings)
        return fd.evaluate_points(
            options, spot, time, quantities, settings, workers=workers, progress=progress
        )

    def exercise_boundary(self, options: Options) -> FloatArray:
        """Return the spot at which each American option is exercised, NaN where there is none.

        One solve gives the boundary of all shorter expiries too, where the market is flat.
        """
        found = np.full(len(options), np.nan)
        rows = np.flatnonzero(options.is_american & (options.expiry > 0))
        if options.slices is not None:
            some, now = options.take(rows), np.zeros((len(rows), 1))
            if len(rows):
                found[rows] = self.surface(some, some.spot[:, None], now, ("boundary",))[
                    "boundary"
                ][:, 0]
            return found
        terms = np.column_stack([term[rows] for term in (*options.terms[1:2], *options.terms[3:])])
        _, kind = np.unique(terms, axis=0, return_inverse=True)
        for number in range(kind.max(initial=-1) + 1):
            alike = rows[kind == number]
            longest = alike[np.argmax(options.expiry[alike])]
            solved = fd.solve_surface(options.take(np.array([longest])), _BOUNDARY)
            found[alike] = np.interp(
                options.expiry[alike], solved.time_to_expiry[0], solved.boundary[0]
            )
        return found

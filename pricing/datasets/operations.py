"""What can be done with each part of a book: functions of a frame that know nothing of parts."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

import pandas as pd

from pricing.analysis.book import exposure
from pricing.analysis.ladder import ladder_frame
from pricing.analysis.surfaces import surface_frame
from pricing.frames import implied_vol_frame, price_frame

_MANAGED = {"engine", "markets", "assumed", "workers", "progress", "as_arrays"}
_HERE = {"workers": 1, "progress": False}  # a part is one core's work


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Something done with each part.

    Attributes
    ----------
    function
        What takes the frame of a part and returns another one.
    adds
        Whether it adds columns to the frame, or makes a frame of its own.
    """

    function: Callable[..., pd.DataFrame]
    adds: bool

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options of the function, the given ones and the defaults of the others."""
        names = inspect.signature(self.function).parameters
        known = {name: names[name].default for name in list(names)[1:] if name not in _MANAGED}
        if unknown := [name for name in given if name not in known]:
            raise TypeError(
                f"there is no option {', '.join(unknown)}; there are {', '.join(known)}"
            )
        return {**known, **given}

    def of_part(
        self, frame: pd.DataFrame, engine: str | None, options: Mapping[str, Any]
    ) -> tuple[pd.DataFrame, list[str]]:
        """Return what the function makes of a frame, and what was assumed."""
        names = inspect.signature(self.function).parameters
        fixed: dict[str, Any] = {name: value for name, value in _HERE.items() if name in names}
        if engine is not None:
            fixed["engine"] = engine
        assumed: list[str] = []
        return self.function(frame, **options, **fixed, assumed=assumed), assumed


@wraps(ladder_frame)
def _ladder(book: pd.DataFrame, **options: Any) -> pd.DataFrame:  # noqa: ANN401
    """Return the ladder of a part; the number of a rung among those of its underlying is kept."""
    rungs = ladder_frame(book, **options)
    rungs.insert(1, "rung", rungs.groupby("underlying").cumcount().astype("int64"))
    return rungs.astype({"time": "float64", "sensitivity": "float64"})


@wraps(exposure)
def _exposure(priced: pd.DataFrame, **options: Any) -> pd.DataFrame:  # noqa: ANN401
    """Return the exposure of a part with its buckets as columns."""
    found = exposure(priced, **options).reset_index()
    return found.astype({"expiry": "str", "moneyness": "str", "options": "int64"})


@wraps(surface_frame)
def _surface(book: pd.DataFrame, **options: Any) -> pd.DataFrame:  # noqa: ANN401
    """Return the surfaces of a part as a frame."""
    return cast("pd.DataFrame", surface_frame(book, **options))


OPERATIONS: Mapping[str, Operation] = {
    "price": Operation(function=price_frame, adds=True),
    "implied-vol": Operation(function=implied_vol_frame, adds=True),
    "surface": Operation(function=_surface, adds=False),
    "ladder": Operation(function=_ladder, adds=False),
    "exposure": Operation(function=_exposure, adds=False),
}

"""A surrogate's field beside a referee's: which of them is shown, and how far they are apart."""

from typing import NamedTuple

import numpy as np
import streamlit as st

from amo.arrays import FloatArray

_FIELDS = ("AMO", "reference", "difference", "|difference|, log10")


class Shown(NamedTuple):
    """A field to draw."""

    values: FloatArray
    title: str
    is_signed: bool


def field_choice() -> str:
    """Ask which field to show."""
    return st.segmented_control(
        "Show", _FIELDS, default="difference", required=True, key="field", bind="query-params"
    )


def shown(
    field: str, found: FloatArray, truth: FloatArray, names: tuple[str, str], quantity: str
) -> Shown:
    """Return the chosen field of two engines' values of a quantity."""
    difference = found - truth
    with np.errstate(divide="ignore"):
        size = np.log10(np.maximum(np.abs(difference), 1e-12))
    values = dict(zip(_FIELDS, (found, truth, difference, size), strict=True))[field]
    title = {"AMO": f"{quantity}, {names[0]}", "reference": f"{quantity}, {names[1]}"}.get(
        field, f"{quantity}: {field}, {names[0]} − {names[1]}"
    )
    return Shown(values, title, field == "difference")


def say(found: FloatArray, truth: FloatArray, names: tuple[str, str]) -> None:
    """Say how far two fields are apart, where both have values."""
    known = (found - truth)[np.isfinite(found - truth)]
    if len(known):
        st.markdown(
            f"{names[0]} − {names[1]}: RMSE **{np.sqrt(np.mean(known**2)):.1e}**, largest "
            f"**{np.abs(known).max():.1e}** over {known.size:,} points of the surface."
        )

"""What all charts share: colours, lines, axes, legends."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from amo.arrays import FloatArray

# One colour an engine, readable on white and on black.
COLOURS = {
    "amo": "#e4572e",
    "quantlib": "#2e86ab",
    "analytic": "#2e86ab",
    "fd": "#5b8c5a",
    "fd-fast": "#8ab17d",
    "quantlib-fast": "#6c91c2",
    "quantlib-fd": "#b388eb",
    "mlp": "#f4a261",
    "payoff": "#888888",
}
CYCLE = ("#e4572e", "#2e86ab", "#5b8c5a", "#b388eb", "#f4a261", "#17a398", "#c44569")
SEQUENTIAL, DIVERGING = "Viridis", "RdBu"
GREY = "#888888"
_MARGIN = {"l": 10, "r": 10, "t": 40, "b": 10}


def colour_scale(values: FloatArray, axis: str, *, is_signed: bool) -> dict[str, Any]:
    """Return a colour scale, of signed values symmetric around zero."""
    if not is_signed:
        return {"colorscale": SEQUENTIAL}
    largest = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    return {"colorscale": DIVERGING, f"{axis}min": -largest, f"{axis}max": largest}


def decades_around(values: Sequence[float]) -> list[float]:
    """Return the range of a logarithmic axis with room for labels."""
    return [float(np.log10(min(values))) - 0.4, float(np.log10(max(values))) + 0.4]


def add_line(
    figure: go.Figure,
    x: FloatArray,
    y: FloatArray,
    name: str,
    *,
    dash: str | None = None,
    width: float = 2,
    colour: str | None = None,
) -> None:
    """Add a named line, in its engine's colour unless another is given."""
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        name=name,
        line={"color": colour or COLOURS.get(name, GREY), "width": width, "dash": dash},
    )


def dressed(
    figure: go.Figure, title: str = "", x: str = "", y: str = "", height: int = 380
) -> go.Figure:
    """Give a figure its title, axes, size and a legend that leaves room on a telephone."""
    layout: dict[str, Any] = {
        "height": height,
        "margin": _MARGIN if title or figure.layout.annotations else {**_MARGIN, "t": 10},
        "legend": {"orientation": "h", "yanchor": "top", "y": -0.2, "x": 0},
        "hovermode": "closest",
    }
    if title:
        layout["title"] = {"text": title, "font": {"size": 15}}
    figure.update_layout(**layout)
    if x:
        figure.update_xaxes(title_text=x)
    if y:
        figure.update_yaxes(title_text=y)
    return figure

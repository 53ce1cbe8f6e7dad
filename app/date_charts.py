"""Charts over dates: numbers in, a plotly figure out."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from amo.arrays import FloatArray
from app.chart_style import COLOURS, CYCLE, GREY, add_line, dressed
from app.charts import heat_map


def heat_map_by_date(
    spot: FloatArray,
    dates: npt.NDArray[Any],
    values: FloatArray,
    title: str,
    marks: Mapping[Any, str],
    *,
    is_signed: bool = False,
    boundaries: Mapping[str, FloatArray] | None = None,
) -> go.Figure:
    """Draw a field over spot and date as colours, with marked dates and exercise boundaries."""
    figure = heat_map(spot, dates, values, title, is_signed=is_signed, boundaries=boundaries)
    figure.update_traces(
        selector={"type": "heatmap"},
        hovertemplate="spot %{x:.4g}<br>%{y|%Y-%m-%d}<br>%{z:.4g}<extra></extra>",
    )
    # a call is exercised just before ex-dates only: such points are no line
    figure.update_traces(selector={"type": "scatter"}, mode="lines+markers", marker={"size": 7})
    figure.update_yaxes(title_text="date")
    mark_dates(figure, marks, "y")
    return figure


def values_by_date(
    dates: npt.NDArray[Any], curves: Mapping[str, FloatArray], title: str, y: str
) -> go.Figure:
    """Draw curves against the date."""
    figure = go.Figure()
    for number, (name, values) in enumerate(curves.items()):
        is_referee = name in COLOURS and name != "amo" and len(curves) > 1
        colour = COLOURS.get(name, CYCLE[number % len(CYCLE)])
        dash, width = ("dash", 2) if is_referee else (None, 3)
        add_line(figure, dates, values, name, dash=dash, width=width, colour=colour)
    if len(curves) == 1:  # points apart from each other are no line
        figure.update_traces(mode="lines+markers", marker={"size": 7})
    x = "date" if np.issubdtype(dates.dtype, np.datetime64) else "years from now"
    return dressed(figure, title, x, y)


def mark_dates(figure: go.Figure, marks: Mapping[Any, str], axis: Literal["x", "y"]) -> None:
    """Mark dates by dashed lines across a figure, with a word each."""
    other = "y" if axis == "x" else "x"
    for date, word in marks.items():
        across = {f"{axis}0": date, f"{axis}1": date, f"{other}0": 0, f"{other}1": 1}
        figure.add_shape(
            type="line", **across, **{f"{other}ref": "paper"},
            line={"color": GREY, "width": 1, "dash": "dash"},
        )  # fmt: skip
        place = {axis: date, other: float(axis == "x"), f"{other}ref": "paper"}
        anchor = "top" if axis == "x" else "bottom"
        angle = -90 if axis == "x" else 0  # so that close dates do not cover each other
        figure.add_annotation(
            text=f"ex {word}", showarrow=False, font={"size": 10, "color": GREY},
            xanchor="left", yanchor=anchor, textangle=angle, **place,
        )  # fmt: skip

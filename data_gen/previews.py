"""Pictures of training sets, for ``preview``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from data_gen.dataset import Arrays

_SCENE = {
    "xaxis_title": "ln(S/K)",
    "yaxis_title": "time to expiry, years",
    "zaxis_title": "price",
    "aspectmode": "cube",
}


def draw_surfaces(arrays: Arrays, labels: Sequence[str], n_shown: int = 4) -> go.Figure:
    """Draw a few surfaces of a serving set as points in 3-D, with a drop-down for the quantity."""
    states = np.linspace(0, len(arrays["rate"]) - 1, n_shown).astype(int)
    vols = np.linspace(0, arrays["volatility"].shape[1] - 1, n_shown).astype(int)
    rows = list(zip(states, vols, strict=True))
    figure = go.Figure()
    for row in rows:
        title = (
            f"r {arrays['rate'][row[0]]:.1%}, q {arrays['dividend_yield'][row[0]]:.1%}, "
            f"σ {arrays['volatility'][row]:.1%}"
        )
        figure.add_scatter3d(
            x=arrays["log_moneyness"][row],
            y=arrays["time_to_expiry"][row],
            z=arrays["price"][row],
            mode="markers",
            marker={"size": 3},
            name=title,
        )
    for row in rows:
        boundary = arrays["boundary"][row].astype(np.float64)
        known = np.flatnonzero(boundary > 0)
        order = known[np.argsort(arrays["time_to_expiry"][row][known])]
        figure.add_scatter3d(
            x=np.log(boundary[order]),
            y=arrays["time_to_expiry"][row][order],
            z=1.0 - boundary[order],
            mode="lines",
            name="exercise boundary",
            showlegend=row == rows[0],
            line={"width": 5, "color": "black"},
        )

    def button(name: str) -> dict[str, Any]:
        z = [arrays[name][row] for row in rows]
        visible = [True] * n_shown + [name == "price"] * n_shown
        return {
            "label": name,
            "method": "update",
            "args": [
                {"z": [*z, *(t.z for t in figure.data[n_shown:])], "visible": visible},
                {"scene.zaxis.title.text": name},
            ],
        }

    buttons = [button(name) for name in labels]
    figure.update_layout(
        title="Labels of a few surfaces, strike 1",
        scene=_SCENE,
        legend={"x": 0.0, "y": 1.0},
        updatemenus=[{"buttons": buttons, "x": 1.0, "xanchor": "right", "y": 1.0}],
    )
    return figure


def draw_grids(arrays: Arrays) -> go.Figure:
    """Draw V(S, t) of four samples."""
    figure = make_subplots(2, 2, specs=[[{"type": "surface"}] * 2] * 2)
    rows = np.linspace(0, len(arrays["inputs"]) - 1, 4).astype(int)
    for place, row in enumerate(rows):
        figure.add_surface(
            x=arrays["spot"][row],
            y=arrays["time"][row],
            z=arrays["price"][row],
            showscale=False,
            row=place // 2 + 1,
            col=place % 2 + 1,
        )
    figure.update_layout(title="V(S, t) of a few samples", height=900)
    figure.update_scenes(xaxis_title="S", yaxis_title="t, years", zaxis_title="V")
    return figure


def draw_curves(arrays: Arrays, n_shown: int = 4) -> go.Figure:
    """Draw input functions and their images on a line, at the points where they are known."""
    rows = np.linspace(0, len(arrays["points"]) - 1, n_shown).astype(int)
    figure = make_subplots(2, 1, shared_xaxes=True, subplot_titles=("input", "image"))
    for number, row in enumerate(rows, start=1):
        seen = arrays["mask"][row]
        curves = (
            (arrays["points"][row, seen, 0], arrays["features"][row, seen, 0]),
            (arrays["queries"][row, :, 0], arrays["values"][row, :, 0]),
        )
        for place, (x, y) in enumerate(curves, start=1):
            figure.add_scatter(
                x=x,
                y=y,
                mode="markers",
                name=f"sample {row}",
                legendgroup=str(number),
                showlegend=place == 1,
                marker={"color": f"hsl({90 * number}, 60%, 45%)"},
                row=place,
                col=1,
            )
    figure.update_xaxes(title_text="x", row=2, col=1)
    return figure


def draw_schedules(arrays: Arrays, n_shown: int = 4) -> go.Figure:
    """Draw the dividends of a few slices, and the early exercise premiums of contracts there."""
    shown = np.linspace(0, len(arrays["expiry"]) - 1, n_shown).astype(int)
    titles = [f"{arrays['expiry'][row]:.2f} years" for row in shown]
    figure = make_subplots(rows=2, cols=n_shown, subplot_titles=titles)
    for column, row in enumerate(shown, start=1):
        is_paid = arrays["payment_cash"][row] > 0
        figure.add_bar(
            x=arrays["payment_time"][row][is_paid],
            y=100.0 * arrays["payment_cash"][row][is_paid],
            showlegend=False,
            row=1,
            col=column,
        )
        for is_call, name in ((True, "calls"), (False, "puts")):
            mine = arrays["is_call"][row] == is_call
            figure.add_scatter(
                x=np.log(arrays["spot"][row][mine]),
                y=arrays["values"][row, :, 0][mine],
                mode="markers",
                name=name,
                marker_color="#1f77b4" if is_call else "#d62728",
                showlegend=column == 1,
                row=2,
                col=column,
            )
        figure.update_xaxes(title_text="years from now", row=1, col=column)
        figure.update_xaxes(title_text="ln(S/K)", row=2, col=column)
    figure.update_yaxes(title_text="dividend, % of spot", row=1, col=1)
    figure.update_yaxes(title_text="price above its floor, strike 1", row=2, col=1)
    figure.update_layout(title="Schedules of a few slices, and prices under them")
    return figure

"""Pictures of the physics sets, for ``preview``."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from amo.arrays import FloatArray
from data_gen.dataset import Arrays


def draw_clouds(arrays: Arrays, value: str, n_shown: int = 4) -> go.Figure:
    """Draw a field of a few samples as coloured points in the plane, on one colour scale."""
    rows = np.linspace(0, len(arrays["points"]) - 1, n_shown).astype(int)
    n_columns = 2
    n_rows = -(-n_shown // n_columns)
    titles = [f"sample {row}" for row in rows]
    figure = make_subplots(n_rows, n_columns, subplot_titles=titles)
    for place, row in enumerate(rows):
        figure.add_scatter(
            x=arrays["points"][row, :, 0],
            y=arrays["points"][row, :, 1],
            mode="markers",
            marker={"color": arrays[value][row], "coloraxis": "coloraxis", "size": 5},
            showlegend=False,
            row=place // n_columns + 1,
            col=place % n_columns + 1,
        )
        axis = f"x{place + 1}" if place else "x"
        figure.update_yaxes(scaleanchor=axis, row=place // n_columns + 1, col=place % n_columns + 1)
    figure.update_layout(
        title=f"{value} of a few samples",
        height=450 * n_rows,
        coloraxis={"colorscale": "Viridis", "colorbar": {"title": value}},
    )
    return figure


def draw_maps(fields: Mapping[str, FloatArray]) -> go.Figure:
    """Draw fields (samples, x, y), one row per sample and one column per field."""
    n = len(next(iter(fields.values())))
    figure = make_subplots(n, len(fields), column_titles=list(fields))
    for column, field in enumerate(fields.values(), start=1):
        for row, values in enumerate(field, start=1):
            figure.add_heatmap(z=values.T, showscale=False, row=row, col=column)
    return figure.update_layout(height=320 * n, width=360 * len(fields))


def draw_frames(films: FloatArray, n_shown: int = 5) -> go.Figure:
    """Draw some frames of films (samples, x, y, t), one row per sample."""
    frames = np.linspace(0, films.shape[-1] - 1, n_shown).astype(int)
    shown = np.moveaxis(films[..., frames], -1, 0)
    return draw_maps(dict(zip((f"frame {i + 1}" for i in frames), shown, strict=True)))


def draw_meshes(films: FloatArray, n_shown: int = 3) -> go.Figure:
    """Draw some frames of meshes (samples, i, j, frames, 4), by the distance that nodes have moved.

    The last axis holds x, y and the displacement.
    """
    frames = np.linspace(0, films.shape[3] - 1, n_shown).astype(int)
    titles = [f"frame {frame + 1}" for frame in frames]
    figure = make_subplots(len(films), n_shown, column_titles=titles)
    for row, film in enumerate(films, start=1):
        for column, frame in enumerate(frames, start=1):
            x, y, right, up = np.moveaxis(film[:, :, frame], -1, 0)
            figure.add_scatter(
                x=x.ravel(),
                y=y.ravel(),
                mode="markers",
                marker={"color": np.hypot(right, up).ravel(), "coloraxis": "coloraxis", "size": 3},
                showlegend=False,
                row=row,
                col=column,
            )
    number = np.arange(1, len(films) * n_shown + 1)
    for k in number:
        figure.layout[f"yaxis{k}"].update(scaleanchor=f"x{k}" if k > 1 else "x")
    colours = {"colorscale": "Viridis", "colorbar": {"title": "mm"}}
    return figure.update_layout(height=260 * len(films), coloraxis=colours)


def draw_lines(functions: Mapping[str, FloatArray]) -> go.Figure:
    """Draw functions (samples, points) on a line, one row per sample."""
    n = len(next(iter(functions.values())))
    figure = make_subplots(n, 1, shared_xaxes=True)
    for number, (name, values) in enumerate(functions.items()):
        colour = {"color": f"hsl({110 * number}, 60%, 45%)", "width": 1}
        for row, line in enumerate(values, start=1):
            figure.add_scatter(
                y=line, name=name, legendgroup=name, showlegend=row == 1, line=colour,
                row=row, col=1,
            )  # fmt: skip
    return figure.update_layout(height=300 * n)

"""Charts of a surrogate's errors, training and poles: numbers in, a plotly figure out."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from amo.arrays import FloatArray
from app.chart_style import COLOURS, CYCLE, GREY, SEQUENTIAL, add_line, decades_around, dressed
from app.pareto import Engines, front


def region_map(table: pd.DataFrame, title: str, ends: tuple[float, float]) -> go.Figure:
    """Draw an error by expiry (down) and moneyness (across) in colours of its logarithm.

    ``ends`` are the least and the largest error of all maps that are to be compared.
    """
    figure = go.Figure(
        go.Heatmap(
            x=[str(label) for label in table.columns],
            y=[str(label) for label in table.index],
            z=np.log10(table.to_numpy()),
            zmin=np.log10(ends[0]),
            zmax=np.log10(ends[1]),
            colorscale=SEQUENTIAL,
            showscale=False,
            text=[[f"{cell:.1e}" for cell in row] for row in table.to_numpy()],
            texttemplate="%{text}",
            hovertemplate="%{x}<br>%{y}<br>%{text}<extra></extra>",
        )
    )
    return dressed(figure, title, height=300)


def error_histogram(edges: Sequence[float], counts: Sequence[int], p99: float) -> go.Figure:
    """Draw how many contracts have which size of error, on a logarithmic axis."""
    low, high = np.asarray(edges[:-1]), np.asarray(edges[1:])
    bars = go.Bar(
        x=0.5 * (low + high), width=high - low, y=list(counts), marker={"color": COLOURS["amo"]}
    )
    figure = go.Figure(bars)
    figure.update_xaxes(type="log", dtick=1, exponentformat="power")
    figure.add_vline(x=p99, line={"color": GREY, "dash": "dash"})
    figure.add_annotation(  # plotly places words on a logarithmic axis by the logarithm
        x=math.log10(p99), y=1.0, yref="paper", text="99 %", xanchor="left", showarrow=False
    )
    figure.update_layout(bargap=0.02)
    return dressed(figure, "Price errors in the box", "|error|, K = 100", "contracts")


def pareto(engines: Engines, column: str, title: str) -> go.Figure:
    """Draw every engine's error against its time, and a line through those that none else beats."""
    best = [engines[name] for name in front(engines, column)]
    figure = go.Figure(
        go.Scatter(
            x=[row[column] for row in best],
            y=[row["price_rmse"] for row in best],
            mode="lines",
            line={"shape": "hv", "dash": "dot", "color": GREY, "width": 1},
            hoverinfo="skip",
            showlegend=False,
        )
    )
    for name, row in engines.items():
        if column not in row:
            continue
        is_surrogate = name in ("amo", "mlp")
        figure.add_scatter(
            x=[row[column]],
            y=[row["price_rmse"]],
            mode="markers+text",
            text=[name],
            textposition="bottom center" if name == "amo" else "top center",  # mlp is beside it
            cliponaxis=False,
            marker={
                "size": 14 if is_surrogate else 10,
                "symbol": "diamond" if is_surrogate else "circle",
                "color": COLOURS.get(name, GREY),
            },
            hovertemplate=f"{name}<br>%{{x:.3g}} µs<br>RMSE %{{y:.1e}}<extra></extra>",
            showlegend=False,
        )
    shown = [row for row in engines.values() if column in row]
    axis = {"type": "log", "dtick": 1, "exponentformat": "power"}
    figure.update_xaxes(**axis, range=decades_around([row[column] for row in shown]))
    figure.update_yaxes(**axis, range=decades_around([row["price_rmse"] for row in shown]))
    return dressed(figure, title, "µs per option", "price RMSE, K = 100", height=420)


def truth_against_found(truth: FloatArray, error: FloatArray) -> go.Figure:
    """Draw signed errors against the true prices."""
    figure = go.Figure()
    figure.add_scattergl(
        x=truth,
        y=error,
        mode="markers",
        marker={"color": COLOURS["amo"], "size": 4, "opacity": 0.5},
        hovertemplate="price %{x:.4f}<br>error %{y:.1e}<extra></extra>",
    )
    figure.update_yaxes(tickformat=".0e")
    return dressed(figure, "Errors of this draw", "price by the reference", "AMO − reference")


def training_curves(log: pd.DataFrame) -> go.Figure:
    """Draw the training loss and the validation score against steps."""
    figure = make_subplots(specs=[[{"secondary_y": True}]])
    steps = log[log["loss"].notna()]
    smooth = steps["loss"].rolling(9, min_periods=1, center=True).median()
    add_line(figure, steps["step"].to_numpy(), smooth.to_numpy(), "training loss", colour=GREY)
    checks = log[log["validation"].notna()]
    figure.add_scatter(
        x=checks["step"],
        y=checks["validation"],
        mode="lines+markers",
        marker={"size": 4},
        name="validation RMSE, right",
        line={"color": COLOURS["amo"]},
        secondary_y=True,
    )
    figure.update_yaxes(title_text="loss", secondary_y=False)
    axis = {"type": "log", "dtick": 1, "exponentformat": "power", "showgrid": False}
    figure.update_yaxes(**axis, secondary_y=True)
    return dressed(figure, "Training", "step")


def pole_paths(paths: FloatArray, now: FloatArray, title: str) -> go.Figure:
    """Draw a block's poles in the unit disc: paths (states, poles, 2) and where they are now."""
    angles = np.linspace(0.0, 2.0 * np.pi, 181)
    figure = go.Figure()
    add_line(figure, np.cos(angles), np.sin(angles), "unit circle", colour=GREY, width=1)
    for pole, (path, here) in enumerate(zip(np.moveaxis(paths, 1, 0), now, strict=True)):
        colour = CYCLE[pole % len(CYCLE)]
        add_line(figure, path[:, 0], path[:, 1], f"path of pole {pole + 1}", colour=colour)
        figure.add_scatter(
            x=[here[0]],
            y=[here[1]],
            mode="markers",
            marker={"color": colour, "size": 11},
            name=f"pole {pole + 1}",
            hovertemplate="%{x:.3f} + %{y:.3f} i<extra></extra>",
        )
    figure.update_layout(showlegend=False)
    figure.update_xaxes(range=[-1.08, 1.08], constrain="domain")
    figure.update_yaxes(range=[-1.08, 1.08], constrain="domain", scaleanchor="x")
    return dressed(figure, title, "real part", "imaginary part", height=420)


def basis_functions(angles: FloatArray, blocks: Sequence[FloatArray]) -> go.Figure:
    """Draw the real parts of the functions of each block over the circle."""
    figure = make_subplots(
        rows=len(blocks),
        shared_xaxes=True,
        subplot_titles=[f"block {n}" for n in range(1, len(blocks) + 1)],
        vertical_spacing=0.12,
    )
    for number, block in enumerate(blocks, start=1):
        for pole, values in enumerate(block):
            figure.add_scatter(
                x=angles,
                y=values,
                mode="lines",
                line={"color": CYCLE[pole % len(CYCLE)], "width": 1.5},
                name=f"pole {pole + 1}",
                showlegend=False,
                row=number,
                col=1,
            )
    figure.update_xaxes(title_text="angle on the circle", row=len(blocks), col=1)
    return dressed(figure, height=180 + 150 * len(blocks))


def named_lines(table: pd.DataFrame, x: str, y: str) -> go.Figure:
    """Draw one line a column against the index, from zero up."""
    figure = go.Figure()
    for number, (name, values) in enumerate(table.items()):
        colour = CYCLE[number % len(CYCLE)]
        add_line(figure, table.index.to_numpy(), values.to_numpy(), str(name), colour=colour)
    figure.update_yaxes(rangemode="tozero")
    return dressed(figure, "", x, y, height=320)

"""Charts of contracts, books and quotes: numbers in, a plotly figure out."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from amo.arrays import FloatArray
from app.chart_style import (
    COLOURS,
    CYCLE,
    DIVERGING,
    GREY,
    SEQUENTIAL,
    add_line,
    colour_scale,
    dressed,
)


def values_against_spot(
    spot: FloatArray, curves: Mapping[str, FloatArray], payoff: FloatArray, at: float
) -> go.Figure:
    """Draw the value today against spot by several engines, above the payoff."""
    figure = go.Figure()
    for name, value in curves.items():
        dashed = None if name == "amo" else "dash"
        add_line(figure, spot, value, name, dash=dashed, width=3 if dashed is None else 2)
    add_line(figure, spot, payoff, "payoff", dash="dot")
    figure.add_vline(x=at, line={"color": GREY, "width": 1, "dash": "dot"})
    return dressed(figure, "Value today and payoff", "spot", "value")


def surface_3d(
    spot: FloatArray,
    expiry: FloatArray,
    values: FloatArray,
    title: str,
    *,
    is_signed: bool = False,
) -> go.Figure:
    """Draw a field over spot and time to expiry, a signed one in colours around zero."""
    figure = go.Figure(
        go.Surface(
            x=spot,
            y=expiry,
            z=values,
            showscale=False,
            hovertemplate="spot %{x:.4g}<br>years %{y:.3f}<br>%{z:.6g}<extra></extra>",
            **colour_scale(values, "c", is_signed=is_signed),
        )
    )
    figure.update_layout(
        scene={
            "xaxis": {"title": "spot"},
            "yaxis": {"title": "years to expiry"},
            "zaxis": {"title": ""},
            "camera": {"eye": {"x": -1.5, "y": -1.6, "z": 0.9}},
        },
    )
    return dressed(figure, title, height=420)


def heat_map(
    spot: FloatArray,
    expiry: FloatArray,
    values: FloatArray,
    title: str,
    *,
    is_signed: bool = False,
    boundaries: Mapping[str, FloatArray] | None = None,
) -> go.Figure:
    """Draw a field as colours, a signed one around zero, with exercise boundaries."""
    figure = go.Figure(
        go.Heatmap(
            x=spot,
            y=expiry,
            z=values,
            **colour_scale(values, "z", is_signed=is_signed),
            colorbar={"thickness": 12, "tickformat": ".2g"},
            hovertemplate="spot %{x:.4g}<br>years %{y:.3f}<br>%{z:.4g}<extra></extra>",
        )
    )
    for name, boundary in (boundaries or {}).items():
        is_seen = (boundary >= spot[0]) & (boundary <= spot[-1])
        figure.add_scatter(
            x=np.where(is_seen, boundary, np.nan),
            y=expiry,
            mode="lines",
            name=f"boundary, {name}",
            line={
                "color": "#7b2cbf" if name != "amo" else "#ff2fa0",
                "width": 2,
                "dash": "solid" if name == "amo" else "dash",
            },
        )
    return dressed(figure, title, "spot", "years to expiry", height=420)


def lines_with_errors(
    x: FloatArray, curves: Mapping[str, FloatArray], reference: str, names: tuple[str, str]
) -> go.Figure:
    """Draw curves, and beneath them their differences to the reference."""
    figure = make_subplots(
        rows=2, shared_xaxes=True, row_heights=[0.72, 0.28], vertical_spacing=0.06
    )
    for name, values in curves.items():
        is_player = name == "amo"
        add_line(
            figure, x, values, name, width=3 if is_player else 2, dash=None if is_player else "dash"
        )
        if name != reference:
            figure.add_scatter(
                x=x,
                y=values - curves[reference],
                mode="lines",
                line={"color": COLOURS.get(name, GREY), "width": 1.5},
                name=f"{name} − {reference}",
                showlegend=False,
                row=2,
                col=1,
            )
    figure.update_yaxes(title_text=names[1], row=1, col=1)
    figure.update_yaxes(title_text="error", tickformat=".1e", zeroline=True, row=2, col=1)
    figure.update_xaxes(title_text=names[0], row=2, col=1)
    return dressed(figure, height=460)


def exposure_bars(exposure: pd.DataFrame, measure: str, title: str) -> go.Figure:
    """Draw a measure by expiry, one colour a bucket of moneyness."""
    figure = go.Figure()
    table = exposure.pivot_table(index="expiry", columns="moneyness", values=measure, observed=True)
    for number, column in enumerate(table.columns):
        figure.add_bar(
            x=[str(label) for label in table.index],
            y=table[column],
            name=str(column),
            marker={"color": CYCLE[number % len(CYCLE)]},
        )
    figure.update_layout(barmode="relative")
    return dressed(figure, title, "expiry", "", height=380)


def scenario_map(grid: pd.DataFrame) -> go.Figure:
    """Draw profit and loss over moves of spot and volatility."""
    largest = float(np.abs(grid.to_numpy()).max()) or 1.0
    figure = go.Figure(
        go.Heatmap(
            x=[f"{100 * move:+g}" for move in grid.columns],
            y=[f"{100 * move:+g}" for move in grid.index],
            z=grid.to_numpy(),
            colorscale=DIVERGING,
            zmid=0.0,
            zmin=-largest,
            zmax=largest,
            texttemplate="%{z:,.0f}",
            colorbar={"thickness": 12, "tickformat": ",.2s"},
            hovertemplate="vol %{x} points<br>spot %{y} %<br>P/L %{z:,.2f}<extra></extra>",
        )
    )
    figure.update_xaxes(type="category")
    figure.update_yaxes(type="category")
    return dressed(figure, "P/L of the book", "volatility, points", "spot, %", height=420)


def smile_lines(smile: pd.DataFrame) -> go.Figure:
    """Draw implied volatility against ln K/F, one colour an expiry."""
    figure = go.Figure()
    for number, (expiry, quotes) in enumerate(smile.groupby("expiry")):
        colour = CYCLE[number % len(CYCLE)]
        chosen = quotes[quotes["is_out_of_the_money"]]
        add_line(
            figure,
            chosen["log_moneyness"].to_numpy(),
            100.0 * chosen["implied_volatility"].to_numpy(),
            f"{expiry:.3g} y",
            colour=colour,
        )
        figure.add_scatter(
            x=quotes["log_moneyness"],
            y=100.0 * quotes["implied_volatility"],
            mode="markers",
            marker={
                "color": colour,
                "size": 6,
                "symbol": np.where(quotes["option_type"] == "call", "circle", "diamond"),
            },
            text=quotes["option_type"],
            hovertemplate="ln K/F %{x:.3f}<br>%{y:.2f} %<br>%{text}<extra></extra>",
            showlegend=False,
        )
    return dressed(figure, "Smiles", "ln K/F", "implied volatility, %")


def term_line(term: pd.DataFrame) -> go.Figure:
    """Draw the volatility at the forward against expiry."""
    figure = go.Figure()
    figure.add_scatter(
        x=term["expiry"],
        y=100.0 * term["volatility"],
        mode="lines+markers",
        line={"color": COLOURS["amo"]},
    )
    return dressed(figure, "Term structure at the forward", "years", "volatility, %")


def volatility_surface(surface: pd.DataFrame) -> go.Figure:
    """Draw implied volatility over ln K/F and expiry."""
    figure = go.Figure(
        go.Surface(
            x=surface.columns.to_numpy(),
            y=surface.index.to_numpy(),
            z=100.0 * surface.to_numpy(),
            colorscale=SEQUENTIAL,
            showscale=False,
            hovertemplate="ln K/F %{x:.3f}<br>years %{y:.3f}<br>%{z:.2f} %<extra></extra>",
        )
    )
    axes = {"xaxis": {"title": "ln K/F"}, "yaxis": {"title": "years"}, "zaxis": {"title": "%"}}
    figure.update_layout(scene={**axes, "camera": {"eye": {"x": 1.6, "y": -1.6, "z": 0.8}}})
    return dressed(figure, "Volatility surface", height=440)

"""Every chart of the dashboard: numbers in, a plotly figure out.

One long file on purpose: every chart is one function, and all share the marks and colours above.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

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
_CYCLE = ("#e4572e", "#2e86ab", "#5b8c5a", "#b388eb", "#f4a261", "#17a398", "#c44569")
_SEQUENTIAL, _DIVERGING = "Viridis", "RdBu"
_GREY = "#888888"
_MARGIN = {"l": 10, "r": 10, "t": 40, "b": 10}


def values_against_spot(
    spot: FloatArray, curves: Mapping[str, FloatArray], payoff: FloatArray, at: float
) -> go.Figure:
    """Draw the value today against spot by several engines, above the payoff."""
    figure = go.Figure()
    for name, value in curves.items():
        dashed = None if name == "amo" else "dash"
        _add_line(figure, spot, value, name, dash=dashed, width=3 if dashed is None else 2)
    _add_line(figure, spot, payoff, "payoff", dash="dot")
    figure.add_vline(x=at, line={"color": _GREY, "width": 1, "dash": "dot"})
    return _dressed(figure, "Value today and payoff", "spot", "value")


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
            **_colours(values, "c", is_signed=is_signed),
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
    return _dressed(figure, title, height=420)


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
            **_colours(values, "z", is_signed=is_signed),
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
    return _dressed(figure, title, "spot", "years to expiry", height=420)


def lines_with_errors(
    x: FloatArray, curves: Mapping[str, FloatArray], reference: str, names: tuple[str, str]
) -> go.Figure:
    """Draw curves, and beneath them their differences to the reference."""
    figure = make_subplots(
        rows=2, shared_xaxes=True, row_heights=[0.72, 0.28], vertical_spacing=0.06
    )
    for name, values in curves.items():
        is_player = name == "amo"
        _add_line(
            figure, x, values, name, width=3 if is_player else 2, dash=None if is_player else "dash"
        )
        if name != reference:
            figure.add_scatter(
                x=x,
                y=values - curves[reference],
                mode="lines",
                line={"color": COLOURS.get(name, _GREY), "width": 1.5},
                name=f"{name} − {reference}",
                showlegend=False,
                row=2,
                col=1,
            )
    figure.update_yaxes(title_text=names[1], row=1, col=1)
    figure.update_yaxes(title_text="error", tickformat=".1e", zeroline=True, row=2, col=1)
    figure.update_xaxes(title_text=names[0], row=2, col=1)
    return _dressed(figure, height=460)


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
        colour = COLOURS.get(name, _CYCLE[number % len(_CYCLE)])
        dash, width = ("dash", 2) if is_referee else (None, 3)
        _add_line(figure, dates, values, name, dash=dash, width=width, colour=colour)
    if len(curves) == 1:  # points apart from each other are no line
        figure.update_traces(mode="lines+markers", marker={"size": 7})
    x = "date" if np.issubdtype(dates.dtype, np.datetime64) else "years from now"
    return _dressed(figure, title, x, y)


def mark_dates(figure: go.Figure, marks: Mapping[Any, str], axis: Literal["x", "y"]) -> None:
    """Mark dates by dashed lines across a figure, with a word each."""
    other = "y" if axis == "x" else "x"
    for date, word in marks.items():
        across = {f"{axis}0": date, f"{axis}1": date, f"{other}0": 0, f"{other}1": 1}
        figure.add_shape(
            type="line", **across, **{f"{other}ref": "paper"},
            line={"color": _GREY, "width": 1, "dash": "dash"},
        )  # fmt: skip
        place = {axis: date, other: float(axis == "x"), f"{other}ref": "paper"}
        anchor = "top" if axis == "x" else "bottom"
        angle = -90 if axis == "x" else 0  # so that close dates do not cover each other
        figure.add_annotation(
            text=f"ex {word}", showarrow=False, font={"size": 10, "color": _GREY},
            xanchor="left", yanchor=anchor, textangle=angle, **place,
        )  # fmt: skip


def exposure_bars(exposure: pd.DataFrame, measure: str, title: str) -> go.Figure:
    """Draw a measure by expiry, one colour a bucket of moneyness."""
    figure = go.Figure()
    table = exposure.pivot_table(index="expiry", columns="moneyness", values=measure, observed=True)
    for number, column in enumerate(table.columns):
        figure.add_bar(
            x=[str(label) for label in table.index],
            y=table[column],
            name=str(column),
            marker={"color": _CYCLE[number % len(_CYCLE)]},
        )
    figure.update_layout(barmode="relative")
    return _dressed(figure, title, "expiry", "", height=380)


def scenario_map(grid: pd.DataFrame) -> go.Figure:
    """Draw profit and loss over moves of spot and volatility."""
    largest = float(np.abs(grid.to_numpy()).max()) or 1.0
    figure = go.Figure(
        go.Heatmap(
            x=[f"{100 * move:+g}" for move in grid.columns],
            y=[f"{100 * move:+g}" for move in grid.index],
            z=grid.to_numpy(),
            colorscale=_DIVERGING,
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
    return _dressed(figure, "P/L of the book", "volatility, points", "spot, %", height=420)


def smile_lines(smile: pd.DataFrame) -> go.Figure:
    """Draw implied volatility against ln K/F, one colour an expiry."""
    figure = go.Figure()
    for number, (expiry, quotes) in enumerate(smile.groupby("expiry")):
        colour = _CYCLE[number % len(_CYCLE)]
        chosen = quotes[quotes["is_out_of_the_money"]]
        _add_line(
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
    return _dressed(figure, "Smiles", "ln K/F", "implied volatility, %")


def term_line(term: pd.DataFrame) -> go.Figure:
    """Draw the volatility at the forward against expiry."""
    figure = go.Figure()
    figure.add_scatter(
        x=term["expiry"],
        y=100.0 * term["volatility"],
        mode="lines+markers",
        line={"color": COLOURS["amo"]},
    )
    return _dressed(figure, "Term structure at the forward", "years", "volatility, %")


def volatility_surface(surface: pd.DataFrame) -> go.Figure:
    """Draw implied volatility over ln K/F and expiry."""
    figure = go.Figure(
        go.Surface(
            x=surface.columns.to_numpy(),
            y=surface.index.to_numpy(),
            z=100.0 * surface.to_numpy(),
            colorscale=_SEQUENTIAL,
            showscale=False,
            hovertemplate="ln K/F %{x:.3f}<br>years %{y:.3f}<br>%{z:.2f} %<extra></extra>",
        )
    )
    axes = {"xaxis": {"title": "ln K/F"}, "yaxis": {"title": "years"}, "zaxis": {"title": "%"}}
    figure.update_layout(scene={**axes, "camera": {"eye": {"x": 1.6, "y": -1.6, "z": 0.8}}})
    return _dressed(figure, "Volatility surface", height=440)


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
            colorscale=_SEQUENTIAL,
            showscale=False,
            text=[[f"{cell:.1e}" for cell in row] for row in table.to_numpy()],
            texttemplate="%{text}",
            hovertemplate="%{x}<br>%{y}<br>%{text}<extra></extra>",
        )
    )
    return _dressed(figure, title, height=300)


def error_histogram(edges: Sequence[float], counts: Sequence[int], p99: float) -> go.Figure:
    """Draw how many contracts have which size of error, on a logarithmic axis."""
    low, high = np.asarray(edges[:-1]), np.asarray(edges[1:])
    bars = go.Bar(
        x=0.5 * (low + high), width=high - low, y=list(counts), marker={"color": COLOURS["amo"]}
    )
    figure = go.Figure(bars)
    figure.update_xaxes(type="log", dtick=1, exponentformat="power")
    figure.add_vline(x=p99, line={"color": _GREY, "dash": "dash"}, annotation_text="99 %")
    figure.update_layout(bargap=0.02)
    return _dressed(figure, "Price errors in the box", "|error|, K = 100", "contracts")


def pareto(engines: Mapping[str, Mapping[str, float]], column: str, title: str) -> go.Figure:
    """Draw every engine's error against its time."""
    figure = go.Figure()
    for name, row in engines.items():
        if column not in row:
            continue
        is_surrogate = name in ("amo", "mlp")
        figure.add_scatter(
            x=[row[column]],
            y=[row["price_rmse"]],
            mode="markers+text",
            text=[name],
            textposition="top center",
            cliponaxis=False,
            marker={
                "size": 14 if is_surrogate else 10,
                "symbol": "diamond" if is_surrogate else "circle",
                "color": COLOURS.get(name, _GREY),
            },
            hovertemplate=f"{name}<br>%{{x:.3g}} µs<br>RMSE %{{y:.1e}}<extra></extra>",
            showlegend=False,
        )
    shown = [row for row in engines.values() if column in row]
    decades = {"type": "log", "dtick": 1, "exponentformat": "power"}
    figure.update_xaxes(**decades, range=_decades([row[column] for row in shown]))
    figure.update_yaxes(**decades, range=_decades([row["price_rmse"] for row in shown]))
    return _dressed(figure, title, "µs per option", "price RMSE, K = 100", height=420)


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
    return _dressed(figure, "Errors of this draw", "price by the reference", "AMO − reference")


def training_curves(log: pd.DataFrame) -> go.Figure:
    """Draw the training loss and the validation score against steps."""
    figure = make_subplots(specs=[[{"secondary_y": True}]])
    steps = log[log["loss"].notna()]
    smooth = steps["loss"].rolling(9, min_periods=1, center=True).median()
    _add_line(figure, steps["step"].to_numpy(), smooth.to_numpy(), "training loss", colour=_GREY)
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
    return _dressed(figure, "Training", "step")


def pole_paths(paths: FloatArray, now: FloatArray, title: str) -> go.Figure:
    """Draw a block's poles in the unit disc: paths (states, poles, 2) and where they are now."""
    angles = np.linspace(0.0, 2.0 * np.pi, 181)
    figure = go.Figure()
    _add_line(figure, np.cos(angles), np.sin(angles), "unit circle", colour=_GREY, width=1)
    for pole, (path, here) in enumerate(zip(np.moveaxis(paths, 1, 0), now, strict=True)):
        colour = _CYCLE[pole % len(_CYCLE)]
        _add_line(figure, path[:, 0], path[:, 1], f"path of pole {pole + 1}", colour=colour)
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
    return _dressed(figure, title, "real part", "imaginary part", height=420)


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
                line={"color": _CYCLE[pole % len(_CYCLE)], "width": 1.5},
                name=f"pole {pole + 1}",
                showlegend=False,
                row=number,
                col=1,
            )
    figure.update_xaxes(title_text="angle on the circle", row=len(blocks), col=1)
    return _dressed(figure, height=180 + 150 * len(blocks))


def named_lines(table: pd.DataFrame, x: str, y: str) -> go.Figure:
    """Draw one line a column against the index."""
    figure = go.Figure()
    for number, (name, values) in enumerate(table.items()):
        colour = _CYCLE[number % len(_CYCLE)]
        _add_line(figure, table.index.to_numpy(), values.to_numpy(), str(name), colour=colour)
    return _dressed(figure, "", x, y, height=320)


def _colours(values: FloatArray, axis: str, *, is_signed: bool) -> dict[str, Any]:
    """Return a colour scale, of signed values symmetric around zero."""
    if not is_signed:
        return {"colorscale": _SEQUENTIAL}
    largest = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    return {"colorscale": _DIVERGING, f"{axis}min": -largest, f"{axis}max": largest}


def _decades(values: Sequence[float]) -> list[float]:
    """Return the range of a logarithmic axis with room for labels."""
    return [float(np.log10(min(values))) - 0.4, float(np.log10(max(values))) + 0.4]


def _add_line(
    figure: go.Figure,
    x: FloatArray,
    y: FloatArray,
    name: str,
    *,
    dash: str | None = None,
    width: float = 2,
    colour: str | None = None,
) -> None:
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        name=name,
        line={"color": colour or COLOURS.get(name, _GREY), "width": width, "dash": dash},
    )


def _dressed(
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

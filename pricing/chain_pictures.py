"""Pictures of a marked chain, for the report and the dashboard: numbers in, a figure out."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from amo.arrays import FloatArray
from pricing.marked_chains import MarkedChain
from pricing.markets import clock
from pricing.vol_surfaces.surface import VolSurface

COLOURS = {"call": "#2e86ab", "put": "#e4572e", "fit": "#5b8c5a", "grey": "#888888"}
_MARGIN = {"l": 10, "r": 10, "t": 40, "b": 10}
_REACH = (-4.0, 3.0)  # deviations that a smile shows
_TWO_SIDED = 1.0  # up to which it shows the quotes that are in the money too


def dates(marked: MarkedChain) -> dict[float, str]:
    """Return the dates of expiries, by years to them."""
    table = marked.marks.drop_duplicates("years")
    return dict(zip(table["years"], table["expiry"].dt.strftime("%Y-%m-%d"), strict=True))


def smile(
    marked: MarkedChain,
    years: float,
    shown: pd.DataFrame | None = None,
    *,
    is_small: bool = False,
) -> go.Figure:
    """Draw one expiry: bid to ask of calls and puts as bars, mids as dots, the surface through."""
    figure = go.Figure()
    _add_smile(figure, marked, years, shown if shown is not None else marked.marks, {}, first=True)
    figure.update_layout(
        title={"text": f"{dates(marked)[years]}", "font": {"size": 13 if is_small else 15}},
        xaxis_title=None if is_small else "strike",
        yaxis={"title": None if is_small else "volatility", "tickformat": ".0%"},
        legend={"orientation": "h", "y": -0.2},
        showlegend=not is_small,
        margin=_MARGIN,
        height=230 if is_small else 440,
    )
    return figure


def smiles(marked: MarkedChain, shown: pd.DataFrame | None = None, n_columns: int = 3) -> go.Figure:
    """Draw all expiries as small multiples."""
    table = marked.marks if shown is None else shown
    names = dates(marked)
    times = [time for time in names if (table["years"] == time).any()]
    n_rows = max(-(-len(times) // n_columns), 1)
    figure = make_subplots(
        n_rows,
        n_columns,
        subplot_titles=[names[time] for time in times],
        horizontal_spacing=0.06,
        vertical_spacing=0.35 / n_rows,
    )
    for number, time in enumerate(times):
        place = {"row": number // n_columns + 1, "col": number % n_columns + 1}
        _add_smile(figure, marked, time, table, place, first=number == 0)
    figure.update_yaxes(tickformat=".0%")
    figure.update_annotations(font_size=12)
    figure.update_layout(
        legend={"orientation": "h", "y": 1.0 + 0.3 / n_rows, "yanchor": "bottom"},
        margin={**_MARGIN, "t": 70},
        height=90 + 210 * n_rows,
    )
    return figure


def _add_smile(
    figure: go.Figure,
    marked: MarkedChain,
    years: float,
    table: pd.DataFrame,
    place: dict[str, int],
    *,
    first: bool,
) -> None:
    """Add the marks and the line of one expiry."""
    here = table[(table["years"] == years) & table["ask_vol"].notna() & (table["reason"] == "")]
    deviation = float(np.sqrt(marked.surface.total_variance(0.0, years)))
    k = here["log_moneyness"] / deviation
    # deep in the money a spread spans all volatilities, and says nothing
    says = here["is_out"] | ((k.abs() <= _TWO_SIDED) & (here["bid_vol"] > 0))
    here = here[k.between(*_REACH) & says]
    top = 1.6 * float(here["mid_vol"].quantile(0.98)) if here["mid_vol"].notna().any() else 1.0
    for kind in ("call", "put"):
        side = here[(here["option_type"] == kind) & (here["mid_vol"] <= top)]
        figure.add_scatter(
            x=side["strike"],
            y=side["mid_vol"],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": np.minimum(side["ask_vol"], top) - side["mid_vol"],
                "arrayminus": side["mid_vol"] - side["bid_vol"].fillna(side["mid_vol"]),
                "thickness": 1,
                "width": 0,
            },
            mode="markers",
            name=f"{kind}s, bid to ask",
            legendgroup=kind,
            showlegend=first,
            marker={"color": COLOURS[kind], "size": 4, "symbol": ["circle", "x"][kind == "put"]},
            hovertemplate=f"{kind} %{{x:g}}<br>mid %{{y:.2%}}<extra></extra>",
            **place,
        )
    if len(here):
        strikes = np.linspace(here["strike"].min(), here["strike"].max(), 121)
        figure.add_scatter(
            x=strikes,
            y=marked.surface.vol(strikes, np.full(len(strikes), years)),
            mode="lines",
            name=f"surface, {marked.surface.method}",
            legendgroup="fit",
            showlegend=first,
            line={"color": COLOURS["fit"], "width": 2},
            hovertemplate="strike %{x:.4g}<br>surface %{y:.2%}<extra></extra>",
            **place,
        )


def forwards(marked: MarkedChain) -> go.Figure:
    """Draw forward over spot and borrow by expiry, with two standard errors and the ex-dates."""
    table, market = marked.fit.table, marked.fit.market
    figure = make_subplots(1, 2, subplot_titles=["forward over spot, less one", "borrow"])
    for column, (value, error) in enumerate(
        (
            (table["forward"] / market.spot - 1.0, table["forward_error"] / market.spot),
            (table["borrow"], table["borrow_error"]),
        ),
        1,
    ):
        figure.add_scatter(
            x=table["expiry"],
            y=value,
            error_y={"type": "data", "array": 2.0 * error, "thickness": 1, "width": 2},
            mode="lines+markers",
            line={"color": COLOURS["call"], "width": 1},
            marker={"size": 5},
            showlegend=False,
            row=1,
            col=column,
        )
    for payment in _ex_dates(marked):
        figure.add_vline(x=payment, line={"color": COLOURS["grey"], "width": 1, "dash": "dot"})
    borrow = table["borrow"]
    wide = 4.0 * table["borrow_error"].median() + 0.005
    figure.update_yaxes(tickformat=".2%")
    figure.update_yaxes(
        range=[borrow.quantile(0.1) - wide, borrow.quantile(0.9) + wide], row=1, col=2
    )
    return _dressed(figure, "Forwards and borrow, ± two standard errors; ex-dates dotted")


def term_structure(marked: MarkedChain) -> go.Figure:
    """Draw the volatility at the forward and the skew by expiry."""
    table = term_table(marked)
    figure = make_subplots(
        1, 2, subplot_titles=["volatility at the forward", "skew: ten per cent below less at it"]
    )
    for column, name in enumerate(("volatility", "skew"), 1):
        figure.add_scatter(
            x=table["expiry"],
            y=table[name],
            mode="lines+markers",
            line={"color": COLOURS["fit"], "width": 2},
            showlegend=False,
            row=1,
            col=column,
        )
    figure.update_yaxes(tickformat=".1%")
    return _dressed(figure, "Term structure")


def term_table(marked: MarkedChain) -> pd.DataFrame:
    """Return volatility at the forward, skew and forward volatility by expiry."""
    surface, names = marked.surface, dates(marked)
    years = surface.years
    forward = surface.market.forwards(years)
    level, low = (surface.vol(share * forward, years) for share in (1.0, 0.9))
    variance = surface.total_variance(np.zeros(len(years)), years)
    between = np.diff(variance, prepend=0.0) / np.diff(years, prepend=0.0)
    return pd.DataFrame(
        {
            "expiry": pd.to_datetime([names[time] for time in years.tolist()]),
            "years": years,
            "volatility": level,
            "skew": low - level,
            "forward_volatility": np.sqrt(np.maximum(between, 0.0)),
        }
    )


def surface_3d(marked: MarkedChain, *, with_quotes: bool = False) -> go.Figure:
    """Draw the surface over log-moneyness and expiry, with the mids of liquid quotes if wanted."""
    k, years, values = surface_grid(marked.surface)
    figure = go.Figure(
        go.Surface(
            x=k,
            y=years,
            z=values,
            colorscale="Viridis",
            showscale=False,
            opacity=0.85 if with_quotes else 1.0,
            hovertemplate="ln K/F %{x:.3f}<br>years %{y:.3f}<br>%{z:.2%}<extra></extra>",
        )
    )
    if with_quotes:
        liquid = marked.marks[marked.marks["is_liquid"] & marked.marks["is_out"]]
        figure.add_scatter3d(
            x=liquid["log_moneyness"],
            y=liquid["years"],
            z=liquid["mid_vol"],
            mode="markers",
            marker={"size": 2, "color": COLOURS["put"]},
            hovertemplate="quote %{z:.2%}<extra></extra>",
            showlegend=False,
        )
    figure.update_layout(
        title={"text": "Volatility surface", "font": {"size": 15}},
        scene={
            "xaxis": {"title": "ln K/F"},
            "yaxis": {"title": "years"},
            "zaxis": {"title": "", "tickformat": ".0%"},
            "camera": {"eye": {"x": -1.5, "y": -1.6, "z": 0.8}},
        },
        margin=_MARGIN,
        height=480,
    )
    return figure


def surface_grid(surface: VolSurface) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ln K/F, years and volatilities (years, ln K/F) to draw, NaN far from the forward."""
    last = float(surface.total_variance(0.0, surface.years[-1]))
    k = np.linspace(_REACH[0] * np.sqrt(last) * 0.6, _REACH[1] * np.sqrt(last) * 0.6, 61)
    years = np.linspace(np.sqrt(surface.years[0]), np.sqrt(surface.years[-1]), 41) ** 2
    forward = surface.market.forwards(years)
    strikes = forward[:, None] * np.exp(k)
    values = surface.vol(strikes, np.broadcast_to(years[:, None], strikes.shape))
    reach = np.sqrt(surface.total_variance(np.zeros(len(years)), years))[:, None]
    return k, years, np.where((k > _REACH[0] * reach) & (k < _REACH[1] * reach), values, np.nan)


def _ex_dates(marked: MarkedChain) -> list[Any]:
    market = marked.fit.market
    if market.as_of is None:
        return []
    last = marked.fit.table["years"].max()
    return [
        pd.Timestamp(clock.later(market.as_of, payment.time)).tz_localize(None)
        for payment in market.dividends
        if payment.time <= last
    ]


def _dressed(figure: go.Figure, title: str) -> go.Figure:
    figure.update_layout(
        title={"text": title, "font": {"size": 15}}, margin={**_MARGIN, "t": 70}, height=340
    )
    figure.update_annotations(font_size=12)
    return figure

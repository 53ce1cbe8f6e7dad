"""Charts of benchmark tables: who is how far off, with which parameters, at which cost."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from amo.results import Table

_AMO, _OTHER = "#e4572e", "#6c91c2"
_MARGIN = {"l": 10, "r": 10, "t": 40, "b": 10}


def rows_of(table: Table) -> pd.DataFrame:
    """Return one line per row with scores: problem, model, seed, error, parameters and times."""
    found = []
    for key, row in table.rows.items():
        problem, model, seed = key.rsplit("/", 2)
        if row.scores is not None:
            found.append(
                {
                    "problem": problem,
                    "model": model,
                    "seed": seed,
                    "error": row.relative_l2,
                    "parameters": row.parameters,
                    "milliseconds": row.milliseconds_per_sample,
                    "steps": row.steps,
                    "is_amo": model.lower().startswith("amo"),
                }
            )
    return pd.DataFrame(found)


def errors_by_model(rows: pd.DataFrame, title: str) -> go.Figure:
    """Draw the error of every model, best on top: a dot per seed, a bar from least to most."""
    means = rows.groupby("model")["error"].mean().sort_values(ascending=False)
    figure = go.Figure()
    for model, mean in means.items():
        own = rows[rows["model"] == model]
        colour = _AMO if own["is_amo"].all() else _OTHER
        figure.add_scatter(
            x=[own["error"].min(), own["error"].max()],
            y=[model, model],
            mode="lines",
            line={"color": colour, "width": 3},
            hoverinfo="skip",
        )
        figure.add_scatter(
            x=own["error"],
            y=[model] * len(own),
            mode="markers",
            marker={"color": colour, "size": 6, "opacity": 0.6},
            hovertemplate=f"{model}<br>%{{x:.3g}}<extra></extra>",
        )
        figure.add_scatter(
            x=[mean],
            y=[model],
            mode="markers",
            marker={"color": colour, "size": 11, "symbol": "diamond"},
            hovertemplate=f"{model}, mean %{{x:.3g}}<extra></extra>",
        )
    figure.update_xaxes(type="log", title_text="relative L2 error, fewer is better")
    figure.update_yaxes(categoryorder="array", categoryarray=means.index.tolist())
    return _dressed(figure, title, 120 + 30 * len(means))


def errors_against(rows: pd.DataFrame, x: str, label: str, title: str) -> go.Figure:
    """Draw mean errors against a cost, one labelled dot per model."""
    means = rows.groupby("model")[["error", x, "is_amo"]].mean()
    colours = np.where(means["is_amo"] > 0, _AMO, _OTHER)
    figure = go.Figure(
        go.Scatter(
            x=means[x],
            y=means["error"],
            mode="markers+text",
            text=means.index,
            textposition="top center",
            marker={"color": colours, "size": 10},
            hovertemplate="%{text}<br>%{x:.3g}<br>error %{y:.3g}<extra></extra>",
        )
    )
    figure.update_xaxes(type="log", title_text=label)
    figure.update_yaxes(type="log", title_text="relative L2 error")
    return _dressed(figure, title, 380)


def ablation_bars(rows: pd.DataFrame, whole: str, title: str) -> go.Figure:
    """Draw the error of each ablation over that of the whole model: beyond one, the part helps."""
    means = rows.groupby("model")["error"].agg(["mean", "min", "max"])
    base = float(means["mean"].to_dict()[whole])
    means = (means / base).sort_values("mean")
    colours = [_AMO if name == whole else _OTHER for name in means.index]
    figure = go.Figure(
        go.Bar(
            x=means["mean"],
            y=means.index,
            orientation="h",
            marker={"color": colours},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": np.asarray(means["max"] - means["mean"]),
                "arrayminus": np.asarray(means["mean"] - means["min"]),
                "thickness": 1,
            },
            hovertemplate="%{y}: %{x:.2f}<extra></extra>",
        )
    )
    figure.add_vline(x=1.0, line={"color": "#888888", "width": 1, "dash": "dot"})
    figure.update_xaxes(title_text=f"error over that of {whole}; bars from least to most of seeds")
    return _dressed(figure, title, 120 + 26 * len(means))


def _dressed(figure: go.Figure, title: str, height: int) -> go.Figure:
    figure.update_layout(
        title={"text": title, "font": {"size": 15}},
        showlegend=False,
        height=height,
        margin=_MARGIN,
    )
    return figure

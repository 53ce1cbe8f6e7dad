"""What the operator does inside, and how it came to be."""

import numpy as np
import pandas as pd
import streamlit as st

from app import model_charts, resources
from pricing.surrogate.insight import configuration, explain, functions, parameter_counts
from pricing.surrogate.model import Surrogate

_SKETCH = """
digraph {
  rankdir=LR; bgcolor="transparent"; nodesep=0.3; ranksep=0.35;
  node [shape=box style="rounded,filled" fillcolor="#2e86ab" fontcolor=white color="#2e86ab"
        fontname="sans-serif" fontsize=11 margin="0.12,0.07"];
  edge [color="#888888" fontname="sans-serif" fontsize=9 fontcolor="#888888"];
  state [label="market state\\nr, q" fillcolor="#666666" color="#666666"];
  lift [label="P: cross-attention in\\n%(tokens)d latent tokens"];
  rkhs [label="R: to functions\\non the circle"];
  blocks [label="%(blocks)d × block\\nbidirectional SSM mixer\\nTM bases,\\nadaptive poles"
          fillcolor="#e4572e" color="#e4572e"];
  sum [label="S: partial sum"];
  out [label="%(out)s"];
  query [label="log-moneyness,\\ntime, volatility" fillcolor="#666666" color="#666666"];
  form [label="no-arbitrage form\\n%(form)s" fillcolor="#5b8c5a" color="#5b8c5a"];
  price [label="price, Greeks" fillcolor="#666666" color="#666666"];
  state -> lift -> rkhs -> blocks -> sum -> out -> form -> price;
  query -> out;
}
"""
_FORMS = {
    "european": "put and call in parity\\nfrom √(call × put)",
    "american": "European formula + bounded premium",
}
_DECODERS = {
    "attending": "Q: cross-attention out\\nper query",
    "modulated": "Q: trunk over queries,\\nmodulated",
}
_STILL, _WHOLE = 0.02, 0.999  # of the radius of the disc; of the energy of tokens
_TITLES = {
    "point_places": "positions of inputs",
    "own_query_places": "positions of queries",
    "lifting": "P: lifting",
    "rkhs_map": "R: map to the circle",
    "blocks": "blocks: mixers and poles",
    "projection": "Q: output projection",
    "modulator": "Q: modulations",
    "trunk": "Q: trunk over queries",
}


@st.cache_data(max_entries=200, show_spinner=False)
def _explained(
    style: str, rates: tuple[float, ...], yields: tuple[float, ...]
) -> list[tuple[np.ndarray, ...]]:
    return [tuple(block) for block in explain(_model(style), np.array(rates), np.array(yields))]


def _model(style: str) -> Surrogate:
    engine = resources.surrogates()
    if engine is None:
        raise LookupError("no models")
    return engine.american if style == "american" else engine.european


def _movement(paths: list[tuple[np.ndarray, ...]]) -> str:
    """Return how far poles move along a path, in words."""
    furthest = max(float(np.hypot(*np.ptp(poles, axis=0).T).max()) for poles, *_ in paths)
    words = f"Along the path poles move by about {furthest:.1g} at most."
    captured = min(float(energy.min()) for _, energy, _ in paths)
    if furthest < _STILL and captured > _WHOLE:
        words += " All of the energy is captured, so training had no reason to move them."
    return words


def _show_poles(style: str) -> None:
    st.subheader("Poles as the market moves")
    st.write(
        "Each block picks poles in the unit disc for the market state at hand: they shape the "
        "functions in which the state is expanded. Dots: this state. Lines: the path from a rate "
        "of 0 to 15 %."
    )
    model = _model(style)
    left, right = st.columns(2)
    rate = left.slider("Rate, %", 0.0, 15.0, 5.0, 0.25) / 100
    dividend_yield = right.slider("Dividend yield, %", 0.0, 15.0, 2.0, 0.25) / 100
    path = tuple(np.linspace(*model.domain.rate, 41))
    paths = _explained(style, path, (dividend_yield,) * len(path))
    now = _explained(style, (rate,), (dividend_yield,))
    for number, column in enumerate(st.columns(len(now))):
        column.plotly_chart(
            model_charts.pole_paths(
                paths[number][0],
                now[number][0][0],
                f"Block {number + 1} captures {now[number][1][0]:.0%} of the energy",
            ),
            alt=f"poles of block {number + 1} in the unit disc; numbers in the table below",
        )
    st.caption(_movement(paths))
    table = pd.DataFrame(
        [
            {
                "block": number,
                "pole": pole + 1,
                "real": place[0],
                "imaginary": place[1],
                "radius": float(np.hypot(*place)),
            }
            for number, block in enumerate(now, 1)
            for pole, place in enumerate(block[0][0])
        ]
    )
    with st.expander("The same as a table", icon=":material/table:"):
        st.dataframe(table, hide_index=True)
        st.write(
            "Distance from orthonormal on the tokens (Gram error): "
            + ", ".join(f"block {n}: {block[2][0]:.1e}" for n, block in enumerate(now, 1))
        )
    st.subheader("Takenaka–Malmquist functions of this state")
    blocks = explain(model, np.array([rate]), np.array([dividend_yield]))
    angles, found = functions(blocks)
    st.plotly_chart(
        model_charts.basis_functions(angles, found),
        alt="real parts of the functions that these poles make, over the circle",
    )
    energy = pd.DataFrame(
        {f"block {n}": block[1] for n, block in enumerate(paths, 1)}, index=100 * np.array(path)
    )
    st.subheader("Captured energy")
    st.caption("Share of the energy of a block's tokens in their projection, against the rate.")
    st.plotly_chart(
        model_charts.named_lines(energy, "rate, %", "share of energy"),
        alt="captured energy of each block against the rate",
    )


def main() -> None:
    """Draw the page."""
    st.title("Model")
    if resources.surrogates() is None:
        return
    style = st.segmented_control(
        "Model", ("american", "european"), default="american", required=True
    )
    model = _model(style)
    config = configuration(model)
    st.graphviz_chart(
        _SKETCH
        % {
            "tokens": config.n_tokens,
            "blocks": config.n_blocks,
            "out": _DECODERS[config.decoder],
            "form": _FORMS[style],
        },
        width="stretch",
        alt="market state, lifting, blocks, partial sum, output projection, no-arbitrage form",
    )
    counts = parameter_counts(model)
    with st.container(horizontal=True):
        st.metric("Parameters", f"{sum(counts.values()):,}", width="content")
        st.metric("Width", config.width, width="content")
        st.metric("Tokens", config.n_tokens, width="content")
        st.metric("Poles", config.n_poles, width="content")
        st.metric("Blocks", config.n_blocks, width="content")
    left, right = st.columns(2)
    left.dataframe(
        pd.DataFrame(
            {"part": [_TITLES.get(n, n) for n in counts], "weights": list(counts.values())}
        ),
        hide_index=True,
        column_config={"weights": st.column_config.NumberColumn(format="localized")},
    )
    log = resources.training_log(style)
    if len(log):
        right.plotly_chart(
            model_charts.training_curves(log),
            alt="training loss and validation error against steps",
        )
    _show_poles(style)


main()

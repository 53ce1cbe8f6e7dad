"""Greeks along spot, time or volatility, with the error beneath."""

import numpy as np
import streamlit as st

from app import charts, formats, inputs, market_inputs, market_panels, resources

_ALONG = {"spot": "spot", "time to expiry": "expiry", "volatility": "volatility"}


def _range(contract: inputs.Contract, along: str) -> tuple[float, ...]:
    strike = float(contract["strike"])
    ends = {
        "spot": (0.5 * strike, 1.5 * strike),
        "expiry": (0.02, max(float(contract["expiry"]), 0.5)),
        "volatility": (0.06, max(2.0 * float(contract["volatility"]), 0.6)),
    }[along]
    return tuple(np.linspace(*ends, resources.N_LINE))


def main() -> None:
    """Draw the page."""
    st.title("Greeks")
    if resources.surrogates() is None:
        return
    if inputs.carry_choice() == "market":
        market_panels.greeks(market_inputs.contract_folded())
        return
    contract = inputs.contract_folded()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        against = st.segmented_control(
            "Against", list(_ALONG), default="spot", required=True, key="along", bind="query-params"
        )
        references = resources.REFERENCES[str(contract["exercise"])]
        reference = str(st.selectbox("Reference", references, help="what AMO is measured against"))
        family = st.segmented_control(
            "Order",
            ("first", "second"),
            default="first",
            required=True,
            help="first: delta, gamma, vega, theta, rho; second: dividend rho, vanna, volga, charm",
        )
    along = _ALONG[against]
    at = _range(contract, along)
    names = {
        "first": ("price", "delta", "gamma", "vega", "theta", "rho"),
        "second": ("dividend_rho", "vanna", "volga", "charm"),
    }[family]
    shown_at = np.array(at) * (100.0 if along == "volatility" else 1.0)
    label = {"spot": "spot", "expiry": "years to expiry", "volatility": "volatility, %"}[along]
    left, right = st.columns(2)
    for number, name in enumerate(names):
        curves = {
            engine: resources.line(contract, engine, along, at, name)
            for engine in ("amo", reference)
        }
        title = formats.header(name)
        with (left, right)[number % 2]:
            st.plotly_chart(
                charts.lines_with_errors(shown_at, curves, reference, (label, title)),
                key=f"greek {name}",
                alt=f"{title} against {label}: AMO and {reference}, with the error beneath",
            )
    if contract["exercise"] == "american":
        st.caption(
            "The gamma of an American option jumps at the exercise boundary: errors are largest "
            "there, for every engine."
        )


main()

"""V(S, t) by the surrogate, by a referee, and their difference."""

import numpy as np
import streamlit as st

from amo.arrays import FloatArray
from app import charts, differences, formats, inputs, market_inputs, market_panels, resources


def _show_slice(
    x: FloatArray, y: FloatArray, fields: dict[str, FloatArray], reference: str, name: str
) -> None:
    """Show what the engines say at one time to expiry, with the error beneath."""
    st.subheader("Slice")
    number = int(
        st.select_slider(
            "Time to expiry, years",
            range(len(y)),
            value=len(y) - 1,
            format_func=lambda n: f"{y[n]:.3f}",
        )
    )
    st.plotly_chart(
        charts.lines_with_errors(
            x,
            {engine: field[number] for engine, field in fields.items()},
            reference,
            ("spot", name),
        ),
        alt=f"{name} against spot at {y[number]:.3f} years, with the error beneath",
    )


def main() -> None:
    """Draw the page."""
    st.title("Surface")
    st.caption("A price or a Greek over spot and time to expiry, up to the contract's expiry.")
    if resources.surrogates() is None:
        return
    if inputs.carry_choice() == "market":
        market_panels.surface(market_inputs.contract_folded())
        return
    contract = inputs.contract_folded()
    expiry = float(contract["expiry"])
    if expiry <= 0:
        st.info("An expired contract has no surface: give it a positive expiry.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        what = inputs.quantity_choice()
        references = resources.REFERENCES[str(contract["exercise"])]
        reference = str(st.selectbox("Reference", references, help="what AMO is measured against"))
        field = differences.field_choice()
    strike = float(contract["strike"])
    spots = tuple(np.linspace(0.5 * strike, 1.5 * strike, resources.N_SPOTS))
    expiries = tuple(np.linspace(0.02, 1.0, resources.N_EXPIRIES) * expiry)
    found = resources.surface(contract, "amo", what, spots, expiries)
    truth = resources.surface(contract, reference, what, spots, expiries)
    boundaries = {}
    if contract["exercise"] == "american":
        boundaries = {name: resources.boundary(contract, name, expiries) for name in ("amo", "fd")}
    name, two = formats.header(what), ("AMO", reference)
    shown = differences.shown(field, found, truth, two, name)
    x, y = np.array(spots), np.array(expiries)
    if not np.isfinite(found).any():
        st.warning("This contract lies outside of AMO's domain: there is nothing to compare.")
    left, right = st.columns(2)
    left.plotly_chart(
        charts.surface_3d(x, y, shown.values, shown.title, is_signed=shown.is_signed),
        alt=f"{shown.title} over spot and time to expiry, in 3-D",
    )
    right.plotly_chart(
        charts.heat_map(
            x, y, shown.values, shown.title, is_signed=shown.is_signed, boundaries=boundaries
        ),
        alt=f"{shown.title} over spot and time to expiry as colours, with the exercise boundary",
    )
    differences.say(found, truth, two)
    _show_slice(x, y, {"amo": found, reference: truth}, reference, name)


main()

"""V(S, t) by the surrogate, by a referee, and their difference."""

import numpy as np
import streamlit as st

from amo.arrays import FloatArray
from app import charts, formats, inputs, market_inputs, market_panels, resources

_FIELDS = ("AMO", "reference", "difference", "|difference|, log10")


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
        market_panels.surface(market_inputs.folded())
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
        field = st.segmented_control(
            "Show", _FIELDS, default="difference", required=True, key="field", bind="query-params"
        )
    strike = float(contract["strike"])
    spots = tuple(np.linspace(0.5 * strike, 1.5 * strike, resources.N_SPOTS))
    expiries = tuple(np.linspace(0.02, 1.0, resources.N_EXPIRIES) * expiry)
    found = resources.surface(contract, "amo", what, spots, expiries)
    truth = resources.surface(contract, reference, what, spots, expiries)
    difference = found - truth
    with np.errstate(divide="ignore"):
        size = np.log10(np.maximum(np.abs(difference), 1e-12))
    shown = dict(zip(_FIELDS, (found, truth, difference, size), strict=True))[field]
    boundaries = {}
    if contract["exercise"] == "american":
        boundaries = {name: resources.boundary(contract, name, expiries) for name in ("amo", "fd")}
    name = formats.header(what)
    title = {"AMO": f"{name}, AMO", "reference": f"{name}, {reference}"}.get(
        field, f"{name}: {field}, AMO − {reference}"
    )
    x, y = np.array(spots), np.array(expiries)
    if not np.isfinite(found).any():
        st.warning("This contract lies outside of AMO's domain: there is nothing to compare.")
    left, right = st.columns(2)
    left.plotly_chart(
        charts.surface_3d(x, y, shown, title, is_signed=field == "difference"),
        alt=f"{title} over spot and time to expiry, in 3-D",
    )
    right.plotly_chart(
        charts.heat_map(x, y, shown, title, is_signed=field == "difference", boundaries=boundaries),
        alt=f"{title} over spot and time to expiry as colours, with the exercise boundary",
    )
    known = difference[np.isfinite(difference)]
    if len(known):
        st.markdown(
            f"AMO − {reference}: RMSE **{np.sqrt(np.mean(known**2)):.1e}**, largest "
            f"**{np.abs(known).max():.1e}** over {known.size:,} points of the surface."
        )
    _show_slice(x, y, {"amo": found, reference: truth}, reference, name)


main()

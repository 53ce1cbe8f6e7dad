"""A chain of quotes: fitted market, implied volatilities, smiles, surface."""

import pandas as pd
import streamlit as st

from amo.errors import FileError
from app import chain_panel, formats, plain_quotes, uploads
from pricing.tables import parse_table


def _read_quotes() -> pd.DataFrame | None:
    source = st.segmented_control(
        "Quotes", ("sample", "paste", "upload"), default="sample", required=True, key="chain source"
    )
    if source == "sample":
        return chain_panel.sample()
    if source == "upload":
        return uploads.uploaded_table("chain")
    text = st.text_area(
        "CSV with a header; commas, semicolons or tabs",
        height=180,
        placeholder="strike,expiry,option_type,bid,ask\n90,2026-03-20,put,1.80,1.90",
    )
    if not text.strip():
        return None
    try:
        return parse_table(text.encode(), "pasted.csv")
    except FileError as error:
        st.error(f"{formats.plain(error)}. The first line must name the columns.")
        return None


def main() -> None:
    """Draw the page."""
    st.title("Market")
    frame = _read_quotes()
    if frame is None:
        return
    if chain_panel.looks_like_a_chain(frame):
        chain_panel.show(frame, is_sample=st.session_state["chain source"] == "sample")
    else:
        plain_quotes.show(frame)


main()

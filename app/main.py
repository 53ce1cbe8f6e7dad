"""The dashboard's entrance: page configuration and navigation."""

import streamlit as st

st.set_page_config(page_title="AMO option pricing", page_icon="📈", layout="wide")

st.navigation(
    [st.Page("views/price.py", title="Price", icon=":material/price_check:", default=True)]
).run()

"""The dashboard's entry point: page configuration and navigation."""

import streamlit as st

from app import inputs

st.set_page_config(page_title="AMO option pricing", page_icon="📈", layout="wide")

page = st.navigation(
    [
        st.Page("views/price.py", title="Price", icon=":material/price_check:", default=True),
        st.Page("views/surface.py", title="Surface", icon=":material/landscape:"),
        st.Page("views/greeks.py", title="Greeks", icon=":material/functions:"),
        st.Page("views/book.py", title="Book", icon=":material/table_chart:"),
        st.Page("views/market.py", title="Market", icon=":material/candlestick_chart:"),
        st.Page("views/accuracy.py", title="Accuracy", icon=":material/target:"),
        st.Page("views/model.py", title="Model", icon=":material/hub:"),
        st.Page("views/benchmarks.py", title="Benchmarks", icon=":material/leaderboard:"),
    ],
    position="top",
)
inputs.carry_contract(to=page.url_path)
page.run()

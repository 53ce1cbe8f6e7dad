"""One contract, priced by every engine side by side."""

import streamlit as st

from app import inputs

st.title("Price")
asked, answered = st.columns([2, 3], gap="large")
with asked:
    carry = inputs.carry_choice()
if carry == "market":
    from app import market_inputs, market_panels

    with asked:
        listed = market_inputs.contract_inputs()
    with answered, st.spinner("Pricing …", show_time=True):
        market_panels.price(listed)
else:
    with asked:
        contract = inputs.contract_inputs()
    with answered, st.spinner("Pricing …", show_time=True):
        from app import price_panel  # the page is painted before torch is loaded

        price_panel.show(contract)

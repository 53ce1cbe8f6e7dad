"""A book of listed options under markets: priced, by underlying, its ladder and scenarios."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from amo.errors import AMOError, SettingsError
from app import charts, date_charts, formats, moments, resources, uploads
from pricing import exposure, ladder_frame, price_frame, profit_over_time, scenario_grid
from pricing.analysis.book import MEASURES
from pricing.markets.files import markets_from_json
from pricing.markets.market import Market

_KINDS = {"rate": "rate, per basis point", "borrow": "borrow, per basis point",
          "dividend": "dividends, per unit of cash"}  # fmt: skip
_ENGINES = ("amo", "fd-fast", "fd")


def uploaded_markets() -> dict[str, Market] | None:
    """Ask for a file of markets, as `amo-pricing chain` writes it; None without one."""
    file = st.file_uploader(
        "Markets (market.json), if the book names underlyings and dates",
        type=["json"],
        key="book markets",
        max_upload_size=1,
        help="written by the Market page or by amo-pricing chain",
    )
    if file is None:
        return None
    try:
        return markets_from_json(file.getvalue(), file.name)
    except AMOError as error:
        st.error(formats.plain(error), icon=":material/block:")
        st.stop()


def show(frame: pd.DataFrame, markets: Mapping[str, Market]) -> None:
    """Ask for the engine and what may be edited, price, and show the risk."""
    held = _positions(frame)
    try:
        markets = _edited(markets)
    except AMOError as error:
        st.error(formats.plain(error), icon=":material/block:")
        return
    has_surrogate = resources.surrogates() is not None
    engine = str(st.selectbox("Engine", _ENGINES if has_surrogate else _ENGINES[1:]))
    try:
        priced = price_frame(
            held, resources.engine(engine), markets=markets, error_bars=engine != "fd-fast",
            workers=1, progress=False,
        )  # fmt: skip
        _risk(priced, markets)
        _ladder(held, engine, markets)
        _scenarios(held, engine, markets)
        _over_time(held, engine, markets)
    except AMOError as error:
        st.error(formats.plain(error), icon=":material/block:")
        return
    uploads.priced_rows(priced, "priced listed book")


def _positions(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the book with positions in units of the underlying."""
    names = {str(label).strip().lower(): label for label in frame.columns}
    quantity = frame[names["quantity"]] if "quantity" in names else 1.0
    held = pd.Series(quantity, index=frame.index)
    if "multiplier" in names:
        return frame.assign(units=held * frame[names["multiplier"]])
    factor = st.number_input(
        "Multiplier", value=100.0, min_value=0.0, help="units of the underlying in a contract"
    )
    return frame.assign(units=held * factor)


def _edited(markets: Mapping[str, Market]) -> dict[str, Market]:
    """Let spots and dividends be edited."""
    spots = pd.DataFrame(
        {"underlying": list(markets), "spot": [market.spot for market in markets.values()]}
    )
    dividends = pd.DataFrame(
        [
            (name, payment.time, payment.cash, payment.proportion)
            for name, market in markets.items()
            for payment in market.dividends
        ],
        columns=["underlying", "years", "cash", "proportion"],
    )
    with st.expander("Markets: spots and dividends", icon=":material/tune:"):
        left, right = st.columns([1, 2])
        spots = left.data_editor(
            spots, disabled=["underlying"], hide_index=True, key="spots", alt="spots, editable"
        )
        dividends = right.data_editor(
            dividends, num_rows="dynamic", hide_index=True, key="dividends",
            alt="dividends, editable: years to the ex-date, cash, share of the spot",
        )  # fmt: skip
    level = dict(zip(spots["underlying"], spots["spot"], strict=True))
    found = {}
    for name, market in markets.items():
        own = dividends[dividends["underlying"] == name].fillna({"proportion": 0.0})
        if own[["years", "cash"]].isna().any(axis=None):
            raise SettingsError(f"a dividend of {name} has no years or no cash")
        rows = own[["years", "cash", "proportion"]].astype(float).to_numpy().tolist()
        found[name] = market.replaced(spot=float(level[name]), dividends=rows)
    return found


def _risk(priced: pd.DataFrame, markets: Mapping[str, Market]) -> None:
    """Show the risk of the whole book and of each underlying."""
    parts = {
        str(name): exposure(rows, quantity="units", markets=markets)[list(MEASURES)].sum()
        for name, rows in priced.groupby("underlying")
    }
    table = pd.DataFrame(parts).T.rename_axis("underlying")
    with st.container(horizontal=True):
        for name in MEASURES:
            st.metric(name.replace("_", " "), f"{table[name].sum():,.0f}", width="content")
    st.subheader("By underlying")
    st.dataframe(
        table.reset_index(),
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(name.replace("_", " "), format="%,.0f")
            for name in MEASURES
        },
        alt="value and risk of each underlying",
    )


def _ladder(book: pd.DataFrame, engine: str, markets: Mapping[str, Market]) -> None:
    """Draw the sensitivity to every curve node and every dividend."""
    st.subheader("Ladder")
    table = ladder_frame(book, resources.engine(engine), markets, quantity="units", workers=1)
    for column, (kind, title) in zip(st.columns(3), _KINDS.items(), strict=True):
        figure = go.Figure()
        for name, rows in table[table["kind"] == kind].groupby("underlying"):
            figure.add_bar(x=rows["time"].map(lambda t: f"{t:.2f} y"), y=rows["sensitivity"],
                           name=str(name))  # fmt: skip
        times = sorted(set(table.loc[table["kind"] == kind, "time"]))
        figure.update_xaxes(categoryorder="array", categoryarray=[f"{t:.2f} y" for t in times])
        figure.update_layout(
            title={"text": title, "font": {"size": 14}},
            height=300,
            margin={"l": 10, "r": 10, "t": 40, "b": 10},
            legend={"orientation": "h", "y": -0.25},
        )
        column.plotly_chart(figure, key=f"ladder {kind}", alt=f"ladder: {title}; table below")
    with st.expander("Table of the ladder"):
        st.dataframe(table, hide_index=True, alt="sensitivity to every node and dividend")


def _scenarios(book: pd.DataFrame, engine: str, markets: Mapping[str, Market]) -> None:
    """Reprice the book under shifts that the reader sets."""
    st.subheader("Scenarios")
    with st.form("scenario shifts", border=False):
        left, right = st.columns(2)
        spots = left.text_input("Spots move by, %", "-20 -10 -5 0 5 10 20")
        vols = right.text_input("Volatilities move by, points", "-5 0 5 10")
        pressed = st.form_submit_button("Run scenarios", icon=":material/grid_on:")
    if not pressed:
        return
    grid = scenario_grid(
        book,
        resources.engine(engine),
        spot_moves=_shifts(spots, "Spots"),
        volatility_moves=_shifts(vols, "Volatilities"),
        quantity="units",
        markets=markets,
    )
    st.plotly_chart(
        charts.scenario_map(grid),
        alt="P/L over moves of spot and volatility; every cell carries its number",
    )


def _over_time(book: pd.DataFrame, engine: str, markets: Mapping[str, Market]) -> None:
    """Draw the profit while time passes, with the ex-dates marked."""
    st.subheader("Over time")
    if not st.button("Let time pass", icon=":material/timeline:"):
        st.caption("P/L across ex-dates and expiries, if nothing happens but time.")
        return
    table = profit_over_time(
        book, resources.engine(engine), quantity="units", markets=markets, workers=1
    )
    when = moments.dates(markets, table["time"].to_numpy(float))
    figure = date_charts.values_by_date(
        when, {"P/L": table["profit"].to_numpy(), "settled": table["settled"].to_numpy()},
        "P/L if nothing happens but time", "currency",
    )  # fmt: skip
    figure.update_traces(selector={"name": "settled"}, line_shape="hv")  # paid at once
    date_charts.mark_dates(figure, moments.ex_dates(markets, float(table["time"].max())), "x")
    st.plotly_chart(figure, alt="profit and what expired options paid, by date; table below")
    st.caption(
        "Spots stay, and fall by their dividends at the dashed ex-dates; volatilities stay; "
        "forward rates come true; nothing is exercised before its expiry."
    )
    if table.attrs["left_out"]:
        st.warning(f"{table.attrs['left_out']:,} rows cannot be priced and are left out.")
    with st.expander("Table over time"):
        st.dataframe(table, hide_index=True, alt="value, settled and profit by years from now")


def _shifts(text: str, what: str) -> list[float]:
    try:
        found = sorted({0.01 * float(word) for word in text.replace(",", " ").split()})
    except ValueError:
        raise SettingsError(f"{what}: write numbers in per cent, as -10 0 10") from None
    if not found:
        raise SettingsError(f"{what}: write at least one number")
    return found

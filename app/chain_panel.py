"""A vendor's chain on the Market page: settings, fitted market, smiles, surface, downloads."""

import json
import math
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from amo.errors import AMOError, SettingsError
from app import formats, uploads
from pricing import chain_pictures as pictures
from pricing.analysis.examples import sample_quotes
from pricing.chain_report import as_html, headline
from pricing.chains.reading import Chain, read_chain
from pricing.marked_chains import MarkedChain, mark_chain
from pricing.markets.files import markets_to_json
from pricing.markets.market import CurveLike
from pricing.vol_surfaces.surface import METHODS, Method

VIEWS = ("smiles", "forwards", "surface", "quotes")
_WIDEST = 100  # per cent
_SAMPLE_DAY = "2025-10-06"
_METHODS = {
    "local": "flexible, free of arbitrage",
    "essvi": "eSSVI: three numbers an expiry, free of arbitrage",
    "svi": "raw SVI, one expiry at a time",
    "smoother": "Gaussian process on eSSVI",
}
_COLUMNS = (
    "expiry", "strike", "option_type", "bid", "ask", "bid_vol", "mid_vol", "ask_vol", "model_vol",
    "inside", "is_liquid", "european_price", "delta", "vega", "status", "reason",
)  # fmt: skip


class Settings(NamedTuple):
    """What the quotes do not say; empty texts mean nothing given."""

    as_of: str
    rate: str
    dividends: str
    spot: str
    underlying: str
    method: Method


@st.cache_data(show_spinner=False)
def sample() -> pd.DataFrame:
    """Return the sample chain, priced once."""
    return sample_quotes()


def looks_like_a_chain(frame: pd.DataFrame) -> bool:
    """Return whether a table has bids and asks: one price a quote goes another way."""
    names = [str(label).strip().lower() for label in frame.columns]
    return any("bid" in name for name in names) and any(
        "ask" in name or "offer" in name for name in names
    )


def show(frame: pd.DataFrame, *, is_sample: bool) -> None:
    """Ask for settings, fit when they are applied, and show everything."""
    settings = _ask(is_sample=is_sample)
    key = "sample" if is_sample else "own"
    applied = st.session_state.setdefault("chain applied", {})
    if settings is not None:
        applied[key] = settings
    elif key not in applied and is_sample:
        applied[key] = Settings(_SAMPLE_DAY, "4", "", "", "", "local")
    if key not in applied:
        st.info("Set what the quotes do not say, then press Apply.", icon=":material/tune:")
        return
    try:
        marked = _marked(frame, applied[key])
    except AMOError as error:
        st.error(formats.plain(error), icon=":material/block:")
        return
    _said(marked)
    shown = _filtered(marked)
    view = st.segmented_control(
        "View", VIEWS, default=VIEWS[0], required=True, key="view", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    if view == "smiles":
        _smiles(marked, shown)
    elif view == "forwards":
        _terms(marked)
    elif view == "surface":
        _surface(marked)
    else:
        _quotes(marked, shown)
    _downloads(marked)


def _ask(*, is_sample: bool) -> Settings | None:
    """Ask for what the quotes do not say; None until Apply is pressed."""
    with st.expander("Market: date, rate, dividends, method", icon=":material/tune:",
                     expanded=not is_sample), st.form("chain settings", border=False):  # fmt: skip
        first, second, third = st.columns(3)
        as_of = first.text_input(
            "As of",
            _SAMPLE_DAY if is_sample else "",
            help="a date (its close in New York) or a time; empty: the latest quote",
            key=f"chain as of {is_sample}",
        )
        spot = second.text_input("Spot", "", help="empty: the file's, or what the quotes imply")
        underlying = third.text_input("Underlying", "", help="of several in a file")
        left, right = st.columns(2)
        rate = left.text_area(
            "Rate, %: one number, or lines of years or a date, and rate",
            "4",
            height=110,
            help="continuously compounded; 4 is 4 %. European quotes tell it if this is empty",
        )
        dividends = right.text_area(
            "Dividends: lines of ex-date and cash",
            "",
            height=110,
            placeholder="2025-11-10 0.26\n2026-02-09 0.26",
            help="what is not listed here ends up in the borrow",
        )
        method = st.selectbox(
            "Surface", METHODS, format_func=lambda name: f"{name}: {_METHODS[name]}"
        )
        pressed = st.form_submit_button("Apply", type="primary")
    if not pressed:
        return None
    return Settings(as_of, rate, dividends, spot, underlying, method)


@st.cache_resource(max_entries=8, show_spinner="Fitting the market and the surface …")
def _marked(frame: pd.DataFrame, settings: Settings) -> MarkedChain:
    """Return the marks of a chain; all sessions share them, nothing changes them."""
    spot = _number(settings.spot, "Spot") if settings.spot.strip() else None
    chain: Chain = read_chain(frame, as_of=settings.as_of.strip() or None, spot=spot)
    if settings.underlying.strip():
        chain = chain.of(settings.underlying.strip())
    return mark_chain(
        chain,
        rate=rates_of(settings.rate),
        dividends=dividends_of(settings.dividends),
        method=settings.method,
        workers=1,
    )


def rates_of(text: str) -> CurveLike | None:
    """Read a rate in per cent, or lines of years or a date and a rate."""
    lines = [line.split() for line in text.replace(",", " ").splitlines() if line.strip()]
    if not lines:
        return None
    if len(lines) == 1 and len(lines[0]) == 1:
        return 0.01 * _number(lines[0][0], "Rate")
    curve: dict[Any, float] = {}
    for number, words in enumerate(lines, 1):
        if len(words) != 2:
            raise SettingsError(f"Rate, line {number}: write years or a date, then the rate")
        curve[words[0]] = 0.01 * _number(words[1], f"Rate, line {number}")
    return curve


def dividends_of(text: str) -> list[tuple[str, float]]:
    """Read lines of an ex-date and cash."""
    found = []
    for number, line in enumerate(text.replace(",", " ").splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2:
            raise SettingsError(f"Dividends, line {number}: write an ex-date, then the cash")
        found.append((words[0], _number(words[1], f"Dividends, line {number}")))
    return found


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SettingsError(f"{what}: {text.strip()!r} is no number") from None


def _said(marked: MarkedChain) -> None:
    """Say how good the marks are."""
    found = marked.summary()
    with st.container(horizontal=True):
        st.metric("Spot", f"{marked.fit.market.spot:,.2f}")
        st.metric("Quotes with a vol or interval", f"{found['inverted']:.1%}")
        st.metric("Call less put, vol points", f"{found['gap']:.2f}")
        st.metric("Surface inside bid–ask", f"{found['inside']:.1%}")
        st.metric("Arbitrage", f"{found['violations']:.0f} places")
    first, *others = headline(marked)
    st.caption(formats.plain(first))
    with st.expander("How good that is, what was assumed, and what was left out"):
        for text in others:
            st.markdown(formats.plain(text))
        for text in (*marked.chain.assumed, *marked.fit.assumed):
            st.markdown(f"- {formats.plain(text)}")
        for reason, count in marked.chain.dropped.items():
            st.markdown(f"- {count:,} quotes do not move the fits: {reason}")


def _filtered(marked: MarkedChain) -> pd.DataFrame:
    """Ask which quotes to show."""
    names = pictures.dates(marked)
    with st.container(horizontal=True):
        chosen = st.multiselect("Expiries", list(names.values()), placeholder="all", key="expiries")
        reach = st.slider(
            "Moneyness ln K/F up to, %",
            5,
            _WIDEST,
            _WIDEST,
            5,
            key="reach",
            bind="query-params",
            help=f"{_WIDEST} shows all",
        )
        liquid = st.toggle("Liquid quotes only", key="liquid", bind="query-params")
    table = marked.marks
    limit = reach / 100.0 if reach < _WIDEST else math.inf
    is_shown = table["log_moneyness"].abs() <= limit
    if chosen:
        is_shown &= table["years"].map(names).isin(chosen)
    if liquid:
        is_shown &= table["is_liquid"]
    return table[is_shown]


def _smiles(marked: MarkedChain, shown: pd.DataFrame) -> None:
    if shown.empty:
        st.info("No quote passes these filters.", icon=":material/filter_alt:")
        return
    view = st.segmented_control(
        "Show", ("all expiries", "one expiry"), default="all expiries", required=True,
        key="smiles", bind="query-params",
    )  # fmt: skip
    names = pictures.dates(marked)
    times = [time for time in names if (shown["years"] == time).any()]
    if view == "all expiries":
        st.caption(
            "Dots are mids of calls (blue) and puts (red), bars bid to ask, the line the fit."
        )
        for start in range(0, len(times), 3):  # columns stand below each other on a telephone
            for column, time in zip(st.columns(3), times[start : start + 3], strict=False):
                column.plotly_chart(
                    pictures.smile(marked, time, shown, is_small=True),
                    key=f"smile {time}",
                    alt=f"smile of {names[time]}: bid to ask and the surface",
                )
        return
    time = st.select_slider("Expiry", times, format_func=lambda years: names[years])
    st.plotly_chart(
        pictures.smile(marked, time, shown),
        alt="the smile of one expiry, with bid to ask and the surface",
    )


def _terms(marked: MarkedChain) -> None:
    st.plotly_chart(pictures.forwards(marked), alt="forward and borrow by expiry; table below")
    table = marked.fit.table
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "expiry": st.column_config.DateColumn("expiry"),
            "gap": st.column_config.NumberColumn("call less put vol", format="percent"),
            **{
                name: st.column_config.NumberColumn(name.replace("_", " "), format="%.5f")
                for name in ("years", "forward", "forward_error", "rate", "borrow", "borrow_error")
            },
        },
        alt="forward, rate and borrow of every expiry, with standard errors",
    )
    st.plotly_chart(
        pictures.term_structure(marked), alt="volatility at the forward and skew by expiry"
    )
    shares = {
        name: st.column_config.NumberColumn(name.replace("_", " "), format="percent")
        for name in ("volatility", "skew", "forward_volatility")
    }
    st.dataframe(
        pictures.term_table(marked),
        hide_index=True,
        column_config={"expiry": st.column_config.DateColumn("expiry"), **shares},
        alt="volatility at the forward, skew and forward volatility of every expiry",
    )


def _surface(marked: MarkedChain) -> None:
    with_quotes = st.toggle("With the quotes", key="surface quotes")
    st.plotly_chart(
        pictures.surface_3d(marked, with_quotes=with_quotes),
        alt="volatility over log-moneyness and years",
    )
    if marked.violations.empty:
        st.success("No arbitrage on a fine grid of strikes and times.", icon=":material/check:")
    else:
        st.warning("The surface allows arbitrage here:", icon=":material/warning:")
        st.dataframe(marked.violations, hide_index=True, alt="arbitrage, place by place")


def _quotes(marked: MarkedChain, shown: pd.DataFrame) -> None:
    st.caption(f"{len(shown):,} of {len(marked.marks):,} quotes.")
    percent = {
        name: st.column_config.NumberColumn(name.replace("_", " "), format="%.4f")
        for name in ("bid_vol", "mid_vol", "ask_vol", "model_vol")
    }
    st.dataframe(
        shown[[name for name in _COLUMNS if name in shown]],
        lazy=True,
        hide_index=True,
        column_config={"expiry": st.column_config.DateColumn("expiry"), **percent},
        alt="quotes with their volatilities",
    )


def _downloads(marked: MarkedChain) -> None:
    st.subheader("Downloads")
    uploads.download_buttons(marked.marks, "marks")
    name = marked.fit.underlying
    with st.container(horizontal=True):
        for label, file, mime, make in (
            ("market.json", "market.json", "application/json",
             lambda: markets_to_json({name: marked.fit.market})),
            ("surface.json", "surface.json", "application/json",
             lambda: json.dumps(marked.surface.to_dict())),
            ("Report", "report.html", "text/html", lambda: as_html(marked)),
        ):  # fmt: skip
            st.download_button(
                f"Download {label}", make, file, mime, on_click="ignore",
                icon=":material/download:", key=f"chain {file}",
            )  # fmt: skip

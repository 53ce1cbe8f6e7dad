"""A whole book: read, checked, priced, summed up and put through scenarios."""

import time
from collections.abc import Callable, Hashable

import pandas as pd
import streamlit as st

from app import charts, formats, listed_book, resources, uploads
from pricing import check_frame, exposure, implied_vol_frame, price_frame, scenario_grid
from pricing.analysis.book import MEASURES
from pricing.analysis.examples import sample_book, sample_listed_book, sample_markets
from pricing.columns import OptionFrameError
from pricing.engines.base import FIVE_GREEKS
from pricing.options import Exercise

_EDITABLE = 2_000  # rows that a grid in the browser handles well
_LISTED = 1_000  # lines of a report
_SPOT_MOVES = (-0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2)
_VOLATILITY_MOVES = (-0.1, -0.05, 0.0, 0.05, 0.1)
_TITLES = {
    "value": "Value",
    "delta_1pct": "Delta: P/L of spot +1 %",
    "gamma_1pct": "Gamma: change of that delta, spot +1 %",
    "vega_1pt": "Vega: P/L of vol +1 point",
    "theta_day": "Theta: P/L of one day",
    "rho_1pt": "Rho: P/L of rate +1 point",
}
_RESULTS = (
    "price",
    *FIVE_GREEKS,
    "price_error",
    "engine",
    "in_domain",
    "error",
    "implied_volatility",
    "implied_volatility_error",
)
Columns = dict[str, Hashable]


def _progress(text: str) -> tuple[Callable[[int, int], None], Callable[[], None]]:
    """Return a hook that fills a bar, and a function that removes it."""
    bar = st.progress(0.0, text)
    shown = 0.0

    def hook(done: int, total: int) -> None:
        nonlocal shown
        share = min(done / max(total, 1), 1.0)
        if share - shown > 0.01 or share >= 1.0:
            shown = share
            bar.progress(share, f"{text}: {done:,} of {total:,}")

    return hook, lambda: (bar.empty(), None)[1]


def _edited(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    """Let a book be edited, if it is not too long."""
    frame = frame.rename(columns={name: f"{name}{uploads.KEPT}" for name in _RESULTS})
    if len(frame) > _EDITABLE:
        st.caption(f"{len(frame):,} rows; grids of up to {_EDITABLE:,} rows can be edited here.")
        st.dataframe(frame, lazy=True, height=260, alt="the book as uploaded")
        return frame
    st.caption(f"{len(frame):,} rows. Edit cells, add or delete rows.")
    edited = st.data_editor(
        frame,
        num_rows="dynamic",
        height=260,
        key=f"grid {source} {hash(tuple(map(str, frame.columns)))} {len(frame)}",
        alt="the book, editable",
    )
    return pd.DataFrame(edited).reset_index(drop=True)


def _show_report(
    frame: pd.DataFrame, columns: Columns, quantity: Hashable | None, exercise: Exercise | None
) -> int:
    """Say what is wrong with which cell, and what looks odd; return the number of bad rows."""
    assumed: list[str] = []
    report = check_frame(frame, columns, quantity=quantity, exercise=exercise, assumed=assumed)
    uploads.say_assumed(assumed)
    if report.empty:
        st.success(f"All {len(frame):,} rows can be read.", icon=":material/check:")
        return 0
    n_bad = report["row"].nunique()
    st.warning(
        f"{n_bad:,} of {len(frame):,} rows cannot be priced; the others can.",
        icon=":material/warning:",
    )
    st.dataframe(
        report.head(_LISTED), hide_index=True, height=200, alt="row, column and reason of each"
    )
    if len(report) > _LISTED:
        st.caption(f"the first {_LISTED:,} of {len(report):,}")
    return int(n_bad)


def _price(
    frame: pd.DataFrame,
    columns: Columns,
    engine: str,
    quote: Hashable | None,
    exercise: Exercise | None,
) -> None:
    """Price the book, invert its quotes, and keep the result for this session."""
    hook, remove = _progress("pricing")
    start = time.perf_counter()
    priced = price_frame(
        frame,
        resources.engine(engine),
        columns=columns,
        exercise=exercise,
        errors="coerce",
        error_bars=engine in ("amo", "fd"),
        workers=1,
        progress=hook,
    )
    seconds = time.perf_counter() - start
    if quote is not None:
        inverted = implied_vol_frame(
            frame,
            quote,
            resources.engine(engine),
            columns={name: label for name, label in columns.items() if name != "volatility"},
            exercise=exercise,
            errors="coerce",
            workers=1,
            progress=hook,
        )
        priced.insert(len(frame.columns), "implied_volatility", inverted["implied_volatility"])
        priced["implied_volatility_error"] = inverted["error"]
    remove()
    st.session_state["priced"] = {"frame": priced, "seconds": seconds, "columns": columns}


def _show_priced(quantity: Hashable | None) -> None:
    kept = st.session_state["priced"]
    priced: pd.DataFrame = kept["frame"]
    n_priced = int(priced["price"].notna().sum())
    st.caption(
        f"{n_priced:,} of {len(priced):,} rows priced in {kept['seconds']:.2f} s by "
        + ", ".join(f"{name} ({count:,})" for name, count in _by_engine(priced).items())
    )
    exposed = exposure(priced, quantity=quantity, columns=kept["columns"])
    totals = exposed[list(MEASURES)].sum()
    with st.container(horizontal=True):
        for name in MEASURES:
            st.metric(
                _TITLES[name].split(":")[0],
                f"{totals[name]:,.2f}",
                width="content",
                help=_TITLES[name],
            )
    measure = str(
        st.selectbox("Exposure", MEASURES, index=1, format_func=lambda name: _TITLES[name])
    )
    left, right = st.columns(2)
    left.plotly_chart(
        charts.exposure_bars(exposed.reset_index(), measure, _TITLES[measure]),
        alt=f"{_TITLES[measure]} by expiry and moneyness; the table next to it holds the numbers",
    )
    right.dataframe(
        exposed.reset_index(),
        hide_index=True,
        height=380,
        column_config={
            name: st.column_config.NumberColumn(_TITLES[name].split(":")[0], format="%,.2f")
            for name in MEASURES
        },
        alt="exposure by expiry and moneyness",
    )
    uploads.priced_rows(priced, "priced book")


def _by_engine(priced: pd.DataFrame) -> dict[str, int]:
    counts = priced["engine"].value_counts()
    return {str(name): int(count) for name, count in counts.items() if count}


def _show_scenarios(
    frame: pd.DataFrame,
    columns: Columns,
    engine: str,
    quantity: Hashable | None,
    exercise: Exercise | None,
) -> None:
    st.subheader("Scenarios")
    st.caption("P/L of the whole book when every spot and every volatility move at once.")
    if st.button("Run scenarios", icon=":material/grid_on:"):
        hook, remove = _progress("scenarios")
        st.session_state["scenarios"] = scenario_grid(
            frame,
            resources.engine(engine),
            spot_moves=_SPOT_MOVES,
            volatility_moves=_VOLATILITY_MOVES,
            quantity=quantity,
            exercise=exercise,
            columns=columns,
            progress=hook,
        )
        remove()
    grid: pd.DataFrame | None = st.session_state.get("scenarios")
    if grid is None:
        return
    st.plotly_chart(
        charts.scenario_map(grid),
        alt="P/L over moves of spot and volatility; every cell carries its number",
    )
    if left_out := grid.attrs["left_out"]:
        st.caption(f"{left_out:,} rows that cannot be priced in every scenario are left out.")


def _forget() -> None:
    for name in ("priced", "scenarios"):
        st.session_state.pop(name, None)


def _chosen() -> pd.DataFrame | None:
    """Return the book to price under flat rates; None where there is none, or it has markets."""
    source = st.segmented_control(
        "Book",
        ("sample", "listed", "upload"),
        default="sample",
        required=True,
        key="book source",
        help="sample: flat rates and yields; listed: dates, curves and dividends",
    )
    if source == "listed":
        listed_book.show(sample_listed_book(), sample_markets())
        return None
    if source == "sample":
        return _edited(sample_book().reset_index(drop=True), source)
    frame, markets = uploads.uploaded_table("book"), listed_book.uploaded_markets()
    if frame is None:
        return None
    if markets is not None:
        listed_book.show(frame, markets)
        return None
    return _edited(frame, source)


def main() -> None:
    """Draw the page."""
    st.title("Book")
    frame = _chosen()
    if frame is None:
        return
    beside = ("quantity", "quote")
    columns = uploads.map_columns(frame, "book", also=beside, optional=("exercise", *beside))
    quantity, quote = columns.pop("quantity", None), columns.pop("quote", None)
    if missing := uploads.missing_columns(columns):
        uploads.say_missing(missing, frame)
        return
    exercise = uploads.exercise_choice(columns, "book")
    try:
        n_bad = _show_report(frame, columns, quantity, exercise)
    except OptionFrameError as error:
        st.error(formats.plain(error))
        return
    has_surrogate = resources.surrogates() is not None
    names = ["amo"] * has_surrogate + ["quantlib", "quantlib-fast", "fd-fast"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        engine = str(
            st.selectbox(
                "Engine",
                names,
                help="amo prices what it was trained for and hands the rest to the formula or to "
                "QuantLib",
            )
        )
        ask = st.button("Price the book", type="primary", disabled=n_bad == len(frame))
    # the results belong to exactly these rows
    stamp = (engine, quantity, quote, exercise, tuple(columns.items()), _fingerprint(frame))
    if st.session_state.get("book stamp") != stamp:
        _forget()
        st.session_state["book stamp"] = stamp
    if ask:
        try:
            _price(frame, columns, engine, quote, exercise)
        except OptionFrameError as error:
            st.error(formats.plain(error))
    if "priced" in st.session_state:
        _show_priced(quantity)
        _show_scenarios(frame, columns, engine, quantity, exercise)


def _fingerprint(frame: pd.DataFrame) -> int:
    try:
        return int(pd.util.hash_pandas_object(frame, index=False).sum())
    except TypeError:  # unhashable cells
        return hash(frame.to_csv())


main()

"""Quotes of one price each, with spot, rate and yield beside them: volatilities and smiles."""

import pandas as pd
import streamlit as st

from app import charts, formats, resources, uploads
from pricing import check_frame, implied_vol_frame
from pricing.analysis import smiles
from pricing.columns import OptionFrameError
from pricing.options import Exercise

_COMMON = {"spot": 100.0, "rate": 0.03, "dividend_yield": 0.01}
_WANTED = ("implied_volatility", "engine", "error", "implied_volatility_error")


def show(frame: pd.DataFrame) -> None:
    """Ask what each column is, invert the quotes and draw them."""
    chosen = dict(uploads.map_columns(frame, "chain", without=("volatility",), also=("price",)))
    frame = _fill_common(frame, chosen)
    missing = [*uploads.missing_columns(chosen, ("volatility",))]
    missing += ["price"] if "price" not in chosen else []
    if missing:
        uploads.say_missing(missing, frame)
        return
    exercise = uploads.exercise_choice(chosen, "chain")
    has_surrogate = resources.surrogates() is not None
    engine = str(
        st.selectbox(
            "Engine",
            ["quantlib"] + ["amo"] * has_surrogate,
            help="quantlib: closed form (European) or QdFp (American); amo: the surrogates",
        )
    )
    try:
        inverted = _invert(frame, chosen, engine, exercise)
    except OptionFrameError as error:
        st.error(formats.plain(error))
        return
    _show(inverted)


def _fill_common(frame: pd.DataFrame, chosen: dict[str, object]) -> pd.DataFrame:
    """Ask once for what no column holds and all quotes share."""
    absent = [name for name in _COMMON if name not in chosen]
    if not absent:
        return frame
    st.caption("No column holds these: one value for all quotes.")
    filled = frame.copy()
    for column, name in zip(st.columns(len(absent)), absent, strict=True):
        filled[f"{name} for all"] = column.number_input(
            name,
            value=_COMMON[name],
            format="%.6g",
            help="rates continuously compounded; 0.05 means 5 %",
        )
        chosen[name] = f"{name} for all"
    return filled


def _invert(
    frame: pd.DataFrame, columns: dict[str, object], engine: str, exercise: Exercise | None
) -> pd.DataFrame:
    """Invert the quotes and name their columns as the library does."""
    quote = columns.pop("price")
    known = frame[[*dict.fromkeys([*columns.values(), quote])]]
    known = known.rename(columns={label: name for name, label in columns.items()})
    known = known.rename(columns={quote: "price"})
    assumed: list[str] = []
    check_frame(known, unread=("volatility",), exercise=exercise, assumed=assumed)
    uploads.say_assumed(assumed)
    bar = st.progress(0.0, "inverting")
    inverted = implied_vol_frame(
        known,
        engine=resources.engine(engine),
        error_bars=engine == "amo",
        errors="coerce",
        exercise=exercise,
        workers=1,
        progress=lambda done, total: _fill(bar, done / max(total, 1)),
    )
    bar.empty()
    return inverted


def _fill(bar: "st.delta_generator.DeltaGenerator", share: float) -> None:
    bar.progress(min(share, 1.0), "inverting")


def _show(inverted: pd.DataFrame) -> None:
    smile = smiles.smiles(inverted)
    failed = inverted[inverted["error"] != ""]
    st.caption(
        f"{len(smile):,} of {len(inverted):,} quotes have an implied volatility; "
        f"{smile['expiry'].nunique()} expiries."
    )
    if len(smile):
        left, right = st.columns(2)
        left.plotly_chart(
            charts.smile_lines(smile),
            alt="implied volatility against log-moneyness, one line per expiry; table below",
        )
        surface = smiles.volatility_surface(smile)
        term = smiles.term_structure(smile)
        right.plotly_chart(
            charts.term_line(term), alt="volatility at the forward against expiry; table below"
        )
        if len(surface) > 1:
            st.plotly_chart(
                charts.volatility_surface(surface),
                alt="implied volatility over log-moneyness and expiry; table below",
            )
    if len(failed):
        st.subheader("Quotes without a volatility")
        st.dataframe(
            failed[[c for c in failed.columns if c not in _WANTED[:2]]],
            alt="quotes without a volatility, with the reason",
        )
    st.subheader("All quotes")
    st.dataframe(
        inverted,
        lazy=True,
        column_config={
            "implied_volatility": st.column_config.NumberColumn("implied vol", format="%.5f"),
            "implied_volatility_error": st.column_config.NumberColumn("± error", format="%.1e"),
        },
        alt="all quotes with implied volatilities",
    )
    uploads.download_buttons(inverted, "implied vols")

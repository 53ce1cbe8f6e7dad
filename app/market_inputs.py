"""Widgets that ask for a contract under a market: dates, curves, dividends.

Everything asked for is a text in the address too, so a link reproduces the page.
"""

import datetime as dt
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from amo.errors import AMOError, SettingsError
from app import formats, inputs
from pricing.markets import clock
from pricing.markets.market import Market

NAME = "stock"
_CURVES = "0.25 4 0,1 4 0,2 4 0"  # years, rate and borrow in per cent
_QUARTER = 91  # days
_EARLIEST, _LATEST = dt.date(1990, 1, 1), dt.date(2100, 12, 31)
_EX = ("ex-date", "cash", "share, %")
_NODES = ("years", "rate, %", "borrow, %")


class Listed(NamedTuple):
    """A contract under a market."""

    contract: inputs.Contract  # underlying, strike, expiry in years, volatility, type, exercise
    market: Market
    until: dt.date

    @property
    def frame(self) -> pd.DataFrame:
        """The contract as a book of one row."""
        return pd.DataFrame([self.contract])

    @property
    def years(self) -> float:
        """The time to expiry."""
        return float(self.contract["expiry"])

    @property
    def spot(self) -> float:
        """The spot."""
        return self.market.spot


class _Asked(NamedTuple):
    """What the widgets hold."""

    choices: inputs.Contract
    numbers: inputs.Contract  # spot, strike, volatility
    as_of: dt.date
    until: dt.date
    dividends: pd.DataFrame
    curves: pd.DataFrame


def contract_inputs() -> Listed:
    """Ask for a contract and its market in plain view."""
    return _listed(_ask())


def contract_folded() -> Listed:
    """Ask in a folded panel, and show what was asked in one line."""
    with st.expander("Contract and market", icon=":material/tune:"):
        asked = _ask()
    listed = _listed(asked)  # outside the panel: a folded one would hide what is refused
    contract, market = listed.contract, listed.market
    paid = len(market.before(listed.years))
    st.markdown(
        f"**{str(contract['exercise']).capitalize()} {contract['option_type']}, "
        f"S {listed.spot:g}, K {contract['strike']:g}, {listed.until}, "
        f"vol {float(contract['volatility']):.4g}, {paid} dividend{'' if paid == 1 else 's'}, "
        f"forward {market.forward(listed.years):.2f}**"
    )
    return listed


def _ask() -> _Asked:
    """Draw the widgets."""
    choices = inputs.choices()
    numbers = inputs.numbers(("spot", "strike", "volatility"))
    today = dt.datetime.now(clock.NEW_YORK).date()
    left, right = st.columns(2)
    with left:
        as_of = _date("As of", "as_of", today, "the market is seen at its close in New York")
    with right:
        until = _date("Expires on", "until", as_of + dt.timedelta(days=365), "at the close")
    soon = (as_of + dt.timedelta(days=40 + n * _QUARTER) for n in range(4))
    first = ",".join(f"{day} 0.5 0" for day in soon)
    dividends = _table("Dividends", "dividends", first, _dividends, _EX)
    curves = _table("Curves", "curves", _CURVES, _curves, _NODES)
    return _Asked(choices, numbers, as_of, until, dividends, curves)


def _listed(asked: _Asked) -> Listed:
    """Return the contract and its market; nothing more is drawn if they cannot be priced."""
    inputs.refuse(asked.numbers)
    try:
        market = _market(asked)
        years = market.years_to(asked.until.isoformat())
        if years <= 0:
            raise SettingsError(f"expires on {asked.until}, which is not after {asked.as_of}")
    except AMOError as error:
        st.error(formats.plain(error), icon=":material/block:")
        st.stop()
    terms = {name: asked.numbers[name] for name in ("strike", "volatility")}
    contract = {"underlying": NAME, "expiry": years, **terms, **asked.choices}
    return Listed(contract, market, asked.until)


def _date(label: str, name: str, default: dt.date, help: str) -> dt.date:  # noqa: A002
    """Ask for a date that is kept as a text in the address."""
    text = _at_first(name, default.isoformat())
    try:
        value = dt.date.fromisoformat(text)
    except ValueError:
        value = default
    value = min(max(value, _EARLIEST), _LATEST)
    found: Any = st.date_input(
        label, value, min_value=_EARLIEST, max_value=_LATEST,
        key=f"{name} of visit {_visit()}", help=help,
    )  # fmt: skip
    day = found if isinstance(found, dt.date) else value
    _keep(name, day.isoformat())
    return day


def _table(
    label: str,
    name: str,
    default: str,
    read: Callable[[str], pd.DataFrame],
    columns: tuple[str, ...],
) -> pd.DataFrame:
    """Ask for a table that is kept as a text in the address."""
    text = _at_first(name, default)
    try:
        table = read(text)
    except (ValueError, TypeError):  # an address that somebody typed
        table = read(default)
    st.caption(label)
    digits = {
        column: st.column_config.NumberColumn(column, format="%.6g") for column in columns[1:]
    }
    first = columns[0]
    digits[first] = (
        st.column_config.DateColumn(first)
        if first == _EX[0]
        else st.column_config.NumberColumn(first, format="%.6g")
    )
    edited = st.data_editor(
        table, num_rows="dynamic", hide_index=True, column_config=digits,
        key=f"{name} of visit {_visit()}", alt=f"{label.lower()}, editable: {', '.join(columns)}",
    )  # fmt: skip
    found = pd.DataFrame(edited).dropna(how="all").fillna({columns[2]: 0.0})
    whole = found.dropna(subset=[first])  # the address takes no line without its date or years
    _keep(name, ",".join(" ".join(_word(cell) for cell in row) for row in whole.to_numpy()))
    return found


def _word(cell: object) -> str:
    return f"{cell:.12g}" if isinstance(cell, float | int) else str(pd.Timestamp(cell).date())  # type: ignore[arg-type]


def _dividends(text: str) -> pd.DataFrame:
    rows = [row.split() for row in text.split(",") if row.strip()]
    parsed = [(dt.date.fromisoformat(day), float(cash), float(share)) for day, cash, share in rows]
    table = pd.DataFrame(parsed, columns=list(_EX))
    return table.astype({_EX[0]: "object", _EX[1]: float, _EX[2]: float})


def _curves(text: str) -> pd.DataFrame:
    rows = [[float(word) for word in row.split()] for row in text.split(",") if row.strip()]
    return pd.DataFrame(rows, columns=list(_NODES), dtype=float)


def _market(asked: _Asked) -> Market:
    """Return the market that the tables say."""
    paid, nodes = asked.dividends, asked.curves
    if paid[list(_EX[:2])].isna().any(axis=None):
        raise SettingsError("every dividend needs an ex-date and cash, which may be 0")
    if nodes.empty or nodes[list(_NODES[:2])].isna().any(axis=None):
        raise SettingsError("the curves need at least one line, each with years and a rate")
    if nodes[_NODES[0]].duplicated().any():
        raise SettingsError("the curves have two lines for the same years")
    days = [pd.Timestamp(day).date() for day in paid[_EX[0]]]
    rows = list(zip(days, paid[_EX[1]], 0.01 * paid[_EX[2]], strict=True))
    due = [(day.isoformat(), cash, share) for day, cash, share in rows if day > asked.as_of]
    if len(due) < len(rows):
        st.caption(
            f"{len(rows) - len(due)} of {len(rows)} dividends went ex on or before {asked.as_of}: "
            "they are not counted."
        )
    curves = [dict(zip(nodes[_NODES[0]], 0.01 * nodes[name], strict=True)) for name in _NODES[1:]]
    return Market(
        spot=float(asked.numbers["spot"]), rate=curves[0], borrow=curves[1], dividends=due,
        as_of=asked.as_of.isoformat(),
    )  # fmt: skip


def _visit() -> int:
    return int(st.session_state.get("visits", 0))


def _at_first(name: str, default: str) -> str:
    """Return what a widget starts from on this visit of a page: what was last, or the address."""
    state, key = st.session_state, f"{name} at first, visit {_visit()}"
    if key not in state:
        state[key] = state.get(f"{name} text", st.query_params.get(name, default))
    return str(state[key])


def _keep(name: str, text: str) -> None:
    """Remember a text for other pages, and put it in the address."""
    st.session_state[f"{name} text"] = st.query_params[name] = text

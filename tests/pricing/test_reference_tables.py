"""Every published row, by every engine that can price it."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pricing import OptionFrameError, price_frame

TABLES = sorted((Path(__file__).parents[1] / "reference").glob("[!d]*.csv"))  # not dividends
ROWS = pd.concat([pd.read_csv(path).assign(table=path.stem) for path in TABLES], ignore_index=True)
IS_BARRIER = ROWS["extra"].str.contains("barrier", na=False)
# S, K or volatility of zero is no option of ours: refused, with the reason.
IS_DEGENERATE = (ROWS["S"] <= 0) | (ROWS["K"] <= 0) | (ROWS["vol"] <= 0)
IS_EXPIRED = ROWS["T"] <= 0
VANILLA = ROWS[~IS_BARRIER & ~IS_DEGENERATE & ~IS_EXPIRED]

# What the tables call by names of their own, by homogeneity in spot and strike.
DERIVED = {
    "elasticity": lambda p: p["delta"] * p["S"] / p["price"],
    "theta_per_day": lambda p: p["theta"] / 365,
    "strike_sensitivity": lambda p: (p["price"] - p["S"] * p["delta"]) / p["K"],
    "strike_gamma": lambda p: p["gamma"] * (p["S"] / p["K"]) ** 2,
    "itm_cash_probability": lambda p: (
        (p["S"] * p["delta"] - p["price"]) / p["K"] * np.exp(p["r"] * p["T"])
    ),
}


def _tolerance(row: pd.Series, engine: str) -> float:
    tolerance = float(row["tolerance"])
    approximation = re.search(r"APPROXIMATION, ([\d.e+-]+) away", str(row["note"]))
    if approximation:  # the published value is that far from the true price
        tolerance = 1.1 * float(approximation[1])
    if engine == "fd":  # a grid is no formula: 1e-7 of the strike, 2e-6 for Greeks and Americans
        scale = 1e-7 if row["quantity"] == "price" and row["exercise"] == "european" else 2e-6
        tolerance = max(tolerance, scale * row["K"], 1e-5 * abs(row["expected"]))
    return tolerance


EUROPEAN, AMERICAN = (VANILLA[VANILLA["exercise"] == e] for e in ("european", "american"))
# QdFp's high-precision scheme finds no bracket here; its accurate scheme prices the row.
UNBRACKETED = (AMERICAN["K"] == 1e-7) & (AMERICAN["vol"] == 1e-8)


@pytest.mark.parametrize(
    ("rows", "engine", "n_taken"),
    [
        (EUROPEAN, "analytic", 71),
        (EUROPEAN, "quantlib", 71),
        (EUROPEAN, "fd", 71),
        (AMERICAN[~UNBRACKETED], "quantlib-high-precision", 25),
        (AMERICAN[UNBRACKETED], "quantlib", 1),
        (AMERICAN, "fd", 18),  # the others have volatilities its grid does not resolve
    ],
)
def test_every_published_row_is_within_its_tolerance(
    rows: pd.DataFrame, engine: str, n_taken: int
) -> None:
    frame = rows[["S", "K", "T", "r", "q", "vol", "option_type", "exercise"]]
    greeks = "second" if rows is EUROPEAN else False
    priced = price_frame(frame, engine, greeks=greeks, errors="coerce")
    taken = priced["error"] == ""
    wrong = []
    for label, row in rows[taken].iterrows():
        result = priced.loc[label]
        name = row["quantity"]
        found = DERIVED[name](result) if name in DERIVED else result[name]
        if not abs(found - row["expected"]) <= _tolerance(row, engine):
            wrong.append(f"{row.to_dict()} gave {found!r}")
    assert not wrong, "\n".join(wrong)
    assert int(taken.sum()) == n_taken, priced.loc[~taken, "error"].unique()


def test_tables_are_all_accounted_for() -> None:
    assert len(ROWS) == 117
    assert IS_BARRIER.sum() == 6
    assert IS_EXPIRED.sum() == 1
    assert (IS_DEGENERATE & ~IS_BARRIER & ~IS_EXPIRED).sum() == len(ROWS) - 7 - len(VANILLA)


def test_degenerate_rows_are_refused_with_their_reason() -> None:
    for _, row in ROWS[IS_DEGENERATE].iterrows():
        frame = pd.DataFrame([row])[["S", "K", "T", "r", "q", "vol", "option_type", "exercise"]]
        with pytest.raises(OptionFrameError, match="must be > 0"):
            price_frame(frame, "quantlib")


def test_expired_row_is_intrinsic_where_quantlib_says_zero() -> None:
    # QuantLib counts an option expiring today as gone; a book still holds its payoff.
    row = ROWS[IS_EXPIRED]
    frame = row[["S", "K", "T", "r", "q", "vol", "option_type", "exercise"]]
    assert price_frame(frame, "fd")["price"].tolist() == [20.0]

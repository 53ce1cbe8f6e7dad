"""Surfaces from a frame: V(S, t) of every contract."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pricing import (
    OptionFrameError,
    SettingsError,
    price_frame,
    sample_book,
    sample_listed_book,
    sample_markets,
    surface_frame,
)
from pricing.__main__ import main


def at_points(book: pd.DataFrame, found: dict[str, np.ndarray], rows: int, seed: int) -> Any:
    """Draw points of surfaces: which, and the book of single options there and then."""
    rng = np.random.default_rng(seed)
    n, n_times, n_spots = found["price"].shape
    i, j, k = (
        rng.integers(0, n, rows),
        rng.integers(0, n_times - 1, rows),
        rng.integers(0, n_spots, rows),
    )
    points = book.iloc[i].assign(spot=found["spot"][i, k]).reset_index(drop=True)
    return (i, j, k), points, found["time"][i, j]


@pytest.mark.parametrize(("engine", "tolerance"), [("fd", 2e-5), ("amo", 1e-6), ("analytic", 1e-9)])
def test_a_surface_is_what_single_prices_are(engine: str, tolerance: float) -> None:
    book = sample_book().iloc[:12]
    if engine == "analytic":
        book = book.assign(exercise="european")
    found = surface_frame(book, engine, spot=16, time=9, greeks=["delta", "vega"], as_arrays=True)
    where, points, time = at_points(book, found, 60, seed=1)
    points["expiry"] -= time
    alone = price_frame(points, engine, greeks=["delta", "vega"], error_bars=engine == "fd")
    slack = tolerance * points["strike"]
    if engine == "fd":
        slack += alone["price_error"]
    assert (np.abs(alone["price"] - found["price"][where]) <= slack).all()
    assert (np.abs(alone["delta"] - found["delta"][where]) <= 2e-3).all()
    assert (np.abs(alone["vega"] - found["vega"][where]) <= 2e-3 * points["strike"]).all()


def test_under_a_market_too_across_ex_dates() -> None:
    book, markets = sample_listed_book().iloc[::7], sample_markets()
    found = surface_frame(book, "fd", spot=8, time=7, markets=markets, as_arrays=True)
    where, points, time = at_points(book, found, 24, seed=2)
    for row in range(len(points)):
        one = points.iloc[[row]]
        market = markets[one["underlying"].item()].after(float(time[row]))
        years = markets[one["underlying"].item()].years_to(one["expiry"].item()) - time[row]
        alone = price_frame(
            one.assign(expiry=years), "fd", markets={one["underlying"].item(): market},
            error_bars=True, greeks=False,
        ).iloc[0]  # fmt: skip
        gap = abs(alone["price"] - found["price"][tuple(w[row] for w in where)])
        assert gap <= 2e-5 * alone["strike"] + alone["price_error"]


def test_engines_point_by_point_see_the_market_move_on() -> None:
    book = sample_listed_book().iloc[[4, 9]].assign(exercise="european")
    markets = sample_markets()
    by_formula, by_grid = (
        surface_frame(book, engine, spot=5, time=6, markets=markets, as_arrays=True)
        for engine in ("analytic", "fd")
    )
    np.testing.assert_allclose(by_formula["price"], by_grid["price"], atol=2e-3)


def test_the_frame_has_the_books_index_and_ends_in_the_payoff() -> None:
    book = sample_book().iloc[:3].set_axis(["a", "b", "c"])
    found = surface_frame(book, "fd-fast", spot=[0.9, 1.1], time=[0.0, 1.0])
    assert isinstance(found, pd.DataFrame)
    assert list(found.index) == [name for name in "abc" for _ in range(4)]
    assert list(found.columns) == ["time", "spot", "price"]
    last = found[found["time"] > 0]
    row = book.loc[last.index]
    sign = np.where(row["option_type"] == "call", 1.0, -1.0)
    paid = np.maximum(sign * (last["spot"] - row["strike"]), 0.0)
    np.testing.assert_allclose(last["price"], paid, atol=1e-12)


def test_moments_after_expiry_are_nan_and_bad_rows_too() -> None:
    book = sample_book().iloc[:2].assign(expiry=[0.25, 1.0], strike=[100.0, 310.0])
    found = surface_frame(
        book, "fd", spot=[100.0], spot_unit="absolute", time=[0.1, 0.5], time_unit="years",
        as_arrays=True,
    )  # fmt: skip
    assert np.isnan(found["price"][0, 1]).all()
    assert np.isfinite(found["price"][1]).all()
    bad = book.assign(volatility=[0.2, -1.0])
    with pytest.raises(OptionFrameError, match="volatility"):
        surface_frame(bad, "fd")
    coerced = surface_frame(bad, "fd", spot=2, time=2, errors="coerce", as_arrays=True)
    assert np.isnan(coerced["price"][1]).all()
    assert np.isfinite(coerced["price"][0]).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"spot": 0}, "spot= takes how many"),
        ({"spot": [-1.0]}, "spot= has -1"),
        ({"time": "x"}, "time= takes a number of points"),
        ({"time": [-0.1]}, "time= has -0.1"),
        ({"spot_unit": "x"}, "spot_unit= takes"),
        ({"errors": "x"}, "errors= takes"),
    ],
)
def test_nonsense_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        surface_frame(sample_book().iloc[:1], "fd", **given)  # type: ignore[arg-type]


def test_the_command_line_writes_surfaces_and_ladders(tmp_path: Path) -> None:
    from pricing import write_markets

    book, markets = tmp_path / "book.csv", tmp_path / "markets.json"
    sample_listed_book().iloc[:4].to_csv(book, index=False)
    write_markets(sample_markets(), markets)
    out = tmp_path / "surfaces.parquet"
    flags = [str(book), "--markets", str(markets), "--engine", "fd-fast"]
    axes = ["--spots", "0.8:1.2:5", "--times", "0,0.5"]
    assert main(["surface", *flags, *axes, "-o", str(out)]) == 0
    assert len(pd.read_parquet(out)) == 4 * 5 * 2
    rungs = tmp_path / "ladder.csv"
    assert main(["ladder", *flags, "--quantity", "quantity", "-o", str(rungs)]) == 0
    assert set(pd.read_csv(rungs)["kind"]) == {"rate", "borrow", "dividend"}
    assert main(["ladder", str(book), "--as-of", "2025-10-06", "-o", str(rungs)]) == 2
    with pytest.raises(SystemExit):
        main(["surface", str(book), "-o", str(out), "--spots", "much"])

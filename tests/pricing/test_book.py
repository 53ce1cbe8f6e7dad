"""Books as a whole: reports, exposure, scenarios, and files that stay in memory."""

import io

import numpy as np
import pandas as pd
import pytest

from amo.errors import FileError
from pricing import check_frame, exposure, price_frame, scenario_grid
from pricing.analysis.book import EXPIRIES, MEASURES
from pricing.analysis.examples import sample_book
from pricing.columns import OptionFrameError, guess_columns
from pricing.tables import csv_bytes, parquet_bytes, parse_table


def european_book() -> pd.DataFrame:
    return sample_book().assign(exercise="european")


def test_check_frame_names_row_column_and_reason() -> None:
    book = sample_book().astype({"spot": object, "volatility": object})
    book.loc[3, "spot"] = "a hundred"
    book.loc[7, "volatility"] = -0.2
    book["quantity"] = book["quantity"].astype(object)
    book.loc[7, "quantity"] = "many"
    report = check_frame(book, quantity="quantity")
    assert list(report.columns) == ["row", "column", "reason"]
    assert list(zip(report["row"], report["column"], strict=True)) == [
        (3, "spot"),
        (7, "volatility"),
        (7, "quantity"),
    ]
    assert check_frame(sample_book()).empty


def test_guess_columns_takes_aliases_and_leaves_doubt_open() -> None:
    labels = ["S", "Underlying", "Strike Price", "tau", "vol", "iv", "type"]
    guess = guess_columns(
        pd.DataFrame([[100.0, "ALFA", 90.0, 1.0, 0.2, 0.3, "put"]], columns=labels)
    )
    assert guess["spot"] == "S"  # the other one holds no numbers
    assert guess["strike"] == "Strike Price"
    assert guess["volatility"] is None  # two candidates
    assert guess["rate"] is None


def test_exposure_sums_to_the_book_and_is_linear_in_quantity() -> None:
    book = european_book()
    priced = price_frame(book, "analytic")
    exposed = exposure(priced, quantity="quantity")
    assert exposed["options"].sum() == len(book)
    held = book["quantity"]
    np.testing.assert_allclose(exposed["value"].sum(), (held * priced["price"]).sum())
    np.testing.assert_allclose(exposed["vega_1pt"].sum(), (held * priced["vega"]).sum() / 100)
    twice = exposure(priced.assign(quantity=2 * held), quantity="quantity")
    np.testing.assert_allclose(twice[list(MEASURES)], 2 * exposed[list(MEASURES)])


def test_exposure_in_money_predicts_a_small_move() -> None:
    book = european_book()
    exposed = exposure(price_frame(book, "analytic"), quantity="quantity").sum()
    moved = scenario_grid(
        book, "analytic", spot_moves=[0.01], volatility_moves=[0.0], quantity="quantity"
    ).iloc[0, 0]
    predicted = exposed["delta_1pct"] + 0.5 * exposed["gamma_1pct"]
    assert abs(moved - predicted) < 0.02 * abs(exposed["gamma_1pct"])
    assert abs(moved - predicted) < abs(moved - exposed["delta_1pct"])


def test_exposure_puts_every_row_into_its_bucket() -> None:
    book = european_book().iloc[:3].assign(expiry=[7 / 365, 0.25, 2.5], spot=100.0, strike=100.0)
    exposed = exposure(price_frame(book, "analytic"))
    assert [label for label, _ in exposed.index] == ["to 1W", "1M to 3M", "over 2Y"]
    assert {label for _, label in exposed.index} == {"0.95 to 1.05"}
    assert list(EXPIRIES)[-1] == "over 2Y"


def test_scenario_grid_is_zero_where_nothing_moves_and_equals_prices_of_the_moved_book() -> None:
    book = european_book()
    grid = scenario_grid(
        book,
        "analytic",
        spot_moves=[-0.1, 0.0],
        volatility_moves=[0.0, 0.05],
        quantity="quantity",
    )
    assert grid.loc[0.0, 0.0] == 0.0
    moved = book.assign(spot=0.9 * book["spot"], volatility=book["volatility"] + 0.05)
    gain = price_frame(moved, "analytic")["price"] - price_frame(book, "analytic")["price"]
    np.testing.assert_allclose(grid.loc[-0.1, 0.05], (gain * book["quantity"]).sum())
    assert grid.attrs["left_out"] == 0


def test_scenario_grid_leaves_out_rows_that_cannot_be_priced_and_says_so() -> None:
    book = european_book()
    bad = book.copy()
    bad.loc[0, "spot"] = -1.0
    moves = {"spot_moves": [0.1], "volatility_moves": [0.0], "quantity": "quantity"}
    seen: list[tuple[int, int]] = []
    grid = scenario_grid(bad, "analytic", **moves, progress=lambda *at: seen.append(at))
    rest = scenario_grid(book.iloc[1:], "analytic", **moves)
    np.testing.assert_allclose(grid, rest)
    assert grid.attrs["left_out"] == 1
    assert seen == [(1, 1)]


def test_scenarios_never_ask_for_a_volatility_below_the_lowest() -> None:
    grid = scenario_grid(european_book(), "analytic", spot_moves=[0.0], volatility_moves=[-5.0])
    assert np.isfinite(grid.to_numpy()).all()
    assert grid.iloc[0, 0] < 0  # long of everything


def test_unknown_quantity_column_is_an_error_that_names_it() -> None:
    with pytest.raises(OptionFrameError, match="lots"):
        scenario_grid(sample_book(), spot_moves=[0], volatility_moves=[0], quantity="lots")


@pytest.mark.parametrize("cell", ["=1+1", "+1+1", "-cmd|' /C calc'!A0", "@SUM(A1)", "\tx"])
def test_csv_for_spreadsheets_holds_no_formula(cell: str) -> None:
    book = sample_book().assign(note=cell)
    text = csv_bytes(book)
    again = pd.read_csv(io.BytesIO(text), index_col="position" if b"position" in text else None)
    assert (again["note"] == f"'{cell}").all()
    np.testing.assert_array_equal(again["quantity"], book["quantity"])  # negatives are no formulae


def test_files_in_memory_come_back_equal() -> None:
    book = sample_book().reset_index(drop=True)
    pd.testing.assert_frame_equal(parse_table(parquet_bytes(book), "b.parquet"), book)
    pd.testing.assert_frame_equal(parse_table(csv_bytes(book), "b.csv"), book)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"", "empty.csv"),
        (b"\x00\xff\xfe\x01" * 50, "binary.csv"),
        (b"not parquet", "b.parquet"),
        (b"a,b\n1,2\n1,2,3\n", "ragged.csv"),
        (b"a", "book.xlsx"),
    ],
)
def test_unreadable_bytes_are_an_error_that_names_the_file(data: bytes, name: str) -> None:
    with pytest.raises(FileError, match=name):
        parse_table(data, name)

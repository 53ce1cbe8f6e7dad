"""python -m pricing on books in parts: folders in, folders out, exit codes."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pricing import ladder_frame, price_frame, read_dataset, sample_listed_book, sample_markets
from pricing.__main__ import main
from pricing.markets.files import write_markets

BOOK = pd.DataFrame(
    {
        "S": [100.0, 90.0, 110.0, 95.0],
        "K": 100.0,
        "T": [0.5, 1.0, 2.0, 0.25],
        "r": 0.05,
        "q": 0.02,
        "sigma": 0.2,
        "type": ["call", "put", "P", "C"],
        "style": "european",
    }
)
HERE = ["--engine", "analytic", "--workers", "1"]


@pytest.fixture
def book(tmp_path: Path) -> str:
    folder = tmp_path / "book"
    folder.mkdir()
    BOOK.iloc[:3].to_parquet(folder / "1.parquet")
    BOOK.iloc[3:].to_parquet(folder / "2.parquet")
    return str(folder)


@pytest.mark.parametrize("name", ["book", "book/*.parquet"])
def test_price_of_a_folder_writes_a_folder(
    book: str, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "priced"
    assert book == str(tmp_path / "book")
    assert main(["price", str(tmp_path / name), "-o", str(out), "--greeks", *HERE]) == 0
    assert "4 rows in 2 parts" in capsys.readouterr().err
    expected = price_frame(BOOK, "analytic")
    found = pd.read_parquet(out)
    assert list(found.columns) == list(expected.columns)
    assert (found["price"].to_numpy() == expected["price"].to_numpy()).all()


def test_one_large_file_goes_into_a_folder(tmp_path: Path) -> None:
    BOOK.to_parquet(tmp_path / "book.parquet")
    out = tmp_path / "priced"
    assert main(["price", str(tmp_path / "book.parquet"), "-o", str(out), *HERE]) == 0
    assert [line.file for line in read_dataset(out).parts] == ["part-00000.parquet"]


def test_failed_parts_give_exit_code_one_and_the_others(
    book: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(book) / "1.parquet").write_text("no table")
    out = tmp_path / "priced"
    assert main(["price", book, "-o", str(out), *HERE]) == 1
    said = capsys.readouterr().err
    assert "1 of 2 parts failed" in said
    assert "cannot read 1.parquet" in said
    assert len(read_dataset(out).parts) == 1


def test_another_request_is_refused_in_the_words_of_the_command_line(
    book: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["price", book, "-o", str(tmp_path / "priced"), *HERE]
    assert main(arguments) == 0
    assert main([*arguments, "--units", "market"]) == 1
    assert "units natural there, market asked" in capsys.readouterr().err
    assert main([*arguments, "--units", "market", "--overwrite"]) == 0


def test_parts_are_written_into_folders_and_a_cluster_is_for_parts(
    book: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out in ("-", str(tmp_path / "priced.csv")):
        assert main(["price", book, "-o", out, *HERE]) == 2
        assert "written into a folder" in capsys.readouterr().err
    BOOK.to_csv(tmp_path / "book.csv")
    arguments = ["price", str(tmp_path / "book.csv"), "-o", str(tmp_path / "priced.csv")]
    assert main([*arguments, "--dask", "tcp://127.0.0.1:9"]) == 2
    assert "are for books in parts" in capsys.readouterr().err


def test_cluster_without_its_extra_says_which_one_to_install(
    book: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)  # as if it were not there
    arguments = ["price", book, "-o", str(tmp_path / "priced"), *HERE]
    assert main([*arguments, "--dask", "tcp://127.0.0.1:9"]) == 1
    assert 'this needs distributed: pip install "amo-pricing[cluster]"' in capsys.readouterr().err
    assert main(arguments) == 0


def test_other_commands_take_parts(book: str, tmp_path: Path) -> None:
    priced, vols = str(tmp_path / "priced"), tmp_path / "vols"
    assert main(["price", book, "-o", priced, *HERE]) == 0
    quotes = tmp_path / "quotes"
    quotes.mkdir()
    pd.read_parquet(priced).drop(columns=["sigma", "engine"]).to_parquet(quotes / "1.parquet")
    assert main(["implied-vol", str(quotes), "-o", str(vols), *HERE]) == 0
    assert pd.read_parquet(vols)["implied_volatility"].notna().all()
    surfaces = tmp_path / "surfaces"
    axes = ["--spots", "0.9,1.1", "--times", "0,0.5,1"]
    assert main(["surface", book, "-o", str(surfaces), *axes, *HERE]) == 0
    assert len(pd.read_parquet(surfaces)) == 2 * 3 * len(BOOK)


def test_ladder_of_parts_is_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    markets, listed = sample_markets(), sample_listed_book().assign(exercise="european")
    write_markets(markets, tmp_path / "markets.json")
    folder, out = tmp_path / "book", tmp_path / "ladder.csv"
    folder.mkdir()
    listed.to_parquet(folder / "1.parquet")
    under = ["--markets", str(tmp_path / "markets.json"), *HERE]
    assert main(["ladder", str(folder), "-o", str(out), *under]) == 0
    expected = ladder_frame(listed, "analytic", markets)
    found = pd.read_csv(out)
    # of one part, so only the table's digits stand between: a CSV holds all of them
    assert np.array_equal(found["sensitivity"], expected["sensitivity"])
    assert read_dataset(tmp_path / "ladder.csv.parts").is_complete
    assert main(["ladder", str(folder), "-o", "-", *under]) == 2
    assert "give a file for -o" in capsys.readouterr().err

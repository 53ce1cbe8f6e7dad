"""python -m pricing: files in, files out, exit codes."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from amo.files import replacing
from pricing import price_frame, tables
from pricing.__main__ import main
from pricing.messages import in_flags

BOOK = pd.DataFrame(
    {
        "id": ["a", "b", "c"],
        "S": [100.0, 90.0, 110.0],
        "K": 100.0,
        "T": [0.5, 1.0, 2.0],
        "r": 0.05,
        "q": 0.02,
        "sigma": 0.2,
        "type": ["call", "put", "P"],
        "style": ["european", "american", "american"],
    }
)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.csv"
    BOOK.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_price_writes_what_the_library_returns(book: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"priced.{suffix}"
    assert main(["price", str(book), "-o", str(out), "--engine", "fd", "--greeks"]) == 0
    written = tables.read_table(out)
    expected = price_frame(BOOK, "fd")
    assert np.allclose(written["price"], expected["price"], rtol=1e-14)
    assert list(written.columns) == list(expected.columns)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["book.csv", out.name])


def test_bad_rows_give_exit_code_one_and_no_file(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    BOOK.assign(sigma=[0.2, -1.0, 0.2]).to_csv(book, index=False)
    out = tmp_path / "priced.csv"
    assert main(["price", str(book), "-o", str(out)]) == 1
    assert "1 of 3 rows: volatility must be > 0: rows 1" in capsys.readouterr().err
    assert not out.exists()
    assert main(["price", str(book), "-o", str(out), "--errors", "coerce"]) == 0
    assert "1 with a reason" in capsys.readouterr().err
    assert pd.read_csv(out)["price"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["price", "{tmp}/none.csv", "-o", "{tmp}/x.csv"], "no such file"),
        (["price", "{tmp}/book.csv", "-o", "{tmp}/x.xlsx"], "name it .csv, .tsv"),
        (["price", "{tmp}/book.csv", "-o", "{tmp}/no/dir/x.csv"], "cannot write"),
        (["price", "{tmp}/bad.parquet", "-o", "{tmp}/x.csv"], "cannot read"),
        (["price", "{tmp}/empty.csv", "-o", "{tmp}/x.csv"], "cannot read"),
    ],
)
def test_file_trouble_is_said_in_one_line(
    arguments: list[str],
    message: str,
    book: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    book.with_name("bad.parquet").write_bytes(b"no parquet")
    book.with_name("empty.csv").write_bytes(b"")
    assert main([text.format(tmp=tmp_path) for text in arguments]) == 1
    assert message in capsys.readouterr().err


def test_bad_usage_gives_exit_code_two(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["price", str(book), "-o", "x.csv", "--engine", "magic"])
    assert caught.value.code == 2
    assert main(["price", str(book), "-o", "x.csv", "--column", "spot"]) == 2
    assert "--column takes NAME=LABEL" in capsys.readouterr().err


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["price", "--help"])
    assert caught.value.code == 0
    assert "amo-pricing price book.csv -o priced.csv" in capsys.readouterr().out


def test_parquet_index_is_kept(tmp_path: Path) -> None:
    book, out = tmp_path / "book.parquet", tmp_path / "priced.parquet"
    BOOK.set_index("id").to_parquet(book)
    assert main(["price", str(book), "-o", str(out)]) == 0
    assert pd.read_parquet(out).index.tolist() == ["a", "b", "c"]


def test_column_option_maps_names(book: Path, tmp_path: Path) -> None:
    BOOK.rename(columns={"S": "Px_Last"}).to_csv(book, index=False)
    out = tmp_path / "priced.csv"
    assert main(["price", str(book), "-o", str(out), "--column", "spot=Px_Last"]) == 0
    assert "Px_Last" in pd.read_csv(out)


def test_implied_vol_inverts_a_chain(book: Path, tmp_path: Path) -> None:
    quotes = price_frame(BOOK, greeks=False).drop(columns=["sigma", "engine"])
    quotes.rename(columns={"price": "mid"}).to_csv(book, index=False)
    out = tmp_path / "vols.parquet"
    assert main(["implied-vol", str(book), "-o", str(out), "--price-column", "mid"]) == 0
    assert np.allclose(pd.read_parquet(out)["implied_volatility"], 0.2, atol=1e-7)


def test_surrogate_prices_and_inverts_from_the_shell(book: Path, tmp_path: Path) -> None:
    priced, inverted = tmp_path / "priced.csv", tmp_path / "vols.csv"
    options = ["--engine", "amo", "--error-bars", "--out-of-domain", "nan"]
    assert main(["price", str(book), "-o", str(priced), *options]) == 0
    table = pd.read_csv(priced)
    assert table["in_domain"].all()
    assert (table["price_error"] > 0).all()
    table.drop(columns=["sigma", "price_error", "engine", "in_domain"]).to_csv(book, index=False)
    assert main(["implied-vol", str(book), "-o", str(inverted), *options]) == 0
    vols = pd.read_csv(inverted)
    assert np.allclose(vols["implied_volatility"], 0.2, atol=1e-3)
    assert (vols["engine"] == "amo").all()


def test_compare_prints_a_table(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(book), "--engines", "quantlib,fd", "--regions"]) == 0
    printed = capsys.readouterr().out
    assert "errors against quantlib" in printed
    assert "price_rmse" in printed


def test_bench_reports_its_ratios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "engines.json"
    small = ["--contracts", "4", "--rows", "1000", "--book", "400"]
    assert main(["bench", "engines", "--json", str(out), *small]) == 0
    results = json.loads(out.read_text())
    assert {"american", "frame", "fd_fast_over_quantlib_fd", "machine"} <= set(results)
    assert main(["bench", "markets", "--markets", "1", "--surfaces", "2"]) == 0
    assert "times faster" in capsys.readouterr().out


def test_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "kept.txt"
    target.write_text("old")

    def write_and_fail() -> None:
        with replacing(target) as beside:
            beside.write_text("half")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_and_fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("library", "here"),
    [
        ('pass columns={"spot": "your column"}', 'pass --column spot="your column"'),
        ('errors="coerce" prices the other rows', "--errors coerce prices the other rows"),
        ("rename or frame.drop(columns=['price'])", "rename or remove 'price'"),
        ('use engine="fd"', 'use --engine "fd"'),
        ("pass price_column=", "pass --price-column"),
    ],
)
def test_messages_speak_of_flags(library: str, here: str) -> None:
    assert in_flags(library) == here


def test_a_taken_column_is_told_in_words_of_the_command_line(
    book: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = tmp_path / "again.csv"
    assert main(["price", str(book), "-o", str(again)]) == 0
    assert main(["price", str(again), "-o", str(tmp_path / "twice.csv")]) == 1
    told = capsys.readouterr().err
    assert "rename or remove 'price'" in told
    assert "frame" not in told.split("error:")[1].replace("the frame already has", "")


@pytest.mark.parametrize(
    "arguments",
    [["fuzz", "--seed", "-1"], ["assess", "models/european", "--contracts", "0"]],
)
def test_numbers_that_cannot_be_are_bad_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


def test_compare_keeps_standard_output_for_the_rows(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(book), "--engines", "analytic,quantlib", "-o", "-"]) == 0
    told = capsys.readouterr()
    assert "errors against analytic" in told.err
    assert len(pd.read_csv(io.StringIO(told.out))) == len(pd.read_csv(book))

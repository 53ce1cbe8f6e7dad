"""Tables from anywhere: every layout that is promised, and none that takes a machine down."""

import gzip
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amo.errors import FileError
from pricing import OptionFrameError, price_frame, tables
from pricing.__main__ import main
from pricing.tables import parse_table, read_table, write_table

BOOK = pd.DataFrame({"spot": [100.5, 90.25], "option_type": ["call", "put"]})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "spot,option_type\n100.5,call\n90.25,put\n"),
        ("a.csv", "\ufeffspot,option_type\n100.5,call\n90.25,put\n"),
        ("a.csv", "\n\r\nspot;option_type\n100.5;call\n90.25;put\n"),
        ("a.csv", "spot;option_type\n100.5;call\n90.25;put\n"),
        ("a.csv", "spot;option_type\n100,5;call\n90,25;put\n"),
        ("a.txt", "spot\toption_type\n100.5\tcall\n90.25\tput\n"),
        ("a.tsv", "spot\toption_type\n100.5\tcall\n90.25\tput\n"),
    ],
)
@pytest.mark.parametrize("is_compressed", [False, True])
def test_layouts_of_text_are_read(name: str, text: str, is_compressed: bool) -> None:
    data = text.encode()
    if is_compressed:
        name, data = f"{name}.gz", gzip.compress(data)
    pd.testing.assert_frame_equal(parse_table(data, name), BOOK, check_dtype=False)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.tsv.gz", "a.parquet"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    write_table(BOOK, tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), BOOK, check_dtype=False)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_standard_input_and_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = "S,K,T,r,q,sigma,type,style\n100,100,1,0.03,0.01,0.2,put,european\n"

    class Input:
        buffer = io.BytesIO(row.encode())

    monkeypatch.setattr("sys.stdin", Input)
    assert main(["price", "-", "-o", "-", "--engine", "analytic"]) == 0
    told = capsys.readouterr()
    assert "1 rows in" in told.err
    assert pd.read_csv(io.StringIO(told.out))["price"].iloc[0] == pytest.approx(6.87, abs=0.1)


def test_spreadsheet_formulas_are_defused_in_every_text(tmp_path: Path) -> None:
    index = pd.Index(["=2+2", "-0.01"], name="=name")  # a number is no formula
    evil = pd.DataFrame({"id": ["=1+1", "@x"], "=cmd": [1.0, 2.0]}, index=index)
    for name in ("a.csv", "a.tsv", "a.csv.gz"):
        write_table(evil, tmp_path / name)
        data = (tmp_path / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith("gz") else data).decode()
        assert "'=1+1" in text
        assert "'@x" in text
        assert "'=cmd" in text
        assert "'=name" in text
        assert "'=2+2" in text
        assert "\n-0.01" in text


def test_a_header_of_very_many_columns_is_refused_before_it_is_parsed() -> None:
    for text in ("a," * 20_000, "a;" * 20_000, "a\t" * 20_000):
        with pytest.raises(FileError, match="columns; a table has at most"):
            parse_table(f"{text}a\n1\n".encode(), "wide.csv")
    wide = "a," * 20_000
    for text in (f"\n\n{wide}\n", f'"a\nb",{wide}\n', f"a\n{wide}\n"):
        with pytest.raises(FileError, match="columns; a table has at most"):
            parse_table(text.encode(), "wide.csv")
    for text in ("a" * (2 << 20), "é" * (1 << 20) + f",{wide}\n1\n"):
        with pytest.raises(FileError, match="field larger than field limit"):
            parse_table(text.encode(), "long.csv")
    with pytest.raises(FileError, match="1 columns in its header and 50 below it"):
        parse_table(b"a\n" + b"1," * 49 + b"1\n", "ragged.csv")


def test_numbers_with_comma_and_with_point_are_not_guessed() -> None:
    with pytest.raises(FileError, match="a comma and numbers with a point"):
        parse_table(b"strike;spot\n1,234;1300.5\n", "a.csv")


def test_a_parquet_file_is_measured_by_its_description_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = tmp_path / "bomb.parquet"
    n = 20_000_000
    pq.write_table(pa.table({"spot": np.zeros(n, dtype=np.float64)}), bomb)
    assert bomb.stat().st_size < 1 << 20
    monkeypatch.setattr(pq, "ParquetFile", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(FileError, match="160,000,000 bytes; it may hold"):
        read_table(bomb, max_bytes=100 << 20)


def test_a_text_that_a_parquet_file_repeats_is_held_once(tmp_path: Path) -> None:
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"id": ["x" * 1_000] * 100_000}), path)  # 100 MB of text
    before = pa.total_allocated_bytes()
    found = read_table(path, max_bytes=8 << 20)
    assert len(set(map(id, found["id"]))) == 1
    assert pa.total_allocated_bytes() - before < 8 << 20


@pytest.mark.parametrize(
    "notes", [b"[]", b'{"index_columns":[],"columns":[5],"column_indexes":[]}', b"[" * 100_000]
)
def test_damaged_notes_of_pandas_do_not_hide_a_table(tmp_path: Path, notes: bytes) -> None:
    path = tmp_path / "a.parquet"
    table = pa.Table.from_pandas(BOOK)
    pq.write_table(table.replace_schema_metadata({b"pandas": notes}), path)
    pd.testing.assert_frame_equal(read_table(path), BOOK, check_dtype=False)


def test_a_compressed_text_is_read_no_further_than_allowed() -> None:
    data = gzip.compress(b"spot\n" + b"1\n" * 4_000_000)
    with pytest.raises(FileError, match="holds more than 1 MB"):
        parse_table(data, "bomb.csv.gz", max_bytes=1 << 20)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"PAR1 no parquet PAR1", "a.parquet"),
        (b"\x1f\x8b no gzip", "a.csv.gz"),
        (b'a,b\n"1,2\n', "a.csv"),
        (b"\xff\xfe\x00\x01", "a.csv"),
        (b"", "a.csv"),
        (b"a", "a.xlsx"),
        (b"a", "a.parquet.gz"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(data: bytes, name: str) -> None:
    with pytest.raises(FileError) as caught:
        parse_table(data, name)
    assert "\n" not in str(caught.value)


def test_a_parquet_file_without_its_index_column_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    BOOK.assign(id=["a", "b"]).set_index("id").to_parquet(path)
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["id"]).replace_schema_metadata(table.schema.metadata), path)
    pd.testing.assert_frame_equal(read_table(path), BOOK, check_dtype=False)


@pytest.mark.parametrize("column", ["spot", "option_type", "exercise"])
def test_cells_that_are_lists_are_bad_rows_and_no_crash(tmp_path: Path, column: str) -> None:
    book, out = tmp_path / "lists.parquet", tmp_path / "out.csv"
    frame = pd.DataFrame(
        {
            "spot": [100.0, 90.0],
            "strike": 100.0,
            "expiry": 1.0,
            "rate": 0.03,
            "dividend_yield": 0.0,
            "volatility": 0.2,
            "option_type": "put",
            "exercise": "european",
        }
    ).astype({column: object})
    frame[column] = pd.Series([[1.0], [2.0, 3.0]])
    frame.to_parquet(book)
    assert main(["price", str(book), "-o", str(out)]) == 1
    for given in (frame, pd.read_parquet(book, dtype_backend="pyarrow")):
        with pytest.raises(OptionFrameError, match=f"2 of 2 rows: {column}"):
            price_frame(given, "analytic")
        assert tables.csv_bytes(given)

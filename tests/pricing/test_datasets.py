"""Books in parts: what is done with the parts is what is done with the whole."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amo.errors import CheckpointError, FileError, SettingsError, StoppedError
from amo.files import sha256_of
from pricing import (
    AssumptionWarning,
    DatasetError,
    FailedPartsError,
    exposure,
    exposure_dataset,
    implied_vol_dataset,
    implied_vol_frame,
    ladder_dataset,
    ladder_frame,
    price_dataset,
    price_frame,
    read_dataset,
    sample_listed_book,
    sample_markets,
    surface_dataset,
    surface_frame,
)
from pricing.datasets.manifest import MANIFEST, MARKETS, Request
from pricing.datasets.parts import parts_of

N_PARTS, ROWS = 12, 25
COERCED: dict[str, Any] = {"errors": "coerce"}


def book_of(rows: int) -> pd.DataFrame:
    """Return European and American options with labels, a date, a category and a flag."""
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "S": rng.uniform(80.0, 120.0, rows),
            "K": 100.0,
            "T": rng.uniform(0.1, 2.0, rows),
            "r": 0.04,
            "q": 0.01,
            "sigma": rng.uniform(0.1, 0.5, rows),
            "type": rng.choice(["call", "put"], rows),
            "style": rng.choice(["american", "european"], rows),
            "traded": pd.Timestamp("2026-01-05") + pd.to_timedelta(np.arange(rows), unit="h"),
            "desk": pd.Categorical(rng.choice(["east", "west"], rows), ["east", "west"]),
            "hedged": rng.random(rows) < 0.5,
        },
        index=pd.Index([f"id{i}" for i in range(rows)], name="id"),
    )


BOOK = book_of(N_PARTS * ROWS)


def write_parts(frame: pd.DataFrame, folder: Path, n_parts: int) -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), n_parts)):
        frame.iloc[rows].to_parquet(folder / f"part.{number}.parquet")  # 10 sorts before 2
    return folder


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return write_parts(BOOK, tmp_path / "book", N_PARTS)


def hashes(folder: Path) -> list[str]:
    return [sha256_of(path) for path in sorted(folder.glob("part-*.parquet"))]


def test_priced_parts_are_the_priced_book_in_order_with_its_index(
    book: Path, tmp_path: Path
) -> None:
    made = price_dataset(book, tmp_path / "out", "fd-fast")
    found = pd.read_parquet(tmp_path / "out")
    expected = price_frame(BOOK, "fd-fast")
    pd.testing.assert_frame_equal(found, expected.astype({"engine": "str"}))
    assert made.is_complete
    assert made.source_rows == len(BOOK)
    for number, line in enumerate(made.parts):
        path = tmp_path / "out" / line.file
        assert line.source == f"part.{number}.parquet"
        assert line.sha256 == sha256_of(path)
        assert line.bytes == path.stat().st_size
        assert line.rows == line.source_rows == ROWS
        assert line.engines == {"fd-fast": ROWS}
    assert read_dataset(tmp_path / "out") == made


def test_bytes_do_not_depend_on_who_computes(book: Path, tmp_path: Path) -> None:
    price_dataset(book, tmp_path / "here", "fd-fast")
    price_dataset(book, tmp_path / "processes", "fd-fast", executor="processes", workers=2)
    with ThreadPoolExecutor(3) as threads:
        price_dataset(book, tmp_path / "threads", "fd-fast", executor=threads)
    assert len(hashes(tmp_path / "here")) == N_PARTS
    assert hashes(tmp_path / "processes") == hashes(tmp_path / "here")
    assert hashes(tmp_path / "threads") == hashes(tmp_path / "here")


@pytest.mark.parametrize("is_labelled", [True, False])
def test_parts_of_a_large_file_are_row_groups_with_their_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_labelled: bool
) -> None:
    frame = BOOK if is_labelled else BOOK.set_index(pd.RangeIndex(5, 5 + 2 * len(BOOK), 2))
    large, out = tmp_path / "large.parquet", tmp_path / "out"
    frame.to_parquet(large, row_group_size=70)
    cut = parts_of(large, rows=100)
    assert [part.name for part in cut] == [f"large.parquet[{x}]" for x in ("0:2", "2:4", "4:5")]
    monkeypatch.setattr("pricing.datasets.running.parts_of", lambda _: cut)
    made = price_dataset(large, out, "fd-fast", greeks=False)
    found = pd.concat([pd.read_parquet(out / line.file) for line in made.parts])
    expected = price_frame(frame, "fd-fast", greeks=False)
    pd.testing.assert_frame_equal(found, expected.astype({"engine": "str"}))
    assert len({line.source_sha256 for line in made.parts}) == 3


def test_pattern_names_its_parts_in_the_order_of_their_numbers(book: Path) -> None:
    assert [part.name for part in parts_of(f"{book}/part.1*.parquet")] == [
        "part.1.parquet", "part.10.parquet", "part.11.parquet"
    ]  # fmt: skip
    (book / "notes.txt").write_text("not a part")
    assert len(parts_of(book)) == N_PARTS
    with pytest.raises(FileError, match=r"matches notes.txt: .* Parquet"):
        parts_of(f"{book}/*")


def test_folder_without_parts_and_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="holds no Parquet file"):
        parts_of(tmp_path)
    with pytest.raises(FileError, match="no such file"):
        parts_of(tmp_path / "book.parquet")
    with pytest.raises(FileError, match=r"no \.parquet file"):
        parts_of(tmp_path / "book.csv")


def test_part_whose_rows_all_fail_has_the_columns_of_the_others(tmp_path: Path) -> None:
    frame = BOOK.head(20).copy()
    frame.loc[frame.index[10:], "sigma"] = -1.0
    write_parts(frame, tmp_path / "book", 2)
    write_parts(frame.head(0), tmp_path / "none", 1)
    (tmp_path / "none/part.0.parquet").rename(tmp_path / "book/part.2.parquet")
    price_dataset(tmp_path / "book", tmp_path / "out", "fd-fast", **COERCED)
    schemas = [pq.read_schema(path) for path in sorted((tmp_path / "out").glob("*.parquet"))]
    assert len(schemas) == 3
    assert schemas[0].equals(schemas[1])
    assert schemas[0].equals(schemas[2])
    assert pa.types.is_string(schemas[0].field("engine").type)
    found = pd.read_parquet(tmp_path / "out")
    assert found["price"].isna().tolist() == [False] * 10 + [True] * 10
    assert found["error"].str.contains("volatility must be > 0").sum() == 10


def test_stopped_job_goes_on_where_it_stopped(book: Path, tmp_path: Path) -> None:
    def stop(done: int, _: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(StoppedError, match=r"5 of 12 parts are finished in .*out.*goes on"):
        price_dataset(book, out, "fd-fast", progress=stop)
    assert not read_dataset(out).is_complete
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*.parquet")}
    assert len(kept) == 5
    (out / ".part-00005.parquet.abc.part").write_text("half")  # of a worker that was killed
    seen: list[tuple[int, int]] = []
    made = price_dataset(book, out, "fd-fast", progress=lambda *count: seen.append(count))
    assert seen == [(done, 12) for done in range(5, 13)]
    assert kept == {name: (out / name).stat().st_mtime_ns for name in kept}
    assert made == price_dataset(book, tmp_path / "alone", "fd-fast")
    assert (out / MANIFEST).exists()
    assert len(list(out.iterdir())) == N_PARTS + 1


def test_unfinished_dataset_is_no_source(book: Path, tmp_path: Path) -> None:
    (book / "part.3.parquet").write_text("no table")
    with pytest.raises(FailedPartsError):
        price_dataset(book, tmp_path / "priced", "fd-fast")
    with pytest.raises(DatasetError, match="has 11 of 12 parts"):
        exposure_dataset(tmp_path / "priced", tmp_path / "exposed")


def test_changed_parts_are_made_again_and_lost_ones_too(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    price_dataset(book, out, "fd-fast")
    before = hashes(out)
    BOOK.iloc[ROWS : 2 * ROWS].assign(K=101.0).to_parquet(book / "part.1.parquet")
    (out / "part-00004.parquet").unlink()
    (out / "part-00006.parquet").write_bytes(b"damaged")
    seen: list[tuple[int, int]] = []
    price_dataset(book, out, "fd-fast", progress=lambda *count: seen.append(count))
    assert seen[0] == (N_PARTS - 3, N_PARTS)
    after = hashes(out)
    assert [n for n in range(N_PARTS) if after[n] != before[n]] == [1]


def test_part_that_left_the_book_leaves_the_answer(book: Path, tmp_path: Path) -> None:
    price_dataset(book, tmp_path / "out", "fd-fast", greeks=False)
    (book / "part.11.parquet").unlink()
    made = price_dataset(book, tmp_path / "out", "fd-fast", greeks=False)
    assert made.is_complete
    assert len(made.parts) == len(hashes(tmp_path / "out")) == N_PARTS - 1


def test_corrupt_part_fails_by_name_and_the_others_are_finished(book: Path, tmp_path: Path) -> None:
    good = (book / "part.2.parquet").read_bytes()
    (book / "part.2.parquet").write_bytes(good[: len(good) // 2])
    with pytest.raises(FailedPartsError, match="1 of 12 parts failed") as failed:
        price_dataset(book, tmp_path / "out", "fd-fast")
    assert list(failed.value.failed) == ["part.2.parquet"]
    assert "cannot read part.2.parquet" in str(failed.value)
    assert len(hashes(tmp_path / "out")) == N_PARTS - 1
    (book / "part.2.parquet").write_bytes(good)
    assert price_dataset(book, tmp_path / "out", "fd-fast").is_complete


def test_folder_of_another_request_is_refused(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    price_dataset(book, out, "fd-fast")
    before = hashes(out)
    with pytest.raises(DatasetError, match=r"engine fd-fast there, fd asked.*overwrite=True"):
        price_dataset(book, out, "fd")
    with pytest.raises(DatasetError, match="greeks True there, False asked"):
        price_dataset(book, out, "fd-fast", greeks=False)
    assert hashes(out) == before
    (out / "notes.txt").write_text("mine")
    price_dataset(book, out, "fd-fast", greeks=False, overwrite=True)
    assert (out / "notes.txt").read_text() == "mine"
    assert "delta" not in pd.read_parquet(out / "part-00000.parquet")


def test_folder_of_something_else_is_never_written(book: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/part-00000.parquet").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(DatasetError, match="holds other files and no dataset"):
            price_dataset(book, tmp_path / "thesis", "fd-fast", overwrite=overwrite)
    with pytest.raises(DatasetError, match="is where the book lies"):
        price_dataset(book, book, "fd-fast")
    assert (tmp_path / "thesis/part-00000.parquet").read_text() == "precious"


def test_wrong_settings_are_refused_before_any_part(book: Path, tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"engine": "guess"}, "unknown engine"),
        ({"greeks": "third"}, "greeks= takes"),
        ({"workers": 0}, "workers= takes"),
        ({"executor": "threads"}, "executor= takes"),
        ({"as_of": "someday"}, "as_of"),
        ({"engine": object()}, "takes an engine by its name"),
    ]
    for settings, words in wrong:
        with pytest.raises(SettingsError, match=words):
            price_dataset(book, tmp_path / "out", **{"engine": "fd-fast", **settings})
    with pytest.raises(TypeError, match="no option greek;"):
        price_dataset(book, tmp_path / "out", "fd-fast", greek=True)
    assert not (tmp_path / "out").exists()


def test_worker_with_other_models_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request.of("price", "amo", {}, None)
    request.check_worker()
    Request.of("price", "fd", {}, None).check_worker()
    (tmp_path / "american").mkdir()
    (tmp_path / "american/config.json").write_text("{}")
    monkeypatch.setenv("AMO_MODELS", str(tmp_path))
    Request.of("price", "fd", {}, None).check_worker()
    with pytest.raises(CheckpointError, match=r"other models.*AMO_MODELS"):
        request.check_worker()


def test_assumption_is_warned_of_once(tmp_path: Path) -> None:
    source = write_parts(BOOK.drop(columns="style"), tmp_path / "book", 3)
    with pytest.warns(AssumptionWarning, match="part.0.parquet: the frame has no exercise") as told:
        price_dataset(source, tmp_path / "out", "analytic")
    assert len(told) == 1


def test_markets_travel_to_the_parts(tmp_path: Path) -> None:
    markets, listed = sample_markets(), sample_listed_book()
    source, out = write_parts(listed, tmp_path / "book", 3), tmp_path / "out"
    made = price_dataset(source, out, "fd-fast", markets=markets, greeks=False)
    for number, line in enumerate(made.parts):  # under markets neighbours share grids
        part = pd.read_parquet(source / f"part.{number}.parquet")
        expected = price_frame(part, "fd-fast", markets=markets, greeks=False)
        found = pd.read_parquet(out / line.file)
        pd.testing.assert_frame_equal(found, expected.astype({"engine": "str"}))
    moved = {name: market.replaced(borrow=0.05) for name, market in markets.items()}
    with pytest.raises(DatasetError, match="other markets"):
        price_dataset(source, out, "fd-fast", markets=moved, greeks=False)
    assert made.request.markets == sha256_of(out / MARKETS)


def test_implied_volatilities_of_parts_are_those_of_the_book(book: Path, tmp_path: Path) -> None:
    price_dataset(book, tmp_path / "priced", "fd-fast", greeks=False)
    quotes = pd.read_parquet(tmp_path / "priced").drop(columns=["engine", "sigma"]).iloc[:50]
    source = write_parts(quotes, tmp_path / "quotes", 2)
    implied_vol_dataset(source, tmp_path / "vols", engine="quantlib-fast")
    expected = implied_vol_frame(quotes, engine="quantlib-fast")
    found = pd.read_parquet(tmp_path / "vols")
    pd.testing.assert_frame_equal(found, expected.astype({"engine": "str", "error": "str"}))


def test_surfaces_of_parts_are_those_of_the_book(book: Path, tmp_path: Path) -> None:
    made = surface_dataset(book, tmp_path / "out", "fd-fast", spot=3, time=[0.0, 0.5])
    assert {line.rows for line in made.parts} == {6 * ROWS}
    expected = surface_frame(BOOK, "fd-fast", spot=3, time=[0.0, 0.5])
    assert isinstance(expected, pd.DataFrame)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out"), expected)


def test_ladder_of_parts_adds_up_to_that_of_the_book(tmp_path: Path) -> None:
    markets, listed = sample_markets(), sample_listed_book().assign(exercise="european")
    order = np.argsort(listed["underlying"].to_numpy())[::-1]  # the last market comes first
    source = write_parts(listed.iloc[order], tmp_path / "book", 3)
    found = ladder_dataset(source, tmp_path / "out", "analytic", markets)
    expected = ladder_frame(listed, "analytic", markets)
    named = ["underlying", "kind", "time"]
    pd.testing.assert_frame_equal(found[named], expected[named])
    # The same differences of prices are added in another order, over the step, of at least a
    # cent. No price is above the spot; a thousand operations behind it, an ulp each.
    most = max(market.spot for market in markets.values())
    allowed = 2 * len(listed) * 1e3 * np.finfo(float).eps * most / 0.01
    assert np.abs(found["sensitivity"] - expected["sensitivity"]).max() < allowed


def test_exposure_of_parts_adds_up_to_that_of_the_book(book: Path, tmp_path: Path) -> None:
    price_dataset(book, tmp_path / "priced", "fd-fast")
    found = exposure_dataset(tmp_path / "priced", tmp_path / "exposed")
    expected = exposure(price_frame(BOOK, "fd-fast"))
    assert found.index.equals(expected.index)
    assert (found["options"] == expected["options"]).all()
    priced = price_frame(BOOK, "fd-fast")
    most = (priced[["price", "delta", "gamma", "vega", "theta", "rho"]].abs().max() * 120**2).max()
    # The same terms, none above that, are added in another order: an ulp of the sum for each.
    allowed = len(BOOK) ** 2 * np.finfo(float).eps * most
    assert (found - expected).abs().to_numpy().max() < allowed

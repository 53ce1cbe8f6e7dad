"""The option frame: names, validation, and what a bad row is told."""

import string
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing import OptionFrameError, price_frame
from pricing.columns import ALIASES, error_texts, find_columns, good_rows
from pricing.reading import read_options

GOOD = {
    "spot": 100.0,
    "strike": 95.0,
    "expiry": 0.5,
    "rate": 0.03,
    "dividend_yield": 0.01,
    "volatility": 0.2,
    "option_type": "put",
    "exercise": "european",
}


def book(n: int = 4, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({**{name: [value] * n for name, value in GOOD.items()}, **columns})


@pytest.mark.parametrize(
    ("name", "alias"), [(name, alias) for name, aliases in ALIASES.items() for alias in aliases]
)
def test_alias_is_understood_in_any_case(name: str, alias: str) -> None:
    column = [True] * 4 if alias == "is_call" else [GOOD[name]] * 4
    frame = book().drop(columns=name).assign(**{alias.upper().replace("_", " "): column})
    options, problems = read_options(frame)
    assert problems == []
    assert len(options) == 4


def test_aliases_name_one_column_each() -> None:
    names = [alias for aliases in ALIASES.values() for alias in aliases] + list(ALIASES)
    assert len(names) == len(set(names))


def test_mapping_overrides_names_and_aliases() -> None:
    frame = book().assign(Px_Last=50.0)
    options, _ = read_options(frame, {"spot": "Px_Last"})
    assert options.spot.tolist() == [50.0] * 4


def test_own_name_wins_over_an_alias() -> None:
    options, problems = read_options(book().assign(iv=-1.0))
    assert problems == []
    assert options.volatility.tolist() == [0.2] * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="rate"), "missing column rate"),
        (lambda f: f.drop(columns="spot").assign(S=1.0, s0=1.0), "spot stands in 2 columns"),
        (lambda f: pd.concat([f, f[["spot"]]], axis=1), "spot stands in 2 columns"),
    ],
)
def test_whole_frame_faults_are_named(change: Any, message: str) -> None:
    with pytest.raises(OptionFrameError, match=message):
        read_options(change(book()))


@pytest.mark.parametrize(
    ("columns", "message"), [({"spt": "a"}, "unknown names"), ({"spot": "a"}, "no such column")]
)
def test_bad_mapping_is_refused(columns: dict[str, str], message: str) -> None:
    with pytest.raises(OptionFrameError, match=message):
        find_columns(book().columns, columns)


def test_a_list_is_no_frame() -> None:
    with pytest.raises(OptionFrameError, match="expected a pandas DataFrame, got list"):
        read_options([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("spot", np.nan, "spot is missing"),
        ("spot", np.inf, "spot is infinite"),
        ("spot", 0.0, "spot must be > 0"),
        ("strike", -1.0, "strike must be > 0"),
        ("volatility", 0.0, "volatility must be > 0"),
        ("expiry", -0.1, "expiry must be >= 0"),
        ("expiry", 1e6, r"expiry must be in \[0, 200\]"),
        ("rate", 50.0, r"rate must be in \[-10, 10\]"),
        ("spot", "abc", "spot is not a number"),
        ("spot", None, "spot is missing"),
        ("spot", True, "spot is not a number"),
        ("option_type", "straddle", "option_type must be call or put, not 'straddle'"),
        ("option_type", None, "option_type is missing"),
        ("exercise", "bermudan", "exercise must be american or european, not 'bermudan'"),
        ("option_type", [1], "option_type must be call or put"),
    ],
)
def test_bad_cell_is_reported_with_its_row(column: str, value: object, reason: str) -> None:
    frame = book()
    cells = [GOOD[column]] * 4
    cells[2] = value  # type: ignore[call-overload]
    frame[column] = pd.Series(cells, dtype=object)
    with pytest.raises(OptionFrameError, match=reason) as caught:
        price_frame(frame)
    assert [problem.rows.tolist() for problem in caught.value.problems] == [[2]]
    assert "1 of 4 rows" in str(caught.value)
    priced = price_frame(frame, errors="coerce")
    assert priced["price"].isna().tolist() == [False, False, True, False]
    assert pd.Series(priced["error"]).str.contains(reason).tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("expiry", pd.to_datetime(["2027-01-01"] * 4)),
        ("spot", [True] * 4),
        ("spot", [1 + 1j] * 4),
        ("rate", pd.to_timedelta([1] * 4)),
    ],
)
def test_wrong_dtype_is_named(column: str, values: Any) -> None:
    with pytest.raises(OptionFrameError, match=f"{column} must be a number, not"):
        read_options_or_raise(book().assign(**{column: values}))


def read_options_or_raise(frame: pd.DataFrame) -> None:
    _, problems = read_options(frame)
    raise OptionFrameError.from_problems(problems, frame.index)


def test_error_lists_labels_counts_and_ten_rows_at_most() -> None:
    frame = book(30).set_axis([f"id{i}" for i in range(30)])
    frame.loc[frame.index[5:25], "volatility"] = -1.0
    with pytest.raises(OptionFrameError) as caught:
        price_frame(frame)
    text = str(caught.value)
    assert "20 of 30 rows: volatility must be > 0: rows id5, id6" in text
    assert "id14, …" in text
    assert "id15" not in text


def test_numeric_text_from_a_csv_is_read() -> None:
    options, problems = read_options(book().assign(spot=["100", " 1e2 ", "x", "100.0"]))
    assert options.spot[[0, 1, 3]].tolist() == [100.0] * 3
    assert [problem.rows.tolist() for problem in problems] == [[2]]


def test_one_row_with_two_faults_gets_both_reasons() -> None:
    frame = book(1).assign(spot=-1.0, rate=np.nan)
    _, problems = read_options(frame)
    assert error_texts(1, problems)[0] == "spot must be > 0; rate is missing (NaN)"
    assert good_rows(1, problems).tolist() == [False]


def test_nullable_and_arrow_dtypes_are_read() -> None:
    frame = book().astype({"spot": "Float64", "strike": "Int64", "option_type": "category"})
    frame.loc[1, "spot"] = pd.NA
    options, problems = read_options(frame)
    assert [problem.reason for problem in problems] == ["spot is missing (NaN)"]
    assert options.strike.tolist() == [95.0] * 4


_CELLS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(0.01, 10),
    st.integers(-(10**400), 10**400),
    st.sampled_from(["call", "PUT", "c", "P", "american", "European", "", "1.5", "nan"]),
    st.text(string.printable, max_size=5),
    st.none(),
    st.booleans(),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.just([]),
    st.decimals(allow_nan=False),  # pandas itself fails to compare decimal NaNs
)
_NAMES = st.sampled_from([*ALIASES, "S", "K", "T", "iv", "is_call", "junk", "price"])


@st.composite
def _frames(draw: Any) -> pd.DataFrame:
    n = draw(st.integers(0, 5))
    frame = book(n).astype(object)
    for name in draw(st.lists(_NAMES, max_size=6)):
        cells = draw(st.lists(_CELLS, min_size=n, max_size=n))
        frame[name] = pd.Series(cells, index=frame.index, dtype=object)
    if draw(st.booleans()):
        frame = frame.infer_objects()
    dropped = draw(st.lists(st.sampled_from(list(frame.columns)), max_size=2, unique=True))
    labels = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return frame.drop(columns=dropped).set_axis(labels, axis=0)


@pytest.mark.filterwarnings("ignore::pricing.columns.AssumptionWarning")
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_frames())
def test_no_frame_crashes_validation_and_no_good_row_is_lost(frame: pd.DataFrame) -> None:
    before = frame.copy()
    try:
        priced = price_frame(frame, "analytic", errors="coerce")
    except OptionFrameError:
        return
    finally:
        pd.testing.assert_frame_equal(frame, before)
    assert priced.index.equals(frame.index)
    pd.testing.assert_frame_equal(priced[frame.columns], frame)
    good = priced["error"] == ""
    assert priced["price"].notna().tolist() == good.tolist()
    if good.any():
        again = price_frame(frame[good.to_numpy()], "analytic")
        assert np.array_equal(again["price"], priced.loc[good.to_numpy(), "price"])

"""What a book gains while time passes: prices of later books, dividends passed, options settled."""

import numpy as np
import pandas as pd
import pytest

from amo.errors import SettingsError
from pricing import Market, OptionFrameError, price_frame, profit_over_time
from pricing.bounds import intrinsic

MARKET = Market(
    spot=100.0,
    rate={0.5: 0.03, 2.0: 0.05},
    borrow=0.01,
    dividends=[(0.3, 2.0), (0.7, 0.0, 0.03)],
)
BOOK = pd.DataFrame(
    {
        "underlying": "ACME",
        "strike": [90.0, 100.0, 110.0, 95.0],
        "expiry": [0.2, 0.5, 1.0, 1.0],
        "volatility": [0.2, 0.25, 0.3, 0.35],
        "option_type": ["call", "put", "call", "put"],
        "exercise": ["american", "european", "american", "european"],
        "held": [10.0, -5.0, 7.0, 3.0],
    }
)


def over_time(book: pd.DataFrame = BOOK, **settings: object) -> pd.DataFrame:
    return profit_over_time(
        book, "fd", quantity="held", markets={"ACME": MARKET}, **settings  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(("time", "spot"), [(0.1, 100.0), (0.4, 98.0), (0.8, 98.0 * 0.97)])
def test_profit_is_the_price_of_what_the_book_will_be(time: float, spot: float) -> None:
    (row,) = over_time(times=[time]).itertuples()
    now = price_frame(BOOK, "fd", markets={"ACME": MARKET}, greeks=False)["price"]
    left = BOOK[BOOK["expiry"] > time]
    left = left.assign(expiry=left["expiry"] - time)
    then = {"ACME": MARKET.after(time, spot)}
    later = price_frame(left, "fd", markets=then, greeks=False, error_bars=True)
    gone = BOOK[BOOK["expiry"] <= time]
    at_end = np.where(gone["expiry"] < 0.3, 100.0, 98.0)
    paid = intrinsic(at_end, gone["strike"].to_numpy(), (gone["option_type"] == "call").to_numpy())
    # curves are cut at other moments, so grids differ: by no more than the error both state
    slack = 2.0 * float((later["price_error"] * left["held"].abs()).sum())
    assert row.value == pytest.approx(float(later["price"] @ left["held"]), abs=slack)
    assert row.settled == pytest.approx(float(paid @ gone["held"]), abs=1e-12)
    assert row.profit == pytest.approx(row.value + row.settled - float(now @ BOOK["held"]))


def test_moments_of_ex_dates_and_expiries_are_added() -> None:
    table = over_time(times=5)
    assert table["time"].is_monotonic_increasing
    for moment in (0.0, 0.2, 0.3, 0.5, 0.7, 1.0):
        assert moment in table["time"].to_numpy()
    assert table["profit"].iloc[0] == 0.0
    assert table["value"].iloc[-1] == 0.0
    assert table.attrs["left_out"] == 0


def test_a_european_option_passes_an_ex_date_without_a_jump() -> None:
    puts = BOOK[BOOK["exercise"] == "european"]
    table = over_time(puts, times=3).set_index("time")["profit"]
    now = price_frame(puts, "fd", markets={"ACME": MARKET}, error_bars=True)
    held = puts["held"].abs()
    for moment in (0.3, 0.7):  # the next moment is three seconds later
        after = table.index[table.index.get_loc(moment) + 1]
        # three seconds of decay, some times today's, and the error that two prices state
        decay = 10.0 * float((now["theta"].abs() * held).sum()) * (after - moment)
        slack = decay + 2.0 * float((now["price_error"] * held).sum())
        assert abs(table[after] - table[moment]) < slack


def test_an_american_call_that_is_kept_over_an_ex_date_loses() -> None:
    rich = BOOK.iloc[[2]].assign(strike=60.0, held=1.0)
    table = over_time(rich, times=3).set_index("time")
    after = table.index[table.index.get_loc(0.3) + 1]
    assert table["value"][0.3] == pytest.approx(40.0, rel=1e-14)  # it should be exercised now
    left = rich.assign(expiry=rich["expiry"] - after)
    then = {"ACME": MARKET.after(after, 98.0)}
    kept = price_frame(left, "fd", markets=then, error_bars=True).iloc[0]
    assert table["value"][after] == pytest.approx(kept["price"], abs=2.0 * kept["price_error"])
    assert kept["price"] < 40.0


def test_a_book_that_no_engine_takes_is_refused() -> None:
    calls = BOOK[BOOK["exercise"] == "american"]
    for settings in ({"out_of_domain": "raise"}, {"out_of_domain": "nan"}):
        with pytest.raises(OptionFrameError):
            profit_over_time(
                calls, "analytic", times=[0.1], markets={"ACME": MARKET}, **settings
            )  # fmt: skip


def test_rows_that_cannot_be_priced_are_left_out_and_nonsense_is_refused() -> None:
    bad = BOOK.assign(volatility=[0.2, np.nan, 0.3, 0.35])
    table = over_time(bad, times=[0.1])
    assert table.attrs["left_out"] == 1
    expected = over_time(BOOK.drop(index=1), times=[0.1])
    assert table["profit"].tolist() == pytest.approx(expected["profit"].tolist())
    for times in (1, [], [-0.1], [np.nan]):
        with pytest.raises(SettingsError, match="times="):
            over_time(times=times)
    with pytest.raises(OptionFrameError):
        over_time(BOOK.assign(volatility=np.nan))

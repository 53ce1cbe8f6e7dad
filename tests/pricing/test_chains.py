"""Chains in the layouts of vendors: small files in their documented form, and what is read."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from amo.errors import SettingsError
from pricing import OptionFrameError, read_chain
from pricing.chains.layouts import LAYOUTS

AS_OF = "2025-10-06 16:00"
# every file: a call and a put on AAPL, strike 255, 21 November 2025, 8.40/8.60 and 6.20/6.40
FOLDER = Path(__file__).parents[1] / "reference" / "chains"
VENDORS = [layout.name for layout in LAYOUTS if layout.name != "Deribit"]


def file_of(vendor: str) -> Path:
    return FOLDER / f"{vendor.lower().replace(' ', '_')}.csv"


@pytest.mark.parametrize("name", VENDORS)
def test_every_layout_is_read_to_the_same_quotes(name: str) -> None:
    chain = read_chain(file_of(name), as_of=AS_OF)
    assert chain.layout == name
    assert chain.dropped == {}
    quotes = chain.quotes.sort_values("option_type")
    assert quotes["option_type"].tolist() == ["call", "put"]
    assert quotes["strike"].tolist() == pytest.approx([255.0, 255.0])
    assert quotes["bid"].tolist() == pytest.approx([8.4, 6.2])
    assert quotes["ask"].tolist() == pytest.approx([8.6, 6.4])
    assert quotes["mid"].tolist() == pytest.approx([8.5, 6.3])
    assert quotes["expiry"].dt.strftime("%Y-%m-%d").tolist() == ["2025-11-21"] * 2
    assert set(quotes["underlying"].astype(str)) <= {"AAPL", "101594"}
    if "spot" in quotes:
        assert quotes["spot"].tolist() == pytest.approx([256.69] * 2)
    if "open_interest" in quotes:
        assert quotes["open_interest"].tolist() == [5400, 3100]
    if "implied_volatility" in quotes and name != "SpiderRock":
        assert quotes["implied_volatility"].tolist() == pytest.approx([0.27, 0.26])


@pytest.mark.parametrize("name", ["OpenBB", "Tradier", "Polygon", "ThetaData v3", "Alpaca"])
def test_the_moment_of_the_quotes_is_read(name: str) -> None:
    chain = read_chain(file_of(name))
    stamp = chain.quotes["quote_time"].max()
    assert stamp.tz_convert("UTC") >= pd.Timestamp("2025-10-06 19:59:00", tz="UTC")
    assert stamp.tz_convert("UTC") <= pd.Timestamp("2025-10-06 20:00:00", tz="UTC")
    assert any("as of" in text for text in chain.assumed)


def test_coins_become_currency_and_names_become_contracts() -> None:
    frame = pd.DataFrame(
        {
            "instrument_name": ["BTC-27DEC24-100000-C", "BTC-27DEC24-90000-P", "ETH-27DEC24-3d5-C"],
            "best_bid_price": [0.05, 0.02, 0.2],
            "best_ask_price": [0.052, 0.021, 0.21],
            "index_price": [96_000.0, 96_000.0, 4.0],
            "mark_iv": [60.0, 65.0, 70.0],
            "timestamp": [1_733_000_000_000] * 3,
        }
    )
    chain = read_chain(frame)
    assert chain.quotes["bid"].tolist() == pytest.approx([4_800.0, 1_920.0, 0.8])
    assert chain.quotes["strike"].tolist() == pytest.approx([100_000.0, 90_000.0, 3.5])
    assert chain.quotes["implied_volatility"].tolist() == pytest.approx([0.6, 0.65, 0.7])
    assert set(chain.quotes["exercise"]) == {"european"}
    with pytest.raises(OptionFrameError, match="index_price"):
        read_chain(frame.drop(columns="index_price"))


def test_what_cannot_be_used_is_left_out_and_counted() -> None:
    row = {"underlying": "X", "expiry": "2025-11-21", "strike": 100.0, "option_type": "call",
           "bid": 5.0, "ask": 5.2, "spot": 100.0, "quote_time": "2025-10-06 15:59"}  # fmt: skip
    changes = [
        {},
        {"bid": 0.0},
        {"bid": 6.0},
        {"ask": 25.0},
        {"strike": 80.0},
        {"expiry": "2025-09-19"},
        {"option_type": "straddle"},
        {"strike": "abc"},
        {"quote_time": "2025-10-06 12:00"},
    ]
    frame = pd.DataFrame([{**row, **change} for change in changes])
    chain = read_chain(frame, as_of=AS_OF, max_age=30.0)
    assert len(chain.quotes) == 1
    assert chain.quotes.index.tolist() == [0]
    assert chain.dropped == {
        "unreadable": 2,
        "expired": 1,
        "no bid": 1,
        "crossed": 1,
        "too wide": 1,
        "below intrinsic": 1,
        "stale": 1,
    }
    assert sum(chain.dropped.values()) + len(chain.quotes) == len(frame)


def test_unknown_and_poor_layouts_are_refused_with_what_they_lack() -> None:
    with pytest.raises(OptionFrameError, match="plain layout: expiry, strike"):
        read_chain(pd.DataFrame({"a": [1], "b": [2]}), as_of=AS_OF)
    poor = pd.DataFrame({"expiry": ["2025-11-21"], "strike": [1.0], "option_type": ["c"]})
    with pytest.raises(OptionFrameError, match="also needs bid, ask"):
        read_chain(poor, as_of=AS_OF)
    whole = poor.assign(bid=1.0, ask=1.1)
    with pytest.raises(SettingsError, match="as_of"):
        read_chain(whole)
    with pytest.raises(OptionFrameError, match="no rows"):
        read_chain(whole.head(0), as_of=AS_OF)
    named = read_chain(whole, as_of=AS_OF)
    assert any("underlying=" in text for text in named.assumed)
    assert read_chain(whole, as_of=AS_OF, underlying="X", spot=1.0).quotes["spot"].tolist() == [1.0]


def test_reading_changes_nothing_in_the_frame_it_was_given() -> None:
    frame = pd.DataFrame(
        {"expiry": ["2025-11-21"], "strike": [100], "option_type": ["P"], "bid": [1], "ask": [2]}
    )
    before = frame.copy()
    read_chain(frame, as_of=AS_OF)
    pd.testing.assert_frame_equal(frame, before)
    assert np.isfinite(frame["bid"]).all()

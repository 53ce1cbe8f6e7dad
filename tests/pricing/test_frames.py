"""Books in, books out."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from amo.errors import SettingsError
from pricing import OptionFrameError, black_scholes, compare_frame, implied_vol_frame, price_frame
from pricing.engines.analytic import AnalyticEngine
from pricing.engines.base import FIVE_GREEKS, MORE_GREEKS
from pricing.options import Options

COLUMNS = ["spot", "strike", "expiry", "rate", "dividend_yield", "volatility", "option_type"]


def book(n: int = 6, exercise: str = "european", seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "trade": [f"T{i}" for i in range(n)],
            "spot": rng.uniform(80, 120, n),
            "strike": 100.0,
            "expiry": rng.uniform(0.1, 2, n),
            "rate": 0.05,
            "dividend_yield": 0.02,
            "volatility": rng.uniform(0.15, 0.5, n),
            "option_type": rng.choice(["call", "put"], n),
            "exercise": exercise,
        }
    )


def test_frame_keeps_index_order_and_extra_columns_and_input() -> None:
    frame = book().set_index(pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]]))
    before = frame.copy()
    priced = price_frame(frame, "analytic")
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(priced[frame.columns], frame)
    assert list(priced.columns) == [*frame.columns, "price", *FIVE_GREEKS, "engine"]
    expected = black_scholes.price(
        *(frame[c].to_numpy() for c in COLUMNS[:6]),  # type: ignore[call-arg]
        (frame["option_type"] == "call").to_numpy(),
    )
    assert np.array_equal(priced["price"], expected)
    assert (priced["engine"] == "analytic").all()


def test_duplicate_index_is_kept() -> None:
    priced = price_frame(book().set_axis([0, 0, 1, 1, 1, 2]), "analytic")
    assert priced.index.tolist() == [0, 0, 1, 1, 1, 2]


@pytest.mark.parametrize("errors", ["raise", "coerce"])
def test_empty_frame_gives_an_empty_answer_with_all_columns(errors: Any) -> None:
    for engine in ("analytic", "fd", "quantlib"):
        priced = price_frame(book().head(0), engine, greeks="second", errors=errors)
        assert len(priced) == 0
        assert {"price", *FIVE_GREEKS, *MORE_GREEKS, "engine"} <= set(priced.columns)
    assert len(implied_vol_frame(book().head(0).assign(price=1.0), errors=errors)) == 0


def test_greeks_asked_for_are_the_greeks_given() -> None:
    assert "delta" not in price_frame(book(), "analytic", greeks=False)
    assert "charm" in price_frame(book(), "analytic", greeks="second")
    some = price_frame(book(), "analytic", greeks=["vanna", "delta"])
    assert list(some.columns[-4:]) == ["price", "vanna", "delta", "engine"]
    with pytest.raises(ValueError, match=r"got \['speed'\]"):
        price_frame(book(), "analytic", greeks=["speed"])


def test_market_units_are_per_day_and_per_cent() -> None:
    natural = price_frame(book(), "analytic", greeks="second")
    market = price_frame(book(), "analytic", greeks="second", units="market")
    factors = {"theta": 365, "charm": 365, "vega": 100, "rho": 100, "dividend_rho": 100}
    for name in ("price", *FIVE_GREEKS, *MORE_GREEKS):
        factor = {**factors, "vanna": 100, "volga": 1e4}.get(name, 1)
        assert np.allclose(market[name] * factor, natural[name], rtol=1e-13)


def test_american_row_with_analytic_names_the_engines_that_can() -> None:
    frame = book()
    frame.loc[3, "exercise"] = "american"
    with pytest.raises(OptionFrameError, match=r'1 of 6 rows.*engine="fd" or engine="quantlib"'):
        price_frame(frame, "analytic")
    coerced = price_frame(frame, "analytic", errors="coerce")
    assert coerced["price"].isna().tolist() == [False, False, False, True, False, False]
    assert coerced["engine"].isna().tolist() == [False, False, False, True, False, False]


def test_existing_result_columns_are_not_overwritten() -> None:
    with pytest.raises(OptionFrameError, match=r"already has price.*drop\(columns="):
        price_frame(book().assign(price=1.0), "analytic")


@pytest.mark.parametrize("option", [{"errors": "ignore"}, {"units": "bp"}, {"engine": "magic"}])
def test_wrong_option_is_refused(option: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"takes|unknown"):
        price_frame(book(), **option)  # type: ignore[arg-type]


def test_error_bars_are_fd_s_own_estimate() -> None:
    priced = price_frame(book(exercise="american"), "fd", error_bars=True)
    assert (priced["price_error"] < 1e-2).all()
    assert (priced["price_error"] > 0).all()
    with pytest.raises(ValueError, match="states no error"):
        price_frame(book(), "quantlib", error_bars=True)
    assert (price_frame(book(), "analytic", error_bars=True)["price_error"] == 0.0).all()


def test_progress_hook_sees_every_row() -> None:
    seen: list[tuple[int, int]] = []
    price_frame(book(40), "fd-fast", greeks=False, progress=lambda a, b: seen.append((a, b)))
    assert seen[-1] == (40, 40)


def test_double_boundary_is_refused_with_a_way_out() -> None:
    frame = book(2, "american").assign(rate=-0.01, dividend_yield=-0.02, option_type="put")
    with pytest.raises(OptionFrameError, match='use engine="quantlib-fd"'):
        price_frame(frame, "fd")


def test_mixed_book_agrees_between_engines() -> None:
    frame = book(60)
    frame.loc[::2, "exercise"] = "american"
    frame.loc[5, "expiry"] = 0.0
    a, b = price_frame(frame, "fd"), price_frame(frame, "quantlib")
    assert np.abs(a["price"] - b["price"]).max() < 1e-3
    assert np.abs(a["delta"] - b["delta"]).max() < 1e-3


@pytest.mark.parametrize("exercise", ["european", "american"])
@pytest.mark.parametrize("engine", ["fd", "fd-fast", "quantlib", "quantlib-fast"])
def test_implied_volatility_returns_the_volatility(exercise: str, engine: str) -> None:
    frame = book(30, exercise, seed=3)
    priced = price_frame(frame, engine, greeks=["vega"])
    found = implied_vol_frame(priced.drop(columns=["volatility", "engine", "vega"]), engine=engine)
    has_vega = priced["vega"] > 1.0
    error = (found["implied_volatility"] - frame["volatility"]).abs()[has_vega]
    european_by_a_coarse_grid = engine == "fd-fast" and exercise == "european"
    assert error.max() < (1e-2 if european_by_a_coarse_grid else 1e-6)
    assert has_vega.sum() > 20


def test_quote_without_volatility_gets_its_reason() -> None:
    frame = book(7, "american").assign(
        spot=100.0, strike=100.0, expiry=1.0, option_type="put", price=8.0
    )
    frame.loc[1, "price"] = -1.0
    frame.loc[2, "price"] = 150.0
    frame.loc[3, "price"] = np.nan
    frame.loc[4, "expiry"] = 0.0
    frame.loc[5, "exercise"] = "european"
    frame.loc[6, ["spot", "price"]] = [50.0, 50.0]
    found = implied_vol_frame(frame.drop(columns="volatility"))
    assert found["implied_volatility"].notna().tolist() == [True, *[False] * 4, True, False]
    reasons = found["error"].tolist()
    assert reasons[0] == reasons[5] == ""
    for row, text in {
        1: "below its no-arbitrage bound",
        2: "upper no-arbitrage bound",
        3: "price is missing",
        4: "at expiry",
        6: "no time value",
    }.items():
        assert text in reasons[row]


def test_engine_that_errs_downwards_still_inverts_quotes() -> None:
    # A call without dividends is its European: the bound on its volatility is attained.
    frame = book(5, "american").assign(
        spot=[80.0, 95.0, 100.0, 110.0, 130.0],
        expiry=1.0,
        dividend_yield=0.0,
        volatility=0.2,
        option_type="call",
    )
    exact = price_frame(frame.assign(exercise="european"), "analytic", greeks=False)
    quotes = frame.drop(columns="volatility").assign(price=exact["price"])
    done: list[int] = []
    found = implied_vol_frame(quotes, engine="fd-fast", progress=lambda n, _: done.append(n))
    assert (found["implied_volatility"] - 0.2).abs().max() < 1e-3
    assert done[-1] == 5


def test_duplicate_quotes_column_is_refused() -> None:
    quotes = book(3).assign(price=5.0)
    with pytest.raises(OptionFrameError, match="2 columns 'price'"):
        implied_vol_frame(pd.concat([quotes, quotes[["price"]]], axis=1))


def test_implied_volatility_needs_the_quotes_column() -> None:
    with pytest.raises(OptionFrameError, match="pass price_column="):
        implied_vol_frame(book(), "mid")


def test_bad_rows_of_a_chain_follow_errors() -> None:
    frame = book(3).assign(price=5.0)
    frame.loc[1, "spot"] = -1.0
    with pytest.raises(OptionFrameError, match="spot must be > 0"):
        implied_vol_frame(frame)
    assert "spot must be > 0" in implied_vol_frame(frame, errors="coerce").loc[1, "error"]


def test_compare_measures_errors_times_and_regions() -> None:
    frame = book(30, "american")
    found = compare_frame(frame, engines=["quantlib", "fd", "analytic"])
    assert found.reference == "quantlib"
    assert found.summary.loc["quantlib", "price_rmse"] == 0.0
    assert 0 < found.summary.loc["fd", "price_max"] < 1e-2
    assert found.summary.loc["analytic", "priced"] == 0
    assert np.isnan(found.summary.loc["analytic", "price_rmse"])
    assert (found.summary.loc[["quantlib", "fd"], "microseconds"] > 0).all()
    by_region = found.regions[found.regions["engine"] == "fd"]
    assert by_region["options"].sum() == 30
    assert by_region["price_max"].max() == found.summary.loc["fd", "price_max"]
    direct = 100 * (found.rows["price_fd"] - found.rows["price_quantlib"])
    assert (
        found.summary.loc["fd", "iv_points_max"]
        >= (direct / found.rows["vega_quantlib"])[found.rows["vega_quantlib"] > 0.1].abs().max()
        - 1e-12
    )


def test_compare_refuses_an_unknown_reference() -> None:
    with pytest.raises(ValueError, match="not among the engines"):
        compare_frame(book(), ["fd"], reference="quantlib")
    with pytest.raises(ValueError, match="named once each"):
        compare_frame(book(), ["fd", "fd"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"greeks": 5}, "greeks= takes True"),
        ({"greeks": ("delta", "speed")}, "speed"),
        ({"engine": None}, "engine= takes a name"),
        ({"engine": 7}, "engine= takes a name"),
        ({"workers": "a"}, "workers= takes a number"),
        ({"workers": 0}, "workers= takes a number"),
        ({"workers": True}, "workers= takes a number"),
        ({"units": "metric"}, "units= takes"),
    ],
)
def test_nonsense_arguments_are_refused_by_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        price_frame(book(), **{"engine": "analytic", **changes})


def test_a_ticker_column_called_underlying_is_not_spot() -> None:
    frame = book().rename(columns={"spot": "S"}).assign(underlying="ALFA")
    assert price_frame(frame, "analytic")["price"].notna().all()


def test_compare_does_not_count_the_first_row_of_either_style(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a clock that stands still but for the half second an engine needs to load a style."""
    honest, met, clock = AnalyticEngine.evaluate, set[bool](), [0.0]

    def evaluate(self: AnalyticEngine, options: Options, *rest: Any, **named: Any) -> Any:
        new = set(options.is_american.tolist()) - met
        met.update(new)
        clock[0] += 0.5 * len(new)
        return honest(self, options, *rest, **named)

    monkeypatch.setattr(AnalyticEngine, "evaluate", evaluate)
    monkeypatch.setattr(AnalyticEngine, "refusals", lambda *_: [])
    monkeypatch.setattr("pricing.analysis.comparison.time.perf_counter", lambda: clock[0])
    frame = pd.concat([book(3, "european"), book(3, "american")], ignore_index=True)
    assert compare_frame(frame, [AnalyticEngine()]).summary.loc["analytic", "microseconds"] == 0.0
    met.clear()
    cold = compare_frame(frame, [AnalyticEngine()], warm_up=False)
    assert cold.summary.loc["analytic", "microseconds"] == pytest.approx(1e6 / 6)

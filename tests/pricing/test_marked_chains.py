"""From a chain to marks: what a known market and surface put in comes out again."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from amo.errors import SettingsError
from pricing import (
    Market,
    OptionFrameError,
    Options,
    VolSurface,
    chain_commands,
    evaluate,
    fit_market,
    get_engine,
    implied_marks,
    mark_chain,
    price_frame,
    read_chain,
    read_markets,
)
from pricing.__main__ import main
from pricing.analysis.examples import sample_quotes
from pricing.chains import fitting
from pricing.chains.conventions import years_to_expiry
from pricing.engines.base import Engine
from pricing.implied_vol import Inverted, implied_volatility
from pricing.markets import clock
from pricing.vol_surfaces.essvi import ESSVI
from pricing.vol_surfaces.surface import METHODS

AS_OF = "2025-10-06"
DATES = ("2025-10-17", "2025-11-21", "2026-01-16", "2026-06-18", "2027-01-15")
DIVIDENDS = [("2025-11-10", 0.26), ("2026-02-09", 0.26), ("2026-05-11", 0.27), ("2026-08-10", 0.27),
             ("2026-11-09", 0.27)]  # fmt: skip
MARKET = Market(
    spot=256.69,
    rate=0.04,
    borrow={"2026-01-16": 0.004, "2027-01-15": 0.008},
    dividends=DIVIDENDS,
    as_of=AS_OF,
)
YEARS = np.array([MARKET.years_to(date) for date in DATES])
TRUTH = VolSurface(
    MARKET,
    "essvi",
    YEARS,
    ESSVI(YEARS, 0.075 * YEARS, np.full(len(YEARS), -0.35), 0.8 * np.sqrt(0.075 * YEARS)),
)


def made_up(
    exercise: str = "american", *, noise: float = 0.0, seed: int = 0, market: Market = MARKET
) -> pd.DataFrame:
    """Quotes priced by our own grid under a known market and surface."""
    rows = []
    for date, years in zip(DATES, YEARS, strict=True):
        step = 5.0 if years < 0.5 else 10.0
        reach = 0.27 * np.sqrt(years) * market.spot
        middle = step * round(market.forward(float(years)) / step)
        for strike in middle + step * np.arange(-int(2 * reach / step), int(2 * reach / step) + 1):
            rows += [(date, years, strike, kind) for kind in ("call", "put")]
    table = pd.DataFrame(rows, columns=["expiry", "years", "strike", "option_type"])
    volatility = TRUTH.vol(table["strike"], table["years"])
    options = Options.under(
        market,
        strike=table["strike"],
        expiry=table["years"],
        is_call=table["option_type"] == "call",
        is_american=exercise == "american",
        volatility=volatility,
    )
    engine = "fd" if exercise == "american" else "analytic"
    price = evaluate(get_engine(engine), options, ("price",))[0]["price"]
    spread = np.maximum(0.02, 0.01 * price)
    mid = price + noise * spread * np.random.default_rng(seed).uniform(-0.5, 0.5, len(price))
    return table.drop(columns="years").assign(
        underlying="AAPL", exercise=exercise, bid=mid - spread / 2, ask=mid + spread / 2,
        truth=volatility,
    )  # fmt: skip


@pytest.fixture(scope="module")
def exact() -> pd.DataFrame:
    return made_up()


def test_a_known_market_comes_back_from_american_quotes(exact: pd.DataFrame) -> None:
    chain = read_chain(exact, as_of=AS_OF)
    fit = fit_market(chain, rate=0.04, dividends=DIVIDENDS)
    true = np.array([MARKET.forward(years) for years in YEARS.tolist()])
    assert fit.table["forward"].to_numpy() == pytest.approx(true, rel=1e-4)
    assert np.abs(fit.table["borrow"] - MARKET.borrow.zero_rate(YEARS)).max() < 5e-4
    assert fit.market.spot == pytest.approx(MARKET.spot, rel=1e-4)
    assert (fit.table["gap"] < 5e-4).all()
    assert any("spot" in text for text in fit.assumed)
    marks = implied_marks(chain, fit.market)
    off = (marks["mid_vol"] - exact.loc[marks.index, "truth"]).abs()
    assert 100.0 * off[marks["is_out"]].max() < 0.05
    assert (marks["status"].isin(["vol", "interval"])).all()
    assert (marks["european_price"] <= marks["mid"] + 1e-3)[marks["status"] == "vol"].all()


def test_noise_of_half_a_spread_stays_within_three_standard_errors(exact: pd.DataFrame) -> None:
    spread = exact["ask"] - exact["bid"]
    true = np.array([MARKET.forward(years) for years in YEARS.tolist()])
    sizes = []
    for seed in (3, 4, 5):  # with 1, all nine differences of an expiry happen to be positive
        shift = spread * np.random.default_rng(seed).uniform(-0.5, 0.5, len(exact))
        noisy = exact.assign(bid=exact["bid"] + shift, ask=exact["ask"] + shift)
        fit = fit_market(read_chain(noisy, as_of=AS_OF), rate=0.04, dividends=DIVIDENDS)
        off = (fit.table["forward"] - true) / fit.table["forward_error"]
        assert off.abs().max() < 3.0
        sizes.append(off)
        borrow = fit.table["borrow"] - MARKET.borrow.zero_rate(YEARS)
        # the spot is fitted too: its error is that of the first forward
        slack = fit.table["borrow_error"] + fit.table["forward_error"][0] / MARKET.spot / YEARS
        assert (borrow.abs() < 3.0 * slack).all()
    assert 0.4 < np.sqrt(np.mean(np.square(sizes))) < 1.6  # they are standard errors


def test_european_quotes_tell_the_rate_too() -> None:
    quotes = made_up("european")
    chain = read_chain(quotes, as_of=AS_OF, spot=MARKET.spot)
    fit = fit_market(chain, dividends=DIVIDENDS)
    true = np.array([MARKET.forward(years) for years in YEARS.tolist()])
    assert fit.table["forward"].to_numpy() == pytest.approx(true, rel=1e-5)
    assert fit.table["rate"].to_numpy() == pytest.approx(0.04, abs=2e-4)
    assert fit.market.spot == MARKET.spot


def test_an_outlier_does_not_move_a_forward(exact: pd.DataFrame) -> None:
    bad = exact.copy()
    at = (bad["expiry"] == DATES[2]) & (bad["option_type"] == "call") & (bad["strike"] == 260.0)
    assert at.sum() == 1
    bad.loc[at, ["bid", "ask"]] += 5.0
    fit = fit_market(read_chain(bad, as_of=AS_OF), rate=0.04, dividends=DIVIDENDS)
    true = MARKET.forward(float(YEARS[2]))
    assert abs(fit.table["forward"][2] - true) < 3.0 * fit.table["forward_error"][2]


def test_what_cannot_be_fitted_is_refused_with_a_way_out(exact: pd.DataFrame) -> None:
    chain = read_chain(exact, as_of=AS_OF)
    with pytest.raises(SettingsError, match="say rate="):
        fit_market(chain)
    calls = read_chain(exact[exact["option_type"] == "call"], as_of=AS_OF)
    with pytest.raises(OptionFrameError, match="both a call and a put"):
        fit_market(calls, rate=0.04)
    two = pd.concat([exact, exact.assign(underlying="MINE")], ignore_index=True)
    with pytest.raises(OptionFrameError, match=r"take one by chain.of\('AAPL'\)"):
        fit_market(read_chain(two, as_of=AS_OF), rate=0.04)
    assert set(read_chain(two, as_of=AS_OF).of("MINE").quotes["underlying"]) == {"MINE"}
    with pytest.raises(SettingsError, match="has AAPL, MINE"):
        read_chain(two, as_of=AS_OF).of("IBM")


def test_an_expiry_whose_quotes_have_no_volatility_keeps_a_forward(
    exact: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_at_first(engine: Engine, options: Options, *args: Any, **kw: Any) -> Inverted:
        found = implied_volatility(engine, options, *args, **kw)
        return found._replace(
            volatility=np.where(options.expiry < YEARS[1], np.nan, found.volatility)
        )

    monkeypatch.setattr(fitting, "implied_volatility", none_at_first)
    fit = fit_market(read_chain(exact, as_of=AS_OF), rate=0.04, dividends=DIVIDENDS)
    true = np.array([MARKET.forward(years) for years in YEARS.tolist()])
    assert fit.table["forward"].to_numpy() == pytest.approx(true, rel=1e-3)
    assert np.isnan(fit.table["gap"][0])


def test_calls_that_are_puts_are_refused_by_their_expiry(exact: pd.DataFrame) -> None:
    strikes = np.arange(60.0, 110.0, 10.0)
    calls = pd.DataFrame({"strike": strikes, "option_type": "call", "bid": 0.04, "ask": 0.06})
    puts = calls.assign(option_type="put", bid=256.0 - strikes, ask=256.1 - strikes)
    swapped = pd.concat([calls, puts]).assign(
        underlying="AAPL", exercise="american", expiry="2025-12-19"
    )
    both = pd.concat([exact, swapped], ignore_index=True)
    with pytest.raises(OptionFrameError, match="2025-12-19 imply a forward below zero"):
        fit_market(read_chain(both, as_of=AS_OF), rate=0.04, dividends=DIVIDENDS)


def test_quotes_that_were_left_out_still_get_an_interval(exact: pd.DataFrame) -> None:
    wide = exact.copy()
    row = wide[(wide["expiry"] == DATES[1]) & (wide["strike"] == 240.0)].index[1]  # a put
    wide.loc[row, "bid"] = 0.0
    chain = read_chain(wide, as_of=AS_OF)
    assert chain.dropped == {"no bid": 1}
    marks = implied_marks(chain, MARKET)
    mark = marks.loc[row]
    assert mark["reason"] == "no bid"
    assert mark["bid_vol"] == 0.0
    assert mark["ask_vol"] == pytest.approx(wide.loc[row, "truth"], abs=0.01)
    assert not mark["is_liquid"]


def test_a_surface_through_a_chain_lies_in_its_spreads(exact: pd.DataFrame) -> None:
    chain = read_chain(exact, as_of=AS_OF)
    marked = mark_chain(chain, rate=0.04, dividends=DIVIDENDS)
    found = marked.summary()
    assert found["inverted"] == 1.0
    assert found["inside"] > 0.99
    assert marked.violations.empty
    liquid = marked.marks[marked.marks["is_liquid"]]
    off = liquid["model_vol"] - exact.loc[liquid.index, "truth"]
    assert 100.0 * off.abs().max() < 0.05


def test_index_options_are_european_and_monthlies_end_at_the_open() -> None:
    seen = clock.moment(AS_OF, "as_of")
    names = pd.Series(["SPX", "SPXW", "SPX", "AAPL"])
    days = pd.to_datetime(pd.Series(["2025-10-17", "2025-10-17", "2025-10-24", "2025-10-17"]))
    years = years_to_expiry(names, days, seen, "plain")
    early = 6.5 / (24 * 365)
    assert years[1] - years[0] == pytest.approx(early)
    assert years[3] == years[1]
    assert years[2] == pytest.approx(18 / 365)
    coin = years_to_expiry(names[:1], days[:1], seen, "Deribit")
    assert years[1] - coin[0] == pytest.approx(12 / (24 * 365))  # 16:00 in New York is 20:00 UTC


def test_one_line_takes_a_yahoo_file_to_marks_market_surface_and_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_quotes().to_csv(tmp_path / "aapl.csv", index=False)
    out = tmp_path / "aapl"
    command = ["chain", str(tmp_path / "aapl.csv"), "--as-of", AS_OF, "--rate", "0.04"]
    assert main([*command, "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "no arbitrage" in said
    assert sorted(path.name for path in out.iterdir()) == [
        "market.json", "marks.parquet", "report.html", "surface.json"
    ]  # fmt: skip
    marks = pd.read_parquet(out / "marks.parquet")
    assert marks["status"].isin(["vol", "interval"]).mean() > 0.97
    assert marks["inside"][marks["is_liquid"]].mean() > 0.75
    market = read_markets(out / "market.json")["AAPL"]
    surface = VolSurface.load(out / "surface.json")
    assert surface.market == market
    report = (out / "report.html").read_text(encoding="utf-8")
    assert "Market by expiry" in report
    assert "http://" not in report.split("</style>")[1].split("<script")[0]
    book = marks[marks["is_liquid"]].head(5)[["underlying", "strike", "expiry", "option_type"]]
    book = book.assign(exercise="american", volatility=marks["mid_vol"])
    priced = price_frame(book, "fd-fast", markets={"AAPL": market})
    assert priced["price"].to_numpy() == pytest.approx(marks["mid"][book.index], abs=2e-3)


def test_the_command_offers_every_method() -> None:
    assert chain_commands._METHODS == METHODS  # named there without loading the methods


def test_the_command_refuses_in_its_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "aapl.csv"
    sample_quotes().to_csv(path, index=False)
    assert main(["chain", str(path), "--as-of", AS_OF, "-o", str(tmp_path / "o")]) == 2
    assert "--rate" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
    assert main(["chain", str(path), "--rate", "0.04", "-o", str(tmp_path / "o")]) == 2
    assert "--as-of" in capsys.readouterr().err
    for flag, bad in (("--rate", "x"), ("--dividends", "tomorrow")):
        with pytest.raises(SystemExit, match="2"):
            main(["chain", str(path), "-o", "o", flag, bad])
        assert flag in capsys.readouterr().err

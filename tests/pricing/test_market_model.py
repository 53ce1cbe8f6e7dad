"""The shipped market model: its Greeks, its stated errors, its ladder, and which rows it takes."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from amo.arrays import BoolArray, FloatArray
from pricing import (
    Market,
    ladder_frame,
    price_frame,
    sample_listed_book,
    sample_markets,
)
from pricing.analysis import fuzz
from pricing.analysis.ladder import _by_differences, _rungs
from pricing.analysis.market_assessment import stored_examples
from pricing.engines.registry import get_engine
from pricing.engines.surrogate import SurrogateEngine
from pricing.options import Options
from pricing.random_schedules import random_schedules
from pricing.surrogate.market_coding import code, terms_of
from pricing.surrogate.market_errors import LATTICE, place_of
from pricing.surrogate.market_model import MarketSurrogate

GREEKS = ("delta", "gamma", "vega", "theta", "rho", "dividend_rho", "vanna", "volga", "charm")


@pytest.fixture(scope="module")
def model() -> MarketSurrogate:
    engine = get_engine("amo")
    assert isinstance(engine, SurrogateEngine)
    assert engine.market is not None
    return engine.market


@pytest.fixture(scope="module")
def options(model: MarketSurrogate) -> Options:
    return random_schedules(model.domain, 240, np.random.default_rng(11), n_contracts=6)


def held_rows(model: MarketSurrogate, options: Options) -> Options:
    """Return options well away from exercise, where prices are smooth."""
    price = model.evaluate(options, ("price",))["price"]
    sign = np.where(options.is_call, 1.0, -1.0)
    is_held = price - np.maximum(sign * (options.spot - options.strike), 0.0) > 0.3
    return options.take(np.flatnonzero(is_held & (options.expiry > 0.1)))


def is_on_floor(model: MarketSurrogate, options: Options) -> BoolArray:
    """Return where a price is the best plan's in closed form: delta jumps where that begins."""
    floor = code(terms_of(options, np.arange(len(options))[:, None])).floor[:, 0].numpy()
    price = model.evaluate(options, ("price",))["price"]
    return np.asarray(price <= options.strike * floor * (1.0 + 1e-12))


def test_greeks_are_derivatives_of_the_prices(model: MarketSurrogate, options: Options) -> None:
    """Differences of float32 answers leave 1e-5 of a price over the step, and the bend of it."""
    some = held_rows(model, options)
    found = model.evaluate(some, GREEKS)

    def price(moved: Options) -> FloatArray:
        return model.evaluate(moved, ("price",))["price"]

    def difference(place: Callable[[float], Options], h: float) -> FloatArray:
        return (price(place(h)) - price(place(-h))) / (2.0 * h)

    slices = some.market_slices
    deltas = difference(lambda h: some.with_values(spot=some.spot + h), 0.1)
    np.testing.assert_allclose(deltas, found["delta"], atol=2e-3)
    vegas = difference(lambda h: some.with_values(volatility=some.volatility + h), 2e-3)
    np.testing.assert_allclose(vegas, found["vega"], atol=0.2)
    rhos = difference(lambda h: some.with_slices(slices.shifted(rate=h)), 2e-4)
    np.testing.assert_allclose(rhos, found["rho"], atol=1.0)
    higher, lower = (some.with_values(spot=some.spot + k) for k in (0.1, -0.1))
    up, down = (model.evaluate(moved, ("delta",))["delta"] for moved in (higher, lower))
    is_smooth = is_on_floor(model, higher) == is_on_floor(model, lower)
    assert is_smooth.mean() > 0.9
    gammas = (up - down)[is_smooth] / 0.2
    np.testing.assert_allclose(gammas, found["gamma"][is_smooth], atol=1e-3)


def test_a_row_does_not_depend_on_its_company(model: MarketSurrogate, options: Options) -> None:
    names = ("price", "delta", "rho", "vega")
    together = model.evaluate(options, names)
    for row in range(0, len(options), 40):
        alone = model.evaluate(options.take(np.array([row])), names)
        for name in names:
            assert alone[name][0] == pytest.approx(together[name][row], abs=2e-3), name


def test_stated_errors_hold_under_markets() -> None:
    results = fuzz.run_markets(1_200, seed=7, workers=1)
    rows = list(results["regions"].values())
    outside = sum((1.0 - row["covered"]) * row["rows"] for row in rows)
    allowed = 0.02 * 1_200  # 99 and 98 of 100 are promised; the draw itself has a spread
    assert outside <= allowed
    assert sum(sum(row["bounds_broken"].values()) for row in rows) == 0
    assert sum(row["not_finite_and_not_flagged"] for row in rows) == 0


def test_stated_errors_tell_apart_what_exercise_earns(options: Options) -> None:
    place = place_of(options)
    is_call = options.is_call
    np.testing.assert_array_equal(place.earned[~is_call], options.rate[~is_call])
    np.testing.assert_array_equal(place.earned[is_call], options.dividend_yield[is_call])
    little, much = (
        LATTICE.numbers(place._replace(earned=np.full(len(options), earned)))
        for earned in (1e-4, 0.05)
    )
    assert (little[-1] == 0).all()
    assert (much[-1] > 0).all()


def test_the_engine_takes_what_it_knows_and_names_who_took_the_rest() -> None:
    markets = sample_markets()
    found = price_frame(sample_listed_book(), "amo", markets=markets, error_bars=True)
    assert set(found["engine"]) <= {"amo", "fd-fast"}
    assert (found["engine"] == "amo").mean() > 0.5
    ours = found[found["engine"] == "amo"]
    truth = price_frame(sample_listed_book(), "fd", markets=markets).loc[ours.index]
    assert (np.abs(ours["price"] - truth["price"]) <= ours["price_error"]).mean() >= 0.97
    assert found.loc[found["engine"] != "amo", "price_error"].isna().all()
    european = sample_listed_book().assign(exercise="european")
    assert set(price_frame(european, "amo", markets=markets)["engine"]) == {"analytic"}
    odd = {name: m.replaced(dividends=[(0.1, 0.0, 0.02)]) for name, m in markets.items()}
    assert "amo" not in set(price_frame(sample_listed_book(), "amo", markets=odd)["engine"])


def test_a_plain_market_is_the_flat_model() -> None:
    book = sample_listed_book().drop(columns=["underlying"]).assign(expiry=0.7).head(8)
    flat = book.assign(spot=100.0, strike=book["strike"] / 2.0, rate=0.04, dividend_yield=0.01)
    market = {"X": Market(spot=100.0, rate=0.04, borrow=0.01)}
    under = flat.drop(columns=["rate", "dividend_yield"]).assign(underlying="X")
    found = price_frame(under, "amo", markets=market)
    wanted = price_frame(flat, "amo")
    np.testing.assert_allclose(found["price"], wanted["price"], rtol=0, atol=1e-9)


def test_implied_vols_come_back(model: MarketSurrogate, options: Options) -> None:
    some = held_rows(model, options)
    # a price that no volatility moves has none
    some = some.take(np.flatnonzero(model.evaluate(some, ("vega",))["vega"] > 1e-3))
    assert len(some) > 100
    price = model.evaluate(some, ("price",))["price"]
    found, is_lost = model.implied_volatility(some, price)
    assert not is_lost.any()
    again = model.evaluate(some.with_values(volatility=found), ("price",))["price"]
    # a last secant of 3e-4 of volatility misses by its square times half of volga
    np.testing.assert_allclose(again, price, atol=1e-3)


def test_a_ladder_by_slopes_is_the_ladder_by_differences() -> None:
    markets = sample_markets()
    name = next(iter(markets))
    book = sample_listed_book()
    book = book[book["underlying"] == name]
    priced = price_frame(book, "amo", markets=markets)
    book = book[(priced["engine"] == "amo").to_numpy()]
    mine = {name: markets[name]}
    ladder = ladder_frame(book, "amo", mine, quantity="quantity")

    def price(markets: Mapping[str, Market]) -> pd.DataFrame:
        return price_frame(book, "amo", greeks=False, markets=markets, progress=False)

    slow = _by_differences(name, markets[name], price, book["quantity"].to_numpy(dtype=np.float64))
    assert len(ladder) == len(list(_rungs(markets[name])))
    np.testing.assert_allclose(ladder["sensitivity"], slow, atol=0.02 * np.abs(slow).max())
    same = ladder_frame(book, "amo", mine, quantity="quantity", workers=2)
    np.testing.assert_allclose(ladder["sensitivity"], same["sensitivity"], rtol=1e-9, atol=1e-12)


def test_a_later_dividend_than_expiry_moves_nothing() -> None:
    market = Market(spot=100.0, rate=0.05, dividends=[(0.2, 1.0), (0.45, 1.0), (1.5, 1.0)])
    book = (
        sample_listed_book()
        .head(2)
        .assign(underlying="X", expiry=[0.5, 1.0], strike=[95.0, 105.0], option_type="put")
    )
    ladder = ladder_frame(book, "amo", {"X": market})
    paid = ladder[ladder["kind"] == "dividend"]["sensitivity"].to_numpy()
    assert (paid[:2] > 0).all()
    assert paid[2] == 0.0


def test_boundaries_of_puts_are_those_of_the_grid(model: MarketSurrogate) -> None:
    some = random_schedules(model.domain, 60, np.random.default_rng(5), n_contracts=4)
    some = some.take(np.flatnonzero(~some.is_call & (some.expiry > 0.3) & (some.rate > 0.03)))
    found = model.exercise_boundary(some)
    truth = get_engine("fd").exercise_boundary(some)  # type: ignore[attr-defined]
    known = np.isfinite(found) & np.isfinite(truth)
    assert known.sum() >= 3
    assert np.median(np.abs(found / truth - 1.0)[known]) < 0.02


def test_stored_contracts_are_priced_again(model: MarketSurrogate) -> None:
    """On any processor: float32 sums in another order move a price of 100 by less than 1e-3."""
    stored, options = model.metrics["examples"], stored_examples(model.metrics)
    found = model.evaluate(options, ("price", "delta", "vega"))
    np.testing.assert_allclose(found["price"], stored["price"], rtol=0, atol=1e-3)
    np.testing.assert_allclose(found["delta"], stored["delta"], rtol=0, atol=2e-3)
    np.testing.assert_allclose(found["vega"], stored["vega"], rtol=0, atol=0.05)


def test_cash_and_spot_scale_together(model: MarketSurrogate, options: Options) -> None:
    slices = options.market_slices
    twice = options.with_values(spot=2.0 * options.spot, strike=2.0 * options.strike)
    twice = twice.with_slices(replace(slices, cash=2.0 * slices.cash))
    one, two = (model.evaluate(some, ("price", "delta")) for some in (options, twice))
    np.testing.assert_allclose(two["price"], 2.0 * one["price"], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(two["delta"], one["delta"], atol=1e-4)

"""QuantLib: exact expiries, a frozen date, threads and processes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import QuantLib as ql

from pricing import black_scholes
from pricing.contracts import Options
from pricing.engines import QUANTITIES
from pricing.quantlib_engine import QuantLibEngine


def test_fractional_expiry_is_exact(
    random_options: Callable[..., Options], assert_close: Callable[..., None]
) -> None:
    options = random_options(100, seed=30, expiry=(0.001, 3.0))
    found, _ = QuantLibEngine().evaluate(options, QUANTITIES)
    truth = black_scholes.evaluate(*options.terms)
    for name in QUANTITIES:
        bumped = name in ("vanna", "volga", "charm")
        scale = 1e-5 * (1 + np.abs(truth[name])) if bumped else 1e-10
        assert_close(found[name], truth[name], options, scale, name)


def test_evaluation_date_is_not_moved(random_options: Callable[..., Options]) -> None:
    before = ql.Settings.instance().evaluationDate
    QuantLibEngine().evaluate(random_options(3, seed=31, is_american=True), ("price",))
    assert ql.Settings.instance().evaluationDate == before


def test_processes_and_threads_give_the_same_numbers(
    random_options: Callable[..., Options],
) -> None:
    options = random_options(1200, seed=32, is_american=True)
    engine = QuantLibEngine("fast")
    serial, _ = engine.evaluate(options, ("price",))
    done: list[int] = []
    pooled, _ = engine.evaluate(options, ("price",), workers=2, progress=done.append)
    assert np.array_equal(serial["price"], pooled["price"])
    assert sum(done) == 1200
    parts = [options.take(slice(i, None, 4)) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(lambda o: engine.evaluate(o, ("price",))[0]["price"], parts))
    for i, part in enumerate(threaded):
        assert np.array_equal(part, serial["price"][i::4])


def test_failure_is_told_with_its_row() -> None:
    # QdFp's high-precision scheme finds no bracket for a strike of a billionth of spot.
    options = Options.of(
        spot=[100.0, 100.0],
        strike=[100.0, 1e-7],
        expiry=1.0,
        rate=0.05,
        dividend_yield=0.025,
        volatility=[0.2, 1e-8],
        is_call=True,
        is_american=True,
    )
    values, failures = QuantLibEngine("high-precision").evaluate(options, ("price",))
    assert list(failures) == [1]
    assert failures[1].startswith("QuantLib: ")
    assert np.isfinite(values["price"]).tolist() == [True, False]


@pytest.mark.parametrize("method", ["fast", "accurate"])
def test_stopped_american_has_stopped_greeks(method: str) -> None:
    options = Options.of(
        spot=60.0,
        strike=100.0,
        expiry=1.0,
        rate=0.08,
        dividend_yield=0.0,
        volatility=0.2,
        is_call=False,
        is_american=True,
    )
    values, _ = QuantLibEngine(method).evaluate(options, QUANTITIES)  # type: ignore[arg-type]
    assert values["price"][0] == pytest.approx(40.0, abs=5e-4)
    assert values["delta"][0] == -1.0
    assert [values[name][0] for name in ("gamma", "vega", "theta", "rho")] == [0.0] * 4


def test_own_grid_prices_two_boundaries() -> None:
    options = Options.of(
        spot=100.0,
        strike=100.0,
        expiry=1.0,
        rate=-0.01,
        dividend_yield=-0.02,
        volatility=0.2,
        is_call=False,
        is_american=True,
    )
    assert QuantLibEngine("accurate").refusals(options)[0][0].all()
    assert QuantLibEngine("fd").refusals(options) == []
    price = QuantLibEngine("fd").evaluate(options, ("price",))[0]["price"][0]
    european = black_scholes.price(100.0, 100.0, 1.0, -0.01, -0.02, 0.2, False)
    assert price >= european - 1e-2

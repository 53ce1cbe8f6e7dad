"""QuantLib: exact expiries, anybody's date, threads and processes."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import get_args

import numpy as np
import pytest
import QuantLib as ql

from pricing import black_scholes, processes
from pricing.engines.base import QUANTITIES
from pricing.engines.quantlib import Method, QuantLibEngine
from pricing.implied_vol import implied_volatility
from pricing.options import Options


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


DATES = [ql.Date(3, 1, 2000), ql.Date(29, 2, 2028), ql.Date(1, 7, 2199)]


@pytest.fixture
def clock() -> Iterator[ql.Settings]:
    """QuantLib's settings, put back to what they were."""
    settings = ql.Settings.instance()
    before = settings.evaluationDate
    yield settings
    settings.evaluationDate = before


@pytest.mark.parametrize("method", get_args(Method))
def test_prices_are_the_same_at_whatever_date_the_user_sets_and_never_move_it(
    method: Method, clock: ql.Settings, random_options: Callable[..., Options]
) -> None:
    few = 2 if method in ("fd", "high-precision") else 6
    books = [random_options(few, seed=31, is_american=american) for american in (False, True)]
    engine = QuantLibEngine(method)
    expected = [engine.evaluate(options, ("price", "theta"))[0] for options in books]
    for date in DATES:
        clock.evaluationDate = date
        for options, right in zip(books, expected, strict=True):
            found, failures = engine.evaluate(options, ("price", "theta"))
            assert failures == {}
            for name in right:
                assert np.array_equal(found[name], right[name]), date
        assert clock.evaluationDate == date


def test_dates_may_change_between_the_rows_of_other_threads(
    clock: ql.Settings, random_options: Callable[..., Options]
) -> None:
    options = random_options(400, seed=33, is_american=True)
    engine = QuantLibEngine("fast")
    expected = engine.evaluate(options, ("price",))[0]["price"]
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(engine.evaluate, options, ("price",)) for _ in range(4)]
        while not all(future.done() for future in waiting):
            for date in DATES:
                clock.evaluationDate = date
    for future in waiting:
        assert np.array_equal(future.result()[0]["price"], expected)


def test_on_quantlib_s_last_day_nothing_is_priced_and_every_row_says_why(
    clock: ql.Settings, random_options: Callable[..., Options]
) -> None:
    clock.evaluationDate = ql.Date.maxDate()
    values, failures = QuantLibEngine().evaluate(random_options(2, seed=1), ("price",))
    assert np.isnan(values["price"]).all()
    assert "set an earlier one" in failures[0]


def test_a_price_by_the_surrogate_alone_does_not_touch_quantlib() -> None:
    program = (
        "import sys, pandas as pd\n"
        "from pricing import price_frame\n"
        "row = {'S': 100., 'K': 100., 'T': 1., 'r': .03, 'q': .01, 'sigma': .2, 'type': 'put', "
        "'style': 'american'}\n"
        "price_frame(pd.DataFrame([row]), 'amo')\n"
        "assert 'QuantLib' not in sys.modules\n"
        "price_frame(pd.DataFrame([{**row, 'T': 9.}]), 'amo')\n"
        "assert 'QuantLib' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_processes_and_threads_give_the_same_numbers(
    random_options: Callable[..., Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_START", "_SEND"):
        monkeypatch.setattr(processes, name, 0.0)  # as if the book were large
    monkeypatch.setattr(processes, "_pool", None)
    options = random_options(1200, seed=32, is_american=True)
    engine = QuantLibEngine("fast")
    serial, _ = engine.evaluate(options, ("price",))
    done: list[int] = []
    pooled, _ = engine.evaluate(options, ("price",), workers=2, progress=done.append)
    assert np.array_equal(serial["price"], pooled["price"])
    assert sum(done) == 1200
    started = processes._pool
    assert started is not None
    assert started.workers == 2
    quotes = serial["price"][:700]
    inverted = implied_volatility(engine, options.take(slice(0, 700)), quotes, workers=2)
    alone = implied_volatility(engine, options.take(slice(0, 700)), quotes, workers=1)
    assert np.array_equal(inverted.volatility, alone.volatility, equal_nan=True)
    assert processes._pool is started, "one pool serves all iterations of a search"
    parts = [options.take(slice(i, None, 4)) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(lambda o: engine.evaluate(o, ("price",))[0]["price"], parts))
    for i, part in enumerate(threaded):
        assert np.array_equal(part, serial["price"][i::4])
    for process in list(started.executor._processes.values()):
        process.kill()
    with pytest.raises(BrokenProcessPool):
        engine.evaluate(options, ("price",), workers=2)
    again, _ = engine.evaluate(options, ("price",), workers=2)
    assert np.array_equal(serial["price"], again["price"]), "the next call starts others"
    assert processes._pool is not None
    processes._pool.executor.shutdown()


def test_no_process_is_started_for_work_that_is_shorter(
    random_options: Callable[..., Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_pool", None)
    options = random_options(1200, seed=32, is_american=True)
    QuantLibEngine("fast").evaluate(options, ("price",), workers=2)
    assert processes._pool is None


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

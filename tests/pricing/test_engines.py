"""One contract suite for all engines."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from amo.arrays import FloatArray
from amo.errors import SettingsError
from pricing import black_scholes, bounds
from pricing.engines import registry
from pricing.engines.analytic import AnalyticEngine
from pricing.engines.base import QUANTITIES, Engine, evaluate
from pricing.engines.registry import ENGINES, get_engine
from pricing.options import Options

# Each engine's own accuracy of a price, per unit strike.
ACCURACY = {
    "analytic": 1e-13,
    "amo": 2e-3,
    "fd": 1e-5,
    "fd-fast": 4e-4,
    "quantlib": 1e-6,
    "quantlib-fast": 3e-5,
    "quantlib-high-precision": 1e-7,
    "quantlib-fd": 6e-4,
}
SLOW = {"quantlib-fd", "quantlib-high-precision"}


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Engine:
    return get_engine(request.param)


def can_american(engine: Engine) -> bool:
    return engine.name != "analytic"


def price(engine: Engine, options: Options) -> FloatArray:
    values, failures = evaluate(engine, options, ("price",))
    assert failures == {}
    return values["price"]


def book(engine: Engine, draw: Callable[..., Options], seed: int) -> Options:
    n = 12 if engine.name in SLOW else 40
    return draw(n, seed, is_american=can_american(engine))


def tolerance(engine: Engine) -> float:
    return 100.0 * ACCURACY[engine.name]


def test_every_engine_states_its_accuracy() -> None:
    assert set(ACCURACY) == set(ENGINES)


def test_unknown_engine_names_the_known() -> None:
    with pytest.raises(ValueError, match="unknown engine 'binomial'; there are: amo, analytic, fd"):
        get_engine("binomial")


def test_an_engine_is_loaded_once_even_by_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []

    def load() -> Engine:
        loads.append("slow")
        time.sleep(0.05)
        return AnalyticEngine("slow")

    monkeypatch.setattr(registry, "ENGINES", {"slow": load})
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: get_engine("slow"), range(8)))
    monkeypatch.delitem(registry._loaded, "slow")
    assert loads == ["slow"]
    assert all(engine is found[0] for engine in found)


@pytest.mark.parametrize("nonsense", [None, 5, "", object()])
def test_what_is_no_engine_is_refused_by_name(nonsense: object) -> None:
    with pytest.raises(SettingsError, match="analytic"):
        get_engine(nonsense)  # type: ignore[arg-type]


def test_fallbacks_are_loaded_only_for_rows_that_need_them(
    random_options: Callable[..., Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_loaded", {})
    options = random_options(4, seed=1, is_american=True)
    assert registry.fallbacks(options, np.zeros(4, dtype=bool)) == []
    assert registry._loaded == {}
    (engine, mask), *others = registry.fallbacks(options, np.ones(4, dtype=bool))
    assert (engine.name, mask.all(), others) == ("quantlib", True, [])


def test_answer_has_the_asked_names_shape_and_dtype(
    engine: Engine, random_options: Callable[..., Options]
) -> None:
    for n in (0, 1, 3):
        options = random_options(n, seed=20, is_american=can_american(engine))
        values, failures = evaluate(engine, options, QUANTITIES)
        assert list(values) == list(QUANTITIES)
        assert failures == {}
        for value in values.values():
            assert value.shape == (n,)
            assert value.dtype == np.float64
            assert np.isfinite(value).all()


def test_european_agrees_with_the_closed_form(
    engine: Engine, random_options: Callable[..., Options], assert_close: Callable[..., None]
) -> None:
    options = random_options(30, seed=21)
    expected = black_scholes.price(*options.terms)
    assert_close(price(engine, options), expected, options, tolerance(engine))


def test_put_call_parity(engine: Engine, random_options: Callable[..., Options]) -> None:
    o = random_options(30, seed=22)
    call = price(engine, o.with_values(is_call=np.ones(30, bool)))
    put = price(engine, o.with_values(is_call=np.zeros(30, bool)))
    forward = o.spot * np.exp(-o.dividend_yield * o.expiry) - o.strike * np.exp(-o.rate * o.expiry)
    assert np.abs(call - put - forward).max() < 2 * tolerance(engine)


def test_homogeneous_in_spot_and_strike(
    engine: Engine, random_options: Callable[..., Options]
) -> None:
    options = book(engine, random_options, 23)
    scaled = options.with_values(spot=7.3 * options.spot, strike=7.3 * options.strike)
    a, b = price(engine, options), price(engine, scaled) / 7.3
    assert np.abs(a - b).max() < 1e-9 * 100


def test_call_put_symmetry(engine: Engine, random_options: Callable[..., Options]) -> None:
    options = book(engine, random_options, 24)
    mirrored = options.with_values(
        spot=options.strike,
        strike=options.spot,
        rate=options.dividend_yield,
        dividend_yield=options.rate,
        is_call=~options.is_call,
    )
    assert np.abs(price(engine, options) - price(engine, mirrored)).max() < 2 * tolerance(engine)


def test_monotone_and_convex_in_strike(engine: Engine) -> None:
    n = 15 if engine.name in SLOW else 41
    strikes = np.linspace(70, 130, n)
    for is_call in (True, False):
        ladder = Options.of(
            spot=100.0,
            strike=strikes,
            expiry=0.75,
            rate=0.05,
            dividend_yield=0.03,
            volatility=0.25,
            is_call=is_call,
            is_american=can_american(engine),
        )
        values = price(engine, ladder)
        step = np.diff(values) * (-1 if is_call else 1)
        assert step.min() > -tolerance(engine)
        assert np.diff(values, 2).min() > -4 * tolerance(engine)


def test_rises_with_volatility(engine: Engine) -> None:
    ladder = Options.of(
        spot=95.0,
        strike=100.0,
        expiry=1.0,
        rate=0.04,
        dividend_yield=0.02,
        volatility=np.linspace(0.1, 0.6, 8),
        is_call=True,
        is_american=can_american(engine),
    )
    assert np.diff(price(engine, ladder)).min() > 0


def test_inside_the_no_arbitrage_bounds(
    engine: Engine, random_options: Callable[..., Options]
) -> None:
    for is_american in {False, can_american(engine)}:
        options = random_options(30, seed=25, is_american=is_american)
        low, high = bounds.bounds(options)
        values = price(engine, options)
        assert (values >= low - tolerance(engine)).all()
        assert (values <= high + tolerance(engine)).all()


def test_american_is_worth_no_less_than_european(
    engine: Engine, random_options: Callable[..., Options]
) -> None:
    if not can_american(engine):
        refused = random_options(3, seed=1, is_american=True)
        (mask, reason), *_ = engine.refusals(refused)
        assert mask.all()
        assert 'engine="fd"' in reason
        return
    options = book(engine, random_options, 26)
    european = options.with_values(is_american=np.zeros(len(options), bool))
    assert (price(engine, options) >= price(engine, european) - tolerance(engine)).all()
    intrinsic = bounds.intrinsic(options.spot, options.strike, options.is_call)
    assert (price(engine, options) >= intrinsic - 1e-10).all()


@pytest.mark.parametrize("name", [name for name in ENGINES if name not in ("analytic", "amo")])
def test_never_exercised_american_is_a_european(name: str) -> None:
    engine = get_engine(name)
    options = Options.of(
        spot=[90.0, 110.0],
        strike=100.0,
        expiry=1.0,
        rate=[0.05, -0.01],
        dividend_yield=[0.0, 0.02],
        volatility=0.2,
        is_call=[True, False],
        is_american=True,
    )
    assert bounds.never_exercised_early(options.rate, options.dividend_yield, options.is_call).all()
    european = options.with_values(is_american=np.zeros(2, bool))
    assert np.allclose(price(engine, options), price(engine, european), atol=tolerance(engine))


@pytest.mark.parametrize("name", ["fd", "quantlib", "quantlib-fast"])
def test_rates_where_a_bump_would_open_a_second_boundary(name: str) -> None:
    options = Options.of(
        spot=100.0,
        strike=100.0,
        expiry=1.0,
        rate=[-0.01, -0.0101, -0.01],
        dividend_yield=[-0.01, -0.01, -0.01],
        volatility=0.2,
        is_call=[False, False, True],
        is_american=True,
    )
    values, failures = evaluate(get_engine(name), options, QUANTITIES)
    assert failures == {}
    european = black_scholes.evaluate(*options.terms)
    for quantity, tolerance in {"price": 0.03, "rho": 3.0, "dividend_rho": 3.0}.items():
        assert np.abs(values[quantity] - european[quantity]).max() < tolerance, quantity


@pytest.mark.parametrize("name", ["quantlib", "quantlib-fast"])
def test_option_that_is_never_exercised_is_never_called_stopped(name: str) -> None:
    options = Options.of(
        spot=200.0,
        strike=100.0,
        expiry=0.1 / 365,
        rate=1e-3,
        dividend_yield=0.0,
        volatility=0.1,
        is_call=True,
        is_american=True,
    )
    values, _ = evaluate(get_engine(name), options, ("rho",))
    assert values["rho"][0] == pytest.approx(10 / 365, rel=0.05)


def test_expired_options_are_intrinsic_with_limit_greeks(engine: Engine) -> None:
    options = Options.of(
        spot=[80.0, 120.0, 100.0],
        strike=100.0,
        expiry=[0.0, 0.0, 1.0],
        rate=0.05,
        dividend_yield=0.02,
        volatility=0.2,
        is_call=False,
        is_american=can_american(engine),
    )
    values, _ = evaluate(engine, options, QUANTITIES)
    assert values["price"][:2].tolist() == [20.0, 0.0]
    assert values["delta"][:2].tolist() == [-1.0, 0.0]
    assert values["gamma"][:2].tolist() == [0.0, 0.0]
    expected = 0.0 if can_american(engine) else 0.05 * 100 - 0.02 * 80
    assert values["theta"][0] == pytest.approx(expected)
    assert values["price"][2] > 5.0

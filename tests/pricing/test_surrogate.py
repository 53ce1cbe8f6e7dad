"""What holds for a surrogate with any weights: bounds, symmetry, derivatives, manners.

One long file on purpose: all tests share two small models, made once.
"""

import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from amo import checkpoint
from amo.checkpoint import Recipe
from amo.errors import CheckpointError
from amo.model_config import AMOConfig, DecoderKind
from pricing import OptionFrameError, black_scholes, bounds, implied_vol_frame, price_frame
from pricing.engines.base import QUANTITIES, evaluate
from pricing.engines.surrogate import SurrogateEngine
from pricing.options import Options
from pricing.surrogate import grouping
from pricing.surrogate.domain import Domain
from pricing.surrogate.encoding import AMERICAN, EUROPEAN, Coding
from pricing.surrogate.model import Surrogate
from pricing.surrogate.stated_error import FLOOR, Lattice, StatedError

SIZES = {"width": 16, "n_tokens": 8, "n_poles": 3, "n_blocks": 2, "n_heads": 2, "state_size": 4}


def write_model(
    folder: Path,
    coding: Coding,
    seed: int = 0,
    version: int | None = None,
    decoder: DecoderKind = "attending",
) -> None:
    config = AMOConfig(
        n_features=1,
        n_dimensions=1,
        n_query_dimensions=coding.n_queries,
        decoder=decoder,
        **SIZES,
    )
    recipe = Recipe(
        kind="amo",
        config=config,
        preset=coding.name,
        link=coding.link,  # type: ignore[arg-type]
        domain=Domain().as_dict(),
        notes={"data": {"set": coding.name, "settings": {"coding": version or coding.version}}},
    )
    torch.manual_seed(seed)
    operator = checkpoint.build(recipe)
    lattice = Lattice.of(Domain())
    bars = np.linspace(0.01, 0.02, math.prod(lattice.shape)).reshape(lattice.shape)
    metrics = {"stated_error": StatedError(lattice, bars).to_dict()}
    checkpoint.save(operator, recipe, metrics, folder / coding.name)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for coding in (EUROPEAN, AMERICAN):
        write_model(folder, coding)
    return folder


@pytest.fixture(scope="module")
def engine(models: Path) -> SurrogateEngine:
    return SurrogateEngine.load(models)


def book(n: int, seed: int = 0, n_states: int = 7) -> Options:
    """Return options of both styles and types, over a few states, inside the domain."""
    rng = np.random.default_rng(seed)
    state = rng.integers(n_states, size=n)
    return Options.of(
        spot=100 * np.exp(rng.uniform(-0.6, 0.6, n)),
        strike=100.0,
        expiry=rng.uniform(0.02, 2.5, n),
        rate=np.linspace(0.0, 0.1, n_states)[state],
        dividend_yield=np.linspace(0.08, 0.0, n_states)[state],
        volatility=rng.uniform(0.1, 0.9, n),
        is_call=rng.random(n) < 0.5,
        is_american=rng.random(n) < 0.5,
    )


def frame_of(options: Options) -> pd.DataFrame:
    numbers = ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility")
    return pd.DataFrame(
        {
            **{name: getattr(options, name) for name in numbers},
            "option_type": np.where(options.is_call, "call", "put"),
            "exercise": np.where(options.is_american, "american", "european"),
        }
    )


def in_double(surrogate: Surrogate) -> Surrogate:
    return replace(
        surrogate,
        operator=surrogate.operator.double(),
        differentiable=surrogate.differentiable.double(),
    )


def inside(options: Options, name: str, value: np.ndarray) -> np.ndarray:
    """Return which values are the model's own: random weights break bounds, and are moved there."""
    low, high = bounds.greek_bounds(options, name)
    slack = 1e-9 * (1.0 + np.abs(value))
    return (value > low + slack) & (value < high - slack)


@pytest.mark.parametrize("decoder", get_args(DecoderKind))
@pytest.mark.parametrize("coding", [EUROPEAN, AMERICAN], ids=lambda c: c.name)
def test_greeks_are_the_derivatives_of_the_price(
    tmp_path: Path, coding: Coding, decoder: DecoderKind
) -> None:
    write_model(tmp_path, coding, decoder=decoder)
    surrogate = in_double(Surrogate.load(tmp_path / coding.name))
    options = book(60, seed=3).with_values(is_american=np.full(60, coding.is_american))
    price = surrogate.evaluate(options, ("price",))["price"]
    time_value = price - bounds.intrinsic(options.spot, options.strike, options.is_call)
    options = options.take((time_value > 0.5) & (price < bounds.bounds(options)[1] - 0.5))
    assert len(options) > 20
    greeks = surrogate.evaluate(options, QUANTITIES)

    def moved(name: str, by: float, quantity: str = "price") -> np.ndarray:
        changed = options.with_values(**{name: getattr(options, name) + by})
        return surrogate.evaluate(changed, (quantity,))[quantity]

    def slope(name: str, h: float, quantity: str = "price") -> np.ndarray:
        return (moved(name, h, quantity) - moved(name, -h, quantity)) / (2 * h)

    at = {
        "delta": slope("spot", 1e-3),
        "gamma": slope("spot", 1e-3, "delta"),
        "vega": slope("volatility", 1e-5),
        "vanna": slope("volatility", 1e-5, "delta"),
        "volga": slope("volatility", 1e-5, "vega"),
        "charm": -slope("expiry", 1e-5, "delta"),
    }
    for name, expected in at.items():
        own = inside(options, name, greeks[name])
        of = {"gamma": "delta", "vanna": "delta", "volga": "vega", "charm": "delta"}.get(name, name)
        own &= inside(options, of, greeks[of])
        assert own.sum() > 10, name
        size = 1e-6 * np.abs(expected).max() + 1e-9
        assert np.abs(greeks[name] - expected)[own].max() < 100 * size, name
    inner = options.take((options.rate > 0.005) & (options.dividend_yield > 0.005))
    for name, greek in {"rate": "rho", "dividend_yield": "dividend_rho"}.items():
        up, down = (
            surrogate.evaluate(inner.with_values(**{name: getattr(inner, name) + by}), ("price",))[
                "price"
            ]
            for by in (1e-5, -1e-5)
        )
        found = surrogate.evaluate(inner, (greek,))[greek]
        own = inside(inner, greek, found)
        assert own.any()
        assert np.abs(found - (up - down) / 2e-5)[own].max() < 1e-4 * np.abs(found).max(), greek


@pytest.mark.parametrize("coding", [EUROPEAN, AMERICAN], ids=lambda c: c.name)
def test_theta_solves_the_equation(models: Path, coding: Coding) -> None:
    surrogate = Surrogate.load(models / coding.name)
    o = book(50).with_values(is_american=np.full(50, coding.is_american))
    v = surrogate.evaluate(o, ("price", "delta", "gamma", "theta"))
    residual = (
        v["theta"]
        + (o.rate - o.dividend_yield) * o.spot * v["delta"]
        + 0.5 * (o.volatility * o.spot) ** 2 * v["gamma"]
        - o.rate * v["price"]
    )
    is_solved = np.abs(residual) < 1e-9 * o.strike
    assert is_solved.all() if not coding.is_american else (is_solved | (v["theta"] == 0.0)).all()


def test_prices_keep_their_bounds_whatever_the_weights(engine: SurrogateEngine) -> None:
    options = book(4_000, seed=1, n_states=40)
    price = engine.evaluate(options, ("price",))[0]["price"]
    low, high = bounds.bounds(options.with_values(is_american=np.zeros(4_000, dtype=bool)))
    assert (price >= low - 1e-10).all()
    assert (price[~options.is_american] <= high[~options.is_american] + 1e-10).all()
    american = options.take(options.is_american)
    above = price[options.is_american]
    assert (above >= black_scholes.price(*american.terms) - 1e-10).all()
    assert (above >= bounds.intrinsic(american.spot, american.strike, american.is_call)).all()
    assert (above <= bounds.bounds(american)[1] + 1e-10).all()


def test_a_call_is_its_mirrored_put(engine: SurrogateEngine) -> None:
    call = book(200, seed=2).with_values(is_call=np.ones(200, dtype=bool))
    put = call.with_values(
        spot=call.strike,
        strike=call.spot,
        rate=call.dividend_yield,
        dividend_yield=call.rate,
        is_call=np.zeros(200, dtype=bool),
    )
    a, b = (engine.evaluate(o, ("price",))[0]["price"] for o in (call, put))
    assert np.allclose(a, b, rtol=0, atol=1e-4)


def test_exact_payoff_as_expiry_comes(engine: SurrogateEngine) -> None:
    options = book(200).with_values(expiry=np.full(200, 1e-12))
    price = engine.evaluate(options, ("price",))[0]["price"]
    payoff = bounds.intrinsic(options.spot, options.strike, options.is_call)
    assert np.abs(price - payoff).max() < 1e-3


def test_order_and_company_of_rows_do_not_matter(engine: SurrogateEngine) -> None:
    options = book(500, n_states=50)
    whole, _ = engine.evaluate(options, QUANTITIES)
    order = np.random.default_rng(0).permutation(500)
    shuffled, _ = engine.evaluate(options.take(order), QUANTITIES)
    single, _ = engine.evaluate(options.take(slice(7, 8)), QUANTITIES)
    for name in QUANTITIES:
        size = np.abs(whole[name]).max()
        assert np.allclose(shuffled[name], whole[name][order], rtol=0, atol=1e-4 * size)
        assert np.allclose(single[name], whole[name][7:8], rtol=0, atol=1e-4 * size)


def test_one_and_two_threads_give_the_same_numbers(engine: SurrogateEngine) -> None:
    options = book(3_000, n_states=5)
    before = torch.get_num_threads()
    found = []
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            found.append(engine.evaluate(options, ("price", "delta", "vega"))[0])
    finally:
        torch.set_num_threads(before)
    for name, values in found[0].items():
        assert np.abs(values - found[1][name]).max() < 1e-5 * 100, name


def test_sessions_may_share_an_engine(engine: SurrogateEngine) -> None:
    books = [book(300, seed=seed) for seed in range(8)]
    alone = [engine.evaluate(o, ("price", "gamma"))[0] for o in books]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda o: engine.evaluate(o, ("price", "gamma"))[0], books))
    for a, b in zip(alone, together, strict=True):
        assert np.allclose(a["price"], b["price"], atol=1e-6)
        assert np.allclose(a["gamma"], b["gamma"], atol=1e-6)


@given(st.lists(st.integers(0, 5), min_size=0, max_size=300), st.integers(1, 40))
def test_packs_hold_every_row_once(state: list[int], rows: int) -> None:
    before = grouping.ROWS
    grouping.ROWS = rows
    try:
        found = list(grouping.gather(np.array(state, dtype=float)))
    finally:
        grouping.ROWS = before
    held = np.concatenate([p.rows[p.is_row] for p in found]) if found else np.array([])
    assert sorted(held) == list(range(len(state)))
    for pack in found:
        assert pack.rows.size <= max(rows, len(pack.rows) * pack.lengths.max())
        for line in pack.rows:
            assert len({state[i] for i in line}) == 1


OUTSIDE = {
    "rate": {"rate": 0.2},
    "dividend_yield": {"dividend_yield": 0.2},
    "volatility": {"volatility": 2.0},
    "expiry": {"expiry": 5.0},
    "log_moneyness": {"spot": 1_000.0},
}


@pytest.mark.parametrize("coordinate", OUTSIDE)
@pytest.mark.parametrize("style", ["european", "american"])
def test_rows_out_of_domain_fall_back_or_say_so(
    engine: SurrogateEngine, coordinate: str, style: str
) -> None:
    frame = book(6).to_frame().assign(exercise=style, option_type="put")
    frame = frame.assign(rate=0.03, dividend_yield=0.01)
    for column, value in OUTSIDE[coordinate].items():
        frame.loc[2, column] = value
    other = "quantlib" if style == "american" else "analytic"
    priced = price_frame(frame, engine, greeks=False, error_bars=True)
    assert priced["in_domain"].tolist() == [True, True, False, True, True, True]
    assert priced["engine"].tolist() == ["amo", "amo", other, "amo", "amo", "amo"]
    expected = price_frame(frame.loc[[2]], other, greeks=False)["price"]
    assert priced.loc[2, "price"] == expected.iloc[0]
    stated = priced.loc[2, "price_error"]  # by the formula there is none; QuantLib says nothing
    assert np.isnan(stated) if style == "american" else stated == 0.0
    empty = price_frame(frame, engine, out_of_domain="nan")
    assert empty["price"].isna().tolist() == [False, False, True, False, False, False]
    assert empty["engine"].isna()[2]
    with pytest.raises(OptionFrameError, match=rf"{coordinate} of .* outside .*rows 2"):
        price_frame(frame, engine, out_of_domain="raise")
    coerced = price_frame(frame, engine, out_of_domain="raise", errors="coerce")
    assert coordinate in coerced.loc[2, "error"]


def test_negative_rates_and_expired_rows(engine: SurrogateEngine) -> None:
    frame = book(4).to_frame().assign(exercise="european")
    frame.loc[0, "rate"] = -0.01
    frame.loc[1, "expiry"] = 0.0
    priced = price_frame(frame, engine, greeks=True)
    assert priced["engine"].tolist() == ["analytic", "amo", "amo", "amo"]
    assert priced.loc[1, "price"] == pytest.approx(
        bounds.intrinsic(
            frame.loc[1, "spot"], frame.loc[1, "strike"], frame.loc[1, "option_type"] == "call"
        )
    )


def test_nan_rows_one_row_and_no_row(engine: SurrogateEngine) -> None:
    frame = book(5).to_frame()
    frame.loc[3, "volatility"] = np.nan
    with pytest.raises(OptionFrameError, match="rows 3"):
        price_frame(frame, engine)
    coerced = price_frame(frame, engine, errors="coerce")
    assert coerced["price"].isna().tolist() == [False, False, False, True, False]
    assert not coerced.loc[3, "in_domain"]
    assert len(price_frame(frame.head(1), engine)) == 1
    nothing = price_frame(frame.head(0), engine, error_bars=True)
    assert len(nothing) == 0
    assert {"price", "in_domain", "price_error"} <= set(nothing.columns)


def test_error_bars_are_those_of_the_cell_in_the_scale_of_the_output(
    engine: SurrogateEngine,
) -> None:
    frame = (
        book(1)
        .to_frame()
        .assign(
            spot=200.0 * math.exp(-1.45),
            strike=200.0,
            expiry=2.0**-10,
            volatility=0.05,
            rate=0.002,
            dividend_yield=0.002,
            option_type="put",
            exercise="american",
        )
    )
    priced = price_frame(frame, engine, error_bars=True)
    scale = -math.expm1(-0.002 * 2.0**-10)
    expected = 200.0 * (FLOOR + 0.01 * scale)  # the first cell's bar
    assert priced["price_error"].iloc[0] == pytest.approx(expected, rel=1e-9)


def test_the_first_thing_a_model_without_measured_errors_says_is_how_to_measure_them(
    tmp_path: Path,
) -> None:
    for coding in (EUROPEAN, AMERICAN):
        write_model(tmp_path, coding)
        operator, recipe = checkpoint.load(tmp_path / coding.name)
        checkpoint.save(operator, recipe, {}, tmp_path / coding.name)
    unmeasured = SurrogateEngine.load(tmp_path)
    assert len(price_frame(book(3).to_frame(), unmeasured)) == 3
    with pytest.raises(CheckpointError, match="pricing assess"):
        price_frame(book(3).to_frame(), unmeasured, error_bars=True)


def test_implied_volatility_comes_back(engine: SurrogateEngine) -> None:
    options = book(400, seed=8)
    quantities = ("price", "vega")
    values = engine.evaluate(options, quantities)[0]
    chosen = values["vega"] > 1.0  # a random model need not rise with volatility
    frame = options.to_frame().assign(price=values["price"])[chosen]
    found = implied_vol_frame(
        frame.drop(columns="volatility"), engine=engine, out_of_domain="nan", error_bars=True
    )
    known = found["implied_volatility"].notna()
    again = price_frame(
        frame[known].drop(columns="price").assign(volatility=found["implied_volatility"][known]),
        engine,
        greeks=False,
    )
    assert known.mean() > 0.9
    assert np.abs(again["price"] - frame["price"][known]).max() < 1e-2
    assert (found["engine"][known] == "amo").all()
    assert (found["implied_volatility_error"][known] > 0).all()
    assert found["implied_volatility_error"][~known].isna().all()
    with pytest.raises(ValueError, match="states no error"):
        implied_vol_frame(frame, engine="quantlib", error_bars=True)


def test_quotes_without_a_volatility_in_the_domain_fall_back(engine: SurrogateEngine) -> None:
    market = {"spot": 100.0, "strike": 100.0, "rate": 0.02, "dividend_yield": 0.02}
    calm = black_scholes.price(100.0, 100.0, 1.0, 0.02, 0.02, 0.01, True)
    frame = pd.DataFrame(
        [
            {**market, "expiry": 1.0, "option_type": "call", "price": float(calm)},
            {**market, "expiry": 9.0, "option_type": "call", "price": 30.0},
            {**market, "expiry": 1.0, "option_type": "call", "price": 200.0},
        ]
    ).assign(exercise="european")
    found = implied_vol_frame(frame, engine=engine)
    assert found.loc[0, "implied_volatility"] == pytest.approx(0.01)
    assert found["engine"].tolist()[:2] == ["analytic", "analytic"]
    assert "above its upper" in found.loc[2, "error"]
    empty = implied_vol_frame(frame, engine=engine, out_of_domain="nan")
    assert empty["implied_volatility"].isna().all()
    assert "domain" in empty.loc[0, "error"]


def test_model_folders_are_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="make models"):
        SurrogateEngine.load(tmp_path)
    for coding in (EUROPEAN, AMERICAN):
        write_model(tmp_path, coding)
    weights = tmp_path / "american" / checkpoint.WEIGHTS
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="truncated"):
        SurrogateEngine.load(tmp_path)
    weights.write_bytes(whole[:-4] + b"\0\1\2\3")
    with pytest.raises(CheckpointError, match="edited"):
        SurrogateEngine.load(tmp_path)
    weights.write_bytes(whole)
    config = tmp_path / "american" / checkpoint.CONFIG
    text = config.read_text(encoding="utf-8")
    content = json.loads(text)
    config.write_text(json.dumps({**content, "format": 99}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="format"):
        SurrogateEngine.load(tmp_path)
    content["domain"]["expiry"] = [0.0, 30.0]
    config.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(CheckpointError):
        SurrogateEngine.load(tmp_path)
    config.write_text(text, encoding="utf-8")
    metrics = tmp_path / "american" / checkpoint.METRICS
    metrics.write_text(json.dumps({"weights_sha256": "0"}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="other weights"):
        SurrogateEngine.load(tmp_path)
    write_model(tmp_path, AMERICAN)
    write_model(tmp_path, EUROPEAN, version=1)
    with pytest.raises(CheckpointError, match=r"in coding 1.*as this version reads them"):
        SurrogateEngine.load(tmp_path)
    write_model(tmp_path, EUROPEAN)
    (tmp_path / "european").rename(tmp_path / "other")
    (tmp_path / "american").rename(tmp_path / "european")
    (tmp_path / "other").rename(tmp_path / "american")
    with pytest.raises(CheckpointError, match="each other's place"):
        SurrogateEngine.load(tmp_path)


def test_no_row_outside_of_the_domain_is_extrapolated(engine: SurrogateEngine) -> None:
    options = book(3).with_values(volatility=np.array([0.2, 9.0, 0.3]))
    values, failures = evaluate(engine, options, ("price",))
    assert list(failures) == [1]
    assert np.isnan(values["price"]).tolist() == [False, True, False]


def test_progress_counts_every_row(
    engine: SurrogateEngine, random_options: Callable[..., Options]
) -> None:
    options = random_options(500, seed=1, is_american=True)
    done: list[int] = []
    price_frame(options.to_frame(), engine, progress=lambda n, _: done.append(n))
    assert done[-1] == 500

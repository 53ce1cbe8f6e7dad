"""Finite differences: declared orders, damping, the obstacle, the boundary, the error estimate."""

from collections.abc import Callable

import numpy as np
import pytest

from amo.arrays import FloatArray
from pricing import black_scholes, fd
from pricing.engines.registry import get_engine
from pricing.fd.grid import GridKind, build_grid, pack, unpack
from pricing.fd.schemes import (
    CRANK_NICOLSON,
    CRANK_NICOLSON_EVEN,
    CRANK_NICOLSON_UNDAMPED,
    SCHEMES,
    Scheme,
)
from pricing.fd.solver import extrapolate
from pricing.options import Options

GRIDS: tuple[GridKind, ...] = ("log", "sinh")


def exact(o: Options) -> dict[str, FloatArray]:
    return black_scholes.evaluate(*o.terms)


def rms_errors(
    o: Options, truth: dict[str, FloatArray], refinements: tuple[int, ...], **settings: object
) -> dict[str, FloatArray]:
    """RMS error of price, delta and gamma as the coarsest grid is refined."""
    names = ("price", "delta", "gamma")
    errors: dict[str, list[float]] = {name: [] for name in names}
    for n in refinements:
        found = fd.evaluate(o, names, fd.FDSettings(n_space=n, n_time=n // 2, **settings))  # type: ignore[arg-type]
        for name in names:
            errors[name].append(float(np.sqrt(np.mean((found[name] - truth[name]) ** 2))))
    return {name: np.array(values) for name, values in errors.items()}


def order(errors: FloatArray) -> float:
    """Slope of log error against log step over successive halvings."""
    return float(-np.polyfit(np.arange(len(errors)), np.log2(errors), 1)[0])


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: s.name)
def test_scheme_has_the_order_it_declares(
    scheme: Scheme, random_options: Callable[..., Options]
) -> None:
    options = random_options(48, seed=3, moneyness=0.3)
    errors = rms_errors(options, exact(options), (100, 200, 400), levels=1, scheme=scheme)
    assert order(errors["price"]) == pytest.approx(scheme.order, abs=0.1)


@pytest.mark.parametrize("grid", GRIDS)
def test_european_order_is_two_in_price_delta_and_gamma(
    grid: GridKind, random_options: Callable[..., Options]
) -> None:
    options = random_options(48, seed=4, moneyness=0.3)
    errors = rms_errors(options, exact(options), (100, 200, 400), levels=1, grid=grid)
    for name, error in errors.items():
        assert order(error) == pytest.approx(2.0, abs=0.1), name


@pytest.mark.parametrize("scheme", [CRANK_NICOLSON, CRANK_NICOLSON_EVEN], ids=lambda s: s.name)
def test_extrapolated_european_order_is_four(
    scheme: Scheme, random_options: Callable[..., Options]
) -> None:
    options = random_options(48, seed=5, moneyness=0.3)
    errors = rms_errors(options, exact(options), (60, 120, 240), levels=2, scheme=scheme)
    assert order(errors["price"]) >= 3.7
    assert scheme.extrapolated_order == 4


def test_american_order_is_two(random_options: Callable[..., Options]) -> None:
    options = random_options(64, seed=6, is_american=True)
    truth, _ = get_engine("quantlib-high-precision").evaluate(options, ("price",))
    truth |= {"delta": np.zeros(64), "gamma": np.zeros(64)}
    errors = rms_errors(options, truth, (100, 200, 400), levels=1)
    assert order(errors["price"]) >= 1.9


def test_american_agrees_with_qdfp_high_precision(random_options: Callable[..., Options]) -> None:
    options = random_options(200, seed=11, is_american=True)
    truth, _ = get_engine("quantlib-high-precision").evaluate(options, ("price",))
    error = fd.evaluate(options, ("price",))["price"] - truth["price"]
    assert np.sqrt(np.mean(error**2)) <= 2e-4
    assert np.abs(error).max() <= 2e-3


def test_gamma_degrades_without_rannacher_start() -> None:
    # Few time steps at the strike: Crank–Nicolson alone carries the kink along.
    spot = np.linspace(97, 103, 25)
    options = Options.of(
        spot=spot,
        strike=100.0,
        expiry=1.0,
        rate=0.05,
        dividend_yield=0.02,
        volatility=0.3,
        is_call=True,
    )
    truth = exact(options)
    errors = {}
    for scheme in (CRANK_NICOLSON_EVEN, CRANK_NICOLSON_UNDAMPED):
        settings = fd.FDSettings(n_space=800, n_time=20, levels=1, scheme=scheme, placement="node")
        found = fd.evaluate(options, ("price", "gamma"), settings)
        errors[scheme.n_damped] = {
            name: np.abs(found[name] - truth[name]).max() for name in ("price", "gamma")
        }
    assert errors[0]["gamma"] > 20 * errors[2]["gamma"]
    assert errors[0]["price"] < 0.2  # of 100: the price chart looks fine


def test_strike_between_nodes_or_averaged_beats_strike_on_a_node(
    random_options: Callable[..., Options],
) -> None:
    options = random_options(64, seed=8, moneyness=0.1)
    truth = exact(options)
    rms = {}
    for placement in ("node", "midpoint", "average"):
        settings = fd.FDSettings(levels=1, grid="log", placement=placement)  # type: ignore[arg-type]
        error = fd.evaluate(options, ("price",), settings)["price"] - truth["price"]
        rms[placement] = np.sqrt(np.mean(error**2))
    assert rms["midpoint"] < 0.5 * rms["node"]
    assert rms["average"] < 0.5 * rms["node"]


def test_every_greek_of_a_european_is_the_closed_form(
    random_options: Callable[..., Options], assert_close: Callable[..., None]
) -> None:
    options = random_options(100, seed=9)
    truth = exact(options)
    found = fd.evaluate(options, black_scholes.QUANTITIES)
    tolerance = {"gamma": 1e-7, "delta": 1e-6, "vanna": 1e-4, "volga": 1e-2, "charm": 1e-5}
    for name in black_scholes.QUANTITIES:
        assert_close(found[name], truth[name], options, tolerance.get(name, 1e-3), name)


def test_american_greeks_agree_with_bumped_qdfp(
    random_options: Callable[..., Options], assert_close: Callable[..., None]
) -> None:
    options = random_options(60, seed=10, is_american=True, moneyness=0.25)
    names = ("delta", "vega", "rho", "dividend_rho", "theta")
    truth, _ = get_engine("quantlib-high-precision").evaluate(options, names)
    found = fd.evaluate(options, (*names, "gamma"))
    smooth = found["gamma"] > 0  # held, not exercised
    tolerance = {"delta": 1e-3, "vega": 0.1, "rho": 0.3, "dividend_rho": 0.3, "theta": 0.05}
    for name in names:
        assert_close(
            found[name][smooth],
            truth[name][smooth],
            options.take(smooth),
            tolerance[name],
            name,
        )


def test_error_estimate_covers_most_errors(random_options: Callable[..., Options]) -> None:
    for is_american in (False, True):
        options = random_options(200, seed=12, is_american=is_american)
        found = fd.evaluate(options, ("price", "price_error"))
        engine = get_engine("quantlib-high-precision")
        truth, _ = engine.evaluate(options, ("price",))
        error = np.abs(found["price"] - truth["price"])
        assert np.mean(error <= found["price_error"] + 1e-6) >= 0.99
        assert np.median(found["price_error"]) < 1e-4


def test_extrapolate_is_exact_for_a_second_order_error() -> None:
    levels = [np.array([1.0 + 0.3 * h**2]) for h in (1.0, 0.5, 0.25)]
    value, error = extrapolate(levels)
    assert value == pytest.approx(1.0, abs=1e-15)
    assert error == pytest.approx(0.0, abs=1e-15)
    assert np.isnan(extrapolate(levels[:1])[1]).all()
    assert np.isnan(extrapolate(levels[:2])[1]).all()


def test_result_does_not_depend_on_workers_or_neighbours(
    random_options: Callable[..., Options],
) -> None:
    options = random_options(70, seed=16, is_american=True)
    names = ("price", "delta", "vega")
    one, two = (fd.evaluate(options, names, fd.FAST, workers=w) for w in (1, 2))
    alone = fd.evaluate(options.take(slice(33, 34)), names, fd.FAST)
    for name in names:
        assert np.array_equal(one[name], two[name])
        assert alone[name][0] == one[name][33]


def test_double_boundary_is_refused() -> None:
    options = Options.of(
        spot=100.0,
        strike=100.0,
        expiry=1.0,
        rate=[-0.01, -0.01, 0.02],
        dividend_yield=[-0.02, 0.0, 0.0],
        volatility=0.2,
        is_call=False,
        is_american=True,
    )
    (mask, reason), *_ = fd.refusals(options)
    assert mask.tolist() == [True, False, False]
    assert "two exercise boundaries" in reason
    for solve in (lambda: fd.evaluate(options, ("price",)), lambda: fd.solve_surface(options)):
        with pytest.raises(ValueError, match="1 of 3 options: fd does not price"):
            solve()


def test_expired_and_unresolved_options_are_refused() -> None:
    options = Options.of(
        spot=100.0,
        strike=100.0,
        expiry=[1.0, 0.0],
        rate=0.0,
        dividend_yield=0.0,
        volatility=[1e-12, 0.2],
        is_call=False,
    )
    with pytest.raises(ValueError, match="positive expiries"):
        fd.evaluate(options, ("price",))
    with pytest.raises(ValueError, match=r"in \[1e-06, 5\]"):
        fd.evaluate(options.take(slice(0, 1)), ("price",))


def test_settings_refuse_nonsense() -> None:
    with pytest.raises(ValueError, match="n_space >= 16"):
        fd.FDSettings(n_space=4)
    with pytest.raises(ValueError, match="midpoint"):
        fd.FDSettings(placement="midpoint", levels=2)


def test_grid_holds_strike_and_anchor_on_nodes() -> None:
    anchor = np.array([-0.2, 0.3, 0.25])
    deviation = np.full(3, 0.2)
    for kind in GRIDS:
        grid = build_grid(
            pack(np.minimum(anchor, 0) - 1.0),
            pack(np.maximum(anchor, 0) + 1.0),
            pack(deviation),
            pack(np.array([False, True, False])),
            anchor=pack(anchor),
            n_intervals=100,
            kind=kind,
        )
        nodes = np.log(unpack(grid.nodes(), 3))
        for row, x in zip(nodes, anchor, strict=True):
            assert np.abs(row).min() < 1e-14
            assert np.abs(row - x).min() < 1e-14
        refined = np.log(unpack(grid.nodes(2), 3))
        assert np.allclose(refined[:, ::2], nodes, atol=1e-14)

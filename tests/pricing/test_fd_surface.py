"""Whole surfaces and the exercise boundary."""

from collections.abc import Callable

import numpy as np
import pytest

from pricing import black_scholes, fd
from pricing.engines.registry import get_engine
from pricing.options import Options

AMERICAN_PUTS = Options.of(
    spot=100.0,
    strike=100.0,
    expiry=[0.5, 1.0, 2.0],
    rate=[0.05, 0.08, 0.03],
    dividend_yield=[0.0, 0.02, 0.01],
    volatility=[0.2, 0.3, 0.4],
    is_call=False,
    is_american=True,
)


def test_boundary_parts_where_qdfp_exercises_from_where_it_holds() -> None:
    boundary = fd.solve_surface(AMERICAN_PUTS).boundary
    assert (boundary[:, 0] == 100.0).all()
    # it falls with time to expiry; in the first steps it is closer to the strike than a cell
    assert (np.diff(boundary[:, 5:]) < 0.02).all()
    # Half a per cent below the boundary QdFp finds no time value, as far above it does.
    for side, has_time_value in ((0.995, False), (1.005, True)):
        spot = side * boundary[:, -1]
        moved = AMERICAN_PUTS.with_values(spot=spot)
        price = get_engine("quantlib-high-precision").evaluate(moved, ("price",))[0]["price"]
        assert ((price - (100.0 - spot) > 1e-4) == has_time_value).all()


def test_boundary_converges() -> None:
    fine = fd.solve_surface(AMERICAN_PUTS, fd.FDSettings(n_space=400, n_time=200)).boundary[:, -1]
    errors = [
        np.abs(fd.solve_surface(AMERICAN_PUTS, settings).boundary[:, -1] - fine).max()
        for settings in (fd.FAST, fd.ACCURATE)
    ]
    assert errors[0] < 0.5
    assert errors[1] < 0.05


@pytest.mark.parametrize(
    ("rate", "dividend_yield", "is_call", "expected"),
    [
        (0.05, 0.0, False, 100.0),
        (0.02, 0.04, False, 50.0),
        (0.0, 0.04, False, np.nan),
        (0.04, 0.02, True, 200.0),
        (0.04, 0.0, True, np.nan),
        (0.0, -0.03, False, 100.0),
        (-0.03, 0.0, True, 100.0),
    ],
)
def test_boundary_at_expiry_is_the_known_limit(
    rate: float, dividend_yield: float, is_call: bool, expected: float
) -> None:
    options = Options.of(
        spot=100.0,
        strike=100.0,
        expiry=0.5,
        rate=rate,
        dividend_yield=dividend_yield,
        volatility=0.2,
        is_call=is_call,
        is_american=True,
    )
    surface = fd.solve_surface(options, fd.FAST)
    assert surface.boundary[0, 0] == pytest.approx(expected, nan_ok=True)
    if np.isnan(expected):
        assert np.isnan(surface.boundary).all()


def test_surface_is_the_payoff_at_expiry_and_the_price_today(
    random_options: Callable[..., Options],
) -> None:
    options = random_options(20, seed=14, is_american=True)
    surface = fd.solve_surface(options)
    payoff = np.where(
        options.is_call[:, None],
        surface.spot - options.strike[:, None],
        options.strike[:, None] - surface.spot,
    )
    assert np.abs(surface.price[:, 0] - np.maximum(payoff, 0)).max() < 1e-12
    assert (np.diff(surface.spot, axis=1) > 0).all()
    today = fd.evaluate(options, ("price", "delta", "gamma"))
    for name in ("price", "delta"):
        at_spot = [
            np.interp(s, x, y)
            for s, x, y in zip(
                options.spot, surface.spot, getattr(surface, name)[:, -1], strict=True
            )
        ]
        assert np.abs(at_spot - today[name]).max() < (0.2 if name == "price" else 0.05)
    assert (surface.price >= np.maximum(payoff, 0)[:, None] - 1e-12).all()
    assert surface.error[:, -1].max() < 1e-2


def test_surface_greeks_are_the_closed_form(random_options: Callable[..., Options]) -> None:
    options = random_options(20, seed=17)
    surface = fd.solve_surface(options, greeks=True)
    today = {name: getattr(surface, name)[:, -1] for name in ("price", "delta", "gamma")}
    today |= {name: getattr(surface, name)[:, -1] for name in ("vega", "rho", "dividend_rho")}
    wide = options.take(np.repeat(np.arange(20), surface.spot.shape[1]))
    truth = black_scholes.evaluate(*wide.with_values(spot=surface.spot.ravel()).terms)
    inside = np.abs(np.log(surface.spot / 100)).ravel() < 0.5
    for name, tolerance in {"price": 1e-5, "delta": 1e-6, "gamma": 1e-7}.items():
        assert np.abs(today[name].ravel() - truth[name])[inside].max() < tolerance, name
    for name in ("vega", "rho", "dividend_rho"):
        assert np.abs(today[name].ravel() - truth[name])[inside].max() < 1e-3, name


def test_surface_covers_the_asked_range(random_options: Callable[..., Options]) -> None:
    options = random_options(5, seed=15, moneyness=0.01)
    surface = fd.solve_surface(options, fd.FAST, log_moneyness=(-1.5, 1.5))
    assert (surface.spot[:, 0] < 100 * np.exp(-1.5)).all()
    assert (surface.spot[:, -1] > 100 * np.exp(1.5)).all()

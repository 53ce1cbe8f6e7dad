"""Volatility surfaces: no arbitrage where it is promised, found where it is, truth found again."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from amo.errors import FileError, SettingsError
from pricing import Market, OptionFrameError, VolSurface, bench_surfaces, mark_book, price_frame
from pricing.vol_surfaces import arbitrage, essvi, families, local, smoother
from pricing.vol_surfaces.essvi import ESSVI
from pricing.vol_surfaces.local import LocalVariance
from pricing.vol_surfaces.pure import PureStrikes, later_cash
from pricing.vol_surfaces.quotes import SmileQuotes
from pricing.vol_surfaces.surface import METHODS, fitted_model
from pricing.vol_surfaces.svi import SVI

TIMES = np.array([0.02, 0.1, 0.25, 0.6, 1.0, 2.0])
DIVIDENDS = [(0.2, 3.0), (0.7, 3.0), (1.2, 3.0)]
MARKET = Market(spot=100.0, rate=0.04, borrow=0.01, dividends=DIVIDENDS, as_of="2025-10-06")


def random_essvi(seed: int) -> ESSVI:
    """A surface of any free numbers at all."""
    rng = np.random.default_rng(seed)
    x = np.stack(
        [
            rng.normal(-4.0, 1.0, len(TIMES)),
            rng.normal(0.0, 1.0, len(TIMES)),
            rng.normal(0.0, 2.0, len(TIMES)),
        ]
    )
    theta, rho, psi = (values[0] for values in essvi.decoded(x[None]))
    return ESSVI(TIMES, theta, rho, psi)


def surface(model: ESSVI | LocalVariance | None = None, market: Market = MARKET) -> VolSurface:
    return VolSurface(market, "essvi", TIMES, model or smooth_essvi())


def smooth_essvi() -> ESSVI:
    theta = 0.07 * TIMES
    return ESSVI(TIMES, theta, np.full(len(TIMES), -0.4), 0.8 * np.sqrt(theta))


@pytest.mark.parametrize("seed", range(25))
def test_any_free_numbers_give_an_essvi_surface_without_arbitrage(seed: int) -> None:
    model = random_essvi(seed)
    assert arbitrage.violations(model.total_variance, TIMES).empty
    steep = 1.0 + np.abs(model.rho)
    assert (model.psi * steep < 4.0).all()
    assert (model.psi**2 * steep < 4.0 * model.theta).all()
    up, down = model.psi * (1.0 + model.rho), model.psi * (1.0 - model.rho)
    # ratios of rounded numbers: the conditions hold up to rounding
    for rising in (model.theta, up, down, model.theta / model.psi):
        assert (np.diff(rising) >= -1e-12 * rising[1:]).all()


def test_a_slice_without_a_density_is_found_out() -> None:
    vogt = SVI(np.array([1.0]), np.array([[-0.0410, 0.1331, 0.3060, 0.3586, 0.4153]]))
    found = arbitrage.violations(vogt.total_variance, vogt.years)
    assert (found["kind"] == "butterfly").any()
    g = arbitrage.durrleman(vogt.total_variance, np.linspace(0.5, 1.2, 50), np.ones(50))
    assert g.min() < 0  # Gatheral and Jacquier 2014, figure 1


def test_variance_that_falls_in_time_is_found_out() -> None:
    falling = ESSVI(
        np.array([0.5, 1.0]), np.array([0.05, 0.04]), np.full(2, -0.3), np.array([0.2, 0.2])
    )
    found = arbitrage.violations(falling.total_variance, falling.years)
    assert (found["kind"] == "calendar").any()
    steeper = ESSVI(
        np.array([0.5, 1.0]), np.array([0.05, 0.052]), np.array([-0.8, 0.8]), np.array([0.4, 0.4])
    )
    assert (arbitrage.violations(steeper.total_variance, steeper.years)["kind"] == "calendar").any()


def test_an_essvi_surface_is_found_again_from_exact_quotes() -> None:
    truth = smooth_essvi()
    place = np.repeat(np.arange(len(TIMES)), 15)
    time = TIMES[place]
    y = np.tile(np.linspace(-2.5, 2.0, 15), len(TIMES)) * np.sqrt(0.07 * time)
    vol = np.sqrt(truth.total_variance(y, time) / time)
    quotes = SmileQuotes(TIMES, place, y, vol, np.full(len(y), 1e-3))
    found = ESSVI.fitted(quotes)
    assert np.sqrt(found.total_variance(y, time) / time) == pytest.approx(vol, abs=1e-6)


def test_an_implicit_step_keeps_any_local_variance_free_of_arbitrage() -> None:
    rng = np.random.default_rng(3)
    y = local._nodes(smooth_essvi())
    x = np.exp(y)
    before = np.maximum(1.0 - x, 0.0)
    for _ in range(4):
        any_local = np.exp(rng.normal(-4.0, 1.5, len(x)))
        step = local._Slice(x, before, any_local, 0.2)
        after = step.calls(rng.normal(0.0, 3.0, step.basis.shape[1]))  # whatever is fitted
        slope = np.diff(after) / np.diff(x)
        rounding = 64 * np.finfo(float).eps / np.diff(x)  # of values below one, over a step
        assert (after >= before - 64 * np.finfo(float).eps).all()  # calendars
        assert (np.diff(slope) >= -rounding[1:] - rounding[:-1]).all()  # butterflies
        assert (slope <= rounding).all()
        assert (slope >= -1.0 - rounding).all()
        before = after


def test_local_variances_of_a_base_step_onto_it() -> None:
    base = smooth_essvi()
    y = local._nodes(base)
    x = np.exp(y)
    plain = before = np.maximum(1.0 - x, 0.0)
    for place in range(len(TIMES)):
        w = base.total_variance(y, np.full(len(y), TIMES[place]))
        calls = families._call(1.0, x, w)
        before = local._Slice(x, before, local._local(x, calls, plain), 0.2).calls(None)
        assert np.abs(before - calls).max() < 1e-6  # far out, where nothing is worth a millionth
        plain = calls


def test_gradient_of_the_marginal_likelihood() -> None:
    rng = np.random.default_rng(0)
    points, error = rng.normal(size=(30, 2)), rng.uniform(0.005, 0.01, 30)
    y, x = 0.02 * rng.normal(size=30), np.array([-4.0, 0.1, 0.4, -0.3])
    _, slope = smoother._likelihood(points, error, y, x)
    h = 1e-5  # second-order differences of numbers of size 100: 1e-6 of truncation and rounding
    for i, step in enumerate(h * np.eye(4)):
        ends = [smoother._likelihood(points, error, y, x + k * step)[0] for k in (1, -1)]
        assert slope[i] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_made_up_surfaces_have_no_arbitrage_themselves(family: str) -> None:
    truth = families.FAMILIES[family](np.random.default_rng(5))
    calm = families.EXPIRIES[families.EXPIRIES > 0.05]
    found = arbitrage.violations(truth, calm, n_strikes=61, n_between=0)
    assert found[found["log_moneyness"].abs() < 0.5].empty, found


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_a_surface_again_from_noisy_quotes(method: str) -> None:
    rng = np.random.default_rng(8)
    truth = families.mixture(rng)
    quotes, bid, ask = families.made_up_quotes(truth, rng)
    model = fitted_model(quotes, method)
    vol = np.sqrt(model.total_variance(quotes.log_moneyness, quotes.time) / quotes.time)
    true = np.sqrt(truth(quotes.log_moneyness, quotes.time) / quotes.time)
    # mids lie anywhere in the spread: a third of it is their deviation, and a fit is nearer
    assert np.median(np.abs(vol - true) / (ask - bid)) < 1 / 3
    assert np.mean((vol >= bid) & (vol <= ask)) > 0.6
    if method in ("local", "essvi"):
        assert arbitrage.violations(model.total_variance, quotes.years).empty


def test_pure_strikes_turn_volatilities_there_and_back() -> None:
    strike, years = np.meshgrid([60.0, 90.0, 100.0, 130.0], [0.1, 0.5, 1.9])
    at = PureStrikes.of(MARKET, strike.ravel(), years.ravel())
    vol = np.linspace(0.4, 0.2, 12)
    assert at.volatility(at.variance(vol)) == pytest.approx(vol, abs=1e-6)
    assert at.strikes(at.log_moneyness) == pytest.approx(at.strike)
    assert later_cash(MARKET, 1.3) == 0.0
    growth = np.exp(0.03 * (1.2 - 0.8))
    assert later_cash(MARKET, 0.8) == pytest.approx(3.0 / growth)
    before, after = (later_cash(MARKET, 0.7 + k * 1e-12) for k in (-1, 1))
    assert before - after == pytest.approx(3.0)  # the spot and what it will pay fall together


def test_a_density_is_one_and_bends_the_prices() -> None:
    whole = surface()
    strikes = np.linspace(1.0, 400.0, 8_001)
    step = strikes[1] - strikes[0]
    density = whole.density(strikes, np.full(len(strikes), 0.6))
    assert np.sum(density[np.isfinite(density)]) * step == pytest.approx(1.0, abs=1e-4)
    prices = whole.price(strikes, np.full(len(strikes), 0.6), is_call=True)
    bend = (prices[2:] - 2 * prices[1:-1] + prices[:-2]) / step**2 / np.exp(-0.04 * 0.6)
    middle = (strikes[1:-1] > 60) & (strikes[1:-1] < 160)
    assert density[1:-1][middle] == pytest.approx(bend[middle], abs=2e-5)


def test_a_flat_surface_has_the_same_local_and_forward_volatility() -> None:
    flat = ESSVI(TIMES, 0.09 * TIMES, np.zeros(len(TIMES)), np.full(len(TIMES), 1e-9))
    plain = surface(flat, Market(spot=100.0, rate=0.02))
    assert plain.vol([80.0, 120.0], [0.3, 1.7]) == pytest.approx(0.3)
    assert plain.local_volatility([80.0, 120.0], [0.3, 1.7]) == pytest.approx(0.3, abs=1e-6)
    assert plain.forward_variance(0.3, 1.7) == pytest.approx(0.09)


def test_marks_price_back_to_the_surface() -> None:
    whole = surface()
    book = pd.DataFrame(
        {
            "underlying": "ACME",
            "strike": [85.0, 100.0, 120.0],
            "expiry": ["2025-12-19", "2026-06-18", "2027-06-17"],
            "option_type": ["put", "call", "call"],
            "exercise": "european",
        }
    )
    marked = mark_book(book, {"ACME": whole})
    priced = price_frame(marked, "analytic", markets={"ACME": MARKET})
    expected = [
        float(whole.price(k, whole.years_to([day])[0], is_call=kind == "call"))
        for k, day, kind in zip(book["strike"], book["expiry"], book["option_type"], strict=True)
    ]
    assert priced["price"].to_numpy() == pytest.approx(expected, abs=1e-6)
    with pytest.raises(OptionFrameError, match="no surface for ACME"):
        mark_book(book, {"OTHER": whole})
    with pytest.raises(OptionFrameError, match="no column 'strike'"):
        mark_book(book.drop(columns="strike"), whole)


@pytest.mark.parametrize("method", METHODS)
def test_a_surface_is_the_same_after_its_file(method: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    quotes = families.made_up_quotes(families.essvi(rng), rng).quotes
    whole = VolSurface(MARKET, method, quotes.years, fitted_model(quotes, method))
    whole.save(tmp_path / "surface.json")
    again = VolSurface.load(tmp_path / "surface.json")
    strikes, years = np.array([80.0, 100.0, 125.0]), np.array([0.05, 0.5, 1.5])
    assert again.vol(strikes, years).tolist() == whole.vol(strikes, years).tolist()


def test_files_that_hold_no_surface_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "surface.json"
    with pytest.raises(FileError, match="no such file"):
        VolSurface.load(path)
    path.write_text("{")
    with pytest.raises(FileError, match="cannot read"):
        VolSurface.load(path)
    path.write_text(json.dumps({"version": 1}))
    with pytest.raises(SettingsError, match="no volatility surface"):
        VolSurface.load(path)
    content = surface().to_dict()
    path.write_text(json.dumps({**content, "model": {"years": [1.0]}}))
    with pytest.raises(FileError, match="cannot read"):
        VolSurface.load(path)


def test_the_bench_measures_every_method() -> None:
    results = bench_surfaces.run(1, ["eSSVI"])
    assert list(results["families"]) == ["eSSVI"]
    found = results["families"]["eSSVI"]
    assert set(found) == set(METHODS)
    # noise is half a spread of about a point; one surface of the true family is found within that
    assert all(row["rmse"] < 1.0 and row["inside"] > 0.4 for row in found.values())
    assert found["essvi"]["with_arbitrage"] == found["local"]["with_arbitrage"] == 0.0
    assert all(method in bench_surfaces.as_text(results) for method in METHODS)

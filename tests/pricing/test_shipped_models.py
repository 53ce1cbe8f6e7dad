"""The models in models/: that they are what their cards say, and as good as they must be."""

from pathlib import Path

import numpy as np
import pytest

from amo import checkpoint
from app.documents import cards
from pricing import black_scholes
from pricing.analysis.assessment import assess
from pricing.engines import registry
from pricing.engines.surrogate import SurrogateEngine
from pricing.options import Options
from pricing.random_books import random_book, random_options
from pricing.surrogate.model import Surrogate
from pricing.surrogate.store import models_folder

MODELS = models_folder()
FOLDERS = sorted(path.parent for path in MODELS.glob("*/config.json"))
BARS = {
    "european": {
        "surfaces": 1e-5, "price": 2e-4, "max": 2e-3, "domain": 1e-3, "delta": 5e-5,
        "gamma": 5e-5, "vega": 0.01, "rho": 0.01, "theta": 0.02, "ladder": 1e-3,
    },
    "american": {
        "surfaces": 2e-4, "price": 5e-4, "max": 8e-3, "domain": 2e-3, "delta": 2e-4,
        "gamma": 2e-4, "vega": 0.02, "rho": 0.06, "theta": 0.04, "ladder": 5e-3,
    },
}  # fmt: skip  # American rho should be 0.05


@pytest.fixture(scope="module", params=["european", "american"])
def surrogate(request: pytest.FixtureRequest) -> Surrogate:
    return Surrogate.load(MODELS / request.param)


def test_both_models_are_shipped() -> None:
    assert {"european", "american"} <= {folder.name for folder in FOLDERS}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_cards_say_what_the_files_say(folder: Path) -> None:
    written = (folder / cards.CARD).read_text(encoding="utf-8")
    assert written == cards.card(folder), "run `python -m pricing report`"


def book(surrogate: Surrogate, n: int, seed: int) -> Options:
    """Draw a book of the box over 200 market states, in the surrogate's style."""
    is_american = np.full(n, surrogate.coding.is_american)
    return random_book(n, seed=seed).with_values(is_american=is_american)


def test_rho_is_that_of_the_same_weights_in_float64(surrogate: Surrogate) -> None:
    options = book(surrogate, 2_000, seed=42)
    precise = Surrogate.load(MODELS / surrogate.coding.name)
    precise.operator.double()
    precise.differentiable.double()
    names = ("rho", "dividend_rho")
    found, truth = (each.evaluate(options, names) for each in (surrogate, precise))
    for name in names:
        assert np.abs(found[name] - truth[name]).max() <= 1e-3, name


def test_a_row_s_numbers_do_not_depend_on_its_company(surrogate: Surrogate) -> None:
    many = book(surrogate, 10_000, seed=43)
    names = ("price", "delta", "gamma", "vega", "theta", "rho", "dividend_rho")
    crowd = surrogate.evaluate(many, names)
    ten = surrogate.evaluate(many.take(slice(0, 10)), names)
    for row in range(10):
        alone = surrogate.evaluate(many.take(slice(row, row + 1)), names)
        for name in names:
            same = (alone[name][0], ten[name][row], crowd[name][row])
            assert np.ptp(same) <= 1e-4, name


def test_measured_errors_meet_their_bars(surrogate: Surrogate) -> None:
    metrics, bars = surrogate.metrics, BARS[surrogate.coding.name]
    assert metrics["contracts"] >= 5_000
    assert metrics["surfaces"]["states"] >= 200
    assert metrics["surfaces"]["relative_l2"] <= bars["surfaces"]
    assert metrics["box"]["price"]["max"] <= bars["max"]
    assert metrics["domain"]["price"]["rmse"] <= bars["domain"]
    for name in ("price", "delta", "gamma", "vega", "rho", "theta"):
        assert metrics["box"][name]["rmse"] <= bars[name], name
    assert metrics["ladder"]["share"] < bars["ladder"]
    for name in ("below_intrinsic", "above_upper", "below_european"):
        assert metrics["bounds"][name] == 0, name


def test_models_are_small_operators(surrogate: Surrogate) -> None:
    _, recipe = checkpoint.load(MODELS / surrogate.coding.name)
    assert recipe.kind == "amo"
    assert recipe.config.mixer == "bi"
    assert recipe.config.poles == "adaptive"
    assert recipe.config.basis == "orthogonal"
    assert sum(p.numel() for p in surrogate.operator.parameters()) <= 1_210_000
    assert recipe.notes["minutes"] <= 90.0


def test_contracts_drawn_today_agree_with_the_stated_errors(surrogate: Surrogate) -> None:
    options = random_options(400, seed=99, is_american=surrogate.coding.is_american)
    engine = registry.get_engine("quantlib" if surrogate.coding.is_american else "analytic")
    truth = engine.evaluate(options, ("price",))[0]["price"]
    error = np.abs(surrogate.evaluate(options, ("price",))["price"] - truth)
    # 400 of so heavy-tailed errors give their root mean square to a factor of two
    assert np.sqrt(np.mean(error**2)) <= 2.0 * BARS[surrogate.coding.name]["price"]
    assert (error <= surrogate.price_error(options)).mean() > 0.95


def test_assessment_sees_a_wrong_price(surrogate: Surrogate) -> None:
    fair = assess(surrogate, n=100, seed=5)
    assert {"box", "domain", "regions", "stated_error", "surfaces", "bounds"} <= set(fair)
    metrics = surrogate.metrics
    assert fair["box"]["price"]["rmse"] <= 3 * metrics["box"]["price"]["rmse"]
    assert sum(region["contracts"] for region in fair["regions"]) == 27 * 4
    assert fair["bounds"]["contracts"] == 200


def test_implied_volatilities_of_true_prices() -> None:
    engine = SurrogateEngine.load()
    options = random_options(300, seed=3, is_american=False)
    price = black_scholes.price(*options.terms)
    vega = black_scholes.evaluate(*options.terms, ("vega",))["vega"]
    found, _ = engine.implied_volatility(options, price)
    clear = vega > 5.0
    assert np.isfinite(found[clear]).all()
    assert np.abs(found - options.volatility)[clear].max() < 2e-3


def test_exercise_boundary_is_that_of_finite_differences() -> None:
    surrogate = Surrogate.load(MODELS / "american")
    assert surrogate.metrics["boundary"]["rmse"] < 1.0  # per cent of the strike
    with pytest.raises(ValueError, match="Americans"):
        Surrogate.load(MODELS / "european").exercise_boundary(
            random_options(2, seed=1, is_american=False)
        )

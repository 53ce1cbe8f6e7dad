"""One contract under many circumstances, and what the surrogate does inside."""

import numpy as np
import pandas as pd
import pytest

from pricing import price_frame
from pricing.analysis import sweeps
from pricing.engines.surrogate import SurrogateEngine
from pricing.surrogate.insight import configuration, explain, functions, parameter_counts

CONTRACT = {
    "spot": 100.0,
    "strike": 100.0,
    "expiry": 1.0,
    "rate": 0.05,
    "dividend_yield": 0.02,
    "volatility": 0.2,
    "option_type": "put",
    "exercise": "american",
}


@pytest.fixture(scope="module")
def engine() -> SurrogateEngine:
    return SurrogateEngine.load()


def test_surface_is_price_frame_laid_out_by_expiry_and_spot(engine: SurrogateEngine) -> None:
    spot, expiry = np.array([80.0, 100.0, 130.0]), np.array([0.25, 1.0])
    found = sweeps.surface(CONTRACT, engine, "delta", spot, expiry)
    one = price_frame(pd.DataFrame([{**CONTRACT, "spot": 130.0, "expiry": 0.25}]), engine)
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found[0, 2], one["delta"].iloc[0], atol=1e-6)


def test_line_is_nan_where_the_engine_was_not_trained(engine: SurrogateEngine) -> None:
    found = sweeps.line(CONTRACT, engine, "expiry", np.array([1.0, 10.0]), "price")
    assert np.isfinite(found[0])
    assert np.isnan(found[1])


@pytest.mark.parametrize("kind", ["put", "call"])
def test_exercise_boundaries_of_surrogate_and_grid_agree(
    engine: SurrogateEngine, kind: str
) -> None:
    contract = {**CONTRACT, "option_type": kind, "dividend_yield": 0.04}
    expiry = np.array([0.25, 0.5, 1.0])
    found = sweeps.exercise_boundary(contract, engine, expiry)
    truth = sweeps.exercise_boundary(contract, "fd", expiry)
    np.testing.assert_allclose(found, truth, rtol=0.02)
    assert (np.diff(truth) < 0).all() if kind == "put" else (np.diff(truth) > 0).all()


def test_europeans_have_no_boundary(engine: SurrogateEngine) -> None:
    found = sweeps.exercise_boundary({**CONTRACT, "exercise": "european"}, engine, np.ones(2))
    assert np.isnan(found).all()


def test_explanation_has_poles_in_the_disc_and_what_they_capture(
    engine: SurrogateEngine,
) -> None:
    blocks = explain(engine.american, np.array([0.01, 0.1]), np.array([0.02, 0.02]))
    config = configuration(engine.american)
    assert sum(block.poles.shape[1] for block in blocks) == config.n_poles
    for block in blocks:
        assert (np.hypot(*np.moveaxis(block.poles, -1, 0)) < 1).all()
        assert (block.captured_energy > 0).all()
        largest = 1.0 + block.poles.shape[1] * block.gram_error  # of the Gram matrix, an eigenvalue
        assert (block.captured_energy <= largest + 1e-3).all()


def test_functions_of_an_explanation_are_orthonormal_on_a_fine_circle(
    engine: SurrogateEngine,
) -> None:
    angles, found = functions(
        explain(engine.american, np.array([0.05]), np.array([0.02])), n_angles=512
    )
    every = np.concatenate(found)
    gram = 2.0 * every @ every.T / len(angles)  # real parts carry half of the energy
    np.testing.assert_allclose(gram, np.eye(len(every)), atol=1e-3)


def test_parameter_counts_are_all_of_them(engine: SurrogateEngine) -> None:
    counts = parameter_counts(engine.american)
    every = sum(p.numel() for p in engine.american.operator.model.parameters())
    assert sum(counts.values()) == every

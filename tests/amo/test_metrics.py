"""What the scores of an operator mean."""

import math
from collections.abc import Callable

import pytest
import torch

from amo.checkpoint import Recipe
from amo.data.batch import read_operator_arrays
from amo.data.datasets import ArrayDataset
from amo.model_config import AMOConfig
from amo.operator import Operator
from amo.training import metrics
from amo.training.distributed import Workers
from amo.training.evaluation import evaluate


def test_relative_l2_is_one_vector_a_sample() -> None:
    truth = torch.tensor([[[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 0.0]]])
    prediction = truth.clone()
    prediction[0, 1, 0] = 1.0
    prediction[1, 0, 0] = -1.0
    assert metrics.relative_l2(prediction, truth).tolist() == pytest.approx([0.2, 2.0])
    assert metrics.largest_error(prediction, truth).tolist() == [1.0, 2.0]
    assert metrics.squared_norm(truth).tolist() == [25.0, 1.0]


def test_padding_counts_nowhere_even_if_it_is_not_a_number() -> None:
    truth, mask = torch.ones(1, 3, 1), torch.tensor([[True, True, False]])
    prediction = torch.tensor([[[1.0], [2.0], [torch.nan]]])
    assert metrics.relative_l2(prediction, truth, mask).item() == pytest.approx(math.sqrt(0.5))
    assert metrics.largest_error(prediction, truth, mask).item() == 1.0


def test_gradient_of_a_perfect_prediction_is_finite() -> None:
    prediction = torch.ones(1, 4, 1, requires_grad=True)
    metrics.relative_l2(prediction, torch.ones(1, 4, 1)).sum().backward()
    assert prediction.grad is not None
    assert prediction.grad.isfinite().all()


def test_scores_of_a_split_do_not_depend_on_batches_and_a_nan_is_not_hidden(
    build: Callable[..., Operator], dataset: Callable[..., ArrayDataset], tiny: AMOConfig
) -> None:
    operator, data = build(Recipe(kind="amo", config=tiny)), dataset(7)
    alone = Workers(0, 1, torch.device("cpu"))
    whole, parts = (evaluate(operator, data, read_operator_arrays, alone, size) for size in (7, 3))
    assert whole == pytest.approx(parts, rel=1e-5)
    batch = read_operator_arrays(next(data.batches(7)))
    error = operator.predict(batch) - batch.values
    assert whole["rmse"] == pytest.approx(error.square().mean().sqrt().item(), rel=1e-5)
    pooled = (error.norm() / batch.values.norm()).item()
    assert whole["pooled_relative_l2"] == pytest.approx(pooled, rel=1e-5)
    with torch.no_grad():
        operator.values.shift.fill_(torch.nan)
    assert math.isnan(evaluate(operator, data, read_operator_arrays, alone)["largest_error"])

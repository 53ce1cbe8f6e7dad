"""What fills a budget: the pace of a step."""

from typing import Any, NoReturn

import numpy as np
import pytest

from amo import checkpoint
from amo.benchmarks.budget import Pace
from amo.benchmarks.toys import EXPERIMENTS
from amo.data.datasets import ArrayDataset, Dataset
from amo.operator import Operator
from amo.training import loop
from amo.training.distributed import join
from amo.training.loop import TrainingConfig


def _never(_: object) -> NoReturn:
    raise AssertionError("nothing is read here")


@pytest.mark.parametrize(("compiled", "steps"), [(False, [5, 7]), (True, [1, 5, 7])])
def test_a_pace_is_that_of_a_copy_and_leaves_compilation_out(
    monkeypatch: pytest.MonkeyPatch, compiled: bool, steps: list[int]
) -> None:
    trained: list[Operator] = []
    counted: list[int] = []

    def fit(
        operator: Operator, _: Dataset, __: Dataset, config: TrainingConfig, **___: Any
    ) -> loop.Result:
        trained.append(operator)
        counted.append(config.steps)
        return loop.Result("finished", config.steps, 0.0, 0.0)

    monkeypatch.setattr(loop, "fit", fit)
    operator = checkpoint.build(next(iter(EXPERIMENTS.values())).recipe)
    config = TrainingConfig(steps=1, compile=compiled)
    pace = Pace(operator, ArrayDataset({"x": np.zeros((2, 1))}), _never, config, join("cpu"))
    assert pace(5) >= 0.0
    assert pace(7) >= 0.0
    assert counted == steps
    assert all(each is trained[0] for each in trained), "compiled once"
    assert trained[0] is not operator

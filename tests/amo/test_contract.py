"""What every operator promises, whatever its model (identity 17 of the AMO)."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from amo import checkpoint
from amo.checkpoint import Recipe
from amo.data.batch import Batch
from amo.errors import SettingsError
from amo.operator import Operator

Build = Callable[..., Operator]
Samples = Callable[..., Batch]


@pytest.fixture
def build(build: Build) -> Build:
    """The operators of these tests, in float64."""
    return lambda *arguments: build(*arguments).double()


@pytest.fixture
def samples(samples: Samples) -> Samples:
    return lambda *arguments: samples(*arguments).map(torch.Tensor.double)


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    assert a.dtype == b.dtype == torch.float64
    return torch.allclose(a, b, atol=1e-11, rtol=1e-11)


def test_identity_17_order_of_input_points_does_not_matter(
    query_recipe: Recipe, build: Build, samples: Samples
) -> None:
    operator, batch = build(query_recipe), samples(2, 24)
    order = torch.randperm(24, generator=torch.manual_seed(1))
    queries = batch.points
    shuffled = operator(batch.points[:, order], batch.features[:, order], queries)
    assert close(operator(batch.points, batch.features, queries), shuffled)


def test_identity_17_masked_padding_changes_nothing(
    query_recipe: Recipe, build: Build, samples: Samples
) -> None:
    operator, batch = build(query_recipe), samples(2, 24)
    queries = batch.points[:, :7]
    garbage = 50.0 * torch.ones(2, 6, 2)
    mask = torch.arange(30).expand(2, -1) < 24
    padded = operator(
        torch.cat([batch.points, garbage], 1),
        torch.cat([batch.features, garbage], 1),
        queries,
        mask,
    )
    assert close(operator(batch.points, batch.features, queries), padded)


def test_identity_17_queries_are_answered_one_by_one(
    query_recipe: Recipe, build: Build, samples: Samples
) -> None:
    operator, batch = build(query_recipe), samples(2, 24)
    whole = operator(batch.points, batch.features)
    some = operator(batch.points, batch.features, batch.points[:, 3:9])
    assert close(whole[:, 3:9], some)


def test_identity_17_samples_do_not_see_each_other(
    any_recipe: Recipe, build: Build, samples: Samples
) -> None:
    operator, batch = build(any_recipe), samples(3, 24)
    together = operator(batch.points, batch.features)
    for row in range(3):
        alone = operator(batch.points[row : row + 1], batch.features[row : row + 1])
        assert close(together[row : row + 1], alone)


def test_chunks_give_the_same_answer(any_recipe: Recipe, build: Build, samples: Samples) -> None:
    operator, batch = build(any_recipe), samples(2, 24)
    assert close(operator.predict(batch), operator.predict(batch, chunk=5))


def test_chunks_give_the_same_answer_beside_padding(
    query_recipe: Recipe, build: Build, samples: Samples
) -> None:
    operator, batch = build(query_recipe), samples(2, 24)
    mask = torch.arange(24).expand(2, -1) < 20
    masked = Batch(points=batch.points, features=batch.features, values=batch.values, mask=mask)
    assert close(operator.predict(masked), operator.predict(masked, chunk=5))


def test_input_and_queries_may_have_any_number_of_points(
    query_recipe: Recipe, build: Build, samples: Samples
) -> None:
    operator = build(query_recipe)
    for n_points, n_queries in ((5, 40), (40, 1)):
        batch, queries = samples(2, n_points), samples(2, n_queries).points
        assert operator(batch.points, batch.features, queries).shape == (2, n_queries, 1)


def test_seed_determines_the_weights_and_the_answer(
    any_recipe: Recipe, build: Build, samples: Samples
) -> None:
    batch = samples(2, 24)
    one, two, other = (build(any_recipe, seed).predict(batch) for seed in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_saved_and_loaded_operator_is_the_same(
    any_recipe: Recipe, build: Build, samples: Samples, tmp_path: Path
) -> None:
    operator, batch = build(any_recipe).float(), samples(2, 24).map(torch.Tensor.float)
    checkpoint.save(operator, any_recipe, {"validation": {}}, tmp_path)
    loaded, again = checkpoint.load(tmp_path)
    assert again == any_recipe
    assert torch.equal(operator.predict(batch), loaded.predict(batch))
    assert not loaded.training


def test_normalisers_put_units_aside(any_recipe: Recipe, build: Build, samples: Samples) -> None:
    operator, batch = build(any_recipe), samples(4, 24)
    torch.manual_seed(0)
    other = checkpoint.build(any_recipe)

    def in_other_units() -> list[Batch]:
        return [
            Batch(
                points=7.0 * b.points,
                features=b.features * 1e3 + 5.0,
                values=2.0 - 9.0 * b.values,
            )
            for b in [samples(3, 30)]
        ]

    other.fit_normalisers(in_other_units)
    answer = other.double().eval()(7.0 * batch.points, batch.features * 1e3 + 5.0)
    expected = operator(batch.points, batch.features)
    shift, scale = operator.values.shift, operator.values.scale
    unit = (expected - shift) / scale
    assert torch.allclose(answer, other.values.inverse(unit), rtol=1e-2, atol=1e-2)
    assert float(other.values.scale) == pytest.approx(9.0 * float(scale), rel=1e-4)


def test_points_may_come_in_any_order_and_number(
    point_recipe: Recipe, build: Build, samples: Samples
) -> None:
    operator = build(point_recipe)
    for n in (5, 24):
        batch = samples(2, n)
        order = torch.randperm(n, generator=torch.manual_seed(1))
        answer = operator(batch.points, batch.features)
        assert answer.shape == (2, n, 1)
        assert close(operator(batch.points[:, order], batch.features[:, order]), answer[:, order])


def test_padding_among_points_changes_nothing(
    point_recipe: Recipe, build: Build, samples: Samples
) -> None:
    operator, batch = build(point_recipe), samples(2, 24)
    garbage = 50.0 * torch.ones(2, 6, 2)
    mask = torch.arange(30).expand(2, -1) < 24
    padded = operator(
        torch.cat([batch.points, garbage], 1), torch.cat([batch.features, garbage], 1), None, mask
    )
    assert close(operator(batch.points, batch.features), padded[:, :24])


def test_models_over_points_refuse_queries(
    point_recipe: Recipe, build: Build, samples: Samples
) -> None:
    operator, batch = build(point_recipe), samples(2, 24)
    with pytest.raises(SettingsError, match="takes no queries"):
        operator(batch.points, batch.features, batch.points[:, :3])


def test_models_on_a_grid_refuse_all_else(
    grid_recipe: Recipe, build: Build, samples: Samples
) -> None:
    operator, batch = build(grid_recipe), samples(2, 24)
    few = samples(2, 23)
    for arguments in (
        (few.points, few.features),
        (batch.points, batch.features, batch.points[:, :3]),
        (batch.points, batch.features, None, torch.ones(2, 24, dtype=torch.bool)),
    ):
        with pytest.raises(SettingsError, match=r"on the grid \(6, 4\) only"):
            operator(*arguments)


def test_every_weight_is_used_and_devices_are_the_caller_s(
    any_recipe: Recipe, samples: Samples
) -> None:
    with torch.device("meta"):
        operator = checkpoint.build(any_recipe)
    batch = samples(2, 24).map(torch.Tensor.float).to(torch.device("meta"))
    operator(batch.points, batch.features).sum().backward()
    assert all(parameter.grad is not None for parameter in operator.parameters())

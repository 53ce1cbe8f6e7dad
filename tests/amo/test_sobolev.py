"""Learning derivatives: the loss, and the scale and link of answers."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from amo import checkpoint
from amo.baselines.mlp import PointwiseMLPConfig
from amo.checkpoint import Recipe
from amo.data.batch import Batch
from amo.errors import SettingsError
from amo.model_config import AMOConfig
from amo.operator import Operator
from amo.training.losses import SobolevLoss

CONFIG = PointwiseMLPConfig(
    n_points=2, n_features=1, n_dimensions=1, n_query_dimensions=2, width=16, depth=2
)
LOSS = SobolevLoss(value_unit=1e-3, direction_units=(1e-2, 2e-2, 5e-3), step=1e-6)


class Exact(nn.Module):
    """u(a; x, y) = sin(x) a_0 + x y a_1."""

    def forward(self, _: Tensor, features: Tensor, queries: Tensor, __: Tensor | None) -> Tensor:
        a, (x, y) = features[..., 0], queries.unbind(-1)
        return (torch.sin(x) * a[:, :1] + x * y * a[:, 1:]).unsqueeze(-1)


def exact_batch() -> Batch:
    """Return values and derivatives along x, y and a_0 of (1 + x) u, whose scale is 1 + x."""
    generator = torch.Generator().manual_seed(0)
    points = torch.tensor([[-1.0], [1.0]], dtype=torch.float64).expand(5, 2, 1)
    a = torch.randn(5, 2, 1, generator=generator, dtype=torch.float64)
    queries = torch.rand(5, 9, 2, generator=generator, dtype=torch.float64)
    x, y = queries.unbind(-1)
    zero, one = torch.zeros_like(x), torch.ones_like(x)
    u = torch.sin(x) * a[:, :1, 0] + x * y * a[:, 1:, 0]
    u_x = torch.cos(x) * a[:, :1, 0] + y * a[:, 1:, 0]
    slopes = [u + (1 + x) * u_x, (1 + x) * x * a[:, 1:, 0], (1 + x) * torch.sin(x)]
    state = torch.zeros(5, 2, 3, 1, dtype=torch.float64)
    state[:, 0, 2] = 1.0
    moves = [torch.stack(pair, -1) for pair in ((one, zero), (zero, one), (zero, zero))]
    return Batch(
        points=points,
        features=a,
        queries=queries,
        values=((1 + x) * u).unsqueeze(-1),
        scale=(1 + x).unsqueeze(-1),
        feature_tangents=state,
        query_tangents=torch.stack(moves, -2),
        scale_tangents=torch.stack([one, zero, zero], -1).unsqueeze(-1),
        value_tangents=torch.stack(slopes, -1).unsqueeze(-1),
    )


def exact_operator() -> Operator:
    return Operator(Exact(), CONFIG).double()


def test_the_exact_operator_has_no_loss_but_rounding() -> None:
    loss = LOSS(exact_operator(), exact_batch(), torch.Generator().manual_seed(0))
    assert float(loss) < -15


@pytest.mark.parametrize("wrong", ["values", "value_tangents", "query_tangents", "scale_tangents"])
def test_every_part_of_the_data_counts(wrong: str) -> None:
    batch = exact_batch()
    other = replace(batch, **{wrong: getattr(batch, wrong) + 0.1})
    assert float(LOSS(exact_operator(), other, torch.Generator().manual_seed(0))) > 2


def test_the_mean_over_signs_is_the_sum_over_directions() -> None:
    batch = exact_batch()
    assert batch.value_tangents is not None
    shift = torch.tensor([3e-2, 1e-2, 2e-2], dtype=torch.float64).unsqueeze(-1)
    other = replace(batch, value_tangents=batch.value_tangents + shift)
    generator = torch.Generator().manual_seed(1)
    operator = exact_operator()
    drawn = [LOSS(operator, other, generator).exp() for _ in range(400)]
    expected = sum(
        (s / u) ** 2 for s, u in zip((3e-2, 1e-2, 2e-2), (1e-2, 2e-2, 5e-3), strict=True)
    )
    assert float(torch.stack(drawn).mean()) == pytest.approx(expected, rel=0.1)


def test_weights_and_masks_count() -> None:
    batch = exact_batch()
    shifted = replace(batch, values=batch.values + 1e-3)
    operator, generator = exact_operator(), torch.Generator()
    once = float(LOSS(operator, shifted, generator).exp())
    weights = torch.full_like(batch.values, 3.0)
    assert float(LOSS(operator, replace(shifted, weights=weights), generator).exp()) == (
        pytest.approx(9 * once, rel=1e-3)
    )
    mask = torch.zeros(5, 9, dtype=torch.bool)
    mask[:, 0] = True
    spoilt = batch.values.clone()
    spoilt[:, 1:] = 7.0
    hidden = replace(batch, values=spoilt, query_mask=mask)
    assert float(LOSS(operator, hidden, generator)) < -15


def test_data_without_tangents_are_refused() -> None:
    batch = replace(exact_batch(), value_tangents=None)
    with pytest.raises(SettingsError, match="tangents"):
        LOSS(exact_operator(), batch, torch.Generator())


@pytest.mark.parametrize(("link", "low", "high"), [("softplus", 0, 1e9), ("sigmoid", 0, 1)])
def test_links_bound_the_answer_and_scales_multiply_it(link: str, low: float, high: float) -> None:
    torch.manual_seed(0)
    operator = checkpoint.build(Recipe(kind="mlp", config=CONFIG, link=link))  # type: ignore[arg-type]
    operator.values.set(torch.zeros(1), torch.full((1,), 50.0))  # far into both tails
    batch = exact_batch().map(lambda tensor: tensor.float())
    inputs = {**batch.inputs, "scale": None}
    plain = operator(**inputs)
    assert ((plain >= low) & (plain <= high)).all()
    assert torch.allclose(operator(**batch.inputs), batch.scale * plain)
    assert torch.allclose(operator.predict(batch, chunk=4), operator(**batch.inputs), atol=1e-6)


def test_unknown_links_are_refused() -> None:
    with pytest.raises(SettingsError, match="link"):
        checkpoint.build(Recipe(kind="mlp", config=CONFIG, link="tanh"))  # type: ignore[arg-type]


def test_coded_data_keep_their_queries_and_values() -> None:
    operator = checkpoint.build(Recipe(kind="mlp", config=CONFIG))
    batch = exact_batch().map(lambda tensor: tensor.float())
    operator.fit_normalisers(lambda: [batch], is_coded=True)
    assert torch.equal(operator.queries(batch.queries), batch.queries)
    assert torch.equal(operator.values.inverse(batch.values), batch.values)
    assert float(operator.features(batch.features).mean()) == pytest.approx(0.0, abs=1e-6)


def test_mlp_takes_its_points_and_no_others() -> None:
    operator = checkpoint.build(Recipe(kind="mlp", config=CONFIG))
    with pytest.raises(SettingsError, match="2 points"):
        operator(torch.zeros(1, 3, 1), torch.zeros(1, 3, 1), torch.zeros(1, 4, 2))
    with pytest.raises(SettingsError, match="depth"):
        replace(CONFIG, depth=0)


def test_a_padded_mlp_reads_places_and_no_padding() -> None:
    torch.manual_seed(0)
    config = replace(CONFIG, n_points=4, is_padded=True)
    operator = checkpoint.build(Recipe(kind="mlp", config=config)).double()
    points, features = torch.rand(2, 3, 1).double(), torch.rand(2, 3, 1).double()
    queries = torch.rand(2, 5, 2).double()
    known = operator(points, features, queries)
    garbage = torch.full((2, 1, 1), 9.0).double()
    mask = torch.tensor([[True, True, True, False]]).expand(2, -1)
    padded = operator(
        torch.cat([points, garbage], 1), torch.cat([features, garbage], 1), queries, mask
    )
    assert torch.allclose(known, padded, atol=1e-12)
    assert not torch.allclose(known, operator(points + 0.1, features, queries))
    with pytest.raises(SettingsError, match="4 points"):
        operator(torch.zeros(1, 5, 1), torch.zeros(1, 5, 1), queries[:1])


def test_where_a_value_lies_on_its_least_an_answer_below_is_no_error() -> None:
    batch, operator, generator = exact_batch(), exact_operator(), torch.Generator()
    below = replace(batch, values=batch.values + 0.5, least=batch.values + 0.5)
    assert float(LOSS(operator, below, generator)) == -math.inf, "all answers are raised to it"
    assert torch.equal(operator.predict(below), below.least)
    above = replace(batch, values=batch.values - 0.5, least=batch.values - 0.5)
    assert float(LOSS(operator, above, generator)) > 0, "to answer more is one"
    held = replace(batch, least=batch.values - 1.0)
    assert torch.equal(operator.predict(held), operator.predict(batch))


def test_directions_are_shortened_where_coordinates_turn_fast() -> None:
    """The difference is then taken where the slope is measured, and counts in proportion."""
    batch, operator = exact_batch(), exact_operator()
    assert batch.query_tangents is not None
    fast = replace(
        batch,
        query_tangents=1e4 * batch.query_tangents,
        value_tangents=batch.value_tangents * 0.0,
    )
    wide = float(LOSS(operator, fast, torch.Generator().manual_seed(1)))
    short = replace(LOSS, longest=1e-3)
    assert float(short(operator, fast, torch.Generator().manual_seed(1))) < wide
    same = float(short(operator, batch, torch.Generator().manual_seed(1)))
    largest = replace(LOSS, longest=1e9)
    assert same <= 0.0
    assert float(largest(operator, batch, torch.Generator().manual_seed(1))) == float(
        LOSS(operator, batch, torch.Generator().manual_seed(1))
    )


def test_thinning_keeps_everything_at_a_query_together() -> None:
    batch = exact_batch()
    thin = batch.thinned(None, 4, torch.Generator().manual_seed(0))
    assert thin.queries is not None
    assert thin.queries.shape == (5, 4, 2)
    assert float(LOSS(exact_operator(), thin, torch.Generator())) < -15


def test_an_operator_of_one_field_learns_values_and_slopes() -> None:
    """A short run on the real thing: the loss falls by e² in 60 steps."""
    from amo.training.soap import SOAP

    config = AMOConfig(
        n_features=1, n_dimensions=1, n_query_dimensions=2, width=16, n_tokens=8, n_poles=3,
        n_blocks=2, n_heads=2, state_size=4,
    )  # fmt: skip
    torch.manual_seed(0)
    operator = checkpoint.build(Recipe(kind="amo", config=config))
    batch = exact_batch().map(lambda tensor: tensor.float())
    loss = SobolevLoss(value_unit=1e-3, direction_units=(1e-2, 2e-2, 5e-3), step=1e-5)
    optimizer = SOAP(operator.parameters(), lr=5e-3)
    seen = []
    for step in range(60):
        value = loss(operator, batch, torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        seen.append(float(value.detach()))
    assert seen[-1] < seen[0] - 2

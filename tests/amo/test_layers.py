"""The operator's parts, each against what defines it."""

from typing import Literal, cast

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional

from amo import takenaka_malmquist as tm
from amo.baselines.mlp import PointwiseMLP, PointwiseMLPConfig
from amo.layers.attention import CrossAttention, StreamingSoftmax
from amo.layers.feedforward import PositionEncoding, anchor_spacing, anchors
from amo.layers.filter_block import AxisScans
from amo.layers.modulated import Modulator, Trunk
from amo.layers.scan import selective_scan, selective_scan_reference
from amo.layers.ssm import Mixer, SelectiveSSM, scan_orders
from amo.layers.tm_layer import TMLayer

DOUBLE = torch.float64


def scan_inputs(batch: int = 2, length: int = 5, channels: int = 3, state: int = 4) -> list[Tensor]:
    torch.manual_seed(0)
    shapes = [(batch, length, channels)] * 2 + [(state, channels)] + [(batch, length, state)] * 2
    step, signal, decay, into, out = (torch.randn(s, dtype=DOUBLE) for s in shapes)
    made = [step.exp() * 0.3, signal, -decay.exp(), into, out]
    return [tensor.requires_grad_() for tensor in made]


def test_scan_equals_the_plain_loop_and_its_gradients_are_right() -> None:
    inputs = scan_inputs()
    assert torch.allclose(selective_scan(*inputs), selective_scan_reference(*inputs), atol=1e-14)
    assert gradcheck(selective_scan, inputs)


def test_scan_takes_strided_inputs() -> None:
    step, signal, decay, into, out = scan_inputs()
    strided = (
        step.transpose(1, 2).contiguous().transpose(1, 2),
        signal.transpose(0, 2).contiguous().transpose(0, 2),
        decay.T.contiguous().T,
        into.transpose(1, 2).contiguous().transpose(1, 2),
        out,
    )
    assert gradcheck(selective_scan, [t.detach().requires_grad_() for t in strided])


def test_scan_by_tensor_operations_equals_the_compiled_loops() -> None:
    inputs = [tensor.detach() for tensor in scan_inputs()]
    step, signal, decay, into, out = inputs
    given = (step, step * signal, decay, into, out)
    y, states, factors = torch.ops.amo.selective_scan(*given)
    gradient = torch.randn_like(y)
    expected = torch.ops.amo.selective_scan_adjoint(gradient, *given, states, factors)

    class Elsewhere(torch.Tensor):
        """A tensor that says it lives on another device, so the CPU's kernels are not taken."""

        @property
        def device(self) -> torch.device:  # type: ignore[override]
            return torch.device("meta")

    from amo.layers import scan as module

    step_elsewhere = step.as_subclass(Elsewhere)
    again = module._scan._init_fn(step_elsewhere, *given[1:])
    for ours, theirs in zip(again, (y, states, factors), strict=True):
        assert torch.allclose(ours.as_subclass(Tensor), theirs, atol=1e-14)
    back = module._adjoint._init_fn(gradient, step_elsewhere, *given[1:], states, factors)
    for ours, theirs in zip(back, expected, strict=True):
        assert torch.allclose(ours.as_subclass(Tensor), theirs, atol=1e-13)


def test_reference_scan_differentiates_twice_and_forwards() -> None:
    inputs = scan_inputs(batch=1, length=3, channels=2, state=2)
    assert gradgradcheck(selective_scan_reference, inputs)
    plain = tuple(tensor.detach() for tensor in inputs)
    tangents = tuple(torch.ones_like(tensor) for tensor in plain)
    _, forward = torch.func.jvp(selective_scan_reference, plain, tangents)  # type: ignore[misc]
    y = selective_scan(*inputs)
    backward = torch.autograd.grad(y.sum(), inputs)
    assert torch.allclose(forward.sum(), sum((g.sum() for g in backward), torch.tensor(0.0)))


def test_scan_passes_torchs_own_checks_of_an_operator() -> None:
    inputs = [t.detach().requires_grad_() for t in scan_inputs()]
    torch.library.opcheck(torch.ops.amo.selective_scan.default, tuple(inputs))


def test_scan_without_decay_is_a_running_sum() -> None:
    ones = torch.ones(1, 6, 1, dtype=DOUBLE)
    signal = torch.arange(6.0, dtype=DOUBLE).view(1, 6, 1)
    y = selective_scan(ones, signal, torch.zeros(1, 1, dtype=DOUBLE), ones, ones)
    assert torch.equal(y, signal.cumsum(1))


def test_mixer_is_causal_forwards_and_anticausal_backwards() -> None:
    torch.manual_seed(0)
    ssm = SelectiveSSM(8, state_size=4, conv_width=4, expansion=2)
    tokens = torch.randn(1, 10, 8)
    changed = tokens.clone()
    changed[:, 6, 0] += 1.0  # a token as a whole is normalised
    moved = (ssm(tokens) - ssm(changed)).abs().amax(-1)[0]
    assert (moved[:6] == 0.0).all()
    assert moved[6] > 0.0
    backward = Mixer("bi", 10, 8, state_size=4, conv_width=4, expansion=2)
    moved = (backward(tokens) - backward(changed)).abs().amax(-1)[0]
    assert (moved > 0.0).all()


def test_scan_orders_are_permutations_and_multi_needs_a_square() -> None:
    for kind, count in (("uni", 1), ("bi", 2), ("multi", 4)):
        orders = scan_orders(kind, 16)
        assert len(orders) == count
        assert all(torch.equal(order.sort()[0], torch.arange(16)) for order in orders)
    assert scan_orders("multi", 4)[2].tolist() == [0, 2, 1, 3]
    with pytest.raises(ValueError, match="square"):
        scan_orders("multi", 12)


def test_attention_holds_the_gaussian_of_distances() -> None:
    torch.manual_seed(0)
    attention = CrossAttention(8, 2, spacing=0.5).double()
    q, k = torch.randn(2, 5, 8, dtype=DOUBLE), torch.randn(2, 7, 8, dtype=DOUBLE)
    x, a = torch.randn(2, 5, 3, dtype=DOUBLE), torch.randn(2, 7, 3, dtype=DOUBLE)
    plain = attention.scores(q, k, torch.zeros_like(x), torch.zeros_like(a))
    distance = torch.cdist(x, a)[:, None] ** 2
    lengths = torch.exp(attention.log_length)[:, None, None]
    expected = plain - distance / (2.0 * lengths**2)
    assert torch.allclose(attention.scores(q, k, x, a), expected, atol=1e-10)
    weights = torch.softmax(expected, dim=-1)
    assert torch.allclose(
        attention(q, k, k, x, a), attention.merge(weights @ attention.split(k)), atol=1e-10
    )


def test_streaming_softmax_equals_the_whole() -> None:
    torch.manual_seed(0)
    scores, values = torch.randn(2, 3, 20, dtype=DOUBLE) * 30, torch.randn(2, 20, 4, dtype=DOUBLE)
    scores[:, :, 5:10] = float("-inf")  # one whole piece is padding
    mean = StreamingSoftmax()
    for start in range(0, 20, 5):
        mean.add(scores[..., start : start + 5], values[:, start : start + 5])
    assert torch.allclose(mean.result(), torch.softmax(scores, -1) @ values, atol=1e-12)


@pytest.mark.parametrize(("count", "dimensions"), [(16, 1), (64, 2), (64, 3), (30, 2), (7, 4)])
def test_anchors_fill_the_box_in_an_order_of_neighbours(count: int, dimensions: int) -> None:
    points = anchors(count, dimensions)
    assert points.shape == (count, dimensions)
    assert points.abs().max() < 1.0
    distances = torch.cdist(points, points) + 9.0 * torch.eye(count)
    assert distances.min() > 0.2 * anchor_spacing(count, dimensions)
    if round(count ** (1 / dimensions)) ** dimensions == count:
        steps = (points[1:] - points[:-1]).norm(dim=-1)
        assert torch.allclose(steps, torch.full_like(steps, anchor_spacing(count, dimensions)))


def test_position_encoding_tells_points_apart() -> None:
    torch.manual_seed(0)
    encoding = PositionEncoding(2, 16)
    points = anchors(64, 2)
    distances = torch.cdist(encoding(points), encoding(points)) + 9.0 * torch.eye(64)
    assert distances.min() > 1e-3


@pytest.mark.parametrize("kind", ["adaptive", "learned-static", "random-static"])
def test_poles_stay_inside_their_disc_and_start_apart(kind: str) -> None:
    torch.manual_seed(0)
    layer = TMLayer(16, 32, 6, first_pole=0, poles=kind)
    tokens = 1e3 * torch.randn(4, 32, 16)
    radius = layer.poles(tokens).norm(dim=-1)
    assert (radius < tm.largest_radius(32) + 1e-6).all()
    quiet = layer.poles(torch.zeros(1, 32, 16))[0]
    assert (torch.cdist(quiet, quiet) + torch.eye(6)).min() > 1e-2
    assert any(p.requires_grad for p in layer.parameters()) == (kind != "random-static")
    one, other = layer.poles(torch.randn(2, 32, 16)).expand(2, -1, -1)
    assert bool(((one - other).abs() > 1e-3).any()) == (kind == "adaptive")


def test_first_projection_holds_the_mean_and_the_sum_of_blocks_is_orthogonal() -> None:
    torch.manual_seed(0)
    first = TMLayer(4, 64, 3, first_pole=0).double()
    second = TMLayer(4, 64, 3, first_pole=3).double()
    tokens = torch.randn(2, 64, 4, dtype=DOUBLE)
    one, carry = first(tokens, None)
    two, _ = second(tokens, carry)
    assert torch.allclose(one.captured.mean(1), tokens.mean(1), atol=1e-4)
    overlap = (one.captured * two.captured).mean()
    assert abs(overlap) < 1e-4 * (tokens**2).mean()


@pytest.mark.parametrize("n_mixed", [0, 3])
@pytest.mark.parametrize("n_queries", [7, 40])
@pytest.mark.parametrize("kind", ["shift", "scale-shift"])
def test_identity_modulations_scale_shift_and_mix_every_layer(
    kind: Literal["shift", "scale-shift"], n_queries: int, n_mixed: int
) -> None:
    """h ← GELU((1 + scale) ∘ ((W + Σ mix_k V_k) h + b) + shift), with and without gradients."""
    torch.manual_seed(0)
    trunk = Trunk(3, 8, 3, 2, kind, n_mixed).double()
    modulator = Modulator(10, trunk).double()
    queries = torch.randn(4, n_queries, 3, dtype=DOUBLE)
    points = torch.zeros(4, 1, 1, dtype=DOUBLE)
    modulations = modulator(torch.randn(4, 5, 2, dtype=torch.float64), points, points, None)
    n_each = 1 if kind == "shift" else 2
    assert modulations.shape == (4, 3 * n_each * 8 + 2 * n_mixed)
    plain, mix = modulations.split([3 * n_each * 8, 2 * n_mixed], dim=1)
    plain = plain.view(4, 3, n_each, 8)
    h = queries
    for number, layer in enumerate(cast("list[nn.Linear]", trunk.layers)):
        weight = layer.weight.expand(4, -1, -1)
        if number and n_mixed:
            matrices = trunk.mixed[number - 1].view(n_mixed, 8, 8)
            each = mix.view(4, 2, n_mixed)[:, number - 1]
            weight = weight + torch.einsum("bk,kij->bij", each, matrices)
        h = torch.einsum("bij,bqj->bqi", weight, h) + layer.bias
        h = h * (1.0 + plain[:, number, 1:]) if kind == "scale-shift" else h
        h = functional.gelu(h + plain[:, number, :1])
    torch.testing.assert_close(trunk(queries, modulations), trunk.last(h))
    with torch.no_grad():
        torch.testing.assert_close(trunk(queries, modulations), trunk.last(h))


def test_a_shifted_trunk_contains_the_perceptron_on_input_and_query() -> None:
    torch.manual_seed(1)
    first = nn.Linear(2 + 3, 8)
    trunk = Trunk(n_inputs=3, width=8, depth=2, n_outputs=1, kind="shift")
    known, queries = torch.randn(4, 2), torch.randn(4, 6, 3)
    with torch.no_grad():
        trunk.layers[0].weight.copy_(first.weight[:, 2:])
        trunk.layers[0].bias.copy_(first.bias)
    modulations = torch.zeros(4, 2 * 8)
    modulations[:, :8] = known @ first.weight[:, :2].T
    beside = torch.cat([known.unsqueeze(1).expand(-1, 6, -1), queries], dim=-1)
    plain = trunk.last(functional.gelu(trunk.layers[1](functional.gelu(first(beside)))))
    torch.testing.assert_close(trunk(queries, modulations), plain)


@pytest.mark.parametrize("n_mixed", [0, 3])
@pytest.mark.parametrize("kind", ["shift", "scale-shift"])
def test_the_derivative_along_a_turn_is_that_of_the_encoding(
    kind: Literal["shift", "scale-shift"], n_mixed: int
) -> None:
    """Reverse mode in ``along`` gives each query its own directional derivative."""
    torch.manual_seed(2)
    trunk = Trunk(3, 8, 3, 1, kind, n_mixed).double()
    modulations, turn = torch.randn(2, 4, trunk.n_modulations, dtype=DOUBLE)
    queries = torch.randn(4, 6, 3, dtype=DOUBLE)
    along = torch.zeros(4, 6, 1, dtype=DOUBLE, requires_grad=True)
    answer = trunk(queries, modulations, turn.unsqueeze(1), along)
    torch.testing.assert_close(answer, trunk(queries, modulations))
    (slope,) = torch.autograd.grad(answer.sum(), along)
    step = 1e-6
    forth, back = (trunk(queries, modulations + k * step * turn) for k in (1, -1))
    torch.testing.assert_close(slope, (forth - back) / (2 * step), rtol=1e-7, atol=1e-8)


def test_a_perceptron_turns_with_its_input() -> None:
    torch.manual_seed(3)
    config = PointwiseMLPConfig(
        n_points=2, n_features=1, n_dimensions=1, n_query_dimensions=3, width=8, depth=2
    )
    model = PointwiseMLP(config).double()
    latent, turn = torch.randn(4, 2, dtype=DOUBLE), torch.randn(4, 2, dtype=DOUBLE)
    queries = torch.randn(4, 6, 3, dtype=DOUBLE)
    along = torch.zeros(4, 6, 1, dtype=DOUBLE, requires_grad=True)
    answer = model.decode(latent, queries, turns=turn.unsqueeze(1), along=along)
    (slope,) = torch.autograd.grad(answer.sum(), along)
    forth, back = (model.decode(latent + k * 1e-6 * turn, queries) for k in (1, -1))
    torch.testing.assert_close(slope, (forth - back) / 2e-6, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("directions", [1, 2])
def test_scans_along_axes_in_one_direction_see_nothing_ahead(directions: int) -> None:
    torch.manual_seed(0)
    scans = AxisScans(4, n_axes=2, directions=directions, state_size=3).double()
    x = torch.randn(4, 2, 5, 6, dtype=DOUBLE)
    moved = x.clone()
    moved[:, 0, 2, 3] += 1.0
    change = (scans(moved) - scans(x)).abs().amax(0)
    assert change[1].max() == 0.0  # the other sample
    ahead = torch.zeros(5, 6, dtype=torch.bool)
    ahead[2:, 3:] = True
    assert change[0][ahead].min() > 0.0
    assert (change[0][~ahead].max() == 0.0) == (directions == 1)


def test_scans_treat_axes_in_their_order() -> None:
    """Turned over, with the scans of the axes changed about, the same comes out turned over."""
    torch.manual_seed(0)
    scans = AxisScans(4, n_axes=1, directions=2, state_size=3).double()
    x = torch.randn(4, 2, 5, 3, dtype=DOUBLE)
    lines = x.permute(0, 1, 3, 2).flatten(1, 2)  # each line a sample of its own
    along_first = AxisScans(4, n_axes=2, directions=2, state_size=3).double()
    along_first.axes[0] = scans.axes[0]
    along_first.axes[1] = nn.ModuleList([nn.Identity()])
    expected = scans(lines).unflatten(1, (2, 3)).permute(0, 1, 3, 2)
    assert torch.allclose(along_first(x), expected, atol=1e-13)

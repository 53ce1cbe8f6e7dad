"""The operator as a whole: its decomposition, its size, its devices and precisions."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from amo import takenaka_malmquist as tm
from amo.checkpoint import Recipe
from amo.data.batch import Batch
from amo.errors import SettingsError
from amo.layers.aggregation import aggregate
from amo.layers.tm_layer import Projection
from amo.model import AMO
from amo.model_config import AMOConfig


def real_span(diagnostics: list[tm.Complex], n_tokens: int) -> Tensor:
    """The real orthonormal functions {1, √2 Re B, √2 Im B}, one a row."""
    rows = [torch.ones(1, n_tokens, dtype=torch.float64)]
    for real, imaginary in diagnostics:
        rows += [2**0.5 * real[0], 2**0.5 * imaginary[0]]
    return torch.cat(rows)


def test_default_model_has_the_papers_size() -> None:
    model = AMO(AMOConfig(n_features=1, n_dimensions=2))
    n = sum(p.numel() for p in model.parameters())
    assert 1.10e6 <= n <= 1.30e6


def linear_blocks(coefficients: str, n_blocks: int = 3) -> tuple[AMO, Tensor]:
    """A model whose blocks do nothing but project, and tokens for it."""
    torch.manual_seed(0)
    config = AMOConfig(
        n_features=1, n_dimensions=1, width=8, n_tokens=64, n_poles=6, n_blocks=n_blocks,
        n_heads=2, mixer="none", poles="learned-static", coefficients=coefficients,
    )  # fmt: skip
    return AMO(config).double(), torch.randn(1, 64, 8, dtype=torch.float64)


def decomposed(model: AMO, tokens: Tensor) -> tuple[list[Projection], Tensor]:
    """Return each block's projection, and the last partial sum."""
    rows = list(model._decompose(tokens))
    return [share for _, share, _ in rows if share is not None], rows[-1][2]


def test_identity_07_partial_sum_is_the_projection_on_all_functions() -> None:
    model, tokens = linear_blocks("residual")
    shares, last = decomposed(model, tokens)
    assert len(shares) == 3
    rows = real_span([share.bases for share in shares], 64)
    expected = rows.T @ (rows @ tokens[0]) / 64
    assert torch.allclose(last[0], expected, atol=1e-10)
    for share in shares:  # coefficients of the first tokens, not of the remainder
        ours = torch.complex(*share.coefficients)
        whole = torch.complex(*tm.inner_product(tokens, share.bases))
        assert torch.allclose(ours, whole, atol=1e-10)


def test_identity_07_literal_recursion_stalls() -> None:
    """The paper to the letter: z_2 lies in the span of B_1, so <z_2, B_2> vanishes, and so on."""
    model, tokens = linear_blocks("accumulated")
    shares, _ = decomposed(model, tokens)
    sizes = [torch.complex(*share.coefficients).abs().max() for share in shares]
    assert sizes[0] > 0.1
    assert all(size < 1e-10 for size in sizes[1:])


def test_identity_15_energy_of_tokens_is_that_of_blocks_and_remainder() -> None:
    model, tokens = linear_blocks("residual")
    energy, rest = 0.0, tokens
    for share in decomposed(model, tokens)[0]:
        energy += (share.captured**2).sum().item()
        rest = rest - share.captured
    assert energy + (rest**2).sum().item() == pytest.approx((tokens**2).sum().item(), rel=1e-8)


def test_blocks_that_do_not_project_are_their_mixers() -> None:
    config = AMOConfig(
        n_features=1, n_dimensions=1, width=8, n_tokens=16, n_poles=2, n_blocks=1, n_heads=2,
        projects=False,
    )  # fmt: skip
    torch.manual_seed(0)
    model, tokens = AMO(config), torch.randn(2, 16, 8)
    ((mixed, share, total),) = model._decompose(tokens)
    assert share is None
    assert total is mixed
    mixer = model.blocks[0].mixer
    torch.testing.assert_close(mixed, tokens + mixer(tokens))
    assert not any("tm_layer" in name for name, _ in model.named_parameters())
    assert model.diagnostics(torch.rand(2, 5, 1), torch.rand(2, 5, 1)) == []
    with pytest.raises(SettingsError, match="leave no remainder"):
        replace(config, n_poles=4, n_blocks=2)


def test_aggregation_adds_up_and_passes_on_what_it_says() -> None:
    mixed, captured, before = (torch.full((1, 2, 1), x) for x in (5.0, 2.0, 10.0))
    for source, expected in (("residual", 3.0), ("input", 5.0), ("accumulated", 12.0)):
        tokens, total = aggregate(source, mixed, captured, before)
        assert tokens[0, 0, 0] == expected
        assert total[0, 0, 0] == 12.0


def test_diagnostics_say_what_each_block_did(
    tiny: AMOConfig, samples: Callable[..., Batch]
) -> None:
    torch.manual_seed(0)
    model, batch = AMO(tiny).eval(), samples(3, 20)
    rows = model.diagnostics(batch.points, batch.features)
    assert [row.poles.shape for row in rows] == [(3, 2, 2), (3, 2, 2)]
    assert all(row.coefficients[0].shape == (3, 2, 16) for row in rows)
    assert all(((row.captured_energy > 0) & (row.captured_energy < 1.01)).all() for row in rows)
    assert rows[0].gram_error.max() <= rows[1].gram_error.max() < 0.1


@pytest.mark.parametrize("n_query_dimensions", [None, 3])
def test_forward_and_backward_run_on_the_meta_device(
    recipe: Recipe, n_query_dimensions: int | None
) -> None:
    """Every tensor is where the inputs are, and every parameter has a gradient."""
    config = replace(recipe.config, n_query_dimensions=n_query_dimensions)
    with torch.device("meta"):
        model = AMO(config)
        points, features = torch.rand(2, 12, 2), torch.rand(2, 12, 2)
        queries = torch.rand(2, 5, n_query_dimensions or 2)
        mask = torch.ones(2, 12, dtype=torch.bool)
    out = model(points, features, queries, mask)
    assert out.device.type == "meta"
    assert out.shape == (2, 5, 1)
    out.sum().backward()
    assert all(p.grad is not None and p.grad.device.type == "meta" for p in model.parameters())


def test_bfloat16_autocast_stays_close_and_keeps_the_spectral_part_in_float32(
    tiny: AMOConfig, samples: Callable[..., Batch]
) -> None:
    torch.manual_seed(0)
    model, batch = AMO(tiny), samples(2, 20)
    plain = model(batch.points, batch.features)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(batch.points, batch.features)
        rows = model.diagnostics(batch.points, batch.features)
    assert rows[0].poles.dtype == rows[0].coefficients[0].dtype == torch.float32
    assert (out.float() - plain).abs().max() < 0.1 * plain.abs().max()
    out.float().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_bfloat16_autocast_keeps_distances_sharp() -> None:
    """In one dimension with many tokens, scores are small differences of large terms."""
    torch.manual_seed(0)
    config = AMOConfig(n_features=1, n_dimensions=1, width=16, n_tokens=64, n_poles=4, n_blocks=1)
    model, points = AMO(config), torch.linspace(-1, 1, 100).view(1, -1, 1)
    features = torch.sin(5.0 * points)
    plain = model.encode(points, features)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = model.encode(points, features)
    assert (half - plain).abs().max() < 0.05 * plain.abs().max()


@pytest.mark.parametrize("chunk", [None, 5])
def test_padding_is_never_read_even_where_a_sample_is_nothing_else(
    recipe: Recipe, samples: Callable[..., Batch], chunk: int | None
) -> None:
    torch.manual_seed(0)
    model, batch = AMO(recipe.config), samples(2, 12)
    mask = torch.tensor([[True] * 9 + [False] * 3, [False] * 12])
    points, features = (
        t.masked_fill(~mask.unsqueeze(-1), torch.nan) for t in (batch.points, batch.features)
    )
    latent = model.encode(points, features, mask, chunk=chunk)
    assert latent.isfinite().all()
    latent.sum().backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(grad.isfinite().all() for grad in grads)


def test_gradients_of_a_tiny_model_are_right(tiny: AMOConfig) -> None:
    torch.manual_seed(0)
    model = AMO(replace(tiny, width=4, n_tokens=4, n_poles=2, n_heads=2, state_size=2)).double()
    points = torch.rand(1, 5, 2, dtype=torch.float64, requires_grad=True)
    features = torch.rand(1, 5, 2, dtype=torch.float64, requires_grad=True)
    queries = torch.rand(1, 3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model, (points, features, queries))
    names = dict(model.named_parameters())

    def with_parameters(*values: Tensor) -> Tensor:
        parameters = dict(zip(names, values, strict=True))
        out: Tensor = torch.func.functional_call(model, parameters, (points, features, queries))
        return out

    leaves = tuple(p.detach().requires_grad_() for p in names.values())
    assert torch.autograd.gradcheck(with_parameters, leaves, fast_mode=True)


def test_traced_model_gives_the_same_numbers_and_gradients(
    tiny: AMOConfig, samples: Callable[..., Batch]
) -> None:
    torch.manual_seed(0)
    model, batch = AMO(tiny), samples(2, 20)
    compiled = torch.compile(model, backend="aot_eager")
    plain, fast = (f(batch.points, batch.features) for f in (model, compiled))
    assert torch.allclose(plain, fast, atol=1e-5)
    parameters = list(model.parameters())
    ours = torch.autograd.grad(fast.square().sum(), parameters)
    for a, b in zip(ours, torch.autograd.grad(plain.square().sum(), parameters), strict=True):
        assert torch.allclose(a, b, atol=1e-3, rtol=1e-3)


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() == "DEFAULT",
    reason="torch's compiler writes vector code, and here it is told to use none",
)
def test_compiled_model_gives_the_same_numbers(
    tiny: AMOConfig, samples: Callable[..., Batch]
) -> None:
    torch.manual_seed(0)
    model, batch = AMO(replace(tiny, n_blocks=1, mixer="none")), samples(2, 20)
    with torch.no_grad():
        plain, fast = (f(batch.points, batch.features) for f in (model, torch.compile(model)))
    assert torch.allclose(plain, fast, atol=1e-5)


def test_second_derivatives_pass_through_encoder_and_decoder(tiny: AMOConfig) -> None:
    torch.manual_seed(0)
    model = AMO(replace(tiny, width=4, n_tokens=4, n_poles=2, state_size=2)).double()
    model.use_plain_operations()
    inputs = [torch.rand(1, n, 2, dtype=torch.float64, requires_grad=True) for n in (4, 4, 2)]
    assert torch.autograd.gradgradcheck(model, tuple(inputs), fast_mode=True)


def test_plain_operations_give_the_same_numbers_and_a_loss_on_forward_derivatives(
    recipe: Recipe, samples: Callable[..., Batch]
) -> None:
    """Differential learning: backwards through derivatives taken forwards."""
    torch.manual_seed(0)
    model, batch = AMO(recipe.config).double(), samples(2, 12)
    points, features = batch.points.double(), batch.features.double()
    mask = torch.arange(12).expand(2, -1) < 9
    fused = model(points, features, mask=mask)
    model.use_plain_operations()
    assert torch.allclose(model(points, features, mask=mask), fused, atol=1e-12)
    tangent = torch.randn_like(features)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(features, tangent)
        slope = forward_ad.unpack_dual(model(points, dual, mask=mask)).tangent
    assert slope is not None
    slope.square().sum().backward()  # outside: the backward pass itself is not dual
    step = 1e-5
    up, down = (model(points, features + s * step * tangent, mask=mask) for s in (1, -1))
    assert torch.allclose(slope, (up - down) / (2.0 * step), atol=1e-6)
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    assert sum(p.grad is not None for p in model.parameters()) > 10


def test_query_points_may_live_in_another_space(tiny: AMOConfig) -> None:
    torch.manual_seed(0)
    model = AMO(replace(tiny, n_query_dimensions=3, n_outputs=2))
    out = model(torch.rand(2, 6, 2), torch.rand(2, 6, 2), torch.rand(2, 4, 3))
    assert out.shape == (2, 4, 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"poles": "wild"}, "poles must be one of"),
        ({"n_poles": 1}, "each needs a pole"),
        ({"n_heads": 3}, "multiple"),
    ],
)
def test_configuration_refuses_nonsense(
    tiny: AMOConfig, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        replace(tiny, **changes)  # type: ignore[arg-type]


def test_too_many_poles_are_warned_of(tiny: AMOConfig) -> None:
    with pytest.warns(UserWarning, match="lose orthonormality"):
        AMO(replace(tiny, n_poles=9))
    assert replace(tiny, n_poles=5, n_blocks=3).poles_per_block == [2, 2, 1]


def test_decoder_that_sees_the_input_answers_at_its_points_only(tiny: AMOConfig) -> None:
    model = AMO(replace(tiny, sees_input=True))
    points, features = torch.rand(2, 7, 2), torch.rand(2, 7, 2)
    latent = model.encode(points, features)
    with pytest.raises(SettingsError, match="as a whole"):
        model.decode(latent, points)
    with pytest.raises(SettingsError, match="takes no queries"):
        model(points, features, points)
    with pytest.raises(SettingsError, match="no query points of its own"):
        replace(tiny, sees_input=True, n_query_dimensions=2)


def test_decoder_without_its_sight_is_the_plain_one(tiny: AMOConfig) -> None:
    torch.manual_seed(0)
    seeing = AMO(replace(tiny, sees_input=True))
    plain = AMO(tiny)
    weights = seeing.state_dict()
    plain.load_state_dict({k: v for k, v in weights.items() if ".seen." not in k})
    points, features = torch.rand(2, 7, 2), torch.rand(2, 7, 2)
    assert not torch.allclose(seeing(points, features), plain(points, features))
    for name, parameter in seeing.named_parameters():
        if ".seen." in name:
            parameter.data.zero_()
    torch.testing.assert_close(seeing(points, features), plain(points, features))

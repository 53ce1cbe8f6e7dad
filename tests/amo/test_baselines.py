"""Each rival shows one fact of its paper that needs no code of its authors."""

from dataclasses import replace

import pytest
import torch

from amo.baselines.ffno import FFNO, FFNOConfig
from amo.baselines.fno import FNO, FNOConfig
from amo.baselines.galerkin import GalerkinAttention, GalerkinConfig
from amo.baselines.grid import SpectralConvolution
from amo.baselines.lamo import LaMO, LaMOConfig
from amo.baselines.lno import LNO, LNOConfig
from amo.baselines.transolver import Slicing
from amo.baselines.transolver_plus import EideticSlicing
from amo.baselines.ufno import UFNO, UFNOConfig
from amo.errors import SettingsError
from amo.registry import MODELS


def waves(n: int, n_points: int, highest: int, seed: int = 0) -> torch.Tensor:
    """Random periodic functions of a few waves, (n, 1, n_points)."""
    generator = torch.Generator().manual_seed(seed)
    x = 2.0 * torch.pi * torch.arange(n_points) / n_points
    k = torch.arange(1, highest + 1).unsqueeze(-1)
    amplitude = torch.randn(n, 2, 1, highest, generator=generator)
    return (amplitude[:, 0] @ torch.sin(k * x)) + (amplitude[:, 1] @ torch.cos(k * x))


def test_fno_layer_becomes_an_exact_translation_of_band_limited_functions() -> None:
    torch.manual_seed(0)
    layer = SpectralConvolution(width=1, modes=6, axes=(-1,)).double()
    train, test = waves(32, 32, 5).double(), waves(8, 32, 5, seed=1).double()
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (layer(train) - train.roll(3, -1)).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert (layer(test) - test.roll(3, -1)).abs().max() < 1e-5


@pytest.mark.parametrize("axes", [(-2, -1), (-1,), (-2,)])
def test_spectral_convolution_keeps_low_modes_and_drops_the_others(axes: tuple[int, ...]) -> None:
    layer = SpectralConvolution(width=1, modes=4, axes=axes)
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[..., 0] = 1.0
    x = torch.linspace(0.0, 2.0 * torch.pi, 17)[:-1]
    low = (torch.sin(3 * x) + torch.cos(2 * x)).view(1, 1, -1, 1) * torch.cos(2 * x)
    high = torch.sin(6 * x).view(1, 1, -1, 1) * torch.sin(6 * x)
    assert torch.allclose(layer(low), low, atol=1e-5)
    assert torch.allclose(layer(high), torch.zeros_like(high), atol=1e-5)


def test_ffno_costs_modes_and_fno_their_square() -> None:
    sizes = {"n_features": 1, "n_dimensions": 2, "grid": (64, 64), "width": 8}

    def count(model: torch.nn.Module) -> int:
        return sum(p.numel() for name, p in model.named_parameters() if "spectral" in name)

    factorised = [count(FFNO(FFNOConfig(**sizes, modes=modes))) for modes in (8, 16)]
    plain = [count(FNO(FNOConfig(**sizes, modes=modes))) for modes in (8, 16)]
    assert factorised[1] == 2 * factorised[0]
    assert plain[1] == 4 * plain[0]


def test_ufno_without_unets_is_fno() -> None:
    sizes = {"n_features": 1, "n_dimensions": 2, "grid": (8, 8), "width": 4, "modes": 3}
    one, other = FNO(FNOConfig(**sizes)), UFNO(UFNOConfig(**sizes, n_unet_layers=0))
    other.load_state_dict(one.state_dict())
    points, features = torch.rand(2, 64, 2), torch.rand(2, 64, 1)
    assert torch.equal(one(points, features), other(points, features))


def test_galerkin_attention_is_the_product_in_any_order() -> None:
    torch.manual_seed(0)
    attention = GalerkinAttention(GalerkinConfig(n_features=1, n_dimensions=1, width=8, n_heads=1))
    x = torch.randn(2, 50, 8)
    q, k, v = attention.query(x), attention.key(x), attention.value(x)
    k, v = attention.key_norm(k), attention.value_norm(v)
    quadratic = attention.out((q @ k.transpose(-1, -2)) @ v / 50)
    assert torch.allclose(attention(x, None), quadratic, atol=1e-5)


def test_galerkin_cost_is_linear_in_points() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    attention = GalerkinAttention(GalerkinConfig(n_features=1, n_dimensions=1, width=8, n_heads=2))

    def work(n: int) -> int:
        with FlopCounterMode(display=False) as counter:
            attention(torch.randn(1, n, 8), None)
        return int(counter.get_total_flops())

    assert work(400) == 4 * work(100)


@pytest.mark.parametrize("kind", [Slicing, EideticSlicing])
def test_slice_weights_of_every_point_sum_to_one(kind: type[Slicing]) -> None:
    slicing = kind(16, 2, 5).train()
    weights, _ = slicing(torch.randn(3, 40, 16))
    assert torch.allclose(weights.sum(-1), torch.ones(3, 2, 40), atol=1e-6)


def test_transolver_plus_is_noisy_in_training_only_and_the_noise_follows_the_seed() -> None:
    slicing, x = EideticSlicing(16, 2, 5), torch.randn(3, 2, 40, 8)
    slicing.eval()
    assert torch.equal(slicing.weigh(x), slicing.weigh(x))
    slicing.train()
    assert not torch.equal(slicing.weigh(x), slicing.weigh(x))
    torch.manual_seed(3)
    one = slicing.weigh(x)
    torch.manual_seed(3)
    assert torch.equal(one, slicing.weigh(x))


def test_lno_weights_of_encoder_and_decoder_are_normalised() -> None:
    model = LNO(LNOConfig(n_features=1, n_dimensions=2, width=16, n_heads=2, n_modes=6))
    points, mask = torch.rand(3, 20, 2), torch.arange(20).expand(3, -1) < 15
    into = model.encoding_weights(points, mask)
    assert torch.allclose(into.sum(-1), torch.ones(3, 6), atol=1e-6)
    assert (into[..., 15:] == 0).all()
    assert torch.allclose(model.decoding_weights(points).sum(-1), torch.ones(3, 20), atol=1e-6)


def test_lamo_equals_its_mixer_free_self_when_the_mixer_is_silent() -> None:
    torch.manual_seed(0)
    config = LaMOConfig(
        n_features=1, n_dimensions=2, width=16, n_heads=2, n_layers=2, n_slices=6, state_size=4
    )
    model, without = LaMO(config), LaMO(replace(config, mixer="none"))
    shared = {name: value for name, value in model.state_dict().items() if ".mixer." not in name}
    without.load_state_dict(shared)
    points, features = torch.rand(2, 30, 2), torch.rand(2, 30, 1)
    assert not torch.allclose(model(points, features), without(points, features))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("contract.weight"):
                weight.zero_()
    assert torch.allclose(model(points, features), without(points, features), atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"grid": (8,)}, "2 axes"),
        ({"grid": (8, 8), "modes": 5}, "half of the grid"),
    ],
)
def test_grids_that_do_not_fit_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        FNOConfig(n_features=1, n_dimensions=2, **settings)  # type: ignore[arg-type]


def test_every_model_is_a_contestant_or_a_rival_of_the_surrogates() -> None:
    from amo.benchmarks.contestants import RIVALS

    assert set(RIVALS) | {"mlp", "set-encoder"} == set(MODELS)

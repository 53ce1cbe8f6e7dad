"""Each rival over points shows a fact of its paper that needs no code of its authors."""

from dataclasses import replace

import pytest
import torch

from amo.baselines.galerkin import GalerkinAttention, GalerkinConfig
from amo.baselines.lamo import LaMO, LaMOConfig
from amo.baselines.lno import LNO, LNOConfig
from amo.baselines.oformer import OFormer, OFormerConfig, RotaryAttention, rotate
from amo.baselines.ono import Whitening, covariance_of, ridged_factor
from amo.baselines.transolver import Slicing
from amo.baselines.transolver_plus import EideticSlicing
from amo.errors import SettingsError
from amo.registry import MODELS


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


def correlated(n_samples: int, n_points: int, n_functions: int) -> torch.Tensor:
    """Random features of points whose covariance is far from the identity, in float64."""
    generator = torch.Generator().manual_seed(0)
    independent = torch.randn(n_samples, n_points, n_functions, generator=generator).double()
    return independent @ torch.randn(n_functions, n_functions, generator=generator).double() + 0.5


def departure(whitening: Whitening, covariance: torch.Tensor) -> float:
    """How far the ridge ρ leaves features from orthonormal: 1 - λ / (λ + ρ) at the smallest λ."""
    ridge = whitening.ridge * float(covariance.trace())
    smallest = float(torch.linalg.eigvalsh(covariance)[0])
    return ridge / (smallest + ridge)


def test_ono_features_are_orthonormal_under_the_batch_s_covariance_in_training() -> None:
    whitening, psi = Whitening(5, momentum=0.9).double().train(), correlated(3, 40, 5)
    mask = torch.arange(40).expand(3, -1) < torch.tensor([[40], [30], [7]])
    found = covariance_of(whitening(psi, mask), mask)
    left = departure(whitening, covariance_of(psi, mask))
    error = torch.linalg.matrix_norm(found - torch.eye(5, dtype=found.dtype), ord=2)
    assert float(error) == pytest.approx(left, rel=1e-6)
    assert left < 0.01
    seen = psi[mask]  # padding has no part in it
    assert torch.allclose(covariance_of(seen[None], None), covariance_of(psi, mask), rtol=1e-12)


def test_ono_features_are_orthonormal_under_the_running_covariance_later() -> None:
    whitening, psi = Whitening(5, momentum=0.9).double().train(), correlated(3, 40, 5)
    whitening(psi, None)
    running = whitening.covariance
    identity = torch.eye(5, dtype=torch.float64)
    assert torch.allclose(running, 0.9 * identity + 0.1 * covariance_of(psi, None), rtol=1e-12)
    whitening.eval()
    rows = 5**0.5 * torch.linalg.cholesky(running).mT  # five points whose covariance that is
    found = covariance_of(whitening(rows[None], None), None)
    left = departure(whitening, running)
    error = torch.linalg.matrix_norm(found - identity, ord=2)
    assert float(error) == pytest.approx(left, rel=1e-6)
    assert torch.equal(whitening.covariance, running)


def test_ono_gradient_goes_through_the_factor_and_stays_finite_for_dependent_features() -> None:
    whitening = Whitening(3, momentum=0.9).double().train()
    psi = correlated(2, 4, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: whitening(x, None), (psi,))
    whitening = whitening.float()
    for features in (torch.ones(2, 4, 3), torch.zeros(2, 4, 3)):
        features.requires_grad_()
        whitening(features, None).square().sum().backward()
        assert features.grad is not None
        assert torch.isfinite(features.grad).all()


def test_ono_factor_of_what_is_not_finite_is_not_finite_either() -> None:
    broken = torch.eye(3).masked_fill(torch.eye(3, dtype=torch.bool), torch.nan)
    assert not torch.isfinite(ridged_factor(broken, 1e-5)).all()


@pytest.mark.parametrize("n_dimensions", [1, 2, 3])
def test_oformer_scores_depend_on_differences_of_places_only(n_dimensions: int) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 1, 1, 14, generator=generator).double()
    x, y, shift = torch.rand(3, 1, 6, n_dimensions, generator=generator).double()

    def scores(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        one, other = (
            rotate(t.expand(-1, -1, 6, -1), places, 64.0) for t, places in ((q, a), (k, b))
        )
        return (one * other).sum(-1)

    # angles of up to 100 radians are rounded by 1e-14, and 14 products of about one add up
    assert torch.allclose(scores(x, y), scores(x + shift, y + shift), atol=1e-11)
    assert not torch.allclose(scores(x, y), scores(x + shift, y), atol=1e-3)


def test_oformer_attention_is_the_product_in_any_order() -> None:
    torch.manual_seed(0)
    attention = RotaryAttention(8, 1, 64.0).double()
    x, places = torch.randn(2, 50, 8).double(), torch.rand(2, 50, 2).double()
    q, k, v = (f(x).unsqueeze(1) for f in (attention.query, attention.key, attention.value))
    q, k = rotate(q, places, 64.0), rotate(attention.key_norm(k), places, 64.0)
    quadratic = (q @ k.mT) @ attention.value_norm(v) / 50
    answer = attention.answer(x, places, attention.summary(x, places, None))
    assert torch.allclose(answer, attention.out(quadratic.squeeze(1)), rtol=1e-11, atol=1e-13)


def test_oformer_cost_is_linear_in_points_and_its_encoding_does_not_grow() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = OFormer(
        OFormerConfig(n_features=1, n_dimensions=2, width=16, latent_width=16, n_heads=2)
    )

    def work(n: int) -> tuple[int, torch.Size]:
        with FlopCounterMode(display=False) as counter:
            points = torch.rand(1, n, 2)
            latent = model.encode(points, torch.rand(1, n, 1))
            model.decode(latent, points)
        return int(counter.get_total_flops()), latent.shape

    (few, small), (many, same) = work(100), work(400)
    assert many == 4 * few
    assert small == same


def test_oformer_refuses_heads_that_are_too_narrow_to_turn() -> None:
    with pytest.raises(SettingsError, match="two channels for each of 3 coordinates"):
        OFormerConfig(n_features=1, n_dimensions=3, width=16, n_heads=4)


def test_every_model_is_a_contestant_or_a_rival_of_the_surrogates() -> None:
    from amo.benchmarks.contestants import RIVALS

    assert set(RIVALS) | {"mlp", "set-encoder"} == set(MODELS)

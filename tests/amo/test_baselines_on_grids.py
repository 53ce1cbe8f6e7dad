"""Each rival on a grid shows a fact of its paper that needs no code of its authors."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from numpy.polynomial import legendre

from amo.baselines.ffno import FFNO, FFNOConfig
from amo.baselines.fno import FNO, FNOConfig
from amo.baselines.grid import SpectralConvolution
from amo.baselines.ifno import IFNO, FourierFlow, IFNOConfig
from amo.baselines.lsm import (
    LatentSpectralBlock,
    LSMConfig,
    TrigonometricMap,
    from_patches,
    to_patches,
)
from amo.baselines.mwt import (
    MWT,
    MWTConfig,
    decompose,
    joint_filters,
    multiwavelet_filters,
    reconstruct,
)
from amo.baselines.ufno import UFNO, UFNOConfig
from amo.benchmarks.contestants import recipe_for
from amo.benchmarks.options import RAW
from amo.benchmarks.table import moved
from amo.checkpoint import build
from amo.errors import SettingsError


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


def test_spectral_convolution_of_a_short_axis_has_the_modes_that_fit() -> None:
    torch.manual_seed(0)
    long, short = (SpectralConvolution(width=3, modes=n, axes=(-2, -1)) for n in (4, 2))
    with torch.no_grad():  # along an axis with both signs, the lowest stand first and last
        short.weight.copy_(long.weight[:, :, [0, 1, 6, 7], :2])
    x = torch.randn(2, 3, 4, 5)
    assert torch.allclose(long(x), short(x), atol=1e-6)


def on_halves(order: int, x: np.ndarray, half: int) -> tuple[np.ndarray, np.ndarray]:
    """φ_0 … φ_{k-1} and ψ_0 … ψ_{k-1} on a half, as sums of the polynomials of that half."""
    sizes = np.sqrt(2.0 * np.arange(order) + 1.0)
    local = np.sqrt(2.0) * legendre.legvander(2.0 * (2.0 * x - half) - 1.0, order - 1) * sizes
    whole, wavelets = multiwavelet_filters(order)[:, :, half] @ local.T
    return whole, wavelets


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_multiwavelets_have_vanishing_moments_and_no_more(order: int) -> None:
    nodes, weights = legendre.leggauss(3 * order)  # exact for degrees to 6k - 1; here to 3k - 1
    for i in range(order):
        moments = np.zeros(order + i + 1)
        for half in (0, 1):
            x = 0.25 * (nodes + 1.0) + 0.5 * half
            values = on_halves(order, x, half)[1][i]
            moments += (0.25 * weights * values) @ np.vander(x, order + i + 1, increasing=True)
        assert np.abs(moments[:-1]).max() < 1e-14 * 8 * order  # sums of 6k terms of about one
        assert abs(moments[-1]) > 1e-5


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_polynomials_of_a_cell_are_sums_of_those_of_its_halves(order: int) -> None:
    for half in (0, 1):
        x = np.linspace(0.01, 0.49, 7) + 0.5 * half
        whole = legendre.legvander(2.0 * x - 1.0, order - 1) * np.sqrt(2.0 * np.arange(order) + 1)
        assert np.allclose(on_halves(order, x, half)[0], whole.T, rtol=0, atol=1e-13)


def test_multiwavelets_of_one_polynomial_are_haar_s() -> None:
    haar = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)
    assert np.allclose(multiwavelet_filters(1).reshape(2, 2), haar, rtol=0, atol=1e-15)


@pytest.mark.parametrize("order", [3, 4])
@pytest.mark.parametrize("grid", [(16,), (8, 4), (4, 8, 4)])
def test_multiwavelets_reconstruct_perfectly_and_keep_the_norm(
    order: int, grid: tuple[int, ...]
) -> None:
    filters = torch.from_numpy(joint_filters(order, len(grid)))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 2 * order ** len(grid), *grid, generator=generator).double()
    parts = decompose(x, filters)
    # each number is a sum of (2k)^d products with a row of norm one: below 1e-16 (2k)^d
    assert torch.allclose(reconstruct(parts, filters), x, rtol=0, atol=2e-16 * len(filters) * 8)
    assert float(parts.norm()) == pytest.approx(float(x.norm()), rel=1e-13)


def test_constants_are_constants_at_every_scale() -> None:
    filters = torch.from_numpy(joint_filters(3, 2))
    x = torch.zeros(1, 9, 8, 8, dtype=torch.float64)
    x[:, 0] = 1.0
    s, details = decompose(x, filters).split([1, 3], dim=1)
    assert torch.allclose(details, torch.zeros_like(details), atol=1e-15)
    assert torch.allclose(s[0, 0, 0], torch.full((4, 4), 2.0).double(), atol=1e-14)  # 2^{d / 2}


def test_mwt_fills_the_grid_up_to_powers_of_two() -> None:
    model = MWT(MWTConfig(n_features=1, n_dimensions=2, grid=(85, 3), order=3, modes=1))
    assert model.lengths == (128, 4)


@pytest.mark.parametrize("name", ["mwt", "lsm", "ifno"])
def test_weights_of_rivals_on_grids_move_to_a_finer_grid(name: str) -> None:
    recipe = recipe_for(name, RAW)
    operator = build(recipe).eval()
    finer = moved(operator, recipe, (128, 128))
    assert finer(torch.rand(1, 128**2, 2), torch.rand(1, 128**2, 6)).shape == (1, 128**2, 1)
    weights = dict(operator.named_parameters())
    assert all(torch.equal(weights[key], value) for key, value in finer.named_parameters())


def test_trigonometric_map_reproduces_band_limited_functions_and_no_others() -> None:
    series = TrigonometricMap(width=2, n_bases=12).double()

    def functions(x: torch.Tensor) -> torch.Tensor:  # waves of 0 to 11, and of 1 to 12
        low, high = x.unbind(-1)
        one = torch.sin(2 * low).pow(3) * torch.cos(5 * low) + 0.3
        return torch.stack([one, torch.sin(high) - 2.0 * torch.cos(12 * high)], dim=-1)

    nodes = 2.0 * torch.pi * torch.arange(32).double() / 32
    modes = torch.fft.rfft(functions(nodes.unsqueeze(-1).expand(-1, 2)), dim=0, norm="forward")
    with torch.no_grad():
        series.constant.copy_(modes[0].real)
        series.cosine.copy_(2.0 * modes[1:13].real.T)
        series.sine.copy_(-2.0 * modes[1:13].imag.T)
    x = torch.linspace(-4.0, 4.0, 50).double().unsqueeze(-1).expand(-1, 2)
    assert torch.allclose(series(x), functions(x), rtol=0, atol=1e-12)
    with torch.no_grad():
        beyond = torch.cos(13 * nodes)  # orthogonal to all that the map can say
        nearest = series(nodes.unsqueeze(-1).expand(-1, 2))
    assert (beyond @ nearest).abs().max() < 1e-12


def test_lsm_block_works_patch_by_patch() -> None:
    torch.manual_seed(0)
    config = LSMConfig(
        n_features=1, n_dimensions=2, grid=(6, 9), width=8, n_scales=1, patch=3, n_heads=2
    )
    block = LatentSpectralBlock(config, 8)
    x = torch.randn(1, 8, 6, 9)
    changed = x.clone()
    changed[:, :, 4, 4] += 1.0
    differs = (block(x) != block(changed)).any(dim=1)[0]
    assert differs[3:6, 3:6].all()
    assert differs.sum() == 9
    assert torch.equal(from_patches(to_patches(x, 3), 3, x.shape), x)


def test_ifno_of_any_depth_has_the_weights_of_the_shallowest() -> None:
    sizes = {"n_features": 1, "n_dimensions": 2, "grid": (8, 8), "width": 4, "modes": 3}
    shallow, *deeper = (IFNO(IFNOConfig(**sizes, depth=depth)) for depth in (3, 6, 12, 24))
    points, features = torch.rand(2, 64, 2), torch.rand(2, 64, 1)
    for model in deeper:
        model.load_state_dict(shallow.state_dict())
        assert not torch.equal(model(points, features), shallow(points, features))


def test_ifno_converges_with_depth_at_order_one() -> None:
    torch.manual_seed(0)
    sizes = {"n_features": 1, "n_dimensions": 1, "grid": (32,), "width": 6, "modes": 8}
    x = torch.randn(1, 6, 32).double()
    flows = [FourierFlow(IFNOConfig(**sizes, depth=64 * 2**i)).double() for i in range(4)]
    for flow in flows:
        flow.load_state_dict(flows[0].state_dict())
    with torch.no_grad():
        answers = [flow(x) for flow in flows]
        kernels = torch.view_as_complex(flows[0].spectral.weight)  # (in, out, modes)
        widest = torch.linalg.matrix_norm(kernels.movedim(-1, 0), ord=2).max()
        rate = float(widest + torch.linalg.matrix_norm(flows[0].local.inner.weight, ord=2))
    steps = [float((a - b).norm()) for a, b in pairwise(answers)]
    orders = [float(np.log2(a / b)) for a, b in pairwise(steps)]
    # errors are c h (1 + rate h + …): GELU's slope is below 1.2, and rate bounds what it acts on
    for order, depth in zip(orders, (64, 128), strict=True):
        assert abs(order - 1.0) < 1.2 * rate / depth < 0.1


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


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (IFNOConfig, {"depth": 0}, "depth must be at least 1"),
        (MWTConfig, {"order": 0}, "order, multiplicity and n_layers"),
        (LSMConfig, {"patch": 1}, "at least 2 points"),
        (LSMConfig, {"n_tokens": 0}, "n_scales, n_bases and n_tokens"),
    ],
)
def test_sizes_that_make_no_model_are_refused(
    kind: type[Any], settings: dict[str, int], words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        kind(n_features=1, n_dimensions=2, grid=(32, 32), **settings)

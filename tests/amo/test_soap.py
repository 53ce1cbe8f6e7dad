"""SOAP: its bases, and that it turns correlated gradients into uncorrelated ones."""

import pytest
import torch
from torch import Tensor, nn

from amo.training.soap import SOAP


def quadratic(weight: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return 0.5 * (left @ weight @ right).square().sum()


def stiff(n: int, seed: int) -> Tensor:
    """Return a matrix with singular values from 1 to 100 along random directions."""
    generator = torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))[0]
    return torch.diag(torch.logspace(0, 2, n, dtype=torch.float64)) @ basis


def minimise(optimizer: torch.optim.Optimizer, weight: Tensor, steps: int) -> float:
    left, right = (stiff(n, seed) for seed, n in enumerate(weight.shape, start=1))
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * (1 - step / steps)
        optimizer.zero_grad()
        loss = quadratic(weight, left, right)
        loss.backward()
        optimizer.step()
    return float(loss.detach())


def start() -> nn.Parameter:
    generator = torch.Generator().manual_seed(0)
    return nn.Parameter(torch.randn(8, 6, generator=generator, dtype=torch.float64))


def test_curved_valleys_along_no_axis_are_no_trouble() -> None:
    one, two = start(), start()
    adam = minimise(torch.optim.Adam([one], betas=(0.95, 0.95)), one, 300)
    soap = minimise(SOAP([two], refresh=5), two, 300)
    assert soap < 0.05 * adam


def test_bases_are_orthonormal_and_nearly_diagonalise_the_covariances() -> None:
    weight = start()
    optimizer = SOAP([weight], refresh=2)
    minimise(optimizer, weight, 60)
    state = optimizer.state[weight]
    for side, n in (("left", 8), ("right", 6)):
        basis = state[f"{side}_basis"]
        assert torch.allclose(basis.mT @ basis, torch.eye(n, dtype=torch.float64), atol=1e-10)
        turned = basis.mT @ state[side] @ basis
        off = turned - torch.diag(turned.diagonal())
        assert off.norm() < 0.1 * turned.norm()


@pytest.mark.parametrize("shape", [(7,), (1, 5), (3, 4, 5), (600, 600)])
def test_other_shapes_take_the_steps_of_adam(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(3)
    one = nn.Parameter(torch.randn(shape, generator=generator))
    two = nn.Parameter(one.detach().clone())
    adam = torch.optim.Adam([one], lr=1e-2, betas=(0.95, 0.95))
    soap = SOAP([two], lr=1e-2)
    for _ in range(5):
        for parameter, optimizer in ((one, adam), (two, soap)):
            optimizer.zero_grad()
            parameter.sin().sum().backward()
            optimizer.step()
    assert torch.allclose(one, two, atol=1e-6)


def test_a_side_that_is_too_long_keeps_its_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    from amo.training import soap

    monkeypatch.setattr(soap, "_LARGEST", 8)
    one, two = (nn.Parameter(torch.ones(8, 9, dtype=torch.float64)) for _ in range(2))
    adam = minimise(torch.optim.Adam([one], betas=(0.95, 0.95)), one, 300)
    optimizer = SOAP([two], refresh=5)
    assert minimise(optimizer, two, 300) < 0.5 * adam
    assert "left" in optimizer.state[two]
    assert "right" not in optimizer.state[two]


def test_there_is_no_closure() -> None:
    with pytest.raises(ValueError, match="closure"):
        SOAP([start()]).step(lambda: 0.0)

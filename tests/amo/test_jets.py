"""Jets: every rule against torch's own differentiation, and networks that carry them."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from amo import jets
from amo.baselines.mlp import PointwiseMLP, PointwiseMLPConfig
from amo.jets import Jet
from amo.layers.modulated import ModulationKind, Trunk
from amo.operator import smaller_of

DOUBLE = torch.float64
AT = torch.linspace(-1.0, 1.0, 5, dtype=DOUBLE)
PAIRS = ((0, 0), (0, 1), (1, 1))
EXACT = 1e-12  # a few roundings of numbers of about one


def carried(function: Callable[..., Jet], x: Tensor, y: Tensor) -> list[Tensor]:
    jet = function(Jet.variable(x, 0, 2, PAIRS), Jet.variable(y, 1, 2, PAIRS))
    return list(jet.parts)


def differentiated(function: Callable[..., Tensor], x: Tensor, y: Tensor) -> list[Tensor]:
    """Value, both first derivatives, and the second ones of PAIRS, by torch."""
    leaves = [x.clone().requires_grad_(), y.clone().requires_grad_()]
    value = function(*leaves)
    firsts = torch.autograd.grad(value.sum(), leaves, create_graph=True)
    seconds = [
        torch.autograd.grad(firsts[i].sum(), leaves[j], retain_graph=True, allow_unused=True)[0]
        for i, j in PAIRS
    ]
    return [
        part.detach()
        for part in (value, *firsts, *(torch.zeros_like(x) if s is None else s for s in seconds))
    ]


RULES: dict[str, Callable[..., Tensor | Jet]] = {
    "sum and product": lambda x, y: 2.0 + x * y - 3.0 * x + (1.0 - y),
    "quotient": lambda x, y: x / y + 2.0 / (x * y) - y / 4.0,
    "log": lambda x, y: jets.log(x * y),
    "log1p": lambda x, y: jets.log1p(x * x * y),
    "exp": lambda x, y: jets.exp(x * y),
    "expm1": lambda x, y: jets.expm1(-x * y),
    "sqrt": lambda x, y: jets.sqrt(x + y * y),
    "tanh": lambda x, y: jets.tanh(x - y * y),
    "sigmoid": lambda x, y: jets.sigmoid(x * x - y),
    "softplus": lambda x, y: jets.softplus(x * y - x),
    "hypot": lambda x, y: jets.hypot(x * y, 1.0 - y),
    "smaller of a positive gap": lambda x, y: smaller_of(x * y, jets.exp(x - y)),
    "smaller of a negative gap": lambda x, y: smaller_of(x * y, 0.1 - jets.exp(x - y)),
    "hypot of a jet and a tensor": lambda x, y: jets.hypot(x * y, AT) + jets.hypot(AT, y),
    "smaller of a constant gap": lambda x, y: smaller_of(x * y, AT),
    "where": lambda x, y: jets.where(torch.arange(5) < 2, x * y, jets.exp(x + y)),
}


@pytest.mark.parametrize("name", RULES)
def test_a_jet_carries_what_differentiation_finds(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = 0.5 + torch.rand(2, 5, dtype=DOUBLE, generator=generator)
    for part, expected in zip(
        carried(RULES[name], x, y), differentiated(RULES[name], x, y), strict=True
    ):
        torch.testing.assert_close(part, expected, rtol=EXACT, atol=EXACT)


def test_a_tensor_beside_a_jet_does_not_change() -> None:
    x, still = torch.rand(2, 4, dtype=DOUBLE)
    jet = Jet.variable(x, 0, 1, ((0, 0),))
    is_jet = torch.tensor([True, False, True, False])
    cases: list[tuple[Any, Tensor]] = [
        (jets.where(is_jet, jet, still), is_jet),
        (jets.where(is_jet, still, jet), ~is_jet),
    ]
    for chosen, shown in cases:
        assert torch.equal(chosen.value, torch.where(shown, x, still))
        assert torch.equal(chosen.first(0), shown.to(DOUBLE))
        assert not chosen.second(0).any()


def test_gelu_of_a_jet_is_that_of_torch_in_the_memory_of_its_argument() -> None:
    x = torch.linspace(-6.0, 6.0, 101, dtype=DOUBLE, requires_grad=True)
    value = nn.functional.gelu(x)
    (slope,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), x)
    jet = Jet.variable(x.detach(), 0, 1, ((0, 0),))
    found = jets.gelu_(jet)
    assert found is jet
    expected = torch.stack([value, slope, bend]).detach()
    torch.testing.assert_close(found.parts, expected, rtol=0.0, atol=1e-14)


def queries_of(x: Any, y: Any) -> Any:
    """Three coordinates, none of them linear, of (states, rows)."""
    return jets.stack([x * y, jets.exp(-x), jets.tanh(x + y)], -1)


class Modulated:
    """A trunk, called as a model is."""

    def __init__(self, kind: ModulationKind, n_mixed: int) -> None:
        self.trunk = Trunk(3, 8, 3, 1, kind, n_mixed).double()

    def decode(self, latent: Tensor, queries: Tensor) -> Tensor:
        return self.trunk(queries, latent)

    def jet(self, latent: Tensor, queries: Jet, turns: dict[int, Tensor]) -> Jet:
        return self.trunk.jet(queries, latent, turns)


@pytest.mark.parametrize("kind", ["shift", "scale-shift", "mixed", "perceptron"])
@pytest.mark.parametrize("n_rows", [3, 700])  # in one piece, and in two
def test_a_network_carries_derivatives_in_its_coordinates_and_its_encoding(
    kind: str, n_rows: int
) -> None:
    torch.manual_seed(0)
    x, y = 0.5 + torch.rand(2, 2, n_rows, dtype=DOUBLE)
    network: Any  # a perceptron, or a trunk behind its arguments
    if kind == "perceptron":
        config = PointwiseMLPConfig(
            n_points=4, n_features=1, n_dimensions=1, n_query_dimensions=3, width=8, depth=3
        )
        network = PointwiseMLP(config).double()
        encoding = torch.randn(2, 4, dtype=DOUBLE)
    else:
        n_mixed = 2 if kind == "mixed" else 0
        network = Modulated("shift" if kind == "shift" else "scale-shift", n_mixed)
        encoding = torch.randn(2, network.trunk.n_modulations, dtype=DOUBLE)
    turn = torch.randn_like(encoding)
    pairs = ((0, 0), (0, 1))
    with torch.no_grad():
        moved = [Jet.variable(value, place, 3, pairs) for place, value in enumerate((x, y))]
        found = network.jet(encoding, queries_of(*moved), {2: turn})
    leaves = [
        x.requires_grad_(),
        y.requires_grad_(),
        torch.zeros((), dtype=DOUBLE, requires_grad=True),
    ]
    answers = network.decode(encoding + leaves[2] * turn, queries_of(x, y))
    d_x, d_y = torch.autograd.grad(answers.sum(), leaves[:2], create_graph=True)
    d_xx, d_xy = torch.autograd.grad(d_x.sum(), leaves[:2], retain_graph=True)
    (turned,) = torch.autograd.grad(answers.sum(), leaves[2])
    for part, expected in (
        (found.value, answers),
        (found.first(0).squeeze(-1), d_x),
        (found.first(1).squeeze(-1), d_y),
        (found.second(0).squeeze(-1), d_xx),
        (found.second(1).squeeze(-1), d_xy),
        (found.first(2).sum(), turned),
    ):
        size = float(expected.detach().abs().max())
        torch.testing.assert_close(
            part, expected, rtol=0.0, atol=1e-12 * max(1.0, size) * math.sqrt(n_rows)
        )


def test_a_trunk_without_gradients_answers_as_with_them() -> None:
    """To a few roundings: each layer sums 64 products of numbers of about one."""
    torch.manual_seed(0)
    trunk = Trunk(3, 64, 4, 1).double()
    queries, modulations = torch.randn(3, 5_000, 3).double(), torch.randn(3, 4 * 2 * 64).double()
    with torch.no_grad():
        found = trunk(queries, modulations)
    torch.testing.assert_close(found, trunk(queries, modulations).detach(), rtol=0.0, atol=1e-12)

"""Orthogonal neural operator (Xiao et al., 2024): attention by orthonormal features.

Two streams run side by side. The first embeds the points and mixes them by linear attention; its
layers give features ψ, which are made orthonormal under their covariance C = L Lᵀ over points and
samples: ψ̂ = L⁻¹ ψ. The second carries the solution f, which every layer expands in them,
f + ψ̂ diag(μ) (ψ̂ᵀ f) / n with learned μ > 0, as a kernel is by its eigenfunctions. It answers at its
input points.

Paper: the covariance is that of the batch while training, and a running mean of it later, so an
answer does not depend on the other samples. The ridge is not printed.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from amo.baselines.galerkin import GalerkinAttention
from amo.baselines.points import check_heads, mean_products, refuse_queries, what_is_given
from amo.errors import SettingsError
from amo.layers.feedforward import MLP
from amo.layers.precision import at_least_float32, full_precision


@dataclass(frozen=True, kw_only=True)
class ONOConfig:
    """Sizes of the model.

    Attributes
    ----------
    n_functions
        Orthonormal features of a layer, ψ.
    momentum
        What the running covariance keeps of itself at a step.
    """

    n_query_dimensions: ClassVar[None] = None

    n_features: int
    n_dimensions: int
    n_outputs: int = 1
    width: int = 128
    n_heads: int = 8
    n_layers: int = 8
    n_functions: int = 16
    momentum: float = 0.9

    def __post_init__(self) -> None:
        check_heads(self.width, self.n_heads)
        if self.n_functions < 1 or not 0.0 <= self.momentum < 1.0:
            raise SettingsError(
                "n_functions must be at least 1 and momentum in [0, 1), got "
                f"{self.n_functions} and {self.momentum}"
            )


class Whitening(nn.Module):
    """ψ̂ = L⁻¹ ψ with L Lᵀ the covariance of ψ plus a ridge.

    Rounding in float32 moves eigenvalues of C by about n 6e-8 of the largest, which is less than
    the trace. A ridge of 1e-5 of the trace is more than that for up to a hundred functions, so the
    factor exists, and everything is differentiable, even where features depend on each other.
    """

    ridge = 1e-5
    covariance: Tensor

    def __init__(self, n_functions: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("covariance", torch.eye(n_functions))

    def forward(self, psi: Tensor, mask: Tensor | None) -> Tensor:
        """Return (batch, n, n_functions), orthonormal under the covariance in force."""
        with full_precision(psi):
            psi = at_least_float32(psi)
            covariance = self.covariance
            if self.training:
                covariance = covariance_of(psi, mask)
                kept = self.momentum * self.covariance
                self.covariance.copy_(kept + (1.0 - self.momentum) * covariance.detach())
            factor = ridged_factor(covariance, self.ridge)
            identity = torch.eye(len(factor), device=factor.device, dtype=factor.dtype)
            return psi @ torch.linalg.solve_triangular(factor, identity, upper=False).mT


def covariance_of(psi: Tensor, mask: Tensor | None) -> Tensor:
    """Return the mean of ψ ψᵀ over all points of all samples, (n_functions, n_functions)."""
    every = psi.flatten(0, 1)
    seen = None if mask is None else mask.flatten().unsqueeze(0)
    return mean_products(every[None, None], every[None, None], seen)[0, 0]


def ridged_factor(covariance: Tensor, ridge: float) -> Tensor:
    """Return the Cholesky factor of C + ridge tr(C) I, lower triangular.

    If C is not finite, neither is the factor: training then says that it diverged.
    """
    tiny = torch.finfo(covariance.dtype).tiny ** 0.5  # features may all be zero
    added = ridge * covariance.diagonal().sum() + tiny
    identity = torch.eye(len(covariance), device=covariance.device, dtype=covariance.dtype)
    return torch.linalg.cholesky_ex(covariance + added * identity).L


class OrthogonalAttention(nn.Module):
    """ψ̂ diag(μ) (ψ̂ᵀ f) / n with μ = softplus(learned)."""

    def __init__(self, config: ONOConfig) -> None:
        super().__init__()
        width = config.width
        self.features = nn.Linear(width, config.n_functions)
        self.whitening = Whitening(config.n_functions, config.momentum)
        self.scale = nn.Parameter(torch.zeros(config.n_functions))
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, solution: Tensor, mask: Tensor | None) -> Tensor:
        """Mix the solution (batch, n, width) by features of x, of the same shape."""
        psi = self.whitening(self.features(x), mask)
        values = at_least_float32(self.value(solution))
        with full_precision(psi):
            expanded = mean_products(psi.unsqueeze(1), values.unsqueeze(1), mask).squeeze(1)
            mixed = (psi * functional.softplus(self.scale)) @ expanded
        return self.out(mixed)


class TwoStreams(nn.Module):
    """x + Attention(LN x), x + FFN(LN x); f + Orthogonal(x, LN f), f + FFN(LN f)."""

    def __init__(self, config: ONOConfig) -> None:
        super().__init__()
        width = config.width
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.attention = GalerkinAttention(config)
        self.orthogonal = OrthogonalAttention(config)
        self.feedforwards = nn.ModuleList(MLP(width, width, width) for _ in range(2))

    def forward(self, x: Tensor, f: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Map both streams, (batch, n, width) each."""
        first, second, third, fourth = self.norms
        mix, answer = self.feedforwards
        x = x + self.attention(first(x), mask)
        x = x + mix(second(x))
        f = f + self.orthogonal(x, third(f), mask)
        return x, f + answer(fourth(f))


class ONO(nn.Module):
    """The operator."""

    def __init__(self, config: ONOConfig) -> None:
        super().__init__()
        self.config = config
        width, n_given = config.width, config.n_features + config.n_dimensions
        self.embed, self.begin = (MLP(n_given, 2 * width, width) for _ in range(2))
        self.layers = nn.ModuleList(TwoStreams(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, config.n_outputs)

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return (batch, n_points, n_outputs); see :meth:`amo.model.AMO.forward`."""
        refuse_queries(self, queries)
        given = what_is_given(points, features, mask)
        x, f = self.embed(given), self.begin(given)
        for layer in self.layers:
            x, f = layer(x, f, mask)
        return self.project(self.norm(f))

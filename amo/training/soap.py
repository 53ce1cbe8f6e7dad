"""SOAP: Adam in the eigenbasis of Shampoo's preconditioner.

For a weight matrix with gradient G, running means L of G Gᵀ and R of Gᵀ G have eigenvectors U and
V. Adam runs on Uᵀ G V, where gradients are nearly uncorrelated, and its step is turned back. The
bases follow by one orthogonal iteration every few steps. A side that is too long keeps its axes.

Measured on the American training set, two cores: validation RMSE 5.5e-5 after 1,500 steps and 167
seconds; AdamW 8.9e-5 after 3,000 steps and 230 seconds.

References
----------
N. Vyas et al., SOAP: Improving and Stabilizing Shampoo using Adam, 2024.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim import Optimizer

_LARGEST = 256  # longer sides cost more to turn and to diagonalise than they bring
State = dict[str, Tensor]


class SOAP(Optimizer):
    """SOAP for matrices, Adam for everything else; no weight decay.

    Parameters
    ----------
    params
        Parameters or groups of them.
    lr
        Step size.
    betas
        Memory of the mean gradient, and of its squares and covariances.
    refresh
        Steps between two updates of the bases.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 3e-3,
        betas: tuple[float, float] = (0.95, 0.95),
        refresh: int = 20,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "refresh": refresh, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Do one step; there is no closure."""
        if closure is not None:
            raise ValueError("SOAP takes no closure")
        for group in self.param_groups:
            self._step([p for p in group["params"] if p.grad is not None], group)

    def _step(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Do Adam's step in the bases, on all parameters at once: many of them are small."""
        slow, slower = group["betas"]
        gradients = [cast("Tensor", parameter.grad) for parameter in parameters]
        states: list[State] = [self.state[parameter] for parameter in parameters]
        for state, gradient in zip(states, gradients, strict=True):
            if not state:
                state.update(_first_state(gradient))
            state["count"] += 1
        counts = [int(state["count"]) for state in states]
        means, squares = ([state[name] for state in states] for name in ("mean", "square"))
        turned = [_turn(state, gradient) for state, gradient in zip(states, gradients, strict=True)]
        torch._foreach_lerp_(means, turned, 1.0 - slow)
        torch._foreach_mul_(squares, slower)
        torch._foreach_addcmul_(squares, turned, turned, value=1.0 - slower)
        spreads = [square.sqrt() for square in squares]
        torch._foreach_div_(spreads, [(1.0 - slower**count) ** 0.5 for count in counts])
        torch._foreach_add_(spreads, group["eps"])
        ratios = [mean / spread for mean, spread in zip(means, spreads, strict=True)]
        torch._foreach_mul_(ratios, [-group["lr"] / (1.0 - slow**count) for count in counts])
        steps = [_turn_back(state, ratio) for state, ratio in zip(states, ratios, strict=True)]
        torch._foreach_add_(parameters, steps)
        for state, gradient in zip(states, gradients, strict=True):
            if "left" in state:
                _follow(state["left"], gradient, slower)
            if "right" in state:
                _follow(state["right"], gradient.mT, slower)
            if int(state["count"]) % group["refresh"] == 0:
                _refresh(state)


def _first_state(gradient: Tensor) -> State:
    state = {
        "count": torch.zeros((), dtype=torch.int64),  # on the host, where it is read
        "mean": torch.zeros_like(gradient),  # in the bases, as the squares are
        "square": torch.zeros_like(gradient),
    }
    if gradient.ndim == 2 and min(gradient.shape) > 1:
        sides = {"left": gradient @ gradient.mT, "right": gradient.mT @ gradient}
        for (side, product), length in zip(sides.items(), gradient.shape, strict=True):
            if length <= _LARGEST:
                state[side] = product
                state[f"{side}_basis"] = torch.linalg.eigh(product)[1].contiguous()
    return state


def _follow(covariance: Tensor, gradient: Tensor, memory: float) -> None:
    """Move a running mean of G Gᵀ."""
    covariance.addmm_(gradient, gradient.mT, beta=memory, alpha=1.0 - memory)


def _turn(state: State, values: Tensor) -> Tensor:
    if "left" in state:
        values = state["left_basis"].mT @ values
    return values @ state["right_basis"] if "right" in state else values


def _turn_back(state: State, values: Tensor) -> Tensor:
    if "left" in state:
        values = state["left_basis"] @ values
    return values @ state["right_basis"].mT if "right" in state else values


def _refresh(state: State) -> None:
    """Turn each basis towards the eigenvectors, largest first.

    The mean is turned with it; the squares follow their axes.
    """
    mean = _turn_back(state, state["mean"])
    for side, axis in (("left", 0), ("right", 1)):
        if side not in state:
            continue
        basis = state[f"{side}_basis"]
        sizes = (basis * (state[side] @ basis)).sum(0)
        order = sizes.argsort(descending=True)
        state["square"] = state["square"].index_select(axis, order)
        # as it is stored: another layout in memory would round differently after a resume
        state[f"{side}_basis"] = torch.linalg.qr(state[side] @ basis[:, order])[0].contiguous()
    state["mean"] = _turn(state, mean).contiguous()

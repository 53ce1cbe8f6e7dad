"""What a surrogate does inside: poles, functions and energies for a market state."""

from typing import NamedTuple

import numpy as np
import torch

from amo import takenaka_malmquist as tm
from amo.arrays import FloatArray
from amo.model import AMO
from amo.model_config import AMOConfig
from pricing.surrogate.encoding import STATE_POINTS, code_rate
from pricing.surrogate.model import Surrogate


class Block(NamedTuple):
    """One block on each market state.

    ``poles`` (states, poles, 2) lie in the unit disc; ``captured_energy`` (states,) is the share of
    the energy of the block's tokens in their projection; ``gram_error`` (states,) how far the
    functions up to this block are from orthonormal on the tokens.
    """

    poles: FloatArray
    captured_energy: FloatArray
    gram_error: FloatArray


def explain(surrogate: Surrogate, rate: FloatArray, dividend_yield: FloatArray) -> list[Block]:
    """Return what every block did to the states of puts with these rates."""
    operator, model = surrogate.operator, _amo(surrogate)
    state = np.stack([rate, dividend_yield], axis=1)
    features = torch.from_numpy(code_rate(state)).to(surrogate.device, surrogate.dtype)
    points = torch.tensor(STATE_POINTS).to(features).expand(len(state), -1)
    with torch.no_grad():
        rows = model.diagnostics(
            operator.points(points.unsqueeze(-1)), operator.features(features.unsqueeze(-1))
        )
    return [
        Block(*(x.double().cpu().numpy() for x in (r.poles, r.captured_energy, r.gram_error)))
        for r in rows
    ]


def functions(blocks: list[Block], n_angles: int = 181) -> tuple[FloatArray, list[FloatArray]]:
    """Return angles, and the real parts of each block's functions of its first state."""
    angles = tm.circle(n_angles, torch.zeros(1, dtype=torch.float64))
    carry, found = angles, []  # the pole at zero comes first
    for block in blocks:
        (real, _), carry = tm.takenaka_malmquist(torch.from_numpy(block.poles[0]), angles, carry)
        found.append(real.numpy())
    return angles.numpy(), found


def configuration(surrogate: Surrogate) -> AMOConfig:
    """Return the sizes of the model."""
    return _amo(surrogate).config


def parameter_counts(surrogate: Surrogate) -> dict[str, int]:
    """Return the number of weights of each part of the model."""
    counts: dict[str, int] = {}
    for name, parameter in surrogate.operator.model.named_parameters():
        part = name.split(".")[0]
        counts[part] = counts.get(part, 0) + parameter.numel()
    return counts


def _amo(surrogate: Surrogate) -> AMO:
    model = surrogate.operator.model
    if not isinstance(model, AMO):
        raise TypeError(f"only an AMO has poles, not a {type(model).__name__}")
    return model

"""A network's answers and their derivatives.

A network with jets carries them forwards beside the value, in one pass. Others are differentiated
backwards through the decoder, and by differences in float64 through the encoder.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from amo.arrays import FloatArray
from amo.jets import Jet
from pricing.surrogate.encoding import rate_slope
from pricing.surrogate.network import STEP, Network, Rows

# The derivatives of the value that make up each quantity: S spot, v volatility, T expiry, r rate,
# q dividend yield. The first is the quantity's own.
DERIVATIVES: dict[str, tuple[str, ...]] = {
    "price": (),
    "delta": ("S",),
    "gamma": ("SS",),
    "vega": ("v",),
    "theta": ("S", "SS"),
    "rho": ("r",),
    "dividend_rho": ("q",),
    "vanna": ("Sv",),
    "volga": ("vv",),
    "charm": ("ST",),
}
_FIELDS = {"S": "spot", "v": "volatility", "T": "expiry", "r": "rate", "q": "dividend_yield"}


Answers: TypeAlias = tuple[FloatArray, dict[str, FloatArray]]


def differentiate(
    network: Network, rows: Rows, latent: Tensor, turned: dict[str, Tensor], wanted: Sequence[str]
) -> Answers:
    """Return values above the closed form and their wanted derivatives, (states, rows) each."""
    if not wanted or not network.has_jets:
        with torch.no_grad():
            value = network.above(network.operator, rows, latent).cpu().numpy()
        return value, _backwards(network, rows, latent, turned, wanted) if wanted else {}
    slopes = {
        letter: (pair[0] - pair[1]) / (2.0 * STEP) * _like(rate_slope(_rate(rows, letter)), pair[0])
        for letter, pair in turned.items()
    }
    return _forwards(network, rows, latent, slopes, wanted)


def _rate(rows: Rows, letter: str) -> Tensor:
    """Return the rate that a letter stands for, of each state."""
    rate: Tensor = getattr(rows, _FIELDS[letter])[:, 0]
    return rate


def _like(factor: Tensor, encoding: Tensor) -> Tensor:
    """Return a number of each state, shaped to multiply its encoding."""
    return factor.view(-1, *[1] * (encoding.ndim - 1))


def _forwards(
    network: Network,
    rows: Rows,
    latent: Tensor,
    slopes: dict[str, Tensor],
    wanted: Sequence[str],
) -> Answers:
    """Differentiate in one pass; ``slopes`` are those of encodings in their rates."""
    letters = sorted(set("".join(wanted)))
    place = {letter: number for number, letter in enumerate(letters)}
    names = [name for name in wanted if len(name) > 1]
    pairs = tuple((place[name[0]], place[name[1]]) for name in names)
    moved: dict[str, Any] = {
        _FIELDS[letter]: Jet.variable(
            getattr(rows, _FIELDS[letter]), place[letter], len(letters), pairs
        )
        for letter in letters
    }
    turns = {place[letter]: slope.to(network.dtype) for letter, slope in slopes.items()}
    found = network.jet(rows._replace(**moved), latent, turns)
    slope = {name: found.first(place[name]) for name in wanted if len(name) == 1}
    bend = {name: found.second(number) for number, name in enumerate(names)}
    derivatives = {name: tensor.cpu().numpy() for name, tensor in (slope | bend).items()}
    return found.value.cpu().numpy(), derivatives


def _backwards(
    network: Network, rows: Rows, latent: Tensor, turned: dict[str, Tensor], wanted: Sequence[str]
) -> dict[str, FloatArray]:
    leaves = {letter: getattr(rows, field) for letter, field in _FIELDS.items()}
    for letter in set("".join(wanted)):
        leaves[letter].requires_grad_()
    found: dict[str, Tensor] = {}
    letters = sorted({name[0] for name in wanted})
    slopes = torch.autograd.grad(
        network.above(network.differentiable, rows, latent).sum(),
        [leaves[letter] for letter in letters],
        create_graph=any(len(name) > 1 for name in wanted),
    )
    for letter, slope in zip(letters, slopes, strict=True):
        found[letter] = slope
        seconds = [name for name in wanted if len(name) > 1 and name[0] == letter]
        if seconds:
            curvatures = torch.autograd.grad(
                slope.sum(), [leaves[name[1]] for name in seconds], retain_graph=True
            )
            found.update(zip(seconds, curvatures, strict=True))
    still = Rows(*(tensor.detach() for tensor in rows))
    for letter, pair in turned.items():
        rate = leaves[letter].detach()
        found[letter] = found[letter] + rate_slope(rate) * _between(network, still, pair)
    return {name: found[name].detach().cpu().numpy() for name in wanted}


def _between(network: Network, rows: Rows, pair: Tensor) -> Tensor:
    """Return the derivative of :meth:`Network.above` in the code of a rate, through its encoding.

    A central difference in float64, exact to about eight digits. Torch's forward mode is shared by
    all threads, and a second backward pass costs as much.
    """
    with torch.no_grad():
        forth, back = (network.above(network.double, rows, latent) for latent in pair)
        slope: Tensor = (forth - back) / (2.0 * STEP)
    return slope

"""Derivatives of a network's answers: backwards through the decoder, by differences in states."""

from collections.abc import Sequence

import torch
from torch import Tensor

from amo.arrays import FloatArray
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


def differentiate(
    network: Network, rows: Rows, latent: Tensor, turned: dict[str, Tensor], wanted: Sequence[str]
) -> dict[str, FloatArray]:
    """Return the wanted derivatives of the value above the closed form, (states, rows) each."""
    leaves = {
        "S": rows.spot,
        "v": rows.volatility,
        "T": rows.expiry,
        "r": rows.rate,
        "q": rows.dividend_yield,
    }
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
        found[letter] = found[letter] + _between(network, still, leaves[letter].detach(), pair)
    return {name: found[name].detach().cpu().numpy() for name in wanted}


def _between(network: Network, rows: Rows, rate: Tensor, pair: Tensor) -> Tensor:
    """Return the derivative of :meth:`Network.above` in a rate through the encoding of its state.

    A central difference in float64, exact to about eight digits. Torch's forward mode is shared by
    all threads, and a second backward pass costs as much.
    """
    with torch.no_grad():
        forth, back = (network.above(network.double, rows, latent) for latent in pair)
        slope: Tensor = rate_slope(rate) * (forth - back) / (2.0 * STEP)
    return slope

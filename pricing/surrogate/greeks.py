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
    turns, along = _turns(network, turned, rows)
    further = [] if along is None else [along]
    slopes = torch.autograd.grad(
        network.above(network.differentiable, rows, latent, turns, along).sum(),
        [*(leaves[letter] for letter in letters), *further],
        create_graph=any(len(name) > 1 for name in wanted),
    )
    for letter, slope in zip(letters, slopes, strict=False):
        found[letter] = slope
        seconds = [name for name in wanted if len(name) > 1 and name[0] == letter]
        if seconds:
            curvatures = torch.autograd.grad(
                slope.sum(), [leaves[name[1]] for name in seconds], retain_graph=True
            )
            found.update(zip(seconds, curvatures, strict=True))
    still = Rows(*(tensor.detach() for tensor in rows))
    for number, (letter, pair) in enumerate(turned.items()):
        rate = leaves[letter].detach()
        if along is None:
            through = _between(network, still, pair)
        else:
            through = slopes[-1][..., number].detach()
        found[letter] = found[letter] + rate_slope(rate) * through
    return {name: found[name].detach().cpu().numpy() for name in wanted}


def _turns(
    network: Network, turned: dict[str, Tensor], rows: Rows
) -> tuple[Tensor | None, Tensor | None]:
    """Return how encodings change with their states, and zeros to differentiate in.

    None for operators whose queries share one encoding.
    """
    if not turned or not network.differentiable.turns:
        return None, None
    slopes = [(pair[0] - pair[1]) / (2.0 * STEP) for pair in turned.values()]
    turns = torch.stack(slopes, dim=1).to(network.dtype)
    return turns, turns.new_zeros((*rows.spot.shape, len(turned)), requires_grad=True)


def _between(network: Network, rows: Rows, pair: Tensor) -> Tensor:
    """Return the derivative of :meth:`Network.above` in the code of a rate, through its encoding.

    A central difference in float64, exact to about eight digits, for operators that attend to
    their encoding. Torch's forward mode is shared by all threads, and a second backward pass costs
    as much.
    """
    with torch.no_grad():
        forth, back = (network.above(network.double, rows, latent) for latent in pair)
        slope: Tensor = (forth - back) / (2.0 * STEP)
    return slope

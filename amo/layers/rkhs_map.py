"""R: latent tokens to samples of a function on the circle, token by token."""

from torch import Tensor, nn

from amo.layers.feedforward import MLP


class RKHSMap(nn.Module):
    """z_1 = z_0 + MLP(z_0); from here on token n is the value at z_n = exp(2πi n / M).

    Paper: the map knows neither features nor coordinates, and mixes no tokens. The residual is
    ours.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.network = MLP(width, width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, n_tokens, width)."""
        return tokens + self.network(tokens)

"""Q: latent tokens to values at any query points, each query on its own."""

import torch
from torch import Tensor, nn

from amo.errors import SettingsError
from amo.layers.attention import CrossAttention, softmax
from amo.layers.feedforward import MLP
from amo.layers.places import Placed


class OutputProjection(nn.Module):
    """y = q + Σ_m w_m S_m with q = PEN(queries) =: p; y + FFN(LN y); Linear(y).

    With ``n_seen`` features of the input given at each query, q = p + MLP([features, p]): the
    tokens need not carry what every point knows of itself.

    The weights w are cross-attention from q to LN S + L, or softmax_m of position scores. Nothing
    mixes queries, so they may be decoded in any chunks. Values are not normalised: the answer's
    size is in them.
    """

    def __init__(
        self,
        width: int,
        n_heads: int,
        n_outputs: int,
        spacing: float,
        *,
        is_anchored: bool,
        n_seen: int = 0,
    ) -> None:
        super().__init__()
        self.attention = CrossAttention(width, n_heads, spacing) if is_anchored else None
        self.key_norm = nn.LayerNorm(width) if is_anchored else None
        self.seen = MLP(n_seen + width, width, width) if n_seen else None
        self.norm = nn.LayerNorm(width)
        self.feedforward = MLP(width, 2 * width, width)
        self.last = nn.Linear(width, n_outputs)

    def forward(self, placed: Placed, latent: Tensor, features: Tensor | None = None) -> Tensor:
        """Return (batch, n_queries, n_outputs)."""
        asked = placed.encoded
        if self.seen is not None:
            if features is None:
                raise SettingsError("this decoder sees the input: give its features")
            asked = asked + self.seen(torch.cat([features, asked], dim=-1))
        if self.attention is not None and self.key_norm is not None:
            anchors = placed.anchors.expand(len(latent), -1, -1)
            keys = self.key_norm(latent) + placed.labels
            gathered = self.attention(asked, keys, latent, placed.points, anchors)
        else:
            weights = softmax(placed.token_scores(), dim=-2).transpose(-1, -2)
            gathered = weights @ latent
        mixed = asked + gathered
        mixed = mixed + self.feedforward(self.norm(mixed))
        return self.last(mixed)

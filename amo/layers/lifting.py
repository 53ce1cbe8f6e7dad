"""P: physical tokens, one for each input point, to a fixed number of latent tokens.

Two forms. *Anchored*: the paper's cross-attention with queries tied to positions. *Position*: one
score network on positions alone, shared with the decoder, as in the latent neural operator.

Paper: the query array is free. Measured: free random queries sit on the plateau of predicting the
mean for hundreds of steps; queries that know where they are do not.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from amo.layers.attention import CrossAttention, StreamingSoftmax, hide, softmax
from amo.layers.feedforward import MLP
from amo.layers.places import Placed


class Lifting(nn.Module):
    """z = L + Σ_n w_mn kv_n with kv = MLP([features, p]) + p, p = PEN(points); z + FFN(LN z).

    The weights w are cross-attention from the labels L to kv, or softmax_n of position scores.

    Paper: kv = Linear(features) + p; the MLP lets a feature act differently at each place. The
    residual from L keeps tokens apart even where the input is a single point.
    """

    def __init__(
        self, n_features: int, width: int, n_heads: int, spacing: float, *, is_anchored: bool
    ) -> None:
        super().__init__()
        self.physical = MLP(n_features + width, width, width)
        self.attention = CrossAttention(width, n_heads, spacing) if is_anchored else None
        self.norm = nn.LayerNorm(width)
        self.feedforward = MLP(width, width, width)

    def forward(self, features: Tensor, placed: Placed, mask: Tensor | None) -> Tensor:
        """Return tokens (batch, n_tokens, width)."""
        physical, labels = self._physical(features, placed)
        if self.attention is not None:
            anchors = placed.anchors.expand(len(physical), -1, -1)
            gathered = self.attention(labels, physical, physical, anchors, placed.points, mask)
        else:
            weights = softmax(hide(placed.token_scores(), mask), dim=-1)
            gathered = weights @ physical
        return self._finish(labels, gathered)

    def in_pieces(self, pieces: Iterable[tuple[Tensor, Placed, Tensor | None]]) -> Tensor:
        """Return the same tokens from pieces of the points, in the memory of one of them."""
        mean, labels = StreamingSoftmax(), torch.empty(0)
        for features, placed, mask in pieces:
            physical, labels = self._physical(features, placed)
            if self.attention is not None:
                anchors = placed.anchors.expand(len(physical), -1, -1)
                scores = self.attention.scores(labels, physical, anchors, placed.points)
                mean.add(hide(scores, mask, dim=1), self.attention.split(physical))
            else:
                mean.add(hide(placed.token_scores(), mask), physical)
        gathered = mean.result()
        return self._finish(
            labels, gathered if self.attention is None else self.attention.merge(gathered)
        )

    def _physical(self, features: Tensor, placed: Placed) -> tuple[Tensor, Tensor]:
        """Return the physical tokens, and the labels for each sample."""
        mixed = self.physical(torch.cat([features, placed.encoded], dim=-1))
        return mixed + placed.encoded, placed.labels.expand(len(features), -1, -1)

    def _finish(self, labels: Tensor, gathered: Tensor) -> Tensor:
        tokens = labels + gathered
        return tokens + self.feedforward(self.norm(tokens))

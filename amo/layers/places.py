"""Where things are: embedded points, the labels of the latent tokens, and scores between them."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from amo.layers.feedforward import MLP, PositionEncoding, anchors


class Placed(NamedTuple):
    """Points of one batch in the operator's terms.

    Attributes
    ----------
    points, anchors
        The points themselves, (batch, n_points, d), and where the tokens are, (n_tokens, d).
    encoded
        PEN(points), (batch, n_points, width).
    labels
        L_m = PEN(anchor_m) + offset_m of the latent tokens, (n_tokens, width).
    scores
        (batch, n_points, n_tokens) of the position form; None in the anchored form.
    """

    points: Tensor
    anchors: Tensor
    encoded: Tensor
    labels: Tensor
    scores: Tensor | None

    def token_scores(self) -> Tensor:
        """Return the scores of the position form, (batch, n_tokens, n_points)."""
        if self.scores is None:
            raise ValueError("these places were made for the anchored form: they have no scores")
        return self.scores.transpose(-1, -2)


class Places(nn.Module):
    """The positional encoding of one space, with an anchor in it for every latent token.

    Shared by encoder and decoder where input and query points live in one space.
    """

    def __init__(
        self,
        n_dimensions: int,
        width: int,
        n_tokens: int,
        *,
        has_scores: bool,
        has_labels: bool = True,
    ) -> None:
        super().__init__()
        self.encoding = PositionEncoding(n_dimensions, width)
        if has_labels:
            self.anchors: Tensor = nn.Parameter(anchors(n_tokens, n_dimensions))
            self.offsets: Tensor = nn.Parameter(0.02 * torch.randn(n_tokens, width))
        else:  # a decoder by position reads scores alone
            self.register_buffer("anchors", torch.zeros(0, n_dimensions), persistent=False)
            self.register_buffer("offsets", torch.zeros(0, width), persistent=False)
        self.score = MLP(width, width, n_tokens) if has_scores else None

    def forward(self, points: Tensor) -> Placed:
        """Place points (batch, n_points, n_dimensions)."""
        encoded = self.encoding(points)
        labels = self.encoding(self.anchors) + self.offsets
        scores = None if self.score is None else self.score(encoded)
        return Placed(points, self.anchors, encoded, labels, scores)

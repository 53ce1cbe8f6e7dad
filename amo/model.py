"""The Adaptive Mamba Neural Operator: G = Q ∘ S^N ∘ L^N ∘ … ∘ S^1 ∘ L^1 ∘ R ∘ P.

Symbols of the paper and names here: P lifting, R rkhs_map, L^i = TM layer and mixer of block i,
S^i aggregation, Q projection; M n_tokens, D width, N n_blocks, a_k poles, B_k bases.
"""

import warnings
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from amo import takenaka_malmquist as tm
from amo.errors import SettingsError
from amo.jets import Jet
from amo.layers.aggregation import aggregate
from amo.layers.attention import CrossAttention
from amo.layers.feedforward import anchor_spacing
from amo.layers.lifting import Lifting
from amo.layers.modulated import Modulator, Trunk, in_chunks
from amo.layers.places import Places
from amo.layers.projection import OutputProjection
from amo.layers.rkhs_map import RKHSMap
from amo.layers.ssm import Mixer, SelectiveSSM
from amo.layers.tm_layer import Projection, TMLayer
from amo.model_config import AMOConfig


class BlockDiagnostics(NamedTuple):
    """What one block did to each sample.

    ``gram_error`` is that of all real functions so far, the constant included; ``captured_energy``
    the share of the energy of the block's tokens in their projection, above one only where that
    error is not small.
    """

    poles: Tensor
    coefficients: tm.Complex
    captured_energy: Tensor
    gram_error: Tensor


class Block(nn.Module):
    """L^i: mix the tokens, then project them on this block's functions, if blocks project."""

    def __init__(self, config: AMOConfig, first_pole: int, n_poles: int) -> None:
        super().__init__()
        self.mixer: nn.Module | None = None
        if config.mixer != "none":
            self.mixer = Mixer(
                config.mixer,
                config.n_tokens,
                config.width,
                state_size=config.state_size,
                conv_width=config.conv_width,
                expansion=config.expansion,
            )
        self.tm_layer: TMLayer | None = None
        if config.projects:
            self.tm_layer = TMLayer(
                config.width,
                config.n_tokens,
                n_poles,
                first_pole=first_pole,
                poles=config.poles,
                basis=config.basis,
            )

    def forward(
        self, tokens: Tensor, carry: Tensor | None
    ) -> tuple[Tensor, Projection | None, Tensor | None]:
        """Return the mixed tokens, their projection, and the carry."""
        mixed = tokens if self.mixer is None else tokens + self.mixer(tokens)
        if self.tm_layer is None:
            return mixed, None, carry
        return mixed, *self.tm_layer(mixed, carry)


class AMO(nn.Module):
    """The operator: a function given at points, to its image at query points.

    All coordinates are scaled to about [-1, 1] and all channels to about unit size by the caller
    (``amo.operator.Operator`` does both).
    """

    def __init__(self, config: AMOConfig) -> None:
        super().__init__()
        self.config = config
        if config.n_poles > config.n_tokens // 2:
            warnings.warn(
                f"{config.n_poles} poles on {config.n_tokens} tokens lose orthonormality for "
                "almost every layout: with 0.4 times as many poles as tokens they keep it",
                stacklevel=2,
            )
        width, n_tokens = config.width, config.n_tokens
        is_anchored = config.lifting == "anchored"
        has_scores = not is_anchored
        self.point_places = Places(config.n_dimensions, width, n_tokens, has_scores=has_scores)
        self.lifting = Lifting(
            config.n_features,
            width,
            config.n_heads,
            anchor_spacing(n_tokens, config.n_dimensions),
            is_anchored=is_anchored,
        )
        self.own_query_places: Places | None = None
        self.projection: OutputProjection | None = None
        self.modulator: Modulator | None = None
        self.trunk: Trunk | None = None
        own = config.n_query_dimensions
        n_queried = own or config.n_dimensions
        if config.decoder == "modulated":
            self.trunk = Trunk(
                n_queried,
                config.trunk_width,
                config.trunk_depth,
                config.n_outputs,
                config.modulation,
                config.n_mixed,
            )
            n_direct = config.n_features + config.n_dimensions if config.direct else 0
            self.modulator = Modulator(n_tokens * width, self.trunk, n_direct)
        else:
            if own is not None:
                self.own_query_places = Places(
                    own, width, n_tokens, has_scores=has_scores, has_labels=is_anchored
                )
            self.projection = OutputProjection(
                width,
                config.n_heads,
                config.n_outputs,
                anchor_spacing(n_tokens, n_queried),
                is_anchored=is_anchored,
                n_seen=config.n_features if config.sees_input else 0,
            )
        self.rkhs_map = RKHSMap(width)
        counts = config.poles_per_block
        self.blocks = nn.ModuleList(
            Block(config, first_pole=sum(counts[:i]), n_poles=count)
            for i, count in enumerate(counts)
        )

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return the image (batch, n_queries, n_outputs).

        Parameters
        ----------
        points, features
            (batch, n_points, n_dimensions) and (batch, n_points, n_features).
        queries
            (batch, n_queries, n_query_dimensions); by default the input points.
        mask
            (batch, n_points), false where a point is padding.
        """
        latent = self.encode(points, features, mask)
        if not self.config.sees_input:
            return self.decode(latent, points if queries is None else queries)
        if queries is not None:
            raise SettingsError("this AMO sees its input where it answers: it takes no queries")
        points, features = _without_padding(points, features, mask)
        return self._attend(points, latent, features)

    def encode(
        self,
        points: Tensor,
        features: Tensor,
        mask: Tensor | None = None,
        chunk: int | None = None,
    ) -> Tensor:
        """Return the latent partial sum S_{N+1}, (batch, n_tokens, width), or the modulations.

        With ``chunk``, at most so many points are read at a time.
        """
        *_, (_, _, accumulated) = self._decompose(self._lift(points, features, mask, chunk))
        if self.modulator is None:
            return accumulated
        return self.modulator(accumulated, *_without_padding(points, features, mask), mask)

    @property
    def turns(self) -> bool:
        """Whether :meth:`decode` takes encodings that turn from query to query."""
        return self.trunk is not None

    def decode(
        self,
        latent: Tensor,
        queries: Tensor,
        chunk: int | None = None,
        turns: Tensor | None = None,
        along: Tensor | None = None,
    ) -> Tensor:
        """Return the values at query points, at most ``chunk`` of them at a time.

        ``turns`` (batch, k, …) and ``along`` (batch, n_queries, k) move the encoding of each query;
        see :class:`amo.layers.modulated.Trunk`.
        """
        if self.config.sees_input:
            raise SettingsError("this AMO sees its input where it answers: call it as a whole")
        if turns is not None and self.trunk is None:
            raise SettingsError("an AMO that attends has one encoding for all its queries")
        if chunk is not None and queries.shape[1] > chunk:
            return in_chunks(self.decode, latent, queries, chunk, turns, along)
        if self.trunk is None:
            return self._attend(queries, latent)
        return self.trunk(queries, latent, turns, along)

    def jet(self, latent: Tensor, queries: Jet, turns: Mapping[int, Tensor]) -> Jet:
        """Return values at query points with derivatives, as :class:`Trunk` does."""
        if self.trunk is None:
            raise SettingsError("an AMO that attends has no jets")
        return self.trunk.jet(queries, latent, turns)

    def _attend(self, queries: Tensor, latent: Tensor, features: Tensor | None = None) -> Tensor:
        """Answer by attention from queries to tokens."""
        if self.projection is None:
            raise SettingsError("a modulated AMO does not attend")
        places = self.own_query_places or self.point_places
        return self.projection(places(queries), latent, features)

    def diagnostics(
        self, points: Tensor, features: Tensor, mask: Tensor | None = None
    ) -> list[BlockDiagnostics]:
        """Return poles, coefficients, captured energy and Gram error of blocks that project."""
        rows = []
        bases: list[tm.Complex] = []
        for mixed, share, _ in self._decompose(self._lift(points, features, mask)):
            if share is None:
                continue
            bases.append(share.bases)
            so_far = (torch.cat([b[0] for b in bases], 1), torch.cat([b[1] for b in bases], 1))
            energy = share.captured.square().sum((1, 2)) / mixed.square().sum((1, 2))
            error = tm.real_gram_error(so_far)
            rows.append(BlockDiagnostics(share.poles, share.coefficients, energy, error))
        return rows

    def use_plain_operations(self, *, enabled: bool = True) -> None:
        """Switch mixers and attention to forms that differentiate twice, and in forward mode."""
        for module in self.modules():
            if isinstance(module, SelectiveSSM | CrossAttention):
                module.is_plain = enabled

    def _lift(
        self, points: Tensor, features: Tensor, mask: Tensor | None, chunk: int | None = None
    ) -> Tensor:
        """Return R(P(input)), (batch, n_tokens, width); padding is not read."""
        n = points.shape[1]
        points, features = _without_padding(points, features, mask)
        if chunk is None or n <= chunk:
            tokens = self.lifting(features, self.point_places(points), mask)
        else:
            parts = [slice(start, start + chunk) for start in range(0, n, chunk)]
            tokens = self.lifting.in_pieces(
                (
                    features[:, part],
                    self.point_places(points[:, part]),
                    None if mask is None else mask[:, part],
                )
                for part in parts
            )
        return self.rkhs_map(tokens)

    def _decompose(self, tokens: Tensor) -> Iterator[tuple[Tensor, Projection | None, Tensor]]:
        """Yield each block's mixed tokens, its projection and the partial sum after it."""
        carry: Tensor | None = None
        accumulated: Tensor | None = None
        for block in self.blocks:
            mixed, share, carry = block(tokens, carry)
            captured = mixed if share is None else share.captured
            tokens, accumulated = aggregate(self.config.coefficients, mixed, captured, accumulated)
            yield mixed, share, accumulated


def _without_padding(
    points: Tensor, features: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    if mask is None:
        return points, features
    hidden = ~mask.unsqueeze(-1)
    return points.masked_fill(hidden, 0.0), features.masked_fill(hidden, 0.0)

"""An operator in physical units: a model between normalisers that travel with its weights."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args, overload

import torch
from torch import Tensor, nn

from amo import jets
from amo.configuration import Link, ModelConfig
from amo.data.batch import Batch, Normaliser
from amo.errors import SettingsError
from amo.jets import Jet

_LINKS: dict[Link, Callable[[Any], Any]] = {  # of tensors and of jets
    "identity": lambda x: x,
    "softplus": jets.softplus,
    "sigmoid": jets.sigmoid,
}


@overload
def smaller_of(mean: Tensor, gap: Tensor) -> Tensor: ...
@overload
def smaller_of(mean: Jet, gap: Tensor | Jet) -> Jet: ...
def smaller_of(mean: Tensor | Jet, gap: Tensor | Jet) -> Tensor | Jet:
    """Return the positive y with y (y + gap) = mean²: ``mean`` is the geometric mean of the two.

    Smooth in both arguments, also where the gap is zero, and without cancellation where y is much
    smaller than the gap.
    """
    is_gap = (gap.value if isinstance(gap, Jet) else gap) > 0
    larger = jets.hypot(0.5 * gap, mean) + 0.5 * jets.where(is_gap, gap, -gap)
    return jets.where(is_gap, mean * mean / larger, larger)


class Operator(nn.Module):
    """Physical units in and out around any model with AMO's call signature.

    Points and queries are mapped to [-1, 1], features and values to zero mean and unit spread, by
    numbers fitted on the training split only. ``link`` bounds the answer: above zero, or between
    zero and one. Where the data have a scale, the answer is multiplied by it; where they have a
    gap, it is the mean that :func:`smaller_of` takes; where they have an offset, that is added.
    """

    def __init__(self, model: nn.Module, config: ModelConfig, link: Link = "identity") -> None:
        super().__init__()
        if link not in get_args(Link):
            raise SettingsError(f"link must be one of {get_args(Link)}, got {link!r}")
        self.model = model
        self.link = link
        self.points = Normaliser(config.n_dimensions)
        own = config.n_query_dimensions
        self.own_queries = None if own is None else Normaliser(own)
        self.features = Normaliser(config.n_features)
        self.values = Normaliser(config.n_outputs)

    @property
    def queries(self) -> Normaliser:
        """The scaling of query points."""
        return self.own_queries or self.points

    @property
    def decodes_anywhere(self) -> bool:
        """Whether the model keeps an encoding that it can decode at any points."""
        config = getattr(self.model, "config", None)
        return hasattr(self.model, "encode") and not getattr(config, "sees_input", False)

    def forward(
        self,
        points: Tensor,
        features: Tensor,
        queries: Tensor | None = None,
        mask: Tensor | None = None,
        scale: Tensor | None = None,
        gap: Tensor | None = None,
        offset: Tensor | None = None,
    ) -> Tensor:
        """Return the image (batch, n_queries, n_outputs); see ``amo.model.AMO.forward``."""
        scaled = None if queries is None else self.queries(queries)
        output = self.model(self.points(points), self.features(features), scaled, mask)
        return self._answer(output, scale, gap, offset)

    def encode(
        self, points: Tensor, features: Tensor, mask: Tensor | None = None, chunk: int | None = None
    ) -> Tensor:
        """Return the encoding of an input function, for any number of decodings."""
        encode: Callable[..., Tensor] = self.model.encode  # type: ignore[assignment]
        return encode(self.points(points), self.features(features), mask, chunk=chunk)

    def decode(
        self,
        latent: Tensor,
        queries: Tensor,
        scale: Tensor | None = None,
        gap: Tensor | None = None,
        offset: Tensor | None = None,
        chunk: int | None = None,
        turns: Tensor | None = None,
        along: Tensor | None = None,
    ) -> Tensor:
        """Return the image at query points, at most ``chunk`` of them at a time.

        Where the operator :attr:`turns`, the encoding of each query may be moved along others; see
        :meth:`amo.model.AMO.decode`.
        """
        decode: Callable[..., Tensor] = self.model.decode  # type: ignore[assignment]
        moved = {} if turns is None else {"turns": turns, "along": along}
        output = decode(latent, self.queries(queries), chunk=chunk, **moved)
        return self._answer(output, scale, gap, offset)

    def jet(self, latent: Tensor, queries: Jet, turns: Mapping[int, Tensor]) -> Jet:
        """Return the image at query points with its derivatives, where the operator :attr:`turns`.

        ``turns`` are the derivatives of the encoding in the directions that it changes in; no
        second derivative may be asked for in these. Nothing is kept for a backward pass.
        """
        carried: Callable[..., Jet] = self.model.jet  # type: ignore[assignment]
        with torch.no_grad():
            output = carried(latent, self.queries(queries), turns)
            answer: Jet = _LINKS[self.link](self.values.inverse(output))
        return answer

    @property
    def turns(self) -> bool:
        """Whether :meth:`decode` takes encodings that turn from query to query."""
        return bool(getattr(self.model, "turns", False))

    def use_plain_operations(self) -> None:
        """Switch the model to operations that differentiate twice, if it has a choice."""
        switch: Callable[[], None] | None = getattr(self.model, "use_plain_operations", None)
        if switch is not None:
            switch()

    def predict(self, batch: Batch, chunk: int | None = None) -> Tensor:
        """Return the image of a batch without gradients, the queries decoded in chunks."""
        with torch.no_grad():
            if chunk is None or not self.decodes_anywhere:
                answer = self(**batch.inputs)
            else:
                latent = self.encode(batch.points, batch.features, batch.mask, chunk)
                queries = batch.points if batch.queries is None else batch.queries
                answer = self.decode(latent, queries, batch.scale, batch.gap, batch.offset, chunk)
            return answer if batch.least is None else torch.maximum(answer, batch.least)

    def diagnose(self, batch: Batch) -> dict[str, Any]:
        """Return what the model chose to do with some inputs, in JSON form.

        For AMO: poles, captured energy and Gram error by block. Empty for models without these.
        """
        diagnostics = getattr(self.model, "diagnostics", None)
        if diagnostics is None:
            return {}
        with torch.no_grad():
            rows = diagnostics(self.points(batch.points), self.features(batch.features), batch.mask)
        if not rows:
            return {}
        return {
            "poles": [row.poles.double().mul(1e5).round().div(1e5).tolist() for row in rows],
            "captured_energy": [float(row.captured_energy.mean()) for row in rows],
            "gram_error": [float(row.gram_error.max()) for row in rows],
        }

    def _answer(
        self, output: Tensor, scale: Tensor | None, gap: Tensor | None, offset: Tensor | None
    ) -> Tensor:
        answer = _LINKS[self.link](self.values.inverse(output))
        answer = answer if scale is None else scale * answer
        answer = answer if gap is None else smaller_of(answer, gap)
        return answer if offset is None else offset + answer

    def fit_normalisers(
        self, batches: Callable[[], Iterable[Batch]], *, is_coded: bool = False
    ) -> None:
        """Fit every normaliser on the training samples; ``batches`` starts a new pass over them.

        Coded data have queries of about unit size and values in the link's range: both stay as
        they are.
        """
        self.points.fit_box(_rows(b.points, b.mask) for b in batches())
        self.features.fit_moments(_rows(b.features, b.mask) for b in batches())
        if is_coded:
            return
        if self.own_queries is not None:
            self.own_queries.fit_box(
                _rows(b.queries, b.query_mask) for b in batches() if b.queries is not None
            )
        self.values.fit_moments(_rows(b.values, b.value_mask) for b in batches())


def _rows(values: Tensor, mask: Tensor | None) -> Tensor:
    return values.flatten(0, 1) if mask is None else values[mask]

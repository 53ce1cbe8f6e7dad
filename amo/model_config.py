"""Sizes and choices of an AMO."""

from dataclasses import dataclass
from typing import Literal, get_args

from amo.errors import SettingsError
from amo.layers.aggregation import CoefficientSource
from amo.layers.modulated import ModulationKind
from amo.layers.ssm import MixerKind
from amo.layers.tm_layer import BasisKind, PoleKind

LiftingKind = Literal["anchored", "position"]
DecoderKind = Literal["attending", "modulated"]


@dataclass(frozen=True, kw_only=True)
class AMOConfig:
    """Sizes and choices of an AMO; the defaults are the paper's, the choices its ablations.

    Attributes
    ----------
    n_features, n_outputs
        Channels of the input function and of the answer.
    n_dimensions
        Coordinates of an input point.
    n_query_dimensions
        Coordinates of a query point, if they live in another space than the input points.
    width, n_tokens, n_poles, n_blocks, n_heads
        D, M, K in all blocks together, N, and the heads of both attentions.
    state_size, conv_width, expansion
        Of the state-space mixers.
    lifting
        ``anchored`` cross-attention, or scores by ``position`` shared by encoder and decoder.
    poles
        Predicted from each input, learned once, or random and fixed.
    basis
        Takenaka–Malmquist functions, or the kernels of the same poles without orthogonality.
    projects
        Whether blocks project on them; otherwise a block is its mixer alone.
    mixer
        Scan directions.
    coefficients
        What the next block decomposes: see ``amo.layers.aggregation``.
    sees_input
        Whether the decoder sees the input function where it answers. Then it answers at the input
        points only. Paper: Q is not printed.
    decoder
        ``attending`` to the tokens at every query, or a plain trunk that is ``modulated`` by them:
        see ``amo.layers.modulated``. Then ``encode`` returns the modulations.
    trunk_width, trunk_depth, modulation, n_mixed, direct
        Of the modulated decoder: the sizes of its trunk, what is modulated, how many more matrices
        each layer mixes into its own as the encoding says, and whether a mean over the input points
        goes past the tokens.
    """

    n_features: int
    n_dimensions: int
    n_outputs: int = 1
    n_query_dimensions: int | None = None
    width: int = 128
    n_tokens: int = 64
    n_poles: int = 32
    n_blocks: int = 4
    n_heads: int = 8
    state_size: int = 16
    conv_width: int = 4
    expansion: int = 2
    lifting: LiftingKind = "anchored"
    poles: PoleKind = "adaptive"
    basis: BasisKind = "orthogonal"
    projects: bool = True
    mixer: MixerKind = "bi"
    coefficients: CoefficientSource = "residual"
    sees_input: bool = False
    decoder: DecoderKind = "attending"
    trunk_width: int = 128
    trunk_depth: int = 4
    modulation: ModulationKind = "scale-shift"
    n_mixed: int = 0
    direct: bool = True

    def __post_init__(self) -> None:
        if self.sees_input and self.n_query_dimensions is not None:
            raise SettingsError("a decoder that sees the input has no query points of its own")
        if self.sees_input and self.decoder == "modulated":
            raise SettingsError("a modulated decoder does not see the input where it answers")
        if not self.projects and self.n_blocks > 1 and self.coefficients == "residual":
            raise SettingsError(
                "blocks that do not project leave no remainder for the next: take one block, or "
                "coefficients='input'"
            )
        for name, least in {"trunk_depth": 1, "n_mixed": 0}.items():
            if getattr(self, name) < least:
                raise SettingsError(f"{name} must be at least {least}, got {getattr(self, name)}")
        choices = {
            "decoder": DecoderKind,
            "modulation": ModulationKind,
            "lifting": LiftingKind,
            "poles": PoleKind,
            "basis": BasisKind,
            "mixer": MixerKind,
            "coefficients": CoefficientSource,
        }
        for name, kind in choices.items():
            value = getattr(self, name)
            if value not in get_args(kind):
                raise SettingsError(f"{name} must be one of {get_args(kind)}, got {value!r}")
        if not 1 <= self.n_blocks <= self.n_poles:
            raise SettingsError(
                f"n_blocks must be at least 1, and each needs a pole: got {self.n_blocks} blocks, "
                f"{self.n_poles} poles"
            )
        if self.width % self.n_heads:
            raise SettingsError(f"width {self.width} is no multiple of {self.n_heads} heads")

    @property
    def poles_per_block(self) -> list[int]:
        """New poles of each block, as equal as they can be."""
        whole, rest = divmod(self.n_poles, self.n_blocks)
        return [whole + (block < rest) for block in range(self.n_blocks)]

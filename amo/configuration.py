"""What every model's configuration says, whatever the model."""

from typing import Any, ClassVar, Literal, Protocol

Link = Literal["identity", "softplus", "sigmoid"]  # what bounds an answer


class ModelConfig(Protocol):
    """What every model's configuration, a dataclass, says about its inputs and outputs."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def n_features(self) -> int:
        """Channels of the input function."""

    @property
    def n_dimensions(self) -> int:
        """Coordinates of an input point."""

    @property
    def n_query_dimensions(self) -> int | None:
        """Coordinates of a query point, None where queries live among the input points."""

    @property
    def n_outputs(self) -> int:
        """Channels of the answer."""

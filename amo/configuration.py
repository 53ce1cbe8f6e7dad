"""What every model's configuration says, whatever the model."""

from typing import Protocol


class ModelConfig(Protocol):
    """What every model's configuration says about its inputs and outputs."""

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

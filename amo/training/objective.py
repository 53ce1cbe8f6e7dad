"""The loss of an operator, compiled where that works."""

import warnings

import torch
from torch import Tensor, nn

from amo.data.batch import Batch
from amo.operator import Operator
from amo.training.losses import Loss


class Objective(nn.Module):
    """The loss as a module, so that parallel training sees every use of the operator."""

    def __init__(self, operator: Operator, loss: Loss, *, compiled: bool) -> None:
        super().__init__()
        self.operator, self.plain = operator, loss
        self.loss = torch.compile(loss) if compiled else loss

    def forward(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Return the mean loss of a batch."""
        if self.loss is self.plain:
            return self.plain(self.operator, batch, generator)
        from torch._dynamo.exc import BackendCompilerFailed  # noqa: PLC0415  # slow to load

        try:
            return self.loss(self.operator, batch, generator)
        except BackendCompilerFailed as error:
            reason = str(error).partition("\n")[0]
            warnings.warn(f"training goes on without torch.compile: {reason}", stacklevel=2)
            self.loss = self.plain
            return self.plain(self.operator, batch, generator)

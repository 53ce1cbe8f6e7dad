"""The one rule of mixed precision: scan, spectral part and scores stay in float32 or above."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Return half-precision tensors in float32, others as they are."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def full_precision(like: Tensor) -> AbstractContextManager[Any]:
    """Suspend autocast on the tensor's device, where that has any."""
    kind = like.device.type
    if not torch.amp.is_autocast_available(kind):
        return nullcontext()
    return torch.autocast(kind, enabled=False)

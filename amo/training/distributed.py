"""One process or many: the rank of this process, and the few sums that all must agree on."""

import gc
import os
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, distributed

from amo.errors import SettingsError


@dataclass(frozen=True)
class Workers:
    """The processes that train one model, as ``torchrun`` starts them; alone, rank 0 of 1.

    Attributes
    ----------
    rank, count
        This process among all.
    device
        Where it computes.
    """

    rank: int
    count: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and draws bars."""
        return self.rank == 0

    @property
    def hardware(self) -> str:
        """What they compute on, in words."""
        name = platform.machine()
        if self.device.type == "cuda":
            name = torch.cuda.get_device_name(self.device)
        return f"{self.count} × {name}, {torch.get_num_threads()} of {os.cpu_count()} cores"

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over all processes."""
        if self.count > 1:
            distributed.all_reduce(values)
        return values

    def mean(self, value: float) -> float:
        """Return the mean over all processes."""
        return float(self.sum(torch.tensor(value, device=self.device))) / self.count

    def largest(self, value: float) -> float:
        """Return the largest over all processes."""
        if self.count == 1:
            return value
        held = torch.tensor(value, device=self.device)
        distributed.all_reduce(held, op=distributed.ReduceOp.MAX)
        return float(held)

    def share(self, tensors: Iterable[Tensor]) -> None:
        """Give every process the first one's values, in place."""
        if self.count > 1:
            for tensor in tensors:
                distributed.broadcast(tensor, src=0)

    def any(self, *, flag: bool) -> bool:
        """Return whether the flag is set in any process."""
        return self.largest(float(flag)) > 0.0

    def meet(self) -> None:
        """Wait for every process to come here."""
        self.any(flag=False)


def join(device: str = "auto") -> Workers:
    """Join the processes of ``torchrun``, or work alone.

    ``auto`` takes this process's GPU if there is one; several processes talk by NCCL on GPUs and
    by gloo on CPUs.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise SettingsError(f"device must be auto, cpu, cuda or cuda:N, got {device!r}")
    chosen = torch.device(device)
    if chosen.type == "cuda":
        if not torch.cuda.is_available():
            raise SettingsError("no CUDA device is there: say --device cpu or auto")
        chosen = torch.device("cuda", local if chosen.index is None else chosen.index)
        torch.cuda.set_device(chosen)
    if count > 1 and not distributed.is_initialized():
        distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    return Workers(int(os.environ.get("RANK", "0")), count, chosen)


def leave() -> None:
    """Leave the group of processes, whose threads end with the last object that knows it.

    A model in parallel knows it, in a cycle of references. A thread that outlives the interpreter
    aborts the process.
    """
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
        gc.collect()

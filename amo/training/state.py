"""What a training run must remember to resume: one file, replaced whole."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from amo.checkpoint import read_tensors, write_tensors
from amo.errors import CheckpointError
from amo.files import write_text

STATE, LOG = "training_state.safetensors", "log.jsonl"
_VERSION = "2"  # of what an optimiser remembers


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run is.

    Attributes
    ----------
    step
        Optimiser steps done.
    epoch, batch
        The pass over the data, and the batches of it that are done.
    best, best_step
        The lowest validation error so far and where it was.
    minutes
        Time spent training, over all starts.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best: float = float("inf")
    best_step: int = 0
    minutes: float = 0.0

    def advanced(self, **changes: Any) -> "Progress":  # noqa: ANN401  # field values
        """Return it with some fields changed."""
        return replace(self, **changes)


def save_state(
    folder: Path,
    identity: dict[str, Any],
    progress: Progress,
    model: nn.Module,
    best: dict[str, Tensor],
    optimizer: Optimizer,
) -> None:
    """Write weights, best weights, moments and progress."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, moments in optimizer.state.items():
        for key, value in moments.items():
            tensors[f"optimizer.{key}.{names[id(parameter)]}"] = value
    notes = {
        "version": _VERSION,
        "identity": _text(identity),
        "progress": json.dumps(asdict(progress)),
    }
    write_tensors(tensors, folder / STATE, notes)


def load_state(
    folder: Path, identity: dict[str, Any], model: nn.Module, optimizer: Optimizer
) -> tuple[Progress, dict[str, Tensor]] | None:
    """Put a run's weights and moments back; return its progress and best weights.

    None if there is nothing to resume. A state with other settings is refused.
    """
    path = folder / STATE
    if not path.exists():
        return None
    tensors, notes = read_tensors(path)
    if notes.get("version") != _VERSION:
        raise CheckpointError(
            f"{path} was left by another version of this program: --fresh to start anew"
        )
    there = notes.get("identity", "")
    if there != _text(identity):
        raise CheckpointError(
            f"{path} belongs to a run with other settings ({_difference(there, identity)}): "
            "choose another --out, or --fresh to start anew"
        )

    def part(prefix: str) -> dict[str, Tensor]:
        n = len(prefix)
        return {name[n:]: value for name, value in tensors.items() if name.startswith(prefix)}

    try:
        progress = Progress(**json.loads(notes["progress"]))
        model.load_state_dict(part("model."))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path} is no state of this run ({error}): --fresh") from error
    parameters = dict(model.named_parameters())
    for name, value in part("optimizer.").items():
        key, _, owner = name.partition(".")
        device = "cpu" if key == "count" else parameters[owner].device
        optimizer.state[parameters[owner]][key] = value.to(device)
    return progress, part("best.")


def rewind_log(folder: Path, step: int) -> None:
    """Forget what was logged after a step, so that a resumed run logs it once."""
    path = folder / LOG
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:  # the half-written last line of a run that was killed
            break
        if entry["step"] <= step:
            kept.append(line)
    write_text("".join(f"{line}\n" for line in kept), path)


def _text(identity: dict[str, Any]) -> str:
    return json.dumps(identity, sort_keys=True)


def _difference(there: str, wanted: dict[str, Any]) -> str:
    known, asked = json.loads(there or "{}"), json.loads(_text(wanted))
    return ", ".join(
        f"{key}: {known.get(key)} there, {asked.get(key)} asked"
        for key in sorted(set(known) | set(asked))
        if known.get(key) != asked.get(key)
    )

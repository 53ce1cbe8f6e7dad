"""How time and memory grow with the number of points, beside the paper's table."""

import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, TypeVar

import torch

from amo import checkpoint
from amo.benchmarks.contestants import recipe_for
from amo.experiment import Problem
from amo.model import AMO
from amo.model_config import AMOConfig
from amo.results import GridCost, PaperCost, ScalingResults, SizeRow
from amo.system import keep_freed_memory, peak_megabytes
from amo.training.distributed import join

SIDES = (64, 128, 256)
_Answer = TypeVar("_Answer")
# Quoted: its table of scalability for its Darcy set, on an RTX 4090.
PAPER: dict[int, PaperCost] = {
    64: {"train_seconds_per_epoch": 14.0, "inference_seconds": 0.007, "memory_gigabytes": 2.3},
    128: {"train_seconds_per_epoch": 52.5, "inference_seconds": 0.28, "memory_gigabytes": 2.4},
    256: {"train_seconds_per_epoch": 205.0, "inference_seconds": 1.12, "memory_gigabytes": 2.7},
}
GRIDS = (16, 32, 64, 85, 128, 256)
CONTESTANTS = ("amo-grid", "fno")  # on grids, at the size for two cores
_BATCH = 8
_CHUNK = 4096
_REPEATS = 5


def run(device: str = "auto") -> ScalingResults:
    """Measure the default model at every size, memory in a separate process."""
    keep_freed_memory()
    rows: dict[int, SizeRow] = {}
    for side in SIDES:
        train, inference = _time(side, device)
        rows[side] = {
            "train_seconds": train,
            "inference_seconds": inference,
            "inference_megabytes": _memory(side, device),
            "paper": PAPER[side],
        }

    def steps(name: Literal["train_seconds", "inference_seconds"]) -> list[float]:
        return [rows[b][name] / rows[a][name] for a, b in pairwise(SIDES)]

    return {
        "command": "python -m amo bench scaling --json",
        "hardware": f"{os.cpu_count()} cores ({platform.machine()}), device {join(device).device}",
        "model": "the default AMO, batch 1",
        "sizes": {f"{side}x{side}": row for side, row in rows.items()},
        "grids": {
            f"{side}x{side}": {
                name: _in_a_process(_grid_cost, name, side, device) for name in CONTESTANTS
            }
            for side in GRIDS
        },
        "train_growth": steps("train_seconds"),
        "inference_growth": steps("inference_seconds"),
        "memory_growth": rows[SIDES[-1]]["inference_megabytes"]
        / rows[SIDES[0]]["inference_megabytes"],
    }


def table(results: ScalingResults) -> str:
    """Return the results as plain text."""
    lines = [f"{'grid':>9}{'train step, s':>15}{'inference, s':>14}{'memory, MB':>12}"]
    lines += [
        f"{name:>9}{row['train_seconds']:>15.3f}{row['inference_seconds']:>14.3f}"
        f"{row['inference_megabytes']:>12.0f}"
        for name, row in results["sizes"].items()
    ]
    models = " ".join(f"{name:>15}" for name in CONTESTANTS)
    lines += ["", f"{'grid':>9} {models}   seconds of a training step, {_BATCH} samples"]
    for name, costs in results.get("grids", {}).items():
        seconds = " ".join(f"{cost['train_seconds']:>15.3f}" for cost in costs.values())
        lines.append(f"{name:>9} {seconds}")
    return "\n".join(lines)


def _inputs(side: int, device: torch.device) -> tuple[AMO, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    model = AMO(AMOConfig(n_features=1, n_dimensions=2)).to(device)
    line = torch.linspace(-1.0, 1.0, side, device=device)
    points = torch.cartesian_prod(line, line).unsqueeze(0)
    return model, points, torch.sin(3.0 * points.sum(-1, keepdim=True))


def _time(side: int, device: str) -> tuple[float, float]:
    """Return the seconds of a training step and of chunked inference."""
    model, points, features = _inputs(side, join(device).device)

    def train() -> None:
        model(points, features).square().mean().backward()
        model.zero_grad(set_to_none=True)

    def infer() -> None:
        with torch.no_grad():
            model.decode(model.encode(points, features, chunk=_CHUNK), points, chunk=_CHUNK)

    return _median(train), _median(infer)


def _median(work: Callable[[], None]) -> float:
    times = []
    for _ in range(_REPEATS + 1):
        start = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])  # the first one warms up


def _memory(side: int, device: str) -> float:
    """Return the peak memory of chunked inference: the process's, or the GPU's."""
    return _in_a_process(_peak, side, device)


def _in_a_process(work: Callable[..., _Answer], *arguments: object) -> _Answer:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(work, arguments)


def _peak(side: int, device: str) -> float:
    where = join(device).device
    model, points, features = _inputs(side, where)
    with torch.no_grad():
        model.decode(model.encode(points, features, chunk=_CHUNK), points, chunk=_CHUNK)
    if where.type == "cuda":
        return torch.cuda.max_memory_allocated(where) / 1e6
    return peak_megabytes()


def _grid_cost(name: str, side: int, device: str) -> GridCost:
    """Return what a step of training a contestant takes on a square grid."""
    keep_freed_memory()
    where = join(device).device
    problem = Problem(
        name="square", title="a square grid", n_features=1, n_dimensions=2, grid=(side, side)
    )
    torch.manual_seed(0)
    model = checkpoint.build(recipe_for(name, problem)).to(where)
    line = torch.linspace(-1.0, 1.0, side, device=where)
    points = torch.cartesian_prod(line, line).expand(_BATCH, -1, -1)
    features = torch.sin(3.0 * points.sum(-1, keepdim=True))

    def step() -> None:
        model(points, features).square().mean().backward()
        model.zero_grad(set_to_none=True)

    seconds = _median(step)
    is_cuda = where.type == "cuda"
    held = torch.cuda.max_memory_allocated(where) / 1e6 if is_cuda else peak_megabytes()
    return {
        "train_seconds": seconds,
        "parameters": sum(p.numel() for p in model.parameters()),
        "megabytes": held,
    }

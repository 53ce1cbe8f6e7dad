"""How time and memory grow with the number of points, beside the paper's table."""

import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import torch

from amo.model import AMO
from amo.model_config import AMOConfig
from amo.results import PaperCost, ScalingResults, SizeRow
from amo.system import keep_freed_memory, peak_megabytes
from amo.training.distributed import join

SIDES = (64, 128, 256)
# Quoted: its table of scalability for its Darcy set, on an RTX 4090.
PAPER: dict[int, PaperCost] = {
    64: {"train_seconds_per_epoch": 14.0, "inference_seconds": 0.007, "memory_gigabytes": 2.3},
    128: {"train_seconds_per_epoch": 52.5, "inference_seconds": 0.28, "memory_gigabytes": 2.4},
    256: {"train_seconds_per_epoch": 205.0, "inference_seconds": 1.12, "memory_gigabytes": 2.7},
}
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
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return float(pool.apply(_peak, (side, device)))


def _peak(side: int, device: str) -> float:
    where = join(device).device
    model, points, features = _inputs(side, where)
    with torch.no_grad():
        model.decode(model.encode(points, features, chunk=_CHUNK), points, chunk=_CHUNK)
    if where.type == "cuda":
        return torch.cuda.max_memory_allocated(where) / 1e6
    return peak_megabytes()

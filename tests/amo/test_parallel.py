"""Models that keep running means, trained by two processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from amo.baselines.ono import ONOConfig
from amo.checkpoint import Recipe, build, load, save
from amo.data.batch import Batch, read_operator_arrays
from amo.data.datasets import ArrayDataset
from amo.training import loop
from amo.training.distributed import Workers, join, leave
from amo.training.evaluation import evaluate
from amo.training.loop import TrainingConfig

RECIPE = Recipe(
    kind="ono",
    config=ONOConfig(n_features=1, n_dimensions=1, width=8, n_heads=2, n_layers=2, n_functions=4),
)
CONFIG = TrainingConfig(steps=5, batch_size=4, learning_rate=1e-3, validate_every=5)


def waves(n: int, seed: int) -> ArrayDataset:
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(n, 20, 1, generator=generator)
    size = torch.rand(n, 1, 1, generator=generator) + 0.5
    batch = Batch(
        points=points, features=size * torch.sin(9 * points), values=size * torch.cos(9 * points)
    )
    return ArrayDataset(
        {name: getattr(batch, name).numpy() for name in ("points", "features", "values")}
    )


def train(out: Path) -> None:
    """What each of the processes does."""
    workers = join("cpu")
    torch.manual_seed(0)
    operator = build(RECIPE)
    loop.fit(
        operator, waves(24, 0), waves(32, 1), CONFIG, out=out, read=read_operator_arrays,
        workers=workers,
    )  # fmt: skip
    if workers.is_first:
        save(operator, RECIPE, {}, out)
    leave()


def test_all_processes_validate_with_the_running_means_that_are_kept(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])  # a script is given its own folder only
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    subprocess.run(
        [*torchrun, "--nproc-per-node=2", __file__, str(tmp_path)],
        env=environment, check=True, timeout=300,
    )  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    (said,) = (line["validation"] for line in lines if "validation" in line)
    operator, _ = load(tmp_path)
    alone = Workers(0, 1, torch.device("cpu"))
    scores = evaluate(operator, waves(32, 1), read_operator_arrays, alone)
    assert scores["relative_l2"] == pytest.approx(said, rel=1e-5)  # float32, in another order


if __name__ == "__main__":
    train(Path(sys.argv[1]))

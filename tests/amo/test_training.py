"""One loop: what it minimises, and that stopping it changes nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from amo.baselines.ono import ONOConfig
from amo.baselines.transolver import TransolverConfig
from amo.checkpoint import Recipe, read_tensors
from amo.data.batch import Batch, read_operator_arrays
from amo.data.datasets import ArrayDataset
from amo.errors import CheckpointError, SettingsError
from amo.model_config import AMOConfig
from amo.operator import Operator
from amo.training import loop
from amo.training.distributed import Workers
from amo.training.evaluation import evaluate
from amo.training.loop import DivergedError, TrainingConfig, _shares
from amo.training.losses import relative_l2_loss

ALONE = Workers(0, 1, torch.device("cpu"))
CONFIG = TrainingConfig(
    steps=12, batch_size=4, learning_rate=1e-2, validate_every=4, save_every=3, n_queries=15
)
Build = Callable[..., Operator]
Data = Callable[..., ArrayDataset]


def fit(
    operator: Operator, data: Data, config: TrainingConfig, out: Path, **extra: object
) -> loop.Result:
    return loop.fit(
        operator, data(14), data(5, seed=1), config, out=out, read=read_operator_arrays,
        workers=ALONE, **extra,
    )  # fmt: skip


def weights(operator: Operator) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in operator.state_dict().items()}


def log(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


@pytest.fixture
def recipe(tiny: AMOConfig) -> Recipe:
    return Recipe(kind="amo", config=tiny)


def test_training_lowers_the_error(
    build: Build, dataset: Data, recipe: Recipe, tmp_path: Path
) -> None:
    operator = build(recipe)
    before = evaluate(operator, dataset(5, seed=1), read_operator_arrays, ALONE)
    result = fit(operator, dataset, replace(CONFIG, steps=60), tmp_path)
    after = evaluate(operator, dataset(5, seed=1), read_operator_arrays, ALONE)
    assert result.reason == "finished"
    assert after["relative_l2"] == pytest.approx(result.best)
    assert result.best < 0.5 * before["relative_l2"]


def test_schedule_warms_up_then_falls_to_zero() -> None:
    config = TrainingConfig(steps=100, learning_rate=2.0)
    rates = [config.rate_at(step) for step in range(100)]
    assert rates[:10] == pytest.approx([0.2 * k for k in range(1, 11)])
    assert max(rates) == 2.0
    assert all(a >= b for a, b in pairwise(rates[10:]))
    assert rates[-1] < 1e-3


@pytest.mark.parametrize("optimizer", ["adamw", "soap"])
def test_resuming_gives_the_same_weights_to_the_bit(
    build: Build, dataset: Data, recipe: Recipe, tmp_path: Path, optimizer: Literal["adamw", "soap"]
) -> None:
    config = replace(CONFIG, optimizer=optimizer, weight_decay=0.0)
    whole = build(recipe)
    fit(whole, dataset, config, tmp_path / "whole")
    out = tmp_path / "parts"
    for start in range(config.steps):  # the time is up after every step
        parts = build(recipe)
        result = fit(parts, dataset, config, out, max_minutes=0.0)
        assert (result.reason, result.steps) == ("time", start + 1)
    assert fit(parts, dataset, config, out).reason == "finished"
    assert same(weights(whole), weights(parts))
    assert [entry["step"] for entry in log(out) if "validation" in entry] == [4, 8, 12]


_SIZES = {"n_features": 2, "n_dimensions": 2, "width": 16, "n_heads": 2, "n_layers": 2}


@pytest.mark.parametrize(
    "other",
    [
        Recipe(kind="transolver++", config=TransolverConfig(**_SIZES, n_slices=5)),
        Recipe(kind="ono", config=ONOConfig(**_SIZES, n_functions=5)),
    ],
    ids=["draws noise", "keeps a running mean"],
)
def test_resuming_repeats_what_a_model_does_in_training_only(
    other: Recipe, build: Build, dataset: Data, tmp_path: Path
) -> None:
    settings = replace(CONFIG, n_queries=None, n_points=15)
    whole, parts = build(other), build(other)
    fit(whole, dataset, settings, tmp_path / "whole")
    fit(parts, dataset, settings, tmp_path / "parts", max_minutes=0.0)
    torch.rand(7)  # whatever else draws between
    again = build(other)
    fit(again, dataset, settings, tmp_path / "parts")
    assert same(weights(whole), weights(again))


def test_settings_of_a_run_cannot_change_under_it(
    build: Build, dataset: Data, recipe: Recipe, tmp_path: Path
) -> None:
    fit(build(recipe), dataset, CONFIG, tmp_path, max_minutes=0.0)
    with pytest.raises(CheckpointError, match=r"other settings.*learning_rate"):
        fit(build(recipe), dataset, replace(CONFIG, learning_rate=1e-4), tmp_path)


def test_accumulated_parts_give_the_gradient_of_the_batch(
    build: Build, samples: Callable[..., Batch], recipe: Recipe
) -> None:
    batch = samples(5, 12)
    operator = build(recipe)
    generator = torch.Generator()
    relative_l2_loss(operator, batch, generator).backward()
    whole = [p.grad.clone() for p in operator.parameters() if p.grad is not None]
    operator.zero_grad()
    for share, weight in _shares(batch, ALONE, 3):
        (weight * relative_l2_loss(operator, share, generator)).backward()
    parts = [p.grad for p in operator.parameters() if p.grad is not None]
    for a, b in zip(whole, parts, strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    weights_of_all = [
        weight
        for rank in range(7)
        for _, weight in _shares(batch, Workers(rank, 7, torch.device("cpu")), 2)
    ]
    assert sum(weights_of_all) / 7 == pytest.approx(1.0)


def test_thinning_takes_random_points_and_keeps_pairs_together(
    samples: Callable[..., Batch],
) -> None:
    batch = samples(2, 30)
    thin = batch.thinned(10, 7, torch.Generator().manual_seed(0))
    assert thin.points.shape == (2, 10, 2)
    assert thin.queries is not None
    assert thin.queries.shape == (2, 7, 2)
    size = (thin.values / (1.0 + torch.sin(thin.queries.sum(-1, keepdim=True))))[:, :, 0]
    assert torch.allclose(size, size[:, :1].expand_as(size), atol=1e-5)


def test_early_stop_keeps_the_best_weights(
    build: Build, dataset: Data, recipe: Recipe, tmp_path: Path
) -> None:
    config = replace(CONFIG, steps=400, learning_rate=0.5, validate_every=1, patience=3)
    operator = build(recipe)
    result = fit(operator, dataset, config, tmp_path)
    assert result.reason == "early stop"
    scores = evaluate(operator, dataset(5, seed=1), read_operator_arrays, ALONE)
    assert scores["relative_l2"] == pytest.approx(result.best)


def test_numbers_that_are_not_finite_end_the_run(
    build: Build, dataset: Data, recipe: Recipe, tmp_path: Path
) -> None:
    def loss(operator: Operator, batch: Batch, _: torch.Generator) -> torch.Tensor:
        return operator(**batch.inputs).sum() * torch.inf

    with pytest.raises(DivergedError, match="step 1"):
        fit(build(recipe), dataset, CONFIG, tmp_path, loss=loss)


def test_soap_has_no_weight_decay_and_says_so() -> None:
    with pytest.raises(SettingsError, match="weight_decay"):
        replace(CONFIG, optimizer="soap", weight_decay=1e-4)


def test_the_criterion_chooses_what_is_best(
    build: Build, dataset: Data, recipe: Recipe, tmp_path: Path
) -> None:
    operator = build(recipe)
    result = fit(operator, dataset, replace(CONFIG, criterion="rmse"), tmp_path)
    scores = evaluate(operator, dataset(5, seed=1), read_operator_arrays, ALONE)
    assert result.best == pytest.approx(scores["rmse"])
    assert result.best != pytest.approx(scores["relative_l2"])


@pytest.mark.parametrize("name", ["steps", "batch_size", "accumulate", "validate_every"])
def test_settings_without_sense_are_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        replace(CONFIG, **{name: 0})


def test_given_loss_is_what_is_minimised(
    build: Build, dataset: Data, recipe: Recipe, tmp_path: Path
) -> None:
    seen = []

    def loss(operator: Operator, batch: Batch, _: torch.Generator) -> torch.Tensor:
        seen.append(len(batch))
        return (operator(**batch.inputs) - 3.0).square().mean()

    operator = build(recipe)
    fit(operator, dataset, replace(CONFIG, steps=80, validate_every=80), tmp_path, loss=loss)
    batch = read_operator_arrays(next(dataset(14).batches(14)))
    assert (operator.predict(batch) - 3.0).abs().mean() < 0.5
    assert set(seen) == {4, 2}


def test_training_goes_on_where_nothing_compiles(
    build: Build, dataset: Data, recipe: Recipe, tmp_path: Path
) -> None:
    """Without a C++ compiler the loss is what it was, to the bit."""
    from torch._inductor import config as inductor  # slow to load

    plain, other = build(recipe), build(recipe)
    config = replace(CONFIG, steps=3)
    fit(plain, dataset, config, tmp_path / "plain")
    none = {"cpp.cxx": (None, "/no/compiler"), "fx_graph_cache": False}
    with inductor.patch(none), pytest.warns(UserWarning, match="without torch.compile: .*C++"):
        fit(other, dataset, replace(config, compile=True), tmp_path / "other")
    assert same(weights(plain), weights(other))


def write_set(folder: Path) -> None:
    """A tiny set of the diffusion preset's shape."""
    from data_gen.builder import build as make
    from data_gen.toys import DiffusionSet

    make(DiffusionSet(samples=384, points=16), "diffusion", folder)


def command(data: Path, out: Path, steps: int, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "amo", "train", "diffusion", "--data", str(data), "--out", str(out),
        "--steps", str(steps), "--device", "cpu", *more,
    ]  # fmt: skip


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    for _ in range(6000):
        if path.exists():
            return
        assert process.poll() is None, "training ended before it saved a state"
        time.sleep(0.05)
    pytest.fail(f"{path} was never written")


def wait_for_progress(process: subprocess.Popen[bytes]) -> None:
    """Wait until training goes on: its bar is drawn."""
    assert process.stderr is not None
    seen = b""
    while b"step/s" not in seen:
        more = process.stderr.read1(4096)  # type: ignore[attr-defined]  # a buffered pipe has it
        assert more, "training ended before its bar was drawn"
        seen += more


STEPS = 60
SAVING = "--save-every", "20"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody stopped, with its data beside it."""
    folder = tmp_path_factory.mktemp("whole")
    write_set(folder / "data")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = command(folder / "data", folder / "run", STEPS, *SAVING)
    subprocess.run(run, env=environment, check=True)
    return folder


def test_stopped_run_resumes_to_the_same_weights(tmp_path: Path, whole: Path) -> None:
    data = whole / "data"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = command(data, tmp_path / "stopped", STEPS, *SAVING)
    for kind in (signal.SIGKILL, signal.SIGTERM):  # the second while it goes on from the first
        process = subprocess.Popen(run, env=environment, stderr=subprocess.PIPE)
        wait_for(tmp_path / "stopped/training_state.safetensors", process)
        if kind == signal.SIGTERM:
            wait_for_progress(process)
        process.send_signal(kind)
        _, said = process.communicate()
        if kind == signal.SIGTERM:
            assert process.returncode == 130
            assert b"same command goes on" in said
        else:
            assert process.returncode == -signal.SIGKILL
    subprocess.run(run, env=environment, check=True)
    one, two = (
        read_tensors(folder / "weights.safetensors")[0]
        for folder in (tmp_path / "stopped", whole / "run")
    )
    assert same(one, two)
    assert not (tmp_path / "stopped/training_state.safetensors").exists()


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_set(data)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    two = command(data, tmp_path / "two", 20)
    subprocess.run(
        [*torchrun, "--nproc-per-node=2", *two[1:]], env=environment, check=True, timeout=300
    )
    subprocess.run(command(data, tmp_path / "one", 20), env=environment, check=True)
    a, b = (read_tensors(tmp_path / name / "weights.safetensors")[0] for name in ("one", "two"))
    for name, tensor in a.items():
        assert torch.allclose(tensor, b[name], atol=2e-4), name
    losses = [
        [entry["loss"] for entry in log(tmp_path / name) if "loss" in entry]
        for name in ("one", "two")
    ]
    assert np.allclose(losses[0], losses[1], rtol=1e-3)

"""How fast labels are made, against QuantLib's own grid, in one run.

Also where the sizes and times of the default sets are kept for ``list`` and the README.
"""

import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from data_gen.black_scholes import AmericanSet
from pricing.bench import random_options
from pricing.contracts import FloatArray, Options
from pricing.engines import get_engine
from pricing.fd import FDSettings, evaluate, solve_surface

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results" / "data_gen.json"
SURFACE = FDSettings(n_space=64, n_time=32, levels=2)
_CHUNK = 64
_SURFACES = 2048


def default_build() -> dict[str, dict[str, Any]]:
    """Return what the last measured default build says of each set; empty if never measured."""
    if not RESULTS.exists():
        return {}
    return dict(json.loads(RESULTS.read_text(encoding="utf-8"))["sets"])


def run() -> dict[str, Any]:
    """Measure label throughput, QuantLib's, their ratio, and the memory of a build."""
    workers = os.cpu_count() or 1
    options = random_options(_SURFACES, seed=5, is_american=True)
    chunks = [options.take(slice(i, i + _CHUNK)) for i in range(0, _SURFACES, _CHUNK)]
    own = AmericanSet(states=16 * workers)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        list(pool.map(_solve, chunks[: 4 * workers]))  # start and compile
        surfaces = _SURFACES / min(_timed(lambda: list(pool.map(_solve, chunks))) for _ in "123")
        seconds = _timed(lambda: list(pool.map(own.make, range(own.n_shards))))
    few = options.take(slice(0, 300))
    quantlib = get_engine("quantlib-fd")
    quantlib.evaluate(few.take(slice(0, 5)), ("price",))
    prices = len(few) / min(_timed(lambda: quantlib.evaluate(few, ("price",))) for _ in "123")
    truth = get_engine("quantlib-high-precision").evaluate(few, ("price",))[0]["price"]
    ours, theirs = evaluate(few, ("price",), SURFACE), quantlib.evaluate(few, ("price",))[0]
    return {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": workers,
            "python": platform.python_version(),
        },
        "command": "python -m data_gen bench --json",
        "surface": "American price, delta and gamma, extrapolated from 64 × 32 and 128 × 64",
        "surfaces_per_second": surfaces,
        "surface_price_rmse": _rms(ours["price"] - truth),
        "quantlib_fd_100x200_prices_per_second": prices,
        "quantlib_fd_100x200_price_rmse": _rms(theirs["price"] - truth),
        "ratio": surfaces / prices,
        "american_set_surfaces_per_second": own.states * own.vols / seconds,
        "american_set_labelled_points_per_second": own.states * own.vols * own.points / seconds,
        "peak_megabytes_of_one_worker": {str(n): _peak_megabytes(n) for n in (32, 128)},
        "sets": default_build(),
    }


def _solve(options: Options) -> None:
    solve_surface(options, SURFACE)


def _rms(error: FloatArray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _peak_megabytes(states: int) -> float:
    """Build a set of so many states in a process of its own; return its largest resident size."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "data_gen", "american", "--states", str(states)]
        command += ["--workers", "1", "--out", f"{folder}/set"]
        script = (
            "import resource, subprocess, sys\n"
            "subprocess.run(sys.argv[1:], check=True, capture_output=True)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        done = subprocess.run(  # noqa: S603  # our own command line
            [sys.executable, "-c", script, *command], check=True, capture_output=True, text=True
        )
    return round(int(done.stdout) / 1024, 0)

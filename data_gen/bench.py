"""How fast labels are made, against QuantLib's own grid, in one run.

Also where the sizes and times of the default sets are kept for ``list`` and the README.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import numpy as np

from amo.arrays import FloatArray
from amo.jobs import worker_pool
from amo.results import RESULTS, Machine, read
from data_gen.options.surrogate_sets import AmericanSet
from pricing.engines.registry import get_engine
from pricing.fd import FDSettings, evaluate, solve_surface
from pricing.options import Options
from pricing.random_books import random_options

_MEASURED = RESULTS / "data_gen.json"
SURFACE = FDSettings(n_space=48, n_time=24, levels=2)
_CHUNK = 64


class SetRow(TypedDict):
    """What one default set holds, weighs and takes."""

    samples: int
    dropped: int
    worst_error: float
    megabytes: int
    seconds: int


class DataResults(TypedDict):
    """How fast labels are made: docs/results/data_gen.json."""

    machine: Machine
    command: str
    surface: str
    surfaces_per_second_and_core: float
    surface_price_rmse: float
    quantlib_fd_100x200_prices_per_second_and_core: float
    quantlib_fd_100x200_price_rmse: float
    ratio: float
    american_set_surfaces_per_second: float
    american_set_labelled_points_per_second: float
    peak_megabytes_with_two_workers: dict[str, float]
    sets: dict[str, SetRow]


def default_build() -> dict[str, SetRow]:
    """Return what the last measured default build says about each set; empty if never measured."""
    if not _MEASURED.exists():
        return {}
    return read(_MEASURED, DataResults)["sets"]


def run() -> DataResults:
    """Measure label throughput, QuantLib's, their ratio, and the memory of a build.

    Both sides of the ratio run in the same worker process, on one core.
    """
    few = random_options(300, seed=5, is_american=True)
    own = AmericanSet(states=32)
    with worker_pool(1) as pool:
        surfaces, prices = pool.submit(_rates, few).result()
    cores = os.cpu_count() or 1
    with worker_pool(cores) as pool:
        list(pool.map(own.make, range(cores)))  # start and compile
        seconds = _timed(lambda: list(pool.map(own.make, range(own.n_shards))))
    truth = get_engine("quantlib-high-precision").evaluate(few, ("price",))[0]["price"]
    theirs = get_engine("quantlib-fd").evaluate(few, ("price",))[0]["price"]
    return {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": cores,
            "python": platform.python_version(),
        },
        "command": "python -m data_gen bench --json",
        "surface": (
            f"American price, delta and gamma, extrapolated from {SURFACE.n_space} × "
            f"{SURFACE.n_time} and {2 * SURFACE.n_space} × {2 * SURFACE.n_time}"
        ),
        "surfaces_per_second_and_core": surfaces,
        "surface_price_rmse": _rms(evaluate(few, ("price",), SURFACE)["price"] - truth),
        "quantlib_fd_100x200_prices_per_second_and_core": prices,
        "quantlib_fd_100x200_price_rmse": _rms(theirs - truth),
        "ratio": surfaces / prices,
        "american_set_surfaces_per_second": own.states * own.vols / seconds,
        "american_set_labelled_points_per_second": own.states * own.vols * own.points / seconds,
        "peak_megabytes_with_two_workers": {str(n): _peak_megabytes(n) for n in (32, 128)},
        "sets": default_build(),
    }


def as_text(results: DataResults) -> str:
    """Return the results as plain text."""
    peak = max(results["peak_megabytes_with_two_workers"].values())
    return (
        f"{results['surfaces_per_second_and_core']:,.0f} surfaces per second and core, "
        f"{results['ratio']:.0f} times QuantLib's single prices on its grid of 100 × 200; price "
        f"RMSE {results['surface_price_rmse']:.1e} against "
        f"{results['quantlib_fd_100x200_price_rmse']:.1e}; {peak:,.0f} MB with two workers"
    )


def _rates(options: Options) -> tuple[float, float]:
    """Return our surfaces and QuantLib's prices per second, best of three rounds each."""
    many = options.take(np.tile(np.arange(len(options)), 5))
    chunks = [many.take(slice(i, i + _CHUNK)) for i in range(0, len(many), _CHUNK)]
    quantlib = get_engine("quantlib-fd")

    def ours() -> None:
        for chunk in chunks:
            solve_surface(chunk, SURFACE)

    def theirs() -> None:
        quantlib.evaluate(options, ("price",))

    ours()  # compile
    return (
        len(many) / min(_timed(ours) for _ in range(3)),
        len(options) / min(_timed(theirs) for _ in range(3)),
    )


def _rms(error: FloatArray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _peak_megabytes(states: int, workers: int = 2) -> float:
    """Build a set of so many states; return the largest resident size of all its processes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "data_gen", "american", "--states", str(states)]
        command += ["--workers", str(workers), "--out", f"{folder}/set"]
        peak = 0
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:  # noqa: S603  # our own command line
            while run.poll() is None:
                peak = max(peak, _resident_kilobytes(run.pid))
                time.sleep(0.1)
    return round(peak / 1024)


def _resident_kilobytes(pid: int) -> int:
    """Return the resident size of a process and its descendants; Linux only."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    except FileNotFoundError:  # it has just ended
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    own = int(found[1]) if found else 0
    return own + sum(_resident_kilobytes(int(child)) for child in children.split())

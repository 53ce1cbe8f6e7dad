"""How fast and how exact each engine is: ratios measured in one run.

Every engine is timed on one core, so that ratios are core for core. The surrogates price a whole
book at once: their times are per row of a book of 100,000 American options over 200 market states.
The speed of the whole machine, idle and alongside four busy programs, is measured separately.
"""

import json
import os
import platform
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NotRequired, TypedDict

import numpy as np
import pandas as pd

from amo.arrays import FloatArray
from amo.results import Machine
from pricing import bench_markets, black_scholes
from pricing.bench_markets import best, say
from pricing.engines import base
from pricing.engines.base import FIVE_GREEKS
from pricing.engines.registry import get_engine
from pricing.engines.surrogate import SurrogateEngine
from pricing.frames import price_frame
from pricing.implied_vol import implied_volatility
from pricing.options import Options, Values
from pricing.random_books import BOX, N_STATES, random_book, random_options

_SEED = 20_261_116
_AMERICAN = ("fd", "fd-fast", "quantlib", "quantlib-fast", "quantlib-fd")
_LOOPED = 4_000  # rows of the book on which loops are timed
_BUSY = 4  # programs that take all the processor time they can get


class EngineRow(TypedDict):
    """Errors and times of one engine on American options."""

    microseconds_price: float
    microseconds_price_delta_gamma: float
    microseconds_five_greeks: float
    price_rmse: float
    price_max: float
    microseconds_implied_vol: NotRequired[float]
    implied_vols_found: NotRequired[float]


class EngineResults(TypedDict):
    """What the engines showed in one run: docs/results/engines.json."""

    machine: Machine
    command: str
    box: dict[str, list[float]]
    n_contracts: int
    american: dict[str, EngineRow]
    book: dict[str, float]
    fd_fast_over_quantlib_fd: float
    frame: dict[str, float]
    markets: NotRequired[bench_markets.MarketResults]


def run(*, n_contracts: int = 300, n_rows: int = 1_000_000, n_book: int = 100_000) -> EngineResults:
    """Measure everything; times are the best of several runs in this one process."""
    say("American options against QdFp high precision")
    american = _american(n_contracts)
    say("a book by the surrogates, and by a loop over QdFp")
    surrogates, book = _surrogates(n_contracts, n_book)
    say(f"the whole machine, idle and beside {_BUSY} busy programs")
    book |= _whole_machine(n_book)
    say(f"{n_rows:,} rows by the surrogate in a process of its own")
    book |= _large(n_rows)
    say("the frame layer against the bare formula")
    frame = _frame_layer(n_rows)
    fd_fast, quantlib_fd = american["fd-fast"], american["quantlib-fd"]
    return {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count() or 1,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "command": (
            f"python -m pricing bench --contracts {n_contracts} --rows {n_rows} --book {n_book}"
        ),
        "box": {name: list(bounds) for name, bounds in BOX.items()},
        "n_contracts": n_contracts,
        "american": {**american, **surrogates},
        "book": book,
        # QuantLib's grid yields delta and gamma with the price: timing its price alone is fair
        "fd_fast_over_quantlib_fd": (
            quantlib_fd["microseconds_price"] / fd_fast["microseconds_price_delta_gamma"]
        ),
        "frame": frame,
    }


def _american(n: int) -> dict[str, EngineRow]:
    options = random_options(n, seed=_SEED, is_american=True)
    truth = _values(get_engine("quantlib-high-precision"), options, ("price",))["price"]
    return {
        name: _american_row(
            get_engine(name), options, truth, n_timed=60 if name == "quantlib-fd" else n
        )
        for name in _AMERICAN
    }


def _american_row(
    engine: base.Engine, options: Options, truth: FloatArray, n_timed: int
) -> EngineRow:
    timed = options.take(slice(0, n_timed))
    grid = ("price", "delta", "gamma")  # what one solve of our grid yields

    def microseconds(quantities: tuple[str, ...], repeats: int) -> float:
        return 1e6 * best(lambda: _values(engine, timed, quantities), repeats) / len(timed)

    _values(engine, options.take(slice(0, 2)), grid)  # compile first
    error = _values(engine, options, ("price",))["price"] - truth
    row: EngineRow = {
        "microseconds_price": microseconds(("price",), 3),
        "microseconds_price_delta_gamma": microseconds(grid, 3),
        "microseconds_five_greeks": microseconds(("price", *FIVE_GREEKS), 1),
        "price_rmse": float(np.sqrt(np.mean(error**2))),
        "price_max": float(np.abs(error).max()),
    }
    if engine.name != "quantlib-fd":  # minutes
        found: list[FloatArray] = []
        seconds = best(
            lambda: found.append(implied_volatility(engine, options, truth, workers=1).volatility),
            1,
        )
        row["microseconds_implied_vol"] = 1e6 * seconds / len(options)
        row["implied_vols_found"] = float(np.isfinite(found[0]).sum())
    return row


def _surrogates(n: int, n_book: int) -> tuple[dict[str, EngineRow], dict[str, float]]:
    """Return table rows of the surrogates, and how they compare with QdFp fast on one book."""
    options = random_options(n, seed=_SEED, is_american=True)
    truth = _values(get_engine("quantlib-high-precision"), options, ("price",))["price"]
    book = random_book(n_book)
    rows = {
        engine.name: _surrogate_row(engine, book, options, truth)
        for engine in SurrogateEngine.load_all()
    }
    loop, few = get_engine("quantlib-fast"), book.take(slice(0, _LOOPED))
    _values(loop, few.take(slice(0, 2)), ("price",))
    quotes = _values(loop, few, ("price",))["price"]
    five = ("price", *FIVE_GREEKS)
    seconds = {
        "price": best(lambda: _values(loop, few, ("price",))),
        "five_greeks": best(lambda: _values(loop, few, five), 1),
        "implied_vol": best(lambda: implied_volatility(loop, few, quotes, workers=1), 1),
    }
    ours = rows["amo"]
    lonely = random_options(min(n_book, 2_000), seed=_SEED + 1, is_american=True)
    engine = SurrogateEngine.load()
    european = random_options(n_book, seed=_SEED + 2, is_american=False)
    european = european.with_values(rate=book.rate, dividend_yield=book.dividend_yield)
    formula = get_engine("analytic")
    return rows, {
        "rows": float(n_book),
        "states": float(N_STATES),
        "looped_rows": float(len(few)),
        **{f"quantlib_fast_microseconds_{k}": 1e6 * v / len(few) for k, v in seconds.items()},
        **{
            f"{k}_times_faster": 1e6 * v / len(few) / ours[f"microseconds_{k}"]  # type: ignore[literal-required]
            for k, v in seconds.items()
        },
        "microseconds_price_one_state_a_row": 1e6
        * best(lambda: engine.evaluate(lonely, ("price",), workers=1))
        / len(lonely),
        "microseconds_european_five_greeks": 1e6
        * best(lambda: engine.evaluate(european, five, workers=1))
        / len(european),
        "microseconds_formula_five_greeks": 1e6
        * best(lambda: formula.evaluate(european, five))
        / len(european),
    }


def _surrogate_row(
    engine: SurrogateEngine, book: Options, options: Options, truth: FloatArray
) -> EngineRow:
    def microseconds(quantities: tuple[str, ...]) -> float:
        return 1e6 * best(lambda: engine.evaluate(book, quantities, workers=1)) / len(book)

    error = engine.evaluate(options, ("price",))[0]["price"] - truth
    quotes = engine.evaluate(book, ("price",))[0]["price"]
    found: list[FloatArray] = []
    seconds = best(
        lambda: found.append(implied_volatility(engine, book, quotes, workers=1).volatility), 1
    )
    return {
        "microseconds_price": microseconds(("price",)),
        "microseconds_price_delta_gamma": microseconds(("price", "delta", "gamma")),
        "microseconds_five_greeks": microseconds(("price", *FIVE_GREEKS)),
        "price_rmse": float(np.sqrt(np.mean(error**2))),
        "price_max": float(np.abs(error).max()),
        "microseconds_implied_vol": 1e6 * seconds / len(book),
        "implied_vols_found": float(np.isfinite(found[0]).sum()),
    }


def _whole_machine(n_book: int) -> dict[str, float]:
    """Return the surrogate's time per row on all cores, alone and alongside busy programs."""
    engine, book = get_engine("amo"), random_book(n_book)
    five = ("price", *FIVE_GREEKS)

    def microseconds(quantities: tuple[str, ...]) -> float:
        return 1e6 * best(lambda: engine.evaluate(book, quantities)) / len(book)

    idle = {"price": microseconds(("price",)), "five_greeks": microseconds(five)}
    with _busy(_BUSY):
        beside = microseconds(("price",))
    return {
        **{f"microseconds_{name}_all_cores": value for name, value in idle.items()},
        "busy_programs": float(_BUSY),
        "microseconds_price_beside_busy": beside,
        "busy_throughput_share": idle["price"] / beside,
    }


@contextmanager
def _busy(n: int) -> Iterator[None]:
    """Keep the processor busy with other programs until the block ends."""
    programs = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])  # our own
        for _ in range(n)
    ]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def _large(n_rows: int) -> dict[str, float]:
    """Price many rows with five Greeks in a separate process; return seconds and memory."""
    program = (
        "import json, resource, time\n"
        "from pricing import price_frame\n"
        "from pricing.random_books import random_book\n"
        f"frame = random_book({n_rows}).to_frame()\n"
        "start = time.perf_counter()\n"
        "price_frame(frame, 'amo', progress=False)\n"
        "seconds = time.perf_counter() - start\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "print(json.dumps({'large_seconds': seconds, 'large_peak_megabytes': peak}))\n"
    )
    run = subprocess.run(  # noqa: S603  # our own interpreter and program
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return {"large_rows": float(n_rows), **json.loads(run.stdout)}


def _frame_layer(n: int) -> dict[str, float]:
    options = random_options(n, seed=7, is_american=False)
    frame = options.to_frame().drop(columns="exercise")
    quantities = ("price", *FIVE_GREEKS)
    bare = best(lambda: black_scholes.evaluate(*options.terms, quantities))
    framed = best(lambda: price_frame(frame, "analytic", exercise="european", progress=False))
    tracemalloc.start()
    priced = price_frame(frame, "analytic", exercise="european", progress=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = int(frame.memory_usage(deep=True).sum())
    return {
        "rows": float(len(priced)),
        "seconds": framed,
        "seconds_bare_formula": bare,
        "time_ratio": framed / bare,
        "frame_bytes": float(size),
        "peak_bytes": float(peak),
        "memory_ratio": peak / size,
    }


def as_text(results: EngineResults) -> str:
    """Return the results as a table in plain text."""
    table = pd.DataFrame(results["american"]).T.to_string(float_format=lambda x: f"{x:.3g}")
    frame, book = results["frame"], results["book"]
    return (
        f"American options, {results['n_contracts']} contracts, K = 100, against QdFp high "
        f"precision; microseconds per option on one core\n{table}\n\n"
        f"amo on {results['machine']['cores']} cores: {book['microseconds_price_all_cores']:.1f} "
        f"microseconds per price; beside {book['busy_programs']:.0f} busy programs "
        f"{book['busy_throughput_share']:.2f} of that throughput\n"
        f"fd-fast (price, delta, gamma) is {results['fd_fast_over_quantlib_fd']:.0f} times faster "
        f"than QuantLib's grid 100 x 200\n"
        f"price_frame, {frame['rows']:,.0f} European rows with five Greeks: "
        f"{frame['time_ratio']:.2f} times the bare formula's time, peak memory "
        f"{frame['memory_ratio']:.1f} times the frame"
        + (f"\n\n{bench_markets.as_text(results['markets'])}" if "markets" in results else "")
    )


def _values(engine: base.Engine, options: Options, quantities: tuple[str, ...]) -> Values:
    return base.evaluate(engine, options, quantities, workers=1)[0]  # one core each

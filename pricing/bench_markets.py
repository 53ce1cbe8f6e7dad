"""How fast and how exact engines are under curves and cash dividends: ratios of one run.

Errors are at a spot of 100, against our own grid with four times as many steps both ways. Times are
of one core each, but for the chain, which may use them all.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypedDict

import numpy as np

from amo.arrays import FloatArray
from pricing import fd
from pricing.engines import base
from pricing.engines.quantlib_grid import QuantLibGridEngine
from pricing.engines.registry import get_engine
from pricing.implied_vol import implied_volatility
from pricing.options import Options
from pricing.random_books import random_markets

_SEED = 20_261_118
_GRIDS = ((100, 200), (200, 400), (400, 800))
_FINEST = fd.FDSettings(n_space=640, n_time=200)  # fd under markets is 160 × 50


class Errors(TypedDict):
    """Errors of an engine on American options under random markets."""

    rmse: float
    max: float
    covered: float | None  # share of errors below the stated one
    rmse_by_payments: dict[str, float]


class Timed(TypedDict):
    """Time and error of an engine on contracts with four payments."""

    microseconds: float
    rmse: float


class SurfaceResults(TypedDict):
    """Surfaces of a book by one engine."""

    seconds: float
    points: int
    megabytes: float
    largest_difference: float  # from price_frame at sampled points, for a strike of 100


class MarketResults(TypedDict):
    """What the engines showed under markets in one run: docs/results/markets.json."""

    command: str
    n_markets: int
    n_contracts: int
    errors: dict[str, Errors]
    four_payments: dict[str, Timed]
    fd_fast_over_quantlib_grid: float
    quantlib_grid: str
    analytic_microseconds: float
    chain_rows: int
    chain_seconds: float
    surfaces: dict[str, SurfaceResults]
    surface_over_quantlib_grid: float


def run(n_markets: int = 500, n_surfaces: int = 1_000) -> MarketResults:
    """Measure everything; times are the best of several runs in this one process."""
    say(f"{n_markets} random markets, four American contracts each")
    errors = _errors(n_markets)
    say("contracts with four payments, beside QuantLib's grids")
    four, rival, ratio = _four_payments(min(n_markets, 200))
    say("European options by the formula, a chain of American quotes")
    formula, (chain_rows, chain_seconds) = _formula(n_markets), _chain(min(n_markets, 20))
    say(f"surfaces of {n_surfaces} contracts, 64 moments by 64 spots")
    surfaces = {name: _surfaces(name, n_surfaces) for name in ("fd", "amo")}
    point = 1e6 * surfaces["fd"]["seconds"] / surfaces["fd"]["points"]
    return {
        "command": f"python -m pricing bench markets --markets {n_markets} --surfaces {n_surfaces}",
        "n_markets": n_markets,
        "n_contracts": 4 * n_markets,
        "errors": errors,
        "four_payments": four,
        "fd_fast_over_quantlib_grid": ratio,
        "quantlib_grid": rival,
        "analytic_microseconds": formula,
        "chain_rows": chain_rows,
        "chain_seconds": chain_seconds,
        "surfaces": surfaces,
        "surface_over_quantlib_grid": four["quantlib 100 x 200"]["microseconds"] / point,
    }


def _errors(n_markets: int) -> dict[str, Errors]:
    options = random_markets(n_markets, _SEED, is_american=True)
    truth = _truth(options)
    return {name: _compared(get_engine(name), options, truth) for name in ("fd", "fd-fast")}


def _truth(options: Options) -> FloatArray:
    """Return prices on the finest grid."""
    if options.slices is None:
        raise TypeError("options have no markets")
    return fd.evaluate_under_markets(options, options.slices, ("price",), _FINEST)["price"]


def _compared(engine: base.Engine, options: Options, truth: FloatArray) -> Errors:
    states = engine.name == "fd"
    names = ("price", "price_error") if states else ("price",)
    found, _ = base.evaluate(engine, options, names)
    error = np.abs(found["price"] - truth)
    counts = options.slices.n_payments if options.slices is not None else np.zeros(len(options))
    return {
        "rmse": _rms(error),
        "max": float(error.max()),
        "covered": float(np.mean(error <= found["price_error"])) if states else None,
        "rmse_by_payments": {
            str(count): _rms(error[counts == count]) for count in np.unique(counts).tolist()
        },
    }


def _four_payments(n_markets: int) -> tuple[dict[str, Timed], str, float]:
    """Return time and error of each engine, and how many times faster fd-fast is.

    Its rival is the finest of QuantLib's grids whose error is not below that of fd-fast.
    """
    options = random_markets(n_markets, _SEED + 1, is_american=True, n_contracts=10, n_payments=4)
    n_slow = min(100, len(options))
    truth = _truth(options.take(slice(0, n_slow)))
    rows: dict[str, Timed] = {}
    for name in ("fd", "fd-fast"):
        rows[name] = _timed(get_engine(name), options, truth, len(options))
    for steps in _GRIDS:
        name = f"quantlib {steps[0]} x {steps[1]}"
        rows[name] = _timed(QuantLibGridEngine(steps=steps), options, truth, n_slow)
    ours = rows["fd-fast"]
    rivals = [name for name in rows if "quantlib" in name and rows[name]["rmse"] >= ours["rmse"]]
    rival = rivals[-1] if rivals else "quantlib 100 x 200"
    return rows, rival, rows[rival]["microseconds"] / ours["microseconds"]


def _timed(engine: base.Engine, options: Options, truth: FloatArray, n_timed: int) -> Timed:
    few, timed = options.take(slice(0, len(truth))), options.take(slice(0, n_timed))
    found = base.evaluate(engine, few, ("price",), workers=1)[0]["price"]
    repeats = 3 if n_timed == len(options) else 1
    seconds = best(lambda: base.evaluate(engine, timed, ("price",), workers=1), repeats)
    return {"microseconds": 1e6 * seconds / n_timed, "rmse": _rms(found - truth)}


def _formula(n_markets: int) -> float:
    options = random_markets(n_markets, _SEED + 2, is_american=False, n_contracts=200, n_payments=4)
    engine = get_engine("analytic")
    engine.evaluate(options.take(slice(0, 2)), ("price",))
    return 1e6 * best(lambda: engine.evaluate(options, ("price",), workers=1)) / len(options)


def _chain(n_markets: int) -> tuple[int, float]:
    """Return rows and seconds of a chain's implied volatilities by fd-fast, on all cores."""
    options = random_markets(n_markets, _SEED + 3, is_american=True, n_contracts=100, n_payments=4)
    engine = get_engine("fd-fast")
    quotes = base.evaluate(engine, options, ("price",))[0]["price"]
    return len(options), best(lambda: implied_volatility(engine, options, quotes), 2)


def _surfaces(engine: str, n: int) -> SurfaceResults:
    """Price surfaces in a process of their own, and check sampled points against price_frame."""
    program = (
        "import json, resource, time\n"
        "import numpy as np\n"
        "from pricing import price_frame, surface_frame\n"
        "from pricing.random_books import random_book\n"
        f"book = random_book({n}).to_frame()\n"
        f"surface_frame(book[:2], {engine!r}, spot=4, time=4)\n"
        "start = time.perf_counter()\n"
        f"found = surface_frame(book, {engine!r}, spot=64, time=64, as_arrays=True, workers=1,\n"
        "    progress=False)\n"
        "seconds = time.perf_counter() - start\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "rng = np.random.default_rng(0)\n"
        "i, j, k = (rng.integers(0, m, 500) for m in (len(book), 63, 64))\n"
        "points = book.iloc[i].assign(spot=found['spot'][i, k])\n"
        "points['expiry'] -= found['time'][i, j]\n"
        f"alone = price_frame(points, {engine!r}, greeks=False)['price'].to_numpy()\n"
        "scale = 100 / points['strike'].to_numpy()\n"
        "gap = float(np.max(np.abs(alone - found['price'][i, j, k]) * scale))\n"
        "print(json.dumps({'seconds': seconds, 'points': found['price'].size, 'megabytes': peak,\n"
        "    'largest_difference': gap}))\n"
    )
    run = subprocess.run(  # noqa: S603  # our own interpreter and program
        [sys.executable, "-W", "ignore", "-c", program], check=True, capture_output=True, text=True
    )
    found: SurfaceResults = json.loads(run.stdout)
    return found


def as_text(results: MarketResults) -> str:
    """Return the results in plain text."""
    lines = [f"{results['n_contracts']} American contracts under random markets, spot 100"]
    for name, row in results["errors"].items():
        covered = "" if row["covered"] is None else f", {row['covered']:.2%} within the stated one"
        lines.append(f"  {name}: RMSE {row['rmse']:.1e}, max {row['max']:.1e}{covered}")
        counts = ", ".join(f"{n}: {e:.1e}" for n, e in row["rmse_by_payments"].items())
        lines.append(f"    RMSE by number of payments: {counts}")
    lines.append("four payments, one core, microseconds a price and RMSE")
    for name, timed in results["four_payments"].items():
        lines.append(f"  {name}: {timed['microseconds']:,.0f}, {timed['rmse']:.1e}")
    lines.append(
        f"fd-fast is {results['fd_fast_over_quantlib_grid']:.0f} times faster than "
        f"{results['quantlib_grid']}, at no larger error"
    )
    lines.append(f"analytic, European: {results['analytic_microseconds']:.2f} microseconds a row")
    lines.append(
        f"implied volatilities of a chain of {results['chain_rows']:,} American quotes by fd-fast: "
        f"{results['chain_seconds']:.1f} s on all cores"
    )
    for name, surface in results["surfaces"].items():
        lines.append(
            f"surfaces by {name}: {surface['points']:,} points in {surface['seconds']:.1f} s, one "
            f"core, {surface['megabytes']:,.0f} MB at the peak, at most "
            f"{surface['largest_difference']:.1e} from price_frame"
        )
    lines.append(
        f"by fd {results['surface_over_quantlib_grid']:,.0f} times as fast as QuantLib's grid "
        "point by point"
    )
    return "\n".join(lines)


def _rms(error: FloatArray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def best(call: Callable[[], object], repeats: int = 3) -> float:
    """Return the shortest time of several calls, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def say(text: str) -> None:
    """Tell what is being measured."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()

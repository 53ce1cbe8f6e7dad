"""How fast and how exact each engine is: ratios measured in one run."""

import os
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from pricing import black_scholes, engines
from pricing.batch import price_frame
from pricing.contracts import FloatArray, Options
from pricing.engines import FIRST_GREEKS
from pricing.implied_vol import implied_volatility

BOX = {
    "ln(S/K)": (-0.4, 0.4),
    "expiry": (0.05, 2.0),
    "volatility": (0.1, 0.6),
    "rate": (0.0, 0.10),
    "dividend_yield": (0.0, 0.08),
}
_AMERICAN = ("fd", "fd-fast", "quantlib", "quantlib-fast", "quantlib-fd")


def random_options(n: int, seed: int, *, is_american: bool) -> Options:
    """Draw contracts of strike 100, uniform over :data:`BOX`, calls and puts."""
    rng = np.random.default_rng(seed)
    x, expiry, volatility, rate, dividend_yield = (rng.uniform(*BOX[k], n) for k in BOX)
    return Options.of(
        spot=100.0 * np.exp(x),
        strike=100.0,
        expiry=expiry,
        rate=rate,
        dividend_yield=dividend_yield,
        volatility=volatility,
        is_call=rng.random(n) < 0.5,
        is_american=is_american,
    )


def run(*, n_contracts: int = 300, n_rows: int = 1_000_000) -> dict[str, Any]:
    """Measure everything; times are the best of several runs in this one process."""
    _say("American options against QdFp high precision")
    american = _american(n_contracts)
    _say("the frame layer against the bare formula")
    frame = _frame_layer(n_rows)
    fd_fast, quantlib_fd = american["fd-fast"], american["quantlib-fd"]
    return {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count() or 1,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "command": f"python -m pricing bench --contracts {n_contracts} --rows {n_rows}",
        "box": {name: list(bounds) for name, bounds in BOX.items()},
        "n_contracts": n_contracts,
        "american": american,
        # QuantLib's grid keeps delta and gamma with the price: its price alone is the fair time
        "fd_fast_over_quantlib_fd": (
            quantlib_fd["microseconds_price"] / fd_fast["microseconds_price_delta_gamma"]
        ),
        "frame": frame,
    }


def _american(n: int) -> dict[str, dict[str, float]]:
    options = random_options(n, seed=20_261_116, is_american=True)
    truth = _values(engines.get_engine("quantlib-high-precision"), options, ("price",))["price"]
    return {
        name: _american_row(
            engines.get_engine(name), options, truth, n_timed=60 if name == "quantlib-fd" else n
        )
        for name in _AMERICAN
    }


def _american_row(
    engine: engines.Engine, options: Options, truth: FloatArray, n_timed: int
) -> dict[str, float]:
    timed = options.take(slice(0, n_timed))
    grid = ("price", "delta", "gamma")  # what one solve of our grid yields

    def microseconds(quantities: tuple[str, ...], repeats: int) -> float:
        return 1e6 * _best(lambda: _values(engine, timed, quantities), repeats) / len(timed)

    _values(engine, options.take(slice(0, 2)), grid)  # compile first
    error = _values(engine, options, ("price",))["price"] - truth
    row = {
        "microseconds_price": microseconds(("price",), 3),
        "microseconds_price_delta_gamma": microseconds(grid, 3),
        "microseconds_five_greeks": microseconds(("price", *FIRST_GREEKS), 1),
        "price_rmse": float(np.sqrt(np.mean(error**2))),
        "price_max": float(np.abs(error).max()),
    }
    if engine.name != "quantlib-fd":  # minutes
        found: list[FloatArray] = []
        seconds = _best(
            lambda: found.append(implied_volatility(engine, options, truth, workers=1)[0]), 1
        )
        row["microseconds_implied_vol"] = 1e6 * seconds / len(options)
        row["implied_vols_found"] = float(np.isfinite(found[0]).sum())
    return row


def _frame_layer(n: int) -> dict[str, float]:
    options = random_options(n, seed=7, is_american=False)
    frame = pd.DataFrame(
        {
            "spot": options.spot,
            "strike": options.strike,
            "expiry": options.expiry,
            "rate": options.rate,
            "dividend_yield": options.dividend_yield,
            "volatility": options.volatility,
            "option_type": np.where(options.is_call, "call", "put"),
        }
    )
    quantities = ("price", *FIRST_GREEKS)
    bare = _best(lambda: black_scholes.evaluate(*options.terms, quantities))
    framed = _best(lambda: price_frame(frame, "analytic", progress=False))
    tracemalloc.start()
    priced = price_frame(frame, "analytic", progress=False)
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


def as_text(results: dict[str, Any]) -> str:
    """Return the results as a table for people."""
    table = pd.DataFrame(results["american"]).T.to_string(float_format=lambda x: f"{x:.3g}")
    frame = results["frame"]
    return (
        f"American options, {results['n_contracts']} contracts, K = 100, against QdFp high "
        f"precision; microseconds per option\n{table}\n\n"
        f"fd-fast (price, delta, gamma) is {results['fd_fast_over_quantlib_fd']:.0f} times faster "
        f"than QuantLib's grid 100 x 200\n"
        f"price_frame, {frame['rows']:,.0f} European rows with five Greeks: "
        f"{frame['time_ratio']:.2f} times the bare formula's time, peak memory "
        f"{frame['memory_ratio']:.1f} times the frame"
    )


def _values(
    engine: engines.Engine, options: Options, quantities: tuple[str, ...]
) -> engines.Values:
    return engines.evaluate(engine, options, quantities, workers=1)[0]  # one core each


def _best(call: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

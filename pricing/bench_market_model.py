"""The market model against the other engines, on one large book, all in one run on one core.

A book of American options on several underlyings, each with a curve of eight nodes and quarterly
dividends in cash; rows of one underlying and expiry share a slice of their market.
"""

import time
from collections.abc import Callable, Mapping
from typing import TypedDict

import numpy as np
import pandas as pd

from pricing import fd
from pricing.analysis.ladder import ladder_frame
from pricing.books import read_book
from pricing.engines.finite_differences import FDEngine
from pricing.engines.registry import get_engine
from pricing.engines.surrogate import SurrogateEngine
from pricing.frames import implied_vol_frame, price_frame
from pricing.markets.market import Market
from pricing.surrogate.market_coding import terms_of
from pricing.surrogate.store import models_folder

_NODES = (0.08, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
_ENCODED = 128  # slices at a time
_GREEKS = ("delta", "gamma", "vega", "theta", "rho")
_TRUTH = fd.FDSettings(n_space=200, n_time=100)  # twice the steps of ``fd``
# Rows and quotes on which the others are timed, and their prices and Greeks compared.
_SLOWER = {"fd-fast": (2_000, 2_000), "fd": (400, 200), "quantlib-fd": (60, 20)}


class EngineRow(TypedDict):
    """One engine on rows of the book: microseconds a row, and errors against finer grids."""

    rows: int
    compared: int
    price: float
    greeks: float
    implied_volatility: float
    rmse: float
    p99: float
    largest: float
    delta_rmse: float
    vega_rmse: float


class ModelResults(TypedDict):
    """What was measured: docs/results/market_model.json."""

    command: str
    rows: int
    slices: int
    encoding_microseconds: float
    engines: dict[str, EngineRow]
    rungs: int
    ladder_seconds: float
    bumped_ladder_seconds: float
    bumped_rows: int
    ladder_difference: float


def book_of(n_rows: int, n_slices: int, seed: int = 0) -> tuple[pd.DataFrame, dict[str, Market]]:
    """Return a book and its markets, inside the domain of the market model."""
    rng = np.random.default_rng(seed)
    n_names = max(n_slices // 20, 1)
    n_expiries = n_slices // n_names
    markets = {}
    for number in range(n_names):
        level, slope = rng.uniform(0.02, 0.05), rng.uniform(-0.004, 0.004)
        cash = rng.uniform(0.1, 1.0)
        times = np.arange(rng.uniform(0.01, 0.25), 2.0, 0.25)
        markets[f"N{number:03d}"] = Market(
            spot=100.0,
            rate={t: level + slope * t for t in _NODES},
            borrow=rng.uniform(0.0, 0.02),
            dividends=[(float(t), cash) for t in times],
        )
    expiries = np.linspace(0.06, 1.95, n_expiries)
    name, expiry = (a.ravel() for a in np.indices((n_names, n_expiries)))
    place = np.arange(n_rows) % len(name)
    frame = pd.DataFrame(
        {
            "underlying": np.array(list(markets))[name[place]],
            "expiry": expiries[expiry[place]],
            "strike": 100.0 * np.exp(rng.uniform(-0.35, 0.35, n_rows)),
            "volatility": rng.uniform(0.12, 0.6, n_rows),
            "option_type": np.where(rng.random(n_rows) < 0.5, "call", "put"),
            "exercise": "american",
        }
    )
    return frame, markets


def run(n_rows: int = 100_000, n_slices: int = 500) -> ModelResults:
    """Measure the shipped market model and the engines beside it."""
    frame, markets = book_of(n_rows, n_slices)
    few = frame.sample(min(2_000, n_rows), random_state=0)
    exactly = FDEngine("fd", _TRUTH)
    truth = price_frame(few, exactly, greeks=_GREEKS, markets=markets, progress=False)
    alike = frame[np.arange(n_rows) % n_slices % 50 == 0].head(2_000)  # whole slices, as in a chain
    priced = price_frame(alike, "fd", greeks=False, markets=markets, progress=False)
    quotes = alike.drop(columns="volatility").assign(price=priced["price"])
    engines = {"amo": _engine("amo", frame, truth, quotes, markets)}
    for name, (n, n_quotes) in _SLOWER.items():
        engines[name] = _engine(name, few.head(n), truth.head(n), quotes.head(n_quotes), markets)
    rungs = ladder_frame(few, "amo", markets, workers=1)
    ladder = _seconds(lambda: ladder_frame(frame, "amo", markets, workers=1))
    some = few.head(200)
    bumped = _seconds(lambda: ladder_frame(some, "fd-fast", markets, workers=1))
    exact = ladder_frame(some, "fd", markets)["sensitivity"]
    ours = ladder_frame(some, "amo", markets)["sensitivity"]
    return {
        "command": f"python -m pricing bench market-model --rows {n_rows} --slices {n_slices}",
        "rows": n_rows,
        "slices": n_slices,
        "encoding_microseconds": _encoding(frame, markets),
        "engines": engines,
        "rungs": len(rungs),
        "ladder_seconds": ladder,
        "bumped_ladder_seconds": bumped * n_rows / len(some),
        "bumped_rows": len(some),
        "ladder_difference": float(np.abs(ours - exact).max() / np.abs(exact).max()),
    }


def _engine(
    name: str,
    frame: pd.DataFrame,
    truth: pd.DataFrame,
    quotes: pd.DataFrame,
    markets: Mapping[str, Market],
) -> EngineRow:
    """Time an engine on a book, and compare it on those of its rows whose truth is known."""

    def priced(book: pd.DataFrame, greeks: tuple[str, ...]) -> pd.DataFrame:
        return price_frame(book, name, greeks=greeks, markets=markets, workers=1, progress=False)

    found = priced(frame.loc[truth.index], _GREEKS)
    if name == "amo" and set(found["engine"]) != {"amo"}:
        raise ValueError("rows of the book are outside of the market model's domain")
    error = found["price"] - truth["price"]
    greeks_of = frame.head(max(len(frame) // 5, len(truth)))
    return {
        "rows": len(frame),
        "compared": len(truth),
        "price": 1e6 * _seconds(lambda: priced(frame, ())) / len(frame),
        "greeks": 1e6 * _seconds(lambda: priced(greeks_of, _GREEKS)) / len(greeks_of),
        "implied_volatility": 1e6
        * _seconds(
            lambda: implied_vol_frame(
                quotes, engine=name, markets=markets, workers=1, progress=False
            )
        )
        / len(quotes),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "p99": float(np.quantile(np.abs(error), 0.99)),
        "largest": float(np.abs(error).max()),
        "delta_rmse": _rmse(found["delta"] - truth["delta"]),
        "vega_rmse": _rmse(found["vega"] - truth["vega"]),
    }


def _encoding(frame: pd.DataFrame, markets: Mapping[str, Market]) -> float:
    """Return microseconds per slice, many encoded at a time by one thread."""
    import torch  # noqa: PLC0415  # slow to load

    engine = get_engine("amo")
    model = engine.market if isinstance(engine, SurrogateEngine) else None
    if model is None:
        raise ValueError(f"there is no market model in {models_folder()}")
    options, _ = read_book(frame.drop_duplicates(["underlying", "expiry"]), markets=markets)
    rows = np.arange(min(_ENCODED, len(options)))[:, None]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return 1e6 * _seconds(lambda: model.encode(terms_of(options, rows))) / len(rows)
    finally:
        torch.set_num_threads(before)


def _seconds(work: Callable[[], object]) -> float:
    """Return the shortest of three runs, after one to warm up."""
    work()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _rmse(error: "pd.Series[float]") -> float:
    return float(np.sqrt(np.mean(error**2)))


def as_text(results: ModelResults) -> str:
    """Return the results in plain text."""
    lines = [f"{results['rows']:,} rows over {results['slices']} slices, one core"]
    for name, row in results["engines"].items():
        lines.append(
            f"  {name}: {row['price']:.1f} µs a price, {row['greeks']:.0f} with five Greeks, "
            f"{row['implied_volatility']:.0f} an implied vol; RMSE {row['rmse']:.1e}, p99 "
            f"{row['p99']:.1e}, largest {row['largest']:.1e}"
        )
    ratio = results["bumped_ladder_seconds"] / results["ladder_seconds"]
    lines.append(f"  encoding of a slice: {results['encoding_microseconds']:.0f} µs")
    lines.append(
        f"  ladder of {results['rungs']} rungs: {results['ladder_seconds']:.1f} s, {ratio:,.0f} "
        "times as fast as fd-fast bumped"
    )
    return "\n".join(lines)

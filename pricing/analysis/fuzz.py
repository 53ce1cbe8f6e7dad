"""Contracts that try to break an engine, to see whether the errors it states hold.

Three regions: the box of usual contracts, the whole domain, and its edges, where every coordinate
has an even chance of sitting on an end, a kink or a degenerate value. The truth is the closed form
for European options and QuantLib's QdFp for American ones; a price outside its stated error is
checked again by QdFp at high precision before it counts. All strikes are 100. Under markets the
truth is finite differences, on much finer grids where a price is doubted, and up to the error that
these state themselves.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

import numpy as np
from tqdm import tqdm

from amo import checkpoint
from amo.arrays import BoolArray, FloatArray
from amo.errors import FailedError
from amo.files import sha256_of
from pricing import bounds, cash_dividends
from pricing.analysis.market_assessment import PAYMENTS
from pricing.engines import base
from pricing.engines.registry import get_engine
from pricing.fd import FDSettings, evaluate_under_markets
from pricing.options import Options, Values
from pricing.random_books import BOX, STRIKE
from pricing.random_schedules import random_schedules
from pricing.surrogate.domain import Domain
from pricing.surrogate.market_domain import MarketDomain
from pricing.surrogate.market_model import NAME as MARKET_MODEL
from pricing.surrogate.store import models_folder

QUANTITIES = ("price", "delta", "gamma", "vega", "theta", "rho", "dividend_rho")
REGIONS = ("box", "domain", "edges")
COVERED = {"box": 0.99, "domain": 0.99, "edges": 0.98}  # share of rows within the stated error
WORST = 10.0  # times the stated error: no row may be further off
_ROWS_A_STATE = 40
_PART = 4_000  # rows per step of the progress bar
_SHORTEST = 1e-6  # years: half a minute
_FINEST = FDSettings(n_space=320, n_time=120)
_MINUTE, _DAY = 1.0 / (365 * 24 * 60), 1.0 / 365


class Region(TypedDict):
    """What was found in one region of one style."""

    rows: int
    judged: int
    flagged: int
    rmse: float
    largest: float
    covered: float
    median_stated: float
    worst_ratio: float
    worst_row: dict[str, float | str]
    bounds_broken: dict[str, int]
    not_finite_and_not_flagged: int


class FuzzResults(TypedDict):
    """What a fuzzed engine showed: docs/results/fuzz.json."""

    command: str
    engine: str
    weights_sha256: dict[str, str]
    seed: int
    bars: dict[str, dict[str, float] | float]
    regions: dict[str, Region]


def run(
    n_rows: int = 20_000, seed: int = 1, engine: str = "amo", *, workers: int | None = None
) -> FuzzResults:
    """Return the findings by style and region; :func:`faults` says what is wrong with them."""
    rng = np.random.default_rng(seed)
    n_each = max(n_rows // (2 * len(REGIONS)), 1)
    found = {}
    with tqdm(total=2 * len(REGIONS) * n_each, unit="rows", delay=1.0, file=sys.stderr) as bar:
        for style in ("european", "american"):
            for region in REGIONS:
                options = draw(region, n_each, rng, is_american=style == "american")
                found[f"{style}, {region}"] = _try(engine, options, workers, bar.update)
    return {
        "command": f"python -m pricing fuzz --rows {n_rows} --seed {seed} --engine {engine} --json",
        "engine": engine,
        "weights_sha256": _weights() if engine == "amo" else {},
        "seed": seed,
        "bars": {"covered": COVERED, "worst_ratio": WORST},
        "regions": found,
    }


def run_markets(
    n_rows: int = 20_000, seed: int = 1, engine: str = "amo", *, workers: int | None = None
) -> FuzzResults:
    """Return the findings under markets: by the number of dividends, and at the domain's ends."""
    rng = np.random.default_rng(seed)
    domain = MarketDomain()
    usual = random_schedules(domain, n_rows // 2, rng)
    books = {"ends, edges": random_schedules(domain, n_rows - n_rows // 2, rng, on_ends=True)}
    for low, high in PAYMENTS:
        count = usual.market_slices.n_payments
        rows = np.flatnonzero((count >= low) & (count <= high))
        if len(rows):
            words = f"{low} dividends" if low == high else f"{low} to {high} dividends"
            books[f"{words}, domain"] = usual.take(rows)
    with tqdm(total=n_rows, unit="rows", delay=1.0, file=sys.stderr) as bar:
        found = {name: _try(engine, book, workers, bar.update) for name, book in books.items()}
    flags = f"--markets --rows {n_rows} --seed {seed} --engine {engine}"
    return {
        "command": f"python -m pricing fuzz {flags} --json",
        "engine": engine,
        "weights_sha256": _weights((MARKET_MODEL,)) if engine == "amo" else {},
        "seed": seed,
        "bars": {"covered": COVERED, "worst_ratio": WORST},
        "regions": found,
    }


def _weights(models: Sequence[str] = ("european", "american")) -> dict[str, str]:
    """Return which weights are tested, by model."""
    folder = models_folder()
    return {model: sha256_of(folder / model / checkpoint.WEIGHTS) for model in models}


def draw(
    region: str,
    n: int,
    rng: np.random.Generator,
    *,
    is_american: bool,
    domain: Domain | None = None,
) -> Options:
    """Draw puts from a region and mirror half of them into calls; many share a market state."""
    domain = domain or Domain()
    ranges = {name: getattr(domain, name) for name in BOX} if region != "box" else dict(BOX)
    ranges["expiry"] = (max(ranges["expiry"][0], _SHORTEST), ranges["expiry"][1])
    pick = _on_edges if region == "edges" else _evenly
    n_states = max(n // _ROWS_A_STATE, 1)
    state = rng.integers(n_states, size=n)
    rate = pick("rate", ranges, n_states, rng)
    dividend_yield = pick("dividend_yield", ranges, n_states, rng)
    if region == "edges":  # equal rates: the forward is the spot
        dividend_yield = np.where(rng.random(n_states) < 0.15, rate, dividend_yield)
    rate, dividend_yield = rate[state], dividend_yield[state]
    expiry, volatility = (pick(name, ranges, n, rng) for name in ("expiry", "volatility"))
    x = pick("log_moneyness", ranges, n, rng)
    if region == "edges":  # around the forward, at the scale on which prices curve there
        near = (dividend_yield - rate) * expiry
        near = near + volatility * np.sqrt(expiry) * rng.choice([0.0, 1e-9, -1e-9, 0.5, -3.0], n)
        x = np.clip(np.where(rng.random(n) < 0.3, near, x), *ranges["log_moneyness"])
    is_call = rng.random(n) < 0.5
    return Options.of(
        spot=STRIKE * np.exp(np.where(is_call, -x, x)),
        strike=STRIKE,
        expiry=expiry,
        rate=np.where(is_call, dividend_yield, rate),
        dividend_yield=np.where(is_call, rate, dividend_yield),
        volatility=volatility,
        is_call=is_call,
        is_american=is_american,
    )


def _evenly(
    name: str, ranges: Mapping[str, tuple[float, float]], n: int, rng: np.random.Generator
) -> FloatArray:
    return rng.uniform(*ranges[name], n)


def _on_edges(
    name: str, ranges: Mapping[str, tuple[float, float]], n: int, rng: np.random.Generator
) -> FloatArray:
    """Draw ends and special values for half of the rows, and values in between for the others.

    Spots are computed from log-moneyness with rounding, so its ends stay slightly inside.
    """
    low, high = ranges[name]
    inner = 1e-9 * (high - low)
    special = {
        "log_moneyness": [low + inner, high - inner, 0.0, 1e-9, -1e-9, 0.98 * low, 0.98 * high],
        "expiry": [high, 0.999 * high, _MINUTE, 60 * _MINUTE, _DAY, 5 * _DAY, 30 * _DAY],
        "volatility": [low, low + inner, 1.02 * low, high, 0.99 * high],
    }.get(name, [low, 1e-6, 1e-3, high, 0.99 * high])
    return np.where(rng.random(n) < 0.5, rng.choice(special, n), rng.uniform(low, high, n))


def _try(
    name: str, options: Options, workers: int | None, progress: Callable[[int], object]
) -> Region:
    """Price the rows and compare them with the truth, the stated errors and the bounds."""
    parts = []
    for start in range(0, len(options), _PART):
        some = options.take(slice(start, start + _PART))
        parts.append(_answers(name, some, workers))
        progress(len(some))
    values = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    error = np.abs(values["price"] - values["truth"])
    ratio = error / values["stated"]
    is_judged = np.isfinite(ratio)
    if not is_judged.any():
        raise FailedError(f"{name} gave no price with an error for any of {len(options)} rows")
    worst = int(np.nanargmax(ratio))
    return {
        "rows": len(options),
        "judged": int(is_judged.sum()),
        "flagged": int(values["is_flagged"].sum()),
        "rmse": float(np.sqrt(np.mean(error[is_judged] ** 2))),
        "largest": float(error[is_judged].max()),
        "covered": float(np.mean(ratio[is_judged] <= 1.0)),
        "median_stated": float(np.median(values["stated"][is_judged])),
        "worst_ratio": float(ratio[worst]),
        "worst_row": _row(options, worst),
        "bounds_broken": broken_bounds(options, {q: values[q] for q in QUANTITIES}),
        "not_finite_and_not_flagged": int(
            (
                ~np.isfinite([values[q] for q in QUANTITIES]).all(axis=0) & ~values["is_flagged"]
            ).sum()
        ),
    }


def _answers(name: str, options: Options, workers: int | None) -> dict[str, FloatArray | BoolArray]:
    engine = get_engine(name)
    values, failures = base.evaluate(engine, options, (*QUANTITIES, "price_error"), workers=workers)
    stated = values.pop("price_error")
    is_flagged = np.zeros(len(options), dtype=np.bool_)
    is_flagged[list(failures)] = True
    truth = _truth(options, values["price"], stated, workers)
    return {**values, "stated": stated, "truth": truth, "is_flagged": is_flagged}


def _truth(
    options: Options, price: FloatArray, stated: FloatArray, workers: int | None
) -> FloatArray:
    """Return true prices; where they contradict the stated error, from a more precise referee."""
    if options.slices is not None:
        return _truth_under_markets(options, price, stated, workers)
    if not options.is_american.any():
        return get_engine("analytic").evaluate(options, ("price",))[0]["price"]
    truth = base.evaluate(get_engine("quantlib"), options, ("price",), workers=workers)[0]
    first = truth["price"]
    doubted = np.flatnonzero(~(np.abs(price - first) <= stated))
    if len(doubted):
        precise = get_engine("quantlib-high-precision")
        first[doubted] = base.evaluate(precise, options.take(doubted), ("price",))[0]["price"]
    return first


def _truth_under_markets(
    options: Options, price: FloatArray, stated: FloatArray, workers: int | None
) -> FloatArray:
    found = base.evaluate(get_engine("fd"), options, ("price",), workers=workers)[0]["price"]
    doubted = np.flatnonzero(~(np.abs(price - found) <= stated))
    if len(doubted):
        some, names = options.take(doubted), ("price", "price_error")
        finer = evaluate_under_markets(some, some.market_slices, names, _FINEST, workers=workers)
        truth, unknown = (finer[name] for name in names)  # a grid is no formula
        found[doubted] = np.clip(price[doubted], truth - unknown, truth + unknown)
    return found


def broken_bounds(options: Options, values: Values) -> dict[str, int]:
    """Count the values of every quantity that lie outside of their bounds by more than rounding."""
    slack = 1e-9 * (1.0 + options.spot + options.strike)
    if options.slices is not None:
        moved = bounds.project_under_market(options, values)
        known = cash_dividends.evaluate(options, options.slices, ("price", "price_error"))
        is_low = values["price"] < known["price"] - known["price_error"] - slack
        counts = {q: int((np.abs(moved[q] - values[q]) > slack).sum()) for q in values}
        return {**counts, "price": counts["price"] + int((is_low & options.is_american).sum())}
    counts = {}
    for name, column in values.items():
        low, high = (
            bounds.bounds(options) if name == "price" else bounds.greek_bounds(options, name)
        )
        is_broken = (column < low - slack) | (column > high + slack)
        if name == "price":
            european = get_engine("analytic").evaluate(options, ("price",))[0]["price"]
            is_broken |= options.is_american & (column < european - slack)
        counts[name] = int(is_broken.sum())
    return counts


def faults(results: FuzzResults) -> list[str]:
    """Return what is wrong, in words; empty if all is well."""
    found = []
    for name, row in results["regions"].items():
        least = COVERED[name.split(", ")[1]]
        if row["judged"] < row["rows"]:  # all are drawn from the domain
            lost = row["rows"] - row["judged"]
            found.append(f"{name}: {lost} of {row['rows']} have no price, no error or no truth")
        if row["covered"] < least:
            found.append(f"{name}: {row['covered']:.2%} within the stated error, not {least:.0%}")
        if row["worst_ratio"] > WORST:
            found.append(f"{name}: {row['worst_ratio']:.1f} times the stated error")
        found += [
            f"{name}: {n} of {row['rows']} break a bound of {quantity}"
            for quantity, n in row["bounds_broken"].items()
            if n
        ]
        if row["not_finite_and_not_flagged"]:
            found.append(f"{name}: {row['not_finite_and_not_flagged']} are no number, unflagged")
    return found


def as_text(results: FuzzResults) -> str:
    """Return the results as plain text."""
    heads = f"{'rows':>8}{'flagged':>9}{'RMSE':>10}{'largest':>10}{'covered':>10}"
    lines = [f"{'':<20}{heads}{'worst ratio':>13}{'bounds broken':>15}"]
    for name, row in results["regions"].items():
        broken = sum(row["bounds_broken"].values())
        lines.append(
            f"{name:<20}{row['rows']:>8,}{row['flagged']:>9,}{row['rmse']:>10.1e}"
            f"{row['largest']:>10.1e}{row['covered']:>10.2%}{row['worst_ratio']:>13.2f}"
            f"{broken:>15,}"
        )
    wrong = faults(results)
    return "\n".join([*lines, "", *(wrong or ["all within the bars"])])


def _row(options: Options, row: int) -> dict[str, float | str]:
    one = options.take(slice(row, row + 1))
    names = ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility")
    words = {
        "option_type": "call" if one.is_call[0] else "put",
        "exercise": "american" if one.is_american[0] else "european",
    }
    return {**{name: float(getattr(one, name)[0]) for name in names}, **words}

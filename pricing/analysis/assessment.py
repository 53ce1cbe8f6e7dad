"""How wrong a surrogate is: measured on contracts it never saw, for its metrics and its card.

The truth is the closed form for European options and extrapolated finite differences for American
ones. All figures are at strike 100, in natural units.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from amo.arrays import BoolArray, FloatArray
from amo.errors import FailedError
from amo.system import n_cores
from pricing import bounds
from pricing.engines import base
from pricing.engines.analytic import AnalyticEngine
from pricing.engines.registry import get_engine
from pricing.fd import FDSettings, solve_surface
from pricing.options import Options
from pricing.random_books import BOX, STRIKE, random_from
from pricing.surrogate import regions
from pricing.surrogate.encoding import Put, mirrored
from pricing.surrogate.model import Surrogate
from pricing.surrogate.stated_error import FLOOR, Lattice, StatedError

QUANTITIES = ("price", "delta", "gamma", "vega", "theta", "rho", "dividend_rho")
BAND = 0.01  # around the exercise boundary, where gamma jumps and Greeks are not counted
_SHORTEST = 0.002  # years: the shortest expiry drawn
_LADDER = 200
_TOLERANCE = 1e-4  # of the strike: smaller breaches of monotonicity and convexity are rounding
_PART = 2_000  # rows per step of the progress bar
_SURFACE = FDSettings(n_space=128, n_time=64)

Values = dict[str, FloatArray]


def assess(surrogate: Surrogate, n: int = 5_000, seed: int = 2_026) -> dict[str, Any]:
    """Return everything that metrics.json says about a surrogate's errors."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, surrogate.coding.is_american]))
    ranges = {name: getattr(surrogate.domain, name) for name in BOX}
    ranges["expiry"] = (max(ranges["expiry"][0], _SHORTEST), ranges["expiry"][1])
    american = surrogate.coding.is_american
    box = random_from(BOX, n, rng, is_american=american)
    whole = random_from(ranges, n, rng, is_american=american)
    stratified = _one_region_after_another(ranges, max(n // 25, 4), rng, is_american=american)
    found, truth = {}, {}
    for name, options in {"box": box, "domain": whole, "regions": stratified}.items():
        found[name] = surrogate.evaluate(options, QUANTITIES)
        truth[name] = _truth(options, f"truth, {name}")
    counted = _away_from_boundary(box) if american else np.ones(n, dtype=np.bool_)
    return {
        "strike": STRIKE,
        "contracts": n,
        "seed": seed,
        "box_ranges": {name: list(bounds) for name, bounds in BOX.items()},
        "box": _errors(found["box"], truth["box"], counted),
        "histogram": histogram(found["box"]["price"] - truth["box"]["price"]),
        "domain": _errors(found["domain"], truth["domain"], np.ones(n, dtype=np.bool_)),
        "regions": _by_region(stratified, found["regions"], truth["regions"]),
        "stated_error": _stated(surrogate, max(n // 100, 2), rng).to_dict(),
        "surfaces": _surfaces(surrogate, 200 if n >= 1_000 else 8, rng),
        "bounds": _bounds([box, whole], [found["box"], found["domain"]]),
        "ladder": _ladder(surrogate, 200 if n >= 1_000 else 8, rng),
        **({"boundary": _boundary(surrogate, n // 10, rng)} if american else {}),
        "examples": _examples(surrogate, random_from(ranges, 40, rng, is_american=american)),
    }


def _examples(surrogate: Surrogate, options: Options) -> dict[str, list[float]]:
    """Return a few contracts with this surrogate's answers, so that others can reproduce them."""
    columns = ("spot", "expiry", "rate", "dividend_yield", "volatility", "is_call")
    inputs = {name: getattr(options, name).tolist() for name in columns}
    answers = surrogate.evaluate(options, QUANTITIES)
    return {**inputs, **{name: values.tolist() for name, values in answers.items()}}


def _one_region_after_another(
    ranges: Mapping[str, tuple[float, float]],
    n: int,
    rng: np.random.Generator,
    *,
    is_american: bool,
) -> Options:
    """Draw the same number of contracts in every region of :mod:`pricing.surrogate.regions`."""
    parts = []
    for cell in regions.cells():
        cut = {
            name: (
                max(low, cell.get(name, (low, high))[0]),
                min(high, cell.get(name, (low, high))[1]),
            )
            for name, (low, high) in ranges.items()
        }
        parts.append(random_from(cut, n, rng, is_american=is_american))
    columns = ("spot", "strike", "expiry", "rate", "dividend_yield", "volatility", "is_call")
    return Options.of(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in columns},
        is_american=is_american,
    )


def _truth(options: Options, text: str) -> Values:
    engine = get_engine("fd" if options.is_american[0] else "analytic")
    parts = []
    for rows in _slices(len(options), _PART, text):
        values, failures = base.evaluate(engine, options.take(rows), QUANTITIES)
        if failures:
            raise ArithmeticError(f"the referee failed on {len(failures)} contracts: {failures}")
        parts.append(values)
    return {name: np.concatenate([part[name] for part in parts]) for name in QUANTITIES}


def _slices(n: int, size: int, text: str) -> Iterator[slice]:
    for start in tqdm(range(0, n, size), desc=text, unit="part", delay=1.0, file=sys.stderr):
        yield slice(start, start + size)


def _errors(found: Values, truth: Values, counted: BoolArray) -> dict[str, dict[str, float]]:
    """Return RMSE, p99 and largest error; prices on all rows, Greeks on the counted ones."""
    return {
        name: spread((found[name] - truth[name])[slice(None) if name == "price" else counted])
        for name in QUANTITIES
    }


def spread(error: FloatArray) -> dict[str, float]:
    """Return RMSE, p99 and largest size of errors."""
    size = np.abs(error)
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "p99": float(np.quantile(size, 0.99)),
        "max": float(size.max()),
    }


def histogram(error: FloatArray) -> dict[str, list[float]]:
    """Count errors by size, four bins per decade; smaller ones go into the first bin."""
    edges = np.logspace(-8, 1, 37)
    counts, _ = np.histogram(np.clip(np.abs(error), edges[0], edges[-1]), edges)
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def _by_region(options: Options, found: Values, truth: Values) -> list[dict[str, Any]]:
    number = regions.number(options)
    rows = []
    for place, words in enumerate(regions.names()):
        here = number == place
        errors = {name: spread((found[name] - truth[name])[here]) for name in QUANTITIES}
        rows.append({**words, "contracts": int(here.sum()), **errors})
    return rows


def _stated(surrogate: Surrogate, n: int, rng: np.random.Generator) -> StatedError:
    """Measure ``n`` puts per cell of the surrogate's domain, against the formula or QuantLib."""
    american = surrogate.coding.is_american
    referee = get_engine("quantlib" if american else "analytic")
    lattice = Lattice.of(surrogate.domain)
    largest = np.zeros(lattice.shape)
    blocks = int(np.prod(lattice.shape[3:]))
    for put in tqdm(lattice.draw(n, rng), "stated errors", blocks, delay=1.0, file=sys.stderr):
        options = _options(put, np.exp(put.log_moneyness), is_american=american)
        truth = base.evaluate(referee, options, ("price",), workers=n_cores())[0]["price"]
        found = surrogate.evaluate(options, ("price",))["price"]
        if not np.isfinite(found).all():
            raise FailedError(f"{np.sum(~np.isfinite(found))} prices of the model are no numbers")
        error = np.maximum(np.abs(found - truth) - FLOOR, 0.0)
        scale = surrogate.coding.scale(put, np)
        # rows the referee failed on tell nothing; where the scale is zero no error is possible
        share = np.divide(error, scale, out=np.zeros_like(error), where=scale > 0)
        np.maximum.at(largest, lattice.numbers(put), np.nan_to_num(share))
    return StatedError.measured(lattice, largest)


def _options(put: Put, spot: FloatArray | float, *, is_american: bool) -> Options:
    """Return puts of unit strike at a spot."""
    return Options.of(
        spot=spot,
        strike=1.0,
        expiry=put.time_to_expiry,
        rate=put.rate,
        dividend_yield=put.dividend_yield,
        volatility=put.volatility,
        is_call=False,
        is_american=is_american,
    )


def _away_from_boundary(options: Options) -> BoolArray:
    """Return which rows lie further than the band from the exercise boundary."""
    put, _ = mirrored(*options.terms)
    boundary = _fd_boundary(options)
    return np.asarray(~(np.abs(put.log_moneyness - np.log(boundary)) < BAND))


def _fd_boundary(options: Options) -> FloatArray:
    """Return S*/K of the mirrored puts, NaN where there is no boundary."""
    put, _ = mirrored(*options.terms)
    unit = _options(put, 1.0, is_american=True)
    return np.concatenate(
        [
            solve_surface(unit.take(rows), _SURFACE).boundary[:, -1]
            for rows in _slices(len(unit), 16, "exercise boundary")
        ]
    )


def _surfaces(surrogate: Surrogate, n: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the mean relative L2 error of V(S, t), 64 spots from K/2 to 3K/2, 65 times."""
    options = random_from(
        {**BOX, "log_moneyness": (0.0, 1e-9)}, n, rng, is_american=surrogate.coding.is_american
    )
    spot = np.linspace(0.5 * STRIKE, 1.5 * STRIKE, 64)
    ratios = []
    for rows in _slices(n, 16, "surfaces"):
        part = options.take(rows)
        surface = solve_surface(part, _SURFACE, log_moneyness=(np.log(0.5), np.log(1.5)))
        truth = surface.price_at(spot)
        shape = truth.shape
        flat = Options.of(
            spot=np.broadcast_to(spot, shape),
            expiry=np.broadcast_to(surface.time_to_expiry[:, :, None], shape),
            **{
                name: np.broadcast_to(getattr(part, name)[:, None, None], shape)
                for name in ("strike", "rate", "dividend_yield", "volatility", "is_call")
            },
            is_american=surrogate.coding.is_american,
        )
        live = flat.expiry > 0
        price = bounds.intrinsic(flat.spot, flat.strike, flat.is_call)
        price[live] = surrogate.evaluate(flat.take(live), ("price",))["price"]
        payoff = bounds.intrinsic(flat.spot, flat.strike, flat.is_call)
        exact = np.where(live, truth.ravel(), payoff).reshape(shape)
        if not surrogate.coding.is_american:
            exact = base.evaluate(AnalyticEngine(), flat, ("price",))[0]["price"]
            exact = exact.reshape(shape)
        error = price.reshape(shape) - exact
        ratios.append(np.sqrt((error**2).sum(axis=(1, 2)) / (exact**2).sum(axis=(1, 2))))
    every = np.concatenate(ratios)
    return {"states": n, "relative_l2": float(every.mean()), "largest": float(every.max())}


def _bounds(books: Sequence[Options], values: Sequence[Values]) -> dict[str, int]:
    """Count prices that break a bound by more than rounding."""
    counts = {"below_intrinsic": 0, "above_upper": 0, "below_european": 0, "contracts": 0}
    for options, found in zip(books, values, strict=True):
        price, slack = found["price"], 1e-9 * STRIKE
        _, high = bounds.bounds(options)
        european = options.with_values(is_american=np.zeros(len(options), dtype=np.bool_))
        floor, _ = bounds.bounds(european)
        if options.is_american.all():
            floor = bounds.intrinsic(options.spot, options.strike, options.is_call)
            formula = AnalyticEngine().evaluate(european, ("price",))[0]["price"]
            counts["below_european"] += int((price < formula - slack).sum())
        counts["below_intrinsic"] += int((price < floor - slack).sum())
        counts["above_upper"] += int((price > high + slack).sum())
        counts["contracts"] += len(options)
    return counts


def _ladder(surrogate: Surrogate, n: int, rng: np.random.Generator) -> dict[str, float]:
    """Count steps of strike ladders on which prices are not monotone or not convex."""
    base = random_from(BOX, n, rng, is_american=surrogate.coding.is_american)
    strike = np.linspace(0.65, 1.6, _LADDER) * STRIKE
    shape = (n, _LADDER)
    ladder = Options.of(
        spot=STRIKE,
        strike=np.broadcast_to(strike, shape),
        **{
            name: np.broadcast_to(getattr(base, name)[:, None], shape)
            for name in ("expiry", "rate", "dividend_yield", "volatility", "is_call")
        },
        is_american=surrogate.coding.is_american,
    )
    price = surrogate.evaluate(ladder, ("price",))["price"].reshape(shape)
    rises = np.where(base.is_call, -1.0, 1.0)[:, None] * np.diff(price, axis=1)
    bends = np.diff(price, 2, axis=1)
    small = _TOLERANCE * STRIKE
    broken = int((rises < -small).sum() + (bends < -small).sum())
    return {
        "steps": rises.size + bends.size,
        "broken": broken,
        "share": broken / (rises.size + bends.size),
    }


def _boundary(surrogate: Surrogate, n: int, rng: np.random.Generator) -> dict[str, float]:
    """Compare exercise boundaries with those of finite differences, in per cent of the strike."""
    options = random_from(BOX, n, rng, is_american=True)
    truth = _fd_boundary(options)
    found = surrogate.exercise_boundary(options)
    as_put = np.where(options.is_call, options.strike / found, found / options.strike)
    known = np.isfinite(as_put) & np.isfinite(truth)
    return {
        "contracts": n,
        "found": int(known.sum()),
        **spread(100.0 * (as_put - truth)[known]),
    }

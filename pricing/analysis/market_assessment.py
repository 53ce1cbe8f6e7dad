"""How wrong the market model is: measured on markets and contracts that it never saw.

The truth is extrapolated finite differences. All figures are at spot 100, in natural units, over
the served domain: regular schedules, expiries even in their square root, half of the strikes around
the forward.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from amo.arrays import FloatArray, IntArray
from amo.errors import FailedError
from pricing import bounds, fd
from pricing.analysis.assessment import QUANTITIES, histogram, spread
from pricing.cash_dividends import evaluate as evaluate_european
from pricing.markets.market import Market
from pricing.markets.slices import Slices
from pricing.options import Options, Values
from pricing.random_schedules import SPOT, random_schedules
from pricing.surrogate.market_errors import LATTICE, place_of
from pricing.surrogate.market_model import MarketSurrogate
from pricing.surrogate.stated_error import FLOOR, StatedError

_PART = 2_000  # rows per step of the progress bar
_REFEREE = fd.under_markets(fd.ACCURATE)
PAYMENTS = ((0, 0), (1, 2), (3, 5), (6, 9))  # dividends, by which errors are reported
_EXPIRIES = ((0.0, 0.15), (0.15, 0.5), (0.5, 1.0), (1.0, 2.0))


def assess_market(surrogate: MarketSurrogate, n: int = 5_000, seed: int = 2_026) -> dict[str, Any]:
    """Return everything that metrics.json says about the market model's errors."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 18]))
    options = random_schedules(surrogate.domain, n, rng)
    found, truth = surrogate.evaluate(options, QUANTITIES), _truth(options)
    if not np.isfinite(found["price"]).all():
        raise FailedError(f"{np.sum(~np.isfinite(found['price']))} prices are no numbers")
    error = {name: found[name] - truth[name] for name in QUANTITIES}
    stated = _stated(surrogate, 20 * n, rng)
    examples = random_schedules(surrogate.domain, 40, rng)
    return {
        "spot": SPOT,
        "contracts": n,
        "seed": seed,
        "domain": {name: spread(values) for name, values in error.items()},
        "histogram": histogram(error["price"]),
        "payments": _groups(options.market_slices.n_payments, PAYMENTS, error),
        "expiries": _groups(np.nextafter(options.expiry, 0.0), _EXPIRIES, error),
        "stated_error": {"bars": [float(f"{bar:.2e}") for bar in stated.bars.ravel()]},
        "bounds": _bounds(options, found["price"]),
        "examples": _examples(surrogate, examples),
    }


def _truth(options: Options, quantities: tuple[str, ...] = QUANTITIES) -> Values:
    parts = []
    for start in tqdm(range(0, len(options), _PART), "truth", delay=1.0, file=sys.stderr):
        some = options.take(slice(start, start + _PART))
        parts.append(fd.evaluate_under_markets(some, some.market_slices, quantities, _REFEREE))
    return {name: np.concatenate([part[name] for part in parts]) for name in quantities}


def _stated(surrogate: MarketSurrogate, n: int, rng: np.random.Generator) -> StatedError:
    """Measure the largest error of every cell, in units of the scale, and of the cells beside."""
    largest = np.zeros(LATTICE.shape)
    for on_ends in (False, True):
        options = random_schedules(surrogate.domain, n // 2, rng, on_ends=on_ends)
        truth = _truth(options, ("price",))["price"]
        price = surrogate.evaluate(options, ("price",))["price"]
        scale = surrogate.scale(options)
        error = np.maximum(np.abs(price - truth) / options.strike - FLOOR, 0.0)
        share = np.divide(error, scale, out=np.zeros_like(error), where=scale > 0)
        np.maximum.at(largest, LATTICE.numbers(place_of(options)), np.nan_to_num(share))
    return StatedError.measured(LATTICE, largest)


def _groups(
    values: FloatArray | IntArray, ranges: Sequence[tuple[float, float]], error: Values
) -> list[dict[str, Any]]:
    """Return errors by number of dividends, or by expiry."""
    rows = []
    for low, high in ranges:
        here = (values >= low) & (values <= high)
        if here.any():
            spreads = {name: spread(column[here]) for name, column in error.items()}
            rows.append({"from": low, "to": high, "contracts": int(here.sum()), **spreads})
    return rows


def _bounds(options: Options, price: FloatArray) -> dict[str, int]:
    """Count prices that break a bound by more than rounding."""
    slack = 1e-9 * SPOT
    paid = bounds.intrinsic(options.spot, options.strike, options.is_call)
    most = bounds.project_under_market(options, {"price": np.full(len(options), np.inf)})["price"]
    european = evaluate_european(options, options.market_slices, ("price", "price_error"))
    floor = european["price"] - european["price_error"]
    return {
        "contracts": len(options),
        "below_intrinsic": int((price < paid - slack).sum()),
        "above_upper": int((price > most + slack).sum()),
        "below_european": int((price < floor - slack).sum()),
    }


def stored_examples(metrics: Mapping[str, Any]) -> Options:
    """Return the contracts whose answers stand in a model's metrics."""
    stored = metrics["examples"]
    markets = [
        Market(spot=spot, rate=dict(rate), borrow=dict(borrow), dividends=payments)
        for spot, rate, borrow, payments in zip(
            *(stored[name] for name in ("spot", "rate_curve", "borrow_curve", "payments")),
            strict=True,
        )
    ]
    contract = ("spot", "strike", "expiry", "volatility", "is_call")
    options = Options.of(
        **{name: stored[name] for name in contract}, rate=0.0, dividend_yield=0.0, is_american=True
    )
    slices = Slices.of(markets, np.arange(len(markets)), options.expiry)
    return options.with_slices(slices).at_forwards()


def _examples(surrogate: MarketSurrogate, options: Options) -> dict[str, Any]:
    """Return a few contracts with this model's answers, so that others can reproduce them."""
    slices = options.market_slices
    contract = ("spot", "strike", "expiry", "volatility", "is_call")
    return {
        **{name: getattr(options, name).tolist() for name in contract},
        "payments": [
            [[time, cash] for time, cash in zip(times, amounts, strict=True) if cash > 0]
            for times, amounts in zip(slices.time.tolist(), slices.cash.tolist(), strict=True)
        ],
        **{
            f"{name}_curve": [
                [[t, total / t] for t, total in zip(at[1:], totals[1:], strict=True)]
                for at, totals in zip(
                    curves.times[slices.number].tolist(),
                    curves.totals[slices.number].tolist(),
                    strict=True,
                )
            ]
            for name, curves in (("rate", slices.rates), ("borrow", slices.borrows))
        },
        **{name: v.tolist() for name, v in surrogate.evaluate(options, QUANTITIES).items()},
    }

"""How well surfaces are found again from noisy quotes: errors, times and arbitrage by method."""

import sys
import time
from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from amo.arrays import FloatArray
from pricing.vol_surfaces.arbitrage import violations
from pricing.vol_surfaces.families import EXPIRIES, FAMILIES, Truth, made_up_quotes
from pricing.vol_surfaces.surface import METHODS, Model, fitted_model

_SEED = 20_261_118
_BETWEEN = 0.5 * (EXPIRIES[1:] + EXPIRIES[:-1])
_REACH = (-2.5, 1.8)  # deviations over which errors count


class MethodResults(TypedDict):
    """One method on the surfaces of one family."""

    rmse: float  # points of volatility, at expiries
    rmse_between: float  # at times between two expiries
    inside: float  # share of quotes between bid and ask
    milliseconds: float  # median of a fit
    with_arbitrage: float  # share of surfaces


class SurfaceBench(TypedDict):
    """Methods on made-up surfaces: docs/results/surfaces.json."""

    command: str
    surfaces: int  # of each family
    quotes: float  # of a surface, on average
    families: dict[str, dict[str, MethodResults]]


def run(n_surfaces: int = 30, of: Sequence[str] = tuple(FAMILIES)) -> SurfaceBench:
    """Fit every method to quotes of made-up surfaces, as many of each family."""
    families: dict[str, dict[str, MethodResults]] = {}
    counts = []
    with threadpool_limits(1, "blas"):
        for number, (family, make) in enumerate(FAMILIES.items()):
            if family not in of:
                continue
            rows: dict[str, list[list[float]]] = {method: [] for method in METHODS}
            for surface in tqdm(range(n_surfaces), desc=family, file=sys.stderr, unit="surface"):
                rng = np.random.default_rng([_SEED, number, surface])
                truth = make(rng)
                made = made_up_quotes(truth, rng)
                counts.append(len(made.quotes))
                for method in METHODS:
                    start = time.perf_counter()
                    model = fitted_model(made.quotes, method)
                    took = 1e3 * (time.perf_counter() - start)
                    at = made.quotes.log_moneyness, made.quotes.time
                    vol = np.sqrt(model.total_variance(*at) / at[1])
                    inside = float(np.mean((vol >= made.bid) & (vol <= made.ask)))
                    errors = [_error(model, truth, times) for times in (EXPIRIES, _BETWEEN)]
                    is_bad = len(violations(model.total_variance, EXPIRIES)) > 0
                    rows[method].append([*errors, inside, took, float(is_bad)])
            families[family] = {method: _row(found) for method, found in rows.items()}
    return {
        "command": f"python -m pricing bench surfaces --surfaces {n_surfaces}",
        "surfaces": n_surfaces,
        "quotes": float(np.mean(counts)),
        "families": families,
    }


def _error(model: Model, truth: Truth, times: FloatArray) -> float:
    """Return the root mean square error in points of volatility, over strikes that matter."""
    errors = []
    for years in times:
        deviation = float(np.sqrt(truth(np.zeros(1), np.array([years])))[0])
        y = deviation * np.linspace(*_REACH, 41)
        at = np.full(len(y), years)
        found, true = (np.sqrt(w(y, at) / at) for w in (model.total_variance, truth))
        errors.append(found - true)
    whole = np.concatenate(errors)
    return float(100.0 * np.sqrt(np.mean(whole[np.isfinite(whole)] ** 2)))


def _row(found: Sequence[Sequence[float]]) -> MethodResults:
    table = np.array(found)
    return {
        "rmse": float(np.sqrt(np.mean(table[:, 0] ** 2))),
        "rmse_between": float(np.sqrt(np.mean(table[:, 1] ** 2))),
        "inside": float(table[:, 2].mean()),
        "milliseconds": float(np.median(table[:, 3])),
        "with_arbitrage": float(table[:, 4].mean()),
    }


def as_text(results: SurfaceBench) -> str:
    """Return the results as a table for a terminal."""
    lines = [f"{'':<28}{'method':<10}{'RMSE':>7}{'between':>9}{'inside':>8}{'ms':>7}{'arb.':>7}"]
    for family, methods in results["families"].items():
        for method, row in methods.items():
            lines.append(
                f"{family:<28}{method:<10}{row['rmse']:>7.3f}{row['rmse_between']:>9.3f}"
                f"{row['inside']:>8.0%}{row['milliseconds']:>7.0f}{row['with_arbitrage']:>7.0%}"
            )
    return "\n".join(lines)

"""Regions of moneyness × expiry × volatility, by which errors are reported."""

from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
import pandas as pd

from pricing.options import Options

MONEYNESS = (-np.inf, -0.1, 0.1, np.inf)  # ln(S/K)
EXPIRY = (0.0, 0.25, 1.0, np.inf)  # years
VOLATILITY = (0.0, 0.2, 0.4, np.inf)
_LABELS = {
    "moneyness": ("S < 0.90 K", "0.90 K to 1.11 K", "S > 1.11 K"),
    "expiry": ("to 3M", "3M to 1Y", "over 1Y"),
    "volatility": ("to 20%", "20% to 40%", "over 40%"),
}


def number(options: Options) -> npt.NDArray[np.intp]:
    """Return each row's region as one number, moneyness slowest, volatility fastest."""
    labels = label_regions(options)
    result = np.zeros(len(options), dtype=np.intp)
    for name, column in labels.items():
        result = result * len(_LABELS[str(name)]) + column.cat.codes.to_numpy()
    return result


def names() -> list[dict[str, str]]:
    """Return the labels of every region, in the order of :func:`number`."""
    return [dict(zip(_LABELS, words, strict=True)) for words in product(*_LABELS.values())]


def cells() -> list[dict[str, tuple[float, float]]]:
    """Return the ranges of every region, in the order of :func:`number`."""
    axes = [list(pairwise(edges)) for edges in (MONEYNESS, EXPIRY, VOLATILITY)]
    keys = ("log_moneyness", "expiry", "volatility")
    return [dict(zip(keys, ranges, strict=True)) for ranges in product(*axes)]


def label_regions(options: Options) -> pd.DataFrame:
    """Return three ordered categorical columns: moneyness, expiry and volatility of each row."""
    values = {
        "moneyness": np.log(options.spot / options.strike),
        "expiry": options.expiry,
        "volatility": options.volatility,
    }
    edges = {"moneyness": MONEYNESS, "expiry": EXPIRY, "volatility": VOLATILITY}
    columns = {}
    for name, labels in _LABELS.items():
        codes = np.digitize(values[name], edges[name][1:-1], right=name != "moneyness")
        columns[name] = pd.Categorical.from_codes(codes, categories=pd.Index(labels), ordered=True)
    return pd.DataFrame(columns)

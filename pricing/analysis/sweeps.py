"""One contract under varying conditions: lines, surfaces and the exercise boundary."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd

from amo.arrays import FloatArray
from pricing.engines.base import Engine, HasBoundary
from pricing.engines.finite_differences import FDEngine
from pricing.engines.registry import get_engine
from pricing.frames import price_frame
from pricing.reading import read_options

Contract = Mapping[str, float | str]


def vary(contract: Contract, **columns: npt.ArrayLike) -> pd.DataFrame:
    """Return a book of one contract with every combination of the given columns' values."""
    values = [np.asarray(column, dtype=np.float64).tolist() for column in columns.values()]
    rows = pd.DataFrame(list(product(*values)), columns=list(columns))
    for name, value in contract.items():
        if name not in columns:
            rows[name] = value
    return rows


def line(
    contract: Contract, engine: str | Engine, along: str, at: FloatArray, quantity: str
) -> FloatArray:
    """Return a quantity of one contract along one of its terms; NaN where the engine refuses."""
    return _values(vary(contract, **{along: at}), engine, quantity)


def surface(
    contract: Contract, engine: str | Engine, quantity: str, spot: FloatArray, expiry: FloatArray
) -> FloatArray:
    """Return a quantity of one contract, (expiries, spots); NaN where the engine refuses."""
    book = vary(contract, expiry=expiry, spot=spot)
    return _values(book, engine, quantity).reshape(len(expiry), len(spot))


def exercise_boundary(contract: Contract, engine: str | Engine, expiry: FloatArray) -> FloatArray:
    """Return the spot at which an American option is exercised, for each time to expiry.

    Found by the engine if it can, otherwise by our finite differences. NaN where there is no
    boundary or the engine cannot find it.
    """
    options, _ = read_options(vary(contract, expiry=expiry))
    chosen = get_engine(engine)
    knows = chosen if isinstance(chosen, HasBoundary) else FDEngine()
    return knows.exercise_boundary(options)


def _values(book: pd.DataFrame, engine: str | Engine, quantity: str) -> FloatArray:
    priced = price_frame(
        book,
        engine,
        greeks=() if quantity == "price" else (quantity,),
        out_of_domain="nan",
        errors="coerce",
        workers=1,
        progress=False,
    )
    return np.asarray(priced[quantity], dtype=np.float64)

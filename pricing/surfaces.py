"""One contract under many circumstances: lines, surfaces and the exercise boundary."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd

from pricing.batch import price_frame
from pricing.contracts import FloatArray, Options
from pricing.engines import Engine
from pricing.fd import FDSettings, solve_surface
from pricing.reading import read_options
from pricing.registry import get_engine

Contract = Mapping[str, float | str]
_BOUNDARY = FDSettings(n_space=192, n_time=96)


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
    """Return the spot at which an American is exercised, for each time to expiry.

    By engine "amo", or by our finite differences whatever else is asked. NaN where the boundary is
    out of the engine's reach, or there is none.
    """
    options, _ = read_options(vary(contract, expiry=expiry))
    chosen = get_engine(engine)
    if hasattr(chosen, "exercise_boundary"):
        found: FloatArray = chosen.exercise_boundary(options)
        return found
    last: Options = options.take(slice(int(np.argmax(expiry)), int(np.argmax(expiry)) + 1))
    solved = solve_surface(last, _BOUNDARY)
    return np.asarray(np.interp(expiry, solved.time_to_expiry[0], solved.boundary[0]))


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

"""Option books in pandas DataFrames: prices, Greeks and implied volatilities by several engines."""

from pricing.batch import implied_vol_frame, price_frame
from pricing.comparison import Comparison, compare_frame
from pricing.contracts import OptionFrameError, Options
from pricing.engines import ENGINES, Engine

__all__ = [
    "ENGINES",
    "Comparison",
    "Engine",
    "OptionFrameError",
    "Options",
    "compare_frame",
    "implied_vol_frame",
    "price_frame",
]

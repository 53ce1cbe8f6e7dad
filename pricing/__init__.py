"""Option books in pandas DataFrames: prices, Greeks and implied volatilities by several engines."""

from pricing.batch import implied_vol_frame, price_frame
from pricing.book import check_frame, exposure, scenario_grid
from pricing.comparison import Comparison, compare_frame
from pricing.contracts import OptionFrameError, Options
from pricing.engines import ENGINES, Engine

__all__ = [
    "ENGINES",
    "Comparison",
    "Engine",
    "OptionFrameError",
    "Options",
    "check_frame",
    "compare_frame",
    "exposure",
    "implied_vol_frame",
    "price_frame",
    "scenario_grid",
]

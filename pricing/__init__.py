"""Option books in pandas DataFrames: prices, Greeks and implied volatilities by several engines."""

from typing import TYPE_CHECKING

from amo.lazy import front_door

if TYPE_CHECKING:
    from amo.errors import CheckpointError as CheckpointError
    from amo.errors import SettingsError as SettingsError
    from pricing.amo_engine import SurrogateEngine as SurrogateEngine
    from pricing.batch import implied_vol_frame as implied_vol_frame
    from pricing.batch import price_frame as price_frame
    from pricing.book import check_frame as check_frame
    from pricing.book import exposure as exposure
    from pricing.book import scenario_grid as scenario_grid
    from pricing.comparison import Comparison as Comparison
    from pricing.comparison import compare_frame as compare_frame
    from pricing.contracts import AssumptionWarning as AssumptionWarning
    from pricing.contracts import OptionFrameError as OptionFrameError
    from pricing.contracts import Options as Options
    from pricing.engines import BoundedEngine as BoundedEngine
    from pricing.engines import Engine as Engine
    from pricing.registry import ENGINES as ENGINES
    from pricing.registry import get_engine as get_engine

    __version__: str

__all__ = [
    "ENGINES",
    "AssumptionWarning",
    "BoundedEngine",
    "CheckpointError",
    "Comparison",
    "Engine",
    "OptionFrameError",
    "Options",
    "SettingsError",
    "SurrogateEngine",
    "__version__",
    "check_frame",
    "compare_frame",
    "exposure",
    "get_engine",
    "implied_vol_frame",
    "price_frame",
    "scenario_grid",
]
__getattr__, __dir__ = front_door(
    __name__,
    {
        "ENGINES": "pricing.registry",
        "AssumptionWarning": "pricing.contracts",
        "BoundedEngine": "pricing.engines",
        "CheckpointError": "amo.errors",
        "Comparison": "pricing.comparison",
        "Engine": "pricing.engines",
        "OptionFrameError": "pricing.contracts",
        "Options": "pricing.contracts",
        "SettingsError": "amo.errors",
        "SurrogateEngine": "pricing.amo_engine",
        "check_frame": "pricing.book",
        "compare_frame": "pricing.comparison",
        "exposure": "pricing.book",
        "get_engine": "pricing.registry",
        "implied_vol_frame": "pricing.batch",
        "price_frame": "pricing.batch",
        "scenario_grid": "pricing.book",
    },
)

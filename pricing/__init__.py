"""Option books in pandas DataFrames: prices, Greeks and implied volatilities by several engines."""

from typing import TYPE_CHECKING

from amo.lazy import front_door

if TYPE_CHECKING:
    from amo.errors import CheckpointError as CheckpointError
    from amo.errors import SettingsError as SettingsError
    from pricing.analysis.book import check_frame as check_frame
    from pricing.analysis.book import exposure as exposure
    from pricing.analysis.book import scenario_grid as scenario_grid
    from pricing.analysis.comparison import Comparison as Comparison
    from pricing.analysis.comparison import compare_frame as compare_frame
    from pricing.analysis.examples import sample_book as sample_book
    from pricing.analysis.examples import sample_chain as sample_chain
    from pricing.analysis.examples import sample_listed_book as sample_listed_book
    from pricing.analysis.examples import sample_markets as sample_markets
    from pricing.analysis.ladder import ladder_frame as ladder_frame
    from pricing.analysis.surfaces import surface_frame as surface_frame
    from pricing.columns import AssumptionWarning as AssumptionWarning
    from pricing.columns import OptionFrameError as OptionFrameError
    from pricing.engines.base import Engine as Engine
    from pricing.engines.base import HasBoundary as HasBoundary
    from pricing.engines.base import HasSurface as HasSurface
    from pricing.engines.base import Inverts as Inverts
    from pricing.engines.base import KeepsBounds as KeepsBounds
    from pricing.engines.base import KnowsDomain as KnowsDomain
    from pricing.engines.base import StatesError as StatesError
    from pricing.engines.base import TakesMarkets as TakesMarkets
    from pricing.engines.base import evaluate as evaluate
    from pricing.engines.registry import ENGINES as ENGINES
    from pricing.engines.registry import get_engine as get_engine
    from pricing.engines.surrogate import SurrogateEngine as SurrogateEngine
    from pricing.frames import implied_vol_frame as implied_vol_frame
    from pricing.frames import price_frame as price_frame
    from pricing.markets.curve import Curve as Curve
    from pricing.markets.files import markets_from_frames as markets_from_frames
    from pricing.markets.files import read_markets as read_markets
    from pricing.markets.files import write_markets as write_markets
    from pricing.markets.market import Dividend as Dividend
    from pricing.markets.market import Market as Market
    from pricing.options import Options as Options

    __version__: str

__all__ = [
    "ENGINES",
    "AssumptionWarning",
    "CheckpointError",
    "Comparison",
    "Curve",
    "Dividend",
    "Engine",
    "HasBoundary",
    "HasSurface",
    "Inverts",
    "KeepsBounds",
    "KnowsDomain",
    "Market",
    "OptionFrameError",
    "Options",
    "SettingsError",
    "StatesError",
    "SurrogateEngine",
    "TakesMarkets",
    "__version__",
    "check_frame",
    "compare_frame",
    "evaluate",
    "exposure",
    "get_engine",
    "implied_vol_frame",
    "ladder_frame",
    "markets_from_frames",
    "price_frame",
    "read_markets",
    "sample_book",
    "sample_chain",
    "sample_listed_book",
    "sample_markets",
    "scenario_grid",
    "surface_frame",
    "write_markets",
]
__getattr__, __dir__ = front_door(
    __name__,
    {
        "ENGINES": "pricing.engines.registry",
        "AssumptionWarning": "pricing.columns",
        "CheckpointError": "amo.errors",
        "Comparison": "pricing.analysis.comparison",
        "Engine": "pricing.engines.base",
        "HasBoundary": "pricing.engines.base",
        "HasSurface": "pricing.engines.base",
        "Inverts": "pricing.engines.base",
        "KeepsBounds": "pricing.engines.base",
        "KnowsDomain": "pricing.engines.base",
        "StatesError": "pricing.engines.base",
        "OptionFrameError": "pricing.columns",
        "Options": "pricing.options",
        "SettingsError": "amo.errors",
        "SurrogateEngine": "pricing.engines.surrogate",
        "check_frame": "pricing.analysis.book",
        "compare_frame": "pricing.analysis.comparison",
        "evaluate": "pricing.engines.base",
        "exposure": "pricing.analysis.book",
        "get_engine": "pricing.engines.registry",
        "implied_vol_frame": "pricing.frames",
        "price_frame": "pricing.frames",
        "scenario_grid": "pricing.analysis.book",
        "surface_frame": "pricing.analysis.surfaces",
        "sample_book": "pricing.analysis.examples",
        "sample_chain": "pricing.analysis.examples",
        "sample_listed_book": "pricing.analysis.examples",
        "sample_markets": "pricing.analysis.examples",
        "Market": "pricing.markets.market",
        "Curve": "pricing.markets.curve",
        "Dividend": "pricing.markets.market",
        "read_markets": "pricing.markets.files",
        "write_markets": "pricing.markets.files",
        "markets_from_frames": "pricing.markets.files",
        "TakesMarkets": "pricing.engines.base",
        "ladder_frame": "pricing.analysis.ladder",
    },
)

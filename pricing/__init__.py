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
    from pricing.analysis.examples import sample_quotes as sample_quotes
    from pricing.analysis.ladder import ladder_frame as ladder_frame
    from pricing.analysis.passing_time import profit_over_time as profit_over_time
    from pricing.analysis.surfaces import surface_frame as surface_frame
    from pricing.chains.fitting import MarketFit as MarketFit
    from pricing.chains.fitting import fit_market as fit_market
    from pricing.chains.marks import implied_marks as implied_marks
    from pricing.chains.reading import Chain as Chain
    from pricing.chains.reading import read_chain as read_chain
    from pricing.columns import AssumptionWarning as AssumptionWarning
    from pricing.columns import OptionFrameError as OptionFrameError
    from pricing.datasets.frames import exposure_dataset as exposure_dataset
    from pricing.datasets.frames import implied_vol_dataset as implied_vol_dataset
    from pricing.datasets.frames import ladder_dataset as ladder_dataset
    from pricing.datasets.frames import price_dataset as price_dataset
    from pricing.datasets.frames import surface_dataset as surface_dataset
    from pricing.datasets.manifest import Dataset as Dataset
    from pricing.datasets.manifest import DatasetError as DatasetError
    from pricing.datasets.manifest import FailedPartsError as FailedPartsError
    from pricing.datasets.manifest import read_dataset as read_dataset
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
    from pricing.marked_chains import MarkedChain as MarkedChain
    from pricing.marked_chains import mark_chain as mark_chain
    from pricing.markets.curve import Curve as Curve
    from pricing.markets.files import markets_from_frames as markets_from_frames
    from pricing.markets.files import read_markets as read_markets
    from pricing.markets.files import write_markets as write_markets
    from pricing.markets.market import Dividend as Dividend
    from pricing.markets.market import Market as Market
    from pricing.options import Options as Options
    from pricing.vol_surfaces.surface import VolSurface as VolSurface
    from pricing.vol_surfaces.surface import fit_surface as fit_surface
    from pricing.vol_surfaces.surface import mark_book as mark_book

    __version__: str

__all__ = [
    "ENGINES",
    "AssumptionWarning",
    "Chain",
    "CheckpointError",
    "Comparison",
    "Curve",
    "Dataset",
    "DatasetError",
    "Dividend",
    "Engine",
    "FailedPartsError",
    "HasBoundary",
    "HasSurface",
    "Inverts",
    "KeepsBounds",
    "KnowsDomain",
    "MarkedChain",
    "Market",
    "MarketFit",
    "OptionFrameError",
    "Options",
    "SettingsError",
    "StatesError",
    "SurrogateEngine",
    "TakesMarkets",
    "VolSurface",
    "__version__",
    "check_frame",
    "compare_frame",
    "evaluate",
    "exposure",
    "exposure_dataset",
    "fit_market",
    "fit_surface",
    "get_engine",
    "implied_marks",
    "implied_vol_dataset",
    "implied_vol_frame",
    "ladder_dataset",
    "ladder_frame",
    "mark_book",
    "mark_chain",
    "markets_from_frames",
    "price_dataset",
    "price_frame",
    "profit_over_time",
    "read_chain",
    "read_dataset",
    "read_markets",
    "sample_book",
    "sample_chain",
    "sample_listed_book",
    "sample_markets",
    "sample_quotes",
    "scenario_grid",
    "surface_dataset",
    "surface_frame",
    "write_markets",
]
__getattr__, __dir__ = front_door(
    __name__,
    {
        "ENGINES": "pricing.engines.registry",
        "AssumptionWarning": "pricing.columns",
        "Chain": "pricing.chains.reading",
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
        "profit_over_time": "pricing.analysis.passing_time",
        "scenario_grid": "pricing.analysis.book",
        "surface_frame": "pricing.analysis.surfaces",
        "sample_book": "pricing.analysis.examples",
        "sample_chain": "pricing.analysis.examples",
        "sample_listed_book": "pricing.analysis.examples",
        "sample_markets": "pricing.analysis.examples",
        "sample_quotes": "pricing.analysis.examples",
        "Market": "pricing.markets.market",
        "Curve": "pricing.markets.curve",
        "Dividend": "pricing.markets.market",
        "read_chain": "pricing.chains.reading",
        "fit_market": "pricing.chains.fitting",
        "MarketFit": "pricing.chains.fitting",
        "implied_marks": "pricing.chains.marks",
        "mark_chain": "pricing.marked_chains",
        "MarkedChain": "pricing.marked_chains",
        "VolSurface": "pricing.vol_surfaces.surface",
        "fit_surface": "pricing.vol_surfaces.surface",
        "mark_book": "pricing.vol_surfaces.surface",
        "read_markets": "pricing.markets.files",
        "write_markets": "pricing.markets.files",
        "markets_from_frames": "pricing.markets.files",
        "TakesMarkets": "pricing.engines.base",
        "ladder_frame": "pricing.analysis.ladder",
        "Dataset": "pricing.datasets.manifest",
        "DatasetError": "pricing.datasets.manifest",
        "FailedPartsError": "pricing.datasets.manifest",
        "read_dataset": "pricing.datasets.manifest",
        "price_dataset": "pricing.datasets.frames",
        "implied_vol_dataset": "pricing.datasets.frames",
        "surface_dataset": "pricing.datasets.frames",
        "ladder_dataset": "pricing.datasets.frames",
        "exposure_dataset": "pricing.datasets.frames",
    },
)

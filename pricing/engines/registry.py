"""Engines by name. Importing this loads none of them: each is loaded when first asked for."""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from amo.errors import SettingsError

if TYPE_CHECKING:
    from amo.arrays import BoolArray
    from pricing.engines.base import Engine
    from pricing.options import Options

_lock = threading.RLock()
_loaded: dict[str, "Engine"] = {}


def _analytic() -> "Engine":
    from pricing.engines.analytic import AnalyticEngine

    return AnalyticEngine()


def _fd() -> "Engine":
    from pricing.engines.finite_differences import FDEngine

    return FDEngine()


def _fd_fast() -> "Engine":
    from pricing import fd
    from pricing.engines.finite_differences import FDEngine

    return FDEngine("fd-fast", fd.FAST)


def _quantlib(method: str) -> "Engine":
    from pricing.engines.quantlib import QuantLibEngine

    return QuantLibEngine(method)  # type: ignore[arg-type]  # names below are its methods


def _quantlib_grid() -> "Engine":
    from pricing.engines.quantlib_grid import QuantLibGridEngine

    return QuantLibGridEngine()


def _surrogate() -> "Engine":
    from pricing.engines.surrogate import SurrogateEngine

    return SurrogateEngine.load()


ENGINES: Mapping[str, Callable[[], "Engine"]] = {
    "amo": _surrogate,
    "analytic": _analytic,
    "fd": _fd,
    "fd-fast": _fd_fast,
    "quantlib": lambda: _quantlib("accurate"),
    "quantlib-fast": lambda: _quantlib("fast"),
    "quantlib-high-precision": lambda: _quantlib("high-precision"),
    "quantlib-fd": _quantlib_grid,
}


def get_engine(engine: "str | Engine") -> "Engine":
    """Return the engine of that name, loaded once per process, or the engine itself."""
    if not isinstance(engine, str):
        if not all(hasattr(engine, name) for name in ("name", "refusals", "evaluate")):
            raise SettingsError(
                f"engine= takes a name ({', '.join(ENGINES)}) or an engine, not {engine!r}"
            )
        return engine
    if engine not in ENGINES:
        raise SettingsError(f"unknown engine {engine!r}; there are: {', '.join(ENGINES)}")
    with _lock:
        if engine not in _loaded:
            _loaded[engine] = ENGINES[engine]()
        return _loaded[engine]


def fallbacks(options: "Options", is_unknown: "BoolArray") -> "list[tuple[Engine, BoolArray]]":
    """Return which engines price rows outside a bounded engine's domain: formula or QuantLib.

    An engine is loaded only if some row needs it.
    """
    american = "quantlib" if options.slices is None else "fd-fast"
    shares = {
        "analytic": is_unknown & ~options.is_american,
        american: is_unknown & options.is_american,
    }
    return [(get_engine(name), mask) for name, mask in shares.items() if mask.any()]

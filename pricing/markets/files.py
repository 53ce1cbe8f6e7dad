"""Markets of many underlyings in one JSON file, and from tables."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from amo.errors import FileError, SettingsError
from amo.files import write_text
from pricing.markets.market import Market

FORMAT = 1


def write_markets(markets: Mapping[str, Market], path: Path | str) -> None:
    """Write markets by name to a JSON file, whole or not at all."""
    write_text(markets_to_json(markets), Path(path))


def markets_to_json(markets: Mapping[str, Market]) -> str:
    """Return markets by name as the text of a file."""
    content = {
        "format": FORMAT,
        "markets": {name: market.to_dict() for name, market in markets.items()},
    }
    return json.dumps(content, indent=1) + "\n"


def read_markets(path: Path | str) -> dict[str, Market]:
    """Read markets by name from a JSON file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {path}: {error}") from error
    return markets_from_json(text, str(path))


def markets_from_json(text: str | bytes, name: str) -> dict[str, Market]:
    """Read markets by name from the text of a file of that name."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"cannot read {name}: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("markets"), dict):
        raise FileError(f'{name} is no file of markets: it needs {{"markets": {{name: …}}}}')
    if content.get("format", FORMAT) != FORMAT:
        raise FileError(f"{name} has format {content['format']!r}; this version reads {FORMAT}")
    return {key: _market(key, given) for key, given in content["markets"].items()}


def _market(name: str, given: Mapping[str, Any]) -> Market:
    try:
        return Market.from_dict(given)
    except (SettingsError, TypeError) as error:
        raise SettingsError(f"market {name!r}: {error}") from None


def markets_from_frames(
    spots: pd.DataFrame,
    rates: pd.DataFrame | None = None,
    dividends: pd.DataFrame | None = None,
    *,
    as_of: str | None = None,
) -> dict[str, Market]:
    """Return markets from tables.

    Parameters
    ----------
    spots
        ``underlying``, ``spot`` and, where there is one, ``borrow`` (per year).
    rates
        ``when`` (years or dates) and ``rate``: one curve for all.
    dividends
        ``underlying``, ``when`` (years or ex-dates), ``cash`` and, where there is one,
        ``proportion``.
    as_of
        The moment of it all; needed where ``when`` is a date.
    """
    for table, name, needed in (
        (spots, "spots", {"underlying", "spot"}),
        (rates, "rates", {"when", "rate"}),
        (dividends, "dividends", {"underlying", "when", "cash"}),
    ):
        if table is not None and (missing := sorted(needed - set(table.columns))):
            raise SettingsError(f"{name} has no column {', '.join(missing)}")
    _refuse_twice("spots", "underlying", spots)
    if rates is not None:
        _refuse_twice("rates", "when", rates)
    curve = 0.0 if rates is None else dict(zip(rates["when"], rates["rate"], strict=True))
    paid: dict[str, list[tuple[Any, float, float]]] = {}
    if dividends is not None:
        shares = dividends.get("proportion", pd.Series(0.0, index=dividends.index))
        rows = zip(
            dividends["underlying"], dividends["when"], dividends["cash"], shares, strict=True
        )
        for underlying, when, cash, share in rows:
            paid.setdefault(str(underlying), []).append((when, cash, share))
    if unknown := sorted(set(paid) - set(map(str, spots["underlying"]))):
        raise SettingsError(f"dividends of {', '.join(unknown)}, which spots does not have")
    borrow = spots.get("borrow", pd.Series(0.0, index=spots.index))
    return {
        str(name): _market(
            str(name),
            {
                "spot": spot,
                "rate": curve,
                "borrow": cost,
                "dividends": paid.get(str(name), ()),
                "as_of": as_of,
            },
        )
        for name, spot, cost in zip(spots["underlying"], spots["spot"], borrow, strict=True)
    }


def _refuse_twice(name: str, column: str, table: pd.DataFrame) -> None:
    """Raise SettingsError where a table has two rows for one thing."""
    twice = table[column][table[column].duplicated()]
    if len(twice):
        raise SettingsError(f"{name} has several rows of {column} {twice.iloc[0]!r}")

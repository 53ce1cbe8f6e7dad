"""The settings of a set as flags of the command line, with the words of its docstring."""

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from data_gen.dataset import DataSet
from pricing.surrogate.domain import Domain

RANGES = {
    "rate": "the rate per year, continuous",
    "dividend_yield": "the dividend yield per year, continuous",
    "volatility": "the volatility per square root of a year",
    "expiry": "the expiry in years",
    "log_moneyness": "ln(spot / strike)",
}


def summary_of(make: Callable[..., DataSet]) -> str:
    """Return the first line of a set's docstring."""
    return (inspect.getdoc(make) or "").partition("\n")[0]


def words_of(make: Callable[..., DataSet]) -> dict[str, str]:
    """Return what the docstrings of a set's class say about its settings."""
    found: dict[str, str] = {}
    for parent in reversed(inspect.getmro(make)):  # type: ignore[arg-type]  # sets are classes
        text = inspect.cleandoc(parent.__doc__ or "").partition("----------\n")[2]
        for names, words in re.findall(r"^(\w[\w, ]*)\n((?:    .*\n?)+)", text, re.MULTILINE):
            line = re.split(r"[,;:.]( |$)", " ".join(words.split()))[0]
            found.update(dict.fromkeys(names.split(", "), line[:1].lower() + line[1:]))
    return found


def settings_of(make: Callable[..., DataSet]) -> list[Any]:
    """Return the dataclass fields that are plain numbers: those are flags."""
    return [f for f in fields(make) if f.type is int]  # type: ignore[arg-type]


def ranges_of(make: Callable[..., DataSet]) -> list[str]:
    """Return the ranges of the domain, where a set has one: those are flags too."""
    has_domain = any(f.type is Domain for f in fields(make))  # type: ignore[arg-type]
    return [f.name for f in fields(Domain)] if has_domain else []

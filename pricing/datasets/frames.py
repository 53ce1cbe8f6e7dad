"""The functions on books of any number of rows, as :mod:`pricing.frames` has those on frames.

All of them take a book in parts (``source``: a folder of Parquet files, a pattern such as
``"books/*.parquet"``, or one large file, which is cut between row groups) and write a folder of as
many parts (``out``), with ``_manifest.json`` beside them: the request, and for each part rows,
bytes, SHA-256 and engines. ``pandas.read_parquet(out)`` reads them all, in the order of the book
and with its labels; an index that only counts rows counts from zero there, and on in single parts.

A part holds what the function on frames makes of the frame of that part. Its bytes do not depend on
who computes it. A job that was stopped goes on by the same call: only parts that are missing,
changed or failed are made. A folder of another request is refused.

``executor`` says where: None in this process, "processes" in ``workers`` processes of this machine
(more than one means that; guard a script by ``if __name__ == "__main__"``), a
``concurrent.futures.Executor``, or a ``distributed.Client``. Workers get paths and settings, no
rows: they see both folders at the same paths. A part is the work of one core. ``progress`` is as
:func:`pricing.price_frame` has it, in parts. Options that are not named are those of the function
on frames.
"""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from amo.jobs import Where
from pricing.analysis.book import EXPIRIES, MEASURES, MONEYNESS
from pricing.datasets.manifest import Dataset
from pricing.datasets.running import run_dataset
from pricing.markets.market import Market
from pricing.progress import Progress


def price_dataset(
    source: str | Path,
    out: str | Path,
    engine: str = "quantlib",
    *,
    markets: Mapping[str, Market] | None = None,
    executor: Where = None,
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress = None,
    **options: Any,  # noqa: ANN401  # those of price_frame
) -> Dataset:
    """Price a book in parts, as :func:`pricing.price_frame` prices a frame.

    Parameters
    ----------
    source, out
        The book, and the folder of the priced parts; see :mod:`pricing.datasets.frames`.
    engine, markets, options
        As :func:`pricing.price_frame` takes them; the engine by its name.
    executor, workers
        Where, and how many processes "processes" means.
    overwrite
        Replace the parts of another request in ``out``.
    progress
        True or False: whether to show a bar; by default only on a terminal. Or a function, called
        with the number of parts done and the total.

    Returns
    -------
    Dataset
        The manifest: ``parts`` with rows, bytes, SHA-256 and engines of each.

    Raises
    ------
    FailedPartsError
        At the end, with the reasons by part, if some parts failed; the others are finished.
    """
    return run_dataset(
        "price", source, out, engine, options,
        markets=markets, executor=executor, workers=workers, overwrite=overwrite, progress=progress,
    )  # fmt: skip


def implied_vol_dataset(
    source: str | Path,
    out: str | Path,
    price_column: Hashable = "price",
    engine: str = "quantlib",
    *,
    markets: Mapping[str, Market] | None = None,
    executor: Where = None,
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress = None,
    **options: Any,  # noqa: ANN401  # those of implied_vol_frame
) -> Dataset:
    """Invert the quotes of a book in parts, as :func:`pricing.implied_vol_frame` does.

    The rest is as :func:`price_dataset` has it.
    """
    return run_dataset(
        "implied-vol", source, out, engine, {"price_column": price_column, **options},
        markets=markets, executor=executor, workers=workers, overwrite=overwrite, progress=progress,
    )  # fmt: skip


def surface_dataset(
    source: str | Path,
    out: str | Path,
    engine: str = "fd",
    *,
    markets: Mapping[str, Market] | None = None,
    executor: Where = None,
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress = None,
    **options: Any,  # noqa: ANN401  # those of surface_frame
) -> Dataset:
    """Price every contract of a book in parts over spots and moments, as ``surface_frame`` does.

    A part of the answer holds the surfaces of a part of the book: one line for each contract,
    moment and spot. The rest is as :func:`price_dataset` has it.
    """
    return run_dataset(
        "surface", source, out, engine, options,
        markets=markets, executor=executor, workers=workers, overwrite=overwrite, progress=progress,
    )  # fmt: skip


def ladder_dataset(
    source: str | Path,
    out: str | Path,
    engine: str,
    markets: Mapping[str, Market],
    *,
    executor: Where = None,
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress = None,
    **options: Any,  # noqa: ANN401  # those of ladder_frame
) -> pd.DataFrame:
    """Return the ladder of a book in parts, as :func:`pricing.ladder_frame` does of a frame.

    ``out`` keeps the ladder of each part, so that a stopped job goes on; they are added up in the
    order of the parts. The rest is as :func:`price_dataset` has it.
    """
    made = run_dataset(
        "ladder", source, out, engine, options,
        markets=markets, executor=executor, workers=workers, overwrite=overwrite, progress=progress,
    )  # fmt: skip
    table = _partial(made, out)
    table["underlying"] = pd.Categorical(table["underlying"], categories=list(markets))
    groups = table.groupby(["underlying", "rung"], observed=True)
    summed = groups.agg({"kind": "first", "time": "first", "sensitivity": "sum"})
    return summed.reset_index().drop(columns="rung").astype({"underlying": "str"})


def exposure_dataset(
    source: str | Path,
    out: str | Path,
    *,
    markets: Mapping[str, Market] | None = None,
    executor: Where = None,
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress = None,
    **options: Any,  # noqa: ANN401  # those of exposure
) -> pd.DataFrame:
    """Return what a priced book in parts is exposed to, as :func:`pricing.exposure` does.

    ``source`` is what :func:`price_dataset` wrote; ``out`` keeps the exposure of each part. The
    rest is as :func:`price_dataset` has it.
    """
    made = run_dataset(
        "exposure", source, out, None, options,
        markets=markets, executor=executor, workers=workers, overwrite=overwrite, progress=progress,
    )  # fmt: skip
    table = _partial(made, out)
    for name, edges in (("expiry", EXPIRIES), ("moneyness", MONEYNESS)):
        table[name] = pd.Categorical(table[name], categories=list(edges), ordered=True)
    groups = table.groupby(["expiry", "moneyness"], observed=True)
    return groups[["options", *MEASURES]].sum()


def _partial(made: Dataset, out: str | Path) -> pd.DataFrame:
    """Return the sums of all parts under each other."""
    frames = [pd.read_parquet(Path(out) / line.file) for line in made.parts]
    held = [frame for frame in frames if len(frame)] or frames[:1]
    return pd.concat(held, ignore_index=True)

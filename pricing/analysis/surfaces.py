"""Surfaces: V(S, t) of every contract of a book, over spots and moments to come."""

import datetime as dt
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from amo.arrays import FloatArray, IntArray
from amo.errors import SettingsError
from pricing.books import read_book
from pricing.columns import BadRows, Errors, OptionFrameError, good_rows
from pricing.engines import registry
from pricing.engines.base import Engine, HasSurface, bounded, evaluate
from pricing.frames import Greeks, check_workers, greek_names
from pricing.markets.clock import CLOSE
from pricing.markets.market import Market
from pricing.options import Exercise, Options, Values
from pricing.progress import Advance, Progress, progress_bar
from pricing.routing import OutOfDomain, Route, follow, send

_POINTS = 1 << 18  # priced at a time: bounds the memory


class _Mesh(NamedTuple):
    """Where each contract is priced: (contracts, spots) and (contracts, moments)."""

    spot: FloatArray
    time: FloatArray


def surface_frame(
    book: pd.DataFrame,
    engine: str | Engine = "fd",
    *,
    spot: int | Sequence[float] | FloatArray = 41,
    time: int | Sequence[float] | FloatArray = 21,
    spot_unit: Literal["relative", "absolute"] = "relative",
    time_unit: Literal["share", "years"] = "share",
    greeks: Greeks = False,
    out_of_domain: OutOfDomain = "fallback",
    errors: Errors = "raise",
    exercise: Exercise | None = None,
    columns: Mapping[str, Hashable] | None = None,
    markets: Mapping[str, Market] | None = None,
    as_of: str | dt.date | None = None,
    expiry_time: dt.time = CLOSE,
    as_arrays: bool = False,
    assumed: list[str] | None = None,
    workers: int | None = None,
    progress: Progress = None,
) -> pd.DataFrame | Values:
    """Price every contract of a book over spots and moments to come.

    Parameters
    ----------
    book, engine, greeks, out_of_domain, exercise, columns, markets, as_of, expiry_time, workers
        As :func:`pricing.price_frame` takes them.
    spot
        The spots: multiples of each contract's own spot ("relative"), or prices ("absolute"). A
        number means that many from half to one and a half times the own spot.
    time
        The moments: shares of the time to expiry, 0 for now and 1 for expiry ("share"), or years
        from now ("years"). A number means that many from now to expiry.
    errors
        "raise": a row that is bad, or of which some point has no price, raises; "coerce": those
        values are NaN.
    assumed
        As :func:`pricing.price_frame` takes it.
    as_arrays
        Return a dict of arrays instead of a tidy frame.
    progress
        As :func:`pricing.price_frame` has it; it counts points.

    Returns
    -------
    DataFrame or dict
        One line for each contract, moment and spot, with the book's index: ``time`` (years from
        now), ``spot``, ``price`` and the Greeks. As arrays: ``spot`` (contracts, spots), ``time``
        (contracts, moments), the others (contracts, moments, spots). Moments after an expiry are
        NaN; at the moment of a dividend the spot still has it.

    Notes
    -----
    Engines "fd" and "fd-fast" solve each contract once. "amo" encodes each market state once.
    Other engines price point by point.
    """
    chosen = registry.get_engine(engine)
    quantities = ("price", *greek_names(greeks))
    for name, unit, known in (
        ("spot_unit", spot_unit, ("relative", "absolute")),
        ("time_unit", time_unit, ("share", "years")),
        ("errors", errors, ("raise", "coerce")),
    ):
        if unit not in known:
            raise SettingsError(f"{name}= takes {' or '.join(map(repr, known))}; got {unit!r}")
    check_workers(workers)
    options, problems = read_book(
        book, columns, exercise=exercise, markets=markets, as_of=as_of, expiry_time=expiry_time,
        assumed=assumed,
    )  # fmt: skip
    routes, refused = send(chosen, options, good_rows(len(book), problems), out_of_domain)
    problems += refused
    if problems and errors == "raise":
        raise OptionFrameError.from_problems(problems, book.index)
    spots = _axis("spot", spot, (0.5, 1.5), lowest=1e-6)
    moments = _axis("time", time, (0.0, 1.0), lowest=0.0)
    mesh = _Mesh(
        spots * (options.spot[:, None] if spot_unit == "relative" else np.ones((len(book), 1))),
        moments * (options.expiry[:, None] if time_unit == "share" else np.ones((len(book), 1))),
    )
    shape = len(book), len(moments), len(spots)
    values = {name: np.full(shape, np.nan) for name in quantities}
    total = sum(len(route.rows) for route in routes) * len(moments) * len(spots)
    with progress_bar(progress, total, "surfaces") as advance:
        for route in routes:
            problems += _follow(route, options, mesh, values, out_of_domain, workers, advance)
    if problems and errors == "raise":
        raise OptionFrameError.from_problems(problems, book.index)
    arrays = {"spot": mesh.spot, "time": mesh.time, **values}
    return arrays if as_arrays else _tidy(arrays, book.index)


def _axis(
    name: str, given: int | Sequence[float] | FloatArray, ends: tuple[float, float], lowest: float
) -> FloatArray:
    """Return the points of an axis, from their number or as they are."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if given < 1:
            raise SettingsError(f"{name}= takes how many there are, from 1 on, or the values")
        return np.linspace(*ends, int(given)) if given > 1 else np.array([sum(ends) / 2])
    try:
        points = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all():
        raise SettingsError(f"{name}= takes a number of points or a list of numbers, got {given!r}")
    if (points < lowest).any():
        raise SettingsError(f"{name}= has {points.min():g}, which is below {lowest:g}")
    return points


def _follow(
    route: Route,
    options: Options,
    mesh: _Mesh,
    values: Values,
    out_of_domain: OutOfDomain,
    workers: int | None,
    advance: Advance,
) -> list[BadRows]:
    """Price the contracts of one route at all their points, into ``values``; return what failed."""
    problems: list[BadRows] = []
    n_points = mesh.spot.shape[1] * mesh.time.shape[1]
    size = max(1, _POINTS // n_points)
    for start in range(0, len(route.rows), size):
        rows = route.rows[start : start + size]
        engine = route.engine
        if isinstance(engine, HasSurface) and set(values) <= set(engine.surface_quantities):
            _by_surface(route.engine, engine.surface, options, rows, mesh, values, workers)
        else:
            problems += _by_points(
                route.engine, options, rows, mesh, values, out_of_domain, workers
            )
        if advance is not None:
            advance(len(rows) * n_points)
    return problems


def _points(options: Options, rows: IntArray, mesh: _Mesh) -> Options:
    """Return one option for each point: what the contract will be there and then."""
    n_times, n_spots = mesh.time.shape[1], mesh.spot.shape[1]
    each = options.take(np.repeat(rows, n_times * n_spots))
    time = np.repeat(mesh.time[rows].ravel(), n_spots)
    spot = np.repeat(mesh.spot[rows], n_times, axis=0).ravel()
    return each.after(time, spot)


def _by_points(
    engine: Engine,
    options: Options,
    rows: IntArray,
    mesh: _Mesh,
    values: Values,
    out_of_domain: OutOfDomain,
    workers: int | None,
) -> list[BadRows]:
    points = _points(options, rows, mesh)
    routes, refused = send(engine, points, points.expiry >= 0, out_of_domain)
    found, failed = follow(routes, points, list(values), workers, None)
    for name, column in found.items():
        values[name][rows] = column.reshape(values[name][rows].shape)
    n_points = len(points) // len(rows)
    return [
        BadRows(
            each.column, f"at some points: {each.reason}", np.unique(rows[each.rows // n_points])
        )
        for each in (*refused, *failed)
    ]


def _by_surface(
    engine: Engine,
    surface: Callable[..., Values],
    options: Options,
    rows: IntArray,
    mesh: _Mesh,
    values: Values,
    workers: int | None,
) -> None:
    """Let the engine give all moments before expiry, and take expired points by their limits."""
    points = _points(options, rows, mesh)
    live = np.flatnonzero(options.expiry[rows] > 0)
    shape = values["price"][rows].shape
    found = {name: np.full(shape, np.nan) for name in values}
    if len(live):
        some = options.take(rows[live])
        time = np.minimum(mesh.time[rows[live]], some.expiry[:, None])
        names = list(values)
        solved = surface(some, mesh.spot[rows[live]], time, names, workers=workers)
        for name in names:
            found[name][live] = solved[name]
    flat = bounded(engine, points, {name: field.ravel() for name, field in found.items()})
    expired = np.flatnonzero(points.expiry == 0)
    limits, _ = evaluate(engine, points.take(expired), list(values))
    for name in values:
        flat[name][expired] = limits[name]
        flat[name][points.expiry < 0] = np.nan
        values[name][rows] = flat[name].reshape(shape)


def _tidy(arrays: Values, index: "pd.Index[Any]") -> pd.DataFrame:
    """Return one line for each point, with the book's index."""
    _, n_times, n_spots = arrays["price"].shape
    columns = {
        "time": np.repeat(arrays["time"].ravel(), n_spots),
        "spot": np.repeat(arrays["spot"], n_times, axis=0).ravel(),
        **{name: field.ravel() for name, field in arrays.items() if field.ndim == 3},
    }
    return pd.DataFrame(columns, index=index.repeat(n_times * n_spots))

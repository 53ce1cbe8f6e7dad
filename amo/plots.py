"""Pictures of what an operator learned: matplotlib without global state or display."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.tri import LinearTriInterpolator, Triangulation

from amo import takenaka_malmquist as tm
from amo.errors import FileError
from amo.files import replacing

FloatArray = npt.NDArray[Any]
_COLUMNS = 5  # of panels side by side
_FORMATS = ("svg", "png", "pdf")


def draw_poles(poles: list[list[list[list[float]]]], path: Path) -> None:
    """Draw the poles of every block in the unit disc, one colour per pole, one dot per sample.

    Parameters
    ----------
    poles
        block, sample, pole, (real, imaginary).
    path
        Named .svg, .png or .pdf.
    """
    figure = Figure(figsize=(3.2 * len(poles), 3.6), layout="constrained")
    angles = np.linspace(0.0, 2.0 * np.pi, 361)
    for block, axes in enumerate(np.atleast_1d(figure.subplots(1, len(poles)))):
        axes.plot(np.cos(angles), np.sin(angles), color="0.6", linewidth=1.0)
        axes.plot([0.0], [0.0], marker="+", color="0.6")
        for pole in np.moveaxis(np.asarray(poles[block]), 1, 0):
            axes.scatter(pole[:, 0], pole[:, 1], s=12, alpha=0.7)
        axes.set(aspect="equal", title=f"block {block + 1}", xlabel="Re a", ylabel="Im a")
        axes.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08))
    save(figure, path)


def draw_bases(poles: list[list[list[float]]], n_tokens: int, path: Path) -> None:
    """Draw the real parts of one sample's functions, block by block, with the tokens as dots.

    ``poles`` are block, pole, (real, imaginary).
    """
    figure = Figure(figsize=(8.0, 2.0 * len(poles)), layout="constrained")
    fine, coarse = (tm.circle(n, torch.zeros(1, dtype=torch.float64)) for n in (360, n_tokens))
    carries = [fine, coarse]  # the pole at zero comes first
    rows = np.atleast_1d(figure.subplots(len(poles), 1, sharex=True))
    for block, axes in enumerate(rows):
        block_poles = torch.tensor(poles[block], dtype=torch.float64)
        for which, angles in enumerate((fine, coarse)):
            (real, _), carries[which] = tm.takenaka_malmquist(block_poles, angles, carries[which])
            style = {"linewidth": 1.0} if which == 0 else {"linestyle": "", "marker": ".", "ms": 4}
            axes.set_prop_cycle(None)
            axes.plot(angles.numpy(), real.T.numpy(), **style)
        axes.set(title=f"block {block + 1}", ylabel="Re B")
    rows[-1].set(xlabel="θ, the tokens being samples at 2πn/M")
    save(figure, path)


def draw_fields(
    fields: Mapping[str, FloatArray],
    path: Path,
    *,
    grid: tuple[int, int] | None = None,
    points: FloatArray | None = None,
) -> None:
    """Draw a field as every model predicts it, above its error; the first one is the truth.

    Fields are (n,), on a grid or at points (n, 2).
    """
    truth = next(iter(fields.values()))
    paint = _painter(grid, points)
    n_columns = min(len(fields), _COLUMNS)
    n_rows = 2 * -(-len(fields) // n_columns)
    figure = Figure(figsize=(2.6 * n_columns, 2.4 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False)
    largest = max(float(np.abs(field - truth).max()) for field in fields.values())
    scale = {"vmin": truth.min(), "vmax": truth.max()}
    signed = {"vmin": -largest, "vmax": largest, "cmap": "RdBu"}
    for panel in panels.flat:
        panel.set(xticks=[], yticks=[])
        panel.axis("off")
    for number, (name, field) in enumerate(fields.items()):
        row, column = divmod(number, n_columns)
        above, below = panels[2 * row, column], panels[2 * row + 1, column]
        above.axis("on")
        above.set(title=name)
        paint(above, field, scale)
        if number > 0:
            below.axis("on")
            below.set(title=f"error, at most {np.abs(field - truth).max():.2g}")
            shown = paint(below, field - truth, signed)
    figure.colorbar(shown, ax=panels[:, -1].tolist(), shrink=0.6, label="error")
    save(figure, path)


def draw_slopes(fields: Mapping[str, FloatArray], points: FloatArray, path: Path) -> None:
    """Draw log10 |∇u| of fields (n,) at points (n, 2), interpolated on triangles."""
    figure = Figure(figsize=(3.2 * len(fields), 3.4), layout="constrained")
    panels = figure.subplots(1, len(fields), squeeze=False)[0]
    mesh = Triangulation(points[:, 0], points[:, 1])
    x, y = np.meshgrid(*[np.linspace(0.02, 0.98, 192)] * 2)
    slopes = {
        name: np.log10(np.hypot(*LinearTriInterpolator(mesh, field).gradient(x, y)) + 1e-12)
        for name, field in fields.items()
    }
    first = next(iter(slopes.values())).compressed()
    low, high = np.quantile(first, [0.02, 0.98])  # the scale of the truth, for all
    for panel, (name, slope) in zip(panels, slopes.items(), strict=True):
        shown = panel.imshow(slope, origin="lower", vmin=low, vmax=high, cmap="magma")
        panel.set(title=name, xticks=[], yticks=[])
    figure.colorbar(shown, ax=panels.tolist(), shrink=0.8, label="log₁₀ |∇u|")
    save(figure, path)


def draw_by_wavenumber(errors: Mapping[str, FloatArray], path: Path) -> None:
    """Draw the phase error of every model against the wavenumber, where there is a phase."""
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, values in errors.items():
        axes.plot(np.arange(len(values)), values, ".", label=name, markersize=4)
    axes.set(
        xlabel="wavenumber k", ylabel="mean |phase error|, radians", ylim=(0.0, np.pi),
        yticks=[0.0, np.pi / 2, np.pi], yticklabels=["0", "π/2", "π"],
    )  # fmt: skip
    axes.axhline(np.pi / 2, color="0.7", linewidth=0.8, linestyle="--", label="a guess")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, path)


def _painter(grid: tuple[int, int] | None, points: FloatArray | None) -> Callable[..., Any]:
    """Return a function that draws one field into one panel."""
    if grid is not None and points is None:
        return lambda panel, field, style: panel.imshow(
            field.reshape(grid), origin="lower", aspect="auto", **style
        )
    if points is not None and grid is None:
        x, y = points.T
        return lambda panel, field, style: panel.scatter(x, y, c=field, s=6, lw=0, **style)
    raise ValueError("a field lies on a grid, or at points: give one of them")


def save(figure: Figure, path: Path) -> None:
    """Write a figure, in the format of the file's name."""
    form = path.suffix.lower().removeprefix(".")
    if form not in _FORMATS:
        raise FileError(f"cannot draw {path}: name it .{', .'.join(_FORMATS)}")
    same_bytes = rc_context({"svg.hashsalt": "amo"})  # every time, with no date in it
    with replacing(path) as beside, same_bytes:
        stamp = {"Date": None} if form == "svg" else None
        figure.savefig(beside, format=form, dpi=150, metadata=stamp)

"""Pictures of what an operator learned: matplotlib without global state or display."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure

from amo import takenaka_malmquist as tm
from amo.files import FileError, replacing

_FORMATS = ("svg", "png", "pdf")


def draw_poles(poles: list[list[list[list[float]]]], path: Path) -> None:
    """Draw the poles of every block in the unit disc, one colour a pole, one dot a sample.

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


def draw_fields(fields: Mapping[str, Sequence[Sequence[float]]], path: Path) -> None:
    """Draw a field as every model has it, above its error; the first one is the truth."""
    (_, truth), *others = ((name, np.asarray(field)) for name, field in fields.items())
    figure = Figure(figsize=(2.6 * (1 + len(others)), 4.8), layout="constrained")
    panels = figure.subplots(2, 1 + len(others), squeeze=False)
    low, high = truth.min(), truth.max()
    panels[0, 0].imshow(truth, origin="lower", aspect="auto", vmin=low, vmax=high)
    panels[0, 0].set(title="truth")
    panels[1, 0].axis("off")
    largest = max(float(np.abs(field - truth).max()) for _, field in others)
    for column, (name, field) in enumerate(others, start=1):
        error = field - truth
        panels[0, column].imshow(field, origin="lower", aspect="auto", vmin=low, vmax=high)
        panels[0, column].set(title=name)
        scale = {"vmin": -largest, "vmax": largest, "cmap": "RdBu"}
        shown = panels[1, column].imshow(error, origin="lower", aspect="auto", **scale)
        panels[1, column].set(title=f"error, at most {np.abs(error).max():.2g}")
    figure.colorbar(shown, ax=panels[1].tolist(), shrink=0.8)
    for panel in panels.flat:
        panel.set(xticks=[], yticks=[])
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a figure, in the format of the file's name."""
    form = path.suffix.lower().removeprefix(".")
    if form not in _FORMATS:
        raise FileError(f"cannot draw {path}: name it .{', .'.join(_FORMATS)}")
    same_bytes = rc_context({"svg.hashsalt": "amo"})  # every time, with no date in it
    with replacing(path) as beside, same_bytes:
        stamp = {"Date": None} if form == "svg" else None
        figure.savefig(beside, format=form, dpi=150, metadata=stamp)

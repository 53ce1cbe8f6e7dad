"""Pictures of finished tables: what each model, seed 0, answers on test samples."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from amo import checkpoint, plots
from amo.benchmarks.table import Entry, folder_of
from amo.errors import SettingsError
from amo.experiment import Problem
from amo.files import make_folder
from amo.results import Table
from amo.training import metrics

_N_SHOWN = 200  # samples of a mean over wavenumbers


class Answers(NamedTuple):
    """Test samples: their points, the truth, and each model's answers."""

    points: Tensor
    truth: Tensor
    models: Mapping[str, Tensor]


def answers(
    problem: Problem, models: Iterable[str], data: Path, out: Path, n_samples: int = 1
) -> Answers:
    """Return the first test samples, and the answers of finished runs."""
    batch = problem.read(next(problem.open(data / problem.folder, "test").batches(n_samples)))
    found = {}
    for model in models:
        operator, _ = checkpoint.load(folder_of(Entry(problem, model, 0), out))
        found[model] = problem.predict(operator, batch)
    return Answers(batch.points, batch.values, found)


def drawable(table: Table, problem: str, models: Iterable[str]) -> list[str]:
    """Return the models for which a table has a score with seed 0."""
    rows = {model: table.rows.get(f"{problem}/{model}/0") for model in models}
    found = [model for model, row in rows.items() if row is not None and not row.diverged]
    if not found:
        raise SettingsError(f"no model of {problem} has a score: there is nothing to draw")
    return found


def draw_surface(
    problem: Problem, models: Sequence[str], data: Path, out: Path, file: Path
) -> None:
    """Draw one option's surface as every model predicts it, time upwards and spot to the right."""
    _, truth, found = answers(problem, models, data, out)
    fields = {name: field[0, :, 0].numpy() for name, field in {"truth": truth, **found}.items()}
    plots.draw_fields(fields, file, grid=_sides(problem))


def _sides(problem: Problem) -> tuple[int, int]:
    """Return the grid of a field, or of its last frame."""
    rows, columns = (problem.grid or ())[-2:]
    return rows, columns


def draw_problem(
    problem: Problem, models: Sequence[str], data: Path, out: Path, folder: Path
) -> list[Path]:
    """Draw all pictures of a physics problem; return the files."""
    make_folder(folder)
    files = [folder / f"{problem.name}.png"]
    if problem.n_dimensions == 1:
        _, truth, found = answers(problem, models, data, out, _N_SHOWN)
        errors = {m: metrics.phase_errors(f[..., 0], truth[..., 0]) for m, f in found.items()}
        plots.draw_by_wavenumber({m: e.numpy() for m, e in errors.items()}, files[0])
        return files
    points, truth, found = answers(problem, models, data, out)
    fields = {name: field[0, :, -1].numpy() for name, field in {"truth": truth, **found}.items()}
    if problem.grid is None:
        place = points[0].numpy()
        plots.draw_fields(fields, files[0], points=place)
        if problem.name.startswith("fractal"):
            files.append(folder / f"{problem.name}-slopes.png")
            plots.draw_slopes(fields, place, files[1])
    else:  # of a film, the last frame
        rows, columns = _sides(problem)
        last = {name: field[-rows * columns :] for name, field in fields.items()}
        plots.draw_fields(last, files[0], grid=(rows, columns))
    if "amo" in models and problem.name.startswith(("darcy", "brusselator")):
        files.append(folder / f"{problem.name}-poles.png")
        known = checkpoint.read_metrics(folder_of(Entry(problem, "amo", 0), out))
        plots.draw_poles(known["poles"], files[-1])
    return files

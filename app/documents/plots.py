"""Pictures for the documents."""

from pathlib import Path

from matplotlib.figure import Figure

from amo.plots import save
from app.pareto import TIMES, Engines, front


def draw_pareto(engines: Engines, path: Path) -> None:
    """Draw every engine's price error against its time per option; left and low is better.

    A dotted line joins the engines that none else beats.
    """
    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    for axes, (title, column) in zip(figure.subplots(1, 3), TIMES.items(), strict=True):
        best = [engines[name] for name in front(engines, column)]
        axes.step(
            [row[column] for row in best],
            [row["price_rmse"] for row in best],
            where="post",
            color="0.6",
            linestyle=":",
        )
        for number, (name, row) in enumerate(engines.items()):
            if column not in row:
                continue
            shape = "D" if name in ("amo", "mlp") else "o"
            axes.loglog(row[column], row["price_rmse"], shape, color=f"C{number}", markersize=7)
            axes.annotate(
                name,
                (row[column], row["price_rmse"]),
                textcoords="offset points",
                xytext=(7, 5),
                fontsize=9,
                fontweight="bold" if name == "amo" else "normal",
            )
        axes.margins(0.28)
        axes.grid(alpha=0.3)
        axes.set(title=title, xlabel="microseconds per option", ylabel="price RMSE, K = 100")
    save(figure, path)

"""Pictures for the documents."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from amo.plots import save

_LABELS = {
    "microseconds_price": "price",
    "microseconds_five_greeks": "price and five Greeks",
    "microseconds_implied_vol": "implied volatility",
}


def draw_pareto(engines: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Draw every engine's price error against its time per option; left and low is better."""
    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    for axes, (column, title) in zip(figure.subplots(1, 3), _LABELS.items(), strict=True):
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

"""Every document that holds measured figures, and what writes each."""

import json
from collections.abc import Mapping
from pathlib import Path

from amo.results import RESULTS
from app.documents import cards, cluster_tables, engine_tables, market_tables, model_tables, plots
from app.documents.fill import ROOT, Tables, fill_file
from pricing.surrogate.store import models_folder

DOCUMENTS: Mapping[str, Tables] = {
    "README.md": engine_tables.README_TABLES,
    "docs/performance.md": {**engine_tables.PERFORMANCE_TABLES, **market_tables.FLAT_TABLES},
    "docs/markets.md": market_tables.MARKET_TABLES,
    "docs/chains.md": market_tables.CHAIN_TABLES,
    "docs/clusters.md": cluster_tables.CLUSTER_TABLES,
    "docs/operator.md": model_tables.OPERATOR_TABLES,
    "docs/benchmarks.md": model_tables.BENCHMARK_TABLES,
    "docs/matrix.md": model_tables.MATRIX_TABLES,
}


def write() -> list[Path]:
    """Rewrite every marked table, picture and model card; return the files written."""
    written = []
    for name, tables in DOCUMENTS.items():
        fill_file(ROOT / name, tables)
        written.append(ROOT / name)
    flat, markets = (
        json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("engines", "market_model")
    )
    pictures = {
        ROOT / "docs" / "pictures" / "pareto.svg": flat["american"],
        ROOT / "docs" / "pictures" / "pareto_markets.svg": market_tables.under_markets(markets),
    }
    for picture, engines in pictures.items():
        plots.draw_pareto(engines, picture)
    folders = sorted(path.parent for path in models_folder().glob("*/config.json"))
    return [*written, *pictures, *(cards.write(folder) for folder in folders)]

"""What a trained AMO chose to do with some inputs."""

from typing import Any

import torch

from amo.batch import Batch
from amo.model import AMO
from amo.operator import Operator


def diagnose(operator: Operator, batch: Batch) -> dict[str, Any]:
    """Return poles, captured energy and Gram error by block, as JSON holds them; of AMO only."""
    if not isinstance(operator.model, AMO):
        return {}
    with torch.no_grad():
        rows = operator.model.diagnostics(
            operator.points(batch.points), operator.features(batch.features), batch.mask
        )
    return {
        "poles": [row.poles.double().mul(1e5).round().div(1e5).tolist() for row in rows],
        "captured_energy": [float(row.captured_energy.mean()) for row in rows],
        "gram_error": [float(row.gram_error.max()) for row in rows],
    }

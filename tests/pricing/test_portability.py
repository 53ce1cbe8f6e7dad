"""The shipped models on other processors: other instruction sets, other numbers of threads.

The libraries below torch choose their kernels by what the processor can do, and round differently.
Environment variables make them choose as if it could do less.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

import numpy as np
import pytest

from amo import checkpoint
from pricing.analysis.assessment import QUANTITIES
from pricing.surrogate.store import models_folder

FOLDERS = sorted(path.parent for path in models_folder().glob("*/config.json"))
SETTINGS: Mapping[str, dict[str, str]] = {
    "as it is": {},
    "no vectors, one thread": {"ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "1"},
    "no vectors, two threads": {"ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "2"},
    "avx2, two threads": {"ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "2"},
    "mkl of sse4.2": {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "OMP_NUM_THREADS": "1"},
    "onednn of avx2": {"DNNL_MAX_CPU_ISA": "AVX2", "OMP_NUM_THREADS": "2"},
}
# Decoding is in float32, whose roundoff is 2^-24. It chains some thirty roundings of sums of up to
# 64 terms, so results may differ by 30 × 64 ≈ 2^11 roundoffs: 1.2e-4, of the value or of one.
TOLERANCE = 2.0**11 * 2.0**-24
PROGRAM = """
import json, sys
from pathlib import Path
import numpy as np
from pricing.analysis.market_assessment import stored_examples
from pricing.options import Options
from pricing.surrogate.market_model import NAME, MarketSurrogate
from pricing.surrogate.model import Surrogate
names = sys.argv[2].split(",")
answers = {}
for folder in map(Path, sys.argv[3:]):
    if folder.name == NAME:
        surrogate = MarketSurrogate.load(folder)
        options = stored_examples(surrogate.metrics)
    else:
        surrogate = Surrogate.load(folder)
        rows = surrogate.metrics["examples"]
        inputs = {name: rows[name] for name in rows if name not in names}
        options = Options.of(
            strike=float(sys.argv[1]), is_american=surrogate.coding.is_american, **inputs
        )
    found = surrogate.evaluate(options.take(np.tile(np.arange(len(options)), 400)), names)
    tolerance = 2.0**11 * 2.0**-24
    for name, values in found.items():  # a row's numbers do not depend on where it stands
        first = values[:len(options)]
        apart = abs(values.reshape(400, -1) - first) / (1.0 + abs(first))
        assert apart.max() < tolerance, (folder.name, name, apart.max())
    answers[folder.name] = {name: found[name][:len(options)].tolist() for name in names}
print(json.dumps(answers))
"""


@pytest.mark.parametrize("name", SETTINGS)
def test_stored_rows_are_priced_the_same_by_other_processors(name: str) -> None:
    arguments = ["100", ",".join(QUANTITIES), *map(str, FOLDERS)]
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, **SETTINGS[name]},
        check=True,
        capture_output=True,
        text=True,
    )
    for folder in FOLDERS:
        stored = checkpoint.read_metrics(folder)["examples"]
        for quantity, values in json.loads(run.stdout)[folder.name].items():
            expected = np.array(stored[quantity])
            excess = np.abs(values - expected) / (TOLERANCE * (1.0 + np.abs(expected)))
            assert excess.max() < 1.0, f"{folder.name}, {quantity}: {excess.max():.1f} tolerances"

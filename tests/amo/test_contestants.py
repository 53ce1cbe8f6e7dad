"""Contestants: ablations change one part each, and rows have folders of their own."""

from dataclasses import replace
from pathlib import Path

import pytest

from amo.benchmarks.contestants import (
    ABLATIONS,
    FILTER_ABLATIONS,
    RIVALS,
    filter_ablations,
    n_parameters,
    recipe_for,
)
from amo.benchmarks.options import RAW
from amo.benchmarks.physics import PROBLEMS
from amo.benchmarks.table import Entry, folder_of


@pytest.mark.parametrize("name", ABLATIONS)
@pytest.mark.filterwarnings("ignore:64 poles on 64 tokens")
def test_ablation_changes_one_part_of_amo(name: str) -> None:
    base, changed = (recipe_for(n, RAW).config for n in (next(iter(ABLATIONS)), name))
    assert replace(base, **ABLATIONS[name]) == changed
    assert n_parameters(recipe_for(name, RAW)) > 0


@pytest.mark.parametrize("name", ["darcy-small", "elasticity", "advection-speeds"])
def test_filter_ablations_change_one_part_each(name: str) -> None:
    problem = PROBLEMS[name]
    names = filter_ablations(problem)
    configs = [recipe_for(n, problem).config for n in names]
    assert configs[0] == recipe_for(names[0].partition(",")[0], problem).config
    assert len(set(configs)) == len(configs)
    for n, changed in zip(names, configs, strict=True):
        changes = FILTER_ABLATIONS[n.partition(", ")[2]]
        assert replace(configs[0], **changes) == changed
    assert any("delays" in n for n in names) == problem.is_periodic
    assert any("scans" in n for n in names)


def test_folders_of_rows_are_plain_names(tmp_path: Path) -> None:
    names = (*RIVALS, *ABLATIONS, *filter_ablations(RAW), *filter_ablations(PROBLEMS["elasticity"]))
    folders = [folder_of(Entry(RAW, name, 0), tmp_path) for name in names]
    assert len(set(folders)) == len(folders)
    assert all(" " not in folder.relative_to(tmp_path).as_posix() for folder in folders)

"""The contestants: every model by name, at a size for two cores and at its papers' usual one."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch

from amo.checkpoint import Recipe, build
from amo.errors import SettingsError
from amo.experiment import Experiment, Problem
from amo.registry import MODELS, kind_of
from amo.results import Budget, PaperSize, Size
from amo.training.loop import TrainingConfig

# Usual settings of the literature; AMO's defaults are its paper's. Papers that compare models vary
# the width of FNO from 32 to 64: 40 comes closest to the parameter count in AMO's paper.
_PAPER: Mapping[str, Mapping[str, Any]] = {
    "amo": {},
    "amo-grid": {"width": 128, "n_blocks": 8, "n_heads": 8},
    "amo-cloud": {"width": 128, "n_blocks": 8, "n_heads": 8},
    "fno": {"width": 40},
    "f-fno": {},
    "u-fno": {"width": 40},
    "lno": {},
    "transolver": {},
    "transolver++": {},
    "lamo": {},
    "galerkin": {},
    "ono": {},
    "oformer": {},
    "mwt": {},
    "lsm": {},
    "ifno": {"width": 40, "depth": 24},
}
# About a tenth of the work per sample, so that minutes on two cores are some hundred steps.
_SMALL: Mapping[str, Mapping[str, Any]] = {
    "amo": {
        "width": 64,
        "n_heads": 4,
        "n_tokens": 32,
        "n_poles": 12,
        "n_blocks": 3,
        "state_size": 8,
    },
    "amo-grid": {},
    "amo-cloud": {},
    "fno": {"width": 20},
    "f-fno": {"width": 40, "modes": 12},
    "u-fno": {"width": 20},
    "lno": {"width": 64, "n_modes": 64, "n_heads": 4},
    "transolver": {"width": 64, "n_heads": 4, "n_layers": 4, "n_slices": 32},
    "transolver++": {"width": 64, "n_heads": 4, "n_layers": 4, "n_slices": 32},
    "lamo": {"width": 64, "n_heads": 4, "n_layers": 4, "n_slices": 32, "state_size": 8},
    "galerkin": {"width": 64, "n_heads": 4, "n_layers": 4},
    "ono": {"width": 64, "n_heads": 4, "n_layers": 4},
    "oformer": {"width": 64, "latent_width": 96, "n_layers": 4},
    "mwt": {"order": 3, "multiplicity": 2, "modes": 6},
    "lsm": {"width": 16, "n_scales": 3, "patch": 4, "n_heads": 4},
    "ifno": {"depth": 4},
}
_SIZES = {"small": _SMALL, "paper": _PAPER}

_FILTERED = ("amo-grid", "amo-cloud")  # whose blocks are filters
_TOKENS = 1_024  # of AMO on a grid: patches are the smallest that give no more
_CLOUD_TOKENS = 144  # of AMO on a cloud, at most: a lattice of equal sides

# AMO with one part changed, on 64 tokens; 32 poles just fit there, 64 do not.
_BASE = {**_SMALL["amo"], "n_tokens": 64, "n_poles": 16}
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "AMO: 16 adaptive poles, TM, bidirectional": {},
    "poles learned, the same for all inputs": {"poles": "learned-static"},
    "poles random and fixed": {"poles": "random-static"},
    "4 poles": {"n_poles": 4},
    "6 poles": {"n_poles": 6},
    "8 poles": {"n_poles": 8},
    "32 poles": {"n_poles": 32},
    "64 poles": {"n_poles": 64},
    "plain kernels instead of TM": {"basis": "kernel"},
    "no mixer": {"mixer": "none"},
    "mixer one way": {"mixer": "uni"},
    "mixer four ways": {"mixer": "multi"},
    "decoder sees the input": {"sees_input": True},
}
# The same of AMO with filters, on a grid or a cloud: a name is "amo-grid, 4 poles".
FILTER_ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "8 learned poles, TM, two directions": {},
    "adaptive poles": {"poles": "adaptive"},
    "poles fixed at the start": {"poles": "fixed"},
    "poles random and fixed": {"poles": "random"},
    "4 poles": {"n_poles": 4},
    "16 poles": {"n_poles": 16},
    "32 poles": {"n_poles": 32},
    "64 poles": {"n_poles": 64},
    "plain kernels instead of TM": {"basis": "kernel"},
    "one direction": {"directions": 1},
    "no gate": {"is_gated": False},
    "no delays": {"delays": "none"},
    "delays learned": {"delays": "learned"},
    "delays adaptive": {"delays": "adaptive"},
    "selective scans": {"mixer": "scan", "delays": "none"},
    "selective scans, one direction": {"mixer": "scan", "delays": "none", "directions": 1},
}
RIVALS = tuple(_SMALL)


def recipe_for(name: str, problem: Problem, size: Size = "small") -> Recipe:
    """Return the recipe of a contestant, or of an ablation, for a problem."""
    kind, _, change = name.partition(", ")
    changes: Mapping[str, Any] = {}
    if name in ABLATIONS:
        kind, settings = "amo", {**_BASE, **ABLATIONS[name]}
    elif kind in _FILTERED and change in FILTER_ABLATIONS:
        settings, changes = dict(_SIZES[size][kind]), FILTER_ABLATIONS[change]
    elif name in _SIZES[size]:
        kind, settings = name, dict(_SIZES[size][name])
    else:
        raise SettingsError(f"no model {name!r}; there are {', '.join(RIVALS)}")
    config = kind_of(kind).config
    settings |= {
        "n_features": problem.n_features,
        "n_dimensions": problem.n_dimensions,
        "n_outputs": problem.n_outputs,
    }
    if kind == "amo":  # all rivals but LNO and OFormer see the input at every point
        settings = {"sees_input": problem.input_varies, **settings}
    if kind == "amo-cloud":
        side = int(_CLOUD_TOKENS ** (1.0 / problem.n_dimensions) + 1e-9)
        settings |= {"tokens": (side,) * problem.n_dimensions}
    if is_grid_only(kind):
        if problem.grid is None:
            raise SettingsError(f"{name} knows grids only, and {problem.name} has none")
        settings |= {"grid": problem.grid, **_on_grid(kind, settings, problem)}
    return Recipe(kind=kind, config=config(**{**settings, **changes}), link=problem.link)


def filter_ablations(problem: Problem) -> list[str]:
    """Return the ablations that change anything on a problem, the unchanged form first.

    Delays are for circles; the rule of the form has them there, so one of their rows is the form.
    """
    kind = "amo-grid" if problem.grid is not None else "amo-cloud"
    names = [f"{kind}, {change}" for change in FILTER_ABLATIONS]
    recipes = {name: recipe_for(name, problem) for name in names}
    is_circle = problem.is_periodic and kind == "amo-grid"
    form = recipes[names[0]].config
    return [
        name
        for name in names
        if name == names[0]
        or (recipes[name].config != form and (is_circle or "delays " not in name))
    ]


def _on_grid(kind: str, settings: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Return what follows from a problem's grid: patches, or modes and padding."""
    grid = problem.grid or ()
    if kind == "amo-grid":
        patch = next(
            p
            for p in range(1, max(grid) + 1)
            if math.prod(-(-n // p) for n in grid) <= _TOKENS
            and not (problem.is_periodic and any(n % p for n in grid))
        )
        # a shift along one axis: one for all inputs, or one for each where a number comes with it
        is_circle = problem.is_periodic and len(grid) == 1
        delays = ("adaptive" if problem.n_features > 1 else "learned") if is_circle else "none"
        return {"patch": patch, "is_periodic": problem.is_periodic, "delays": delays}
    defaults = {f.name: f.default for f in fields(kind_of(kind).config)}
    chosen = {}
    if "modes" in defaults:
        chosen["modes"] = min(settings.get("modes", defaults["modes"]), min(grid) // 2)
    if "padding" in defaults and problem.is_periodic:
        chosen["padding"] = 0
    return chosen


def experiment_for(
    name: str, problem: Problem, budget: Budget, seed: int, rate: float | None = None
) -> Experiment:
    """Return the experiment of a row: a contestant on a problem, steps still to be settled."""
    recipe = recipe_for(name, problem, budget.size)
    return Experiment(
        name=f"{problem.name}/{name}/{seed}",
        problem=problem,
        kind=recipe.kind,
        model=recipe.config,
        training=TrainingConfig(
            steps=1,
            seed=seed,
            batch_size=budget.batch_size,
            learning_rate=budget.learning_rate if rate is None else rate,
            optimizer=budget.optimizer,
            weight_decay=1e-5 if budget.optimizer == "adamw" else 0.0,
            n_points=None if is_grid_only(recipe.kind) else budget.n_points,
        ),
    )


def is_grid_only(kind: str) -> bool:
    """Return whether a model works on one grid only."""
    return any(f.name == "grid" for f in fields(kind_of(kind).config))


def is_possible(name: str, problem: Problem) -> bool:
    """Return whether a contestant can take part: models on a grid need one."""
    return name not in MODELS or problem.grid is not None or not is_grid_only(name)


def n_parameters(recipe: Recipe) -> int:
    """Return how many weights a recipe has, without allocating them."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build(recipe).parameters())


def paper_sizes(problem: Problem, quoted: Mapping[str, float]) -> dict[str, PaperSize]:
    """Return all parameter counts at the papers' settings, beside quoted counts in millions."""
    return {
        name: PaperSize(
            parameters=n_parameters(recipe_for(name, problem, "paper")), quoted=quoted.get(name)
        )
        for name in RIVALS
    }

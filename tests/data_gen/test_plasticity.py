"""Blocks under dies: energy, steps, symmetry, and the set that is made of them."""

from typing import Any, ClassVar

import numpy as np
import pytest

from amo.benchmarks.physics import PROBLEMS
from data_gen.physics.forging import die as dies
from data_gen.physics.forging.material import STEEL, von_mises
from data_gen.physics.forging.solver import Forging, Pressed, press
from data_gen.physics.plasticity import PlasticitySet

COARSE = Forging(columns=30, rows=9, frames=4)
WAVES = np.array([2.0, 0.0, 1.5, 3.0, 3.0, 1.5, 0.0, 2.0])  # symmetric
REFERENCE = {
    "waves": WAVES,
    "one foot": np.array([6.0, 5.0, 3.0, 0.0, 0.0, 3.0, 5.0, 6.0]),
    "crooked": np.array([3.0, 2.0, 0.5, 0.0, 1.5, 3.0, 2.0, 3.5]),
}


@pytest.fixture(scope="module")
def pressed() -> dict[str, Pressed]:
    return {name: press(COARSE, heights) for name, heights in REFERENCE.items()}


@pytest.mark.parametrize("name", REFERENCE)
def test_pressed_block_keeps_its_energy_and_moves_as_far_as_it_should(
    name: str, pressed: dict[str, Pressed]
) -> None:
    found = pressed[name]
    assert found.error <= PlasticitySet.gate
    distance = np.hypot(*np.moveaxis(found.moved, 1, 0)).max(axis=(1, 2))
    assert distance[0] == 0.0
    assert (np.diff(distance) > 0.0).all()
    assert 4.5 < distance[-1] < 6.5
    assert not found.moved[:, 1, -1].any()  # the bottom only slides
    assert found.moved[-1, 0, -1].any()
    assert von_mises(found.body.cells[:3]).max() <= STEEL.yield_stress * (1.0 + 1e-8)
    last = found.energies[-1]
    assert last.plastic > 0.9 * last.work
    assert last.hourglass < 0.1 * last.work  # what is usually asked
    die = dies.profile(REFERENCE[name] - REFERENCE[name].min() + COARSE.height, COARSE.width)
    edge = np.concatenate(
        [found.body.place[:, 0], *np.moveaxis(found.body.place[:, :, [0, -1]], 2, 0)], axis=1
    )
    above = edge[1] - dies.heights_at(die, edge[0]) + COARSE.speed * COARSE.duration
    # Under some five yield stresses on 50/30 mm of edge, springs of half of E give by 0.006 mm.
    assert above.max() < 0.01


@pytest.mark.parametrize("name", REFERENCE)
def test_half_the_step_changes_little(name: str, pressed: dict[str, Pressed]) -> None:
    again = press(COARSE, REFERENCE[name], refine=2)
    change = np.linalg.norm(again.moved - pressed[name].moved) / np.linalg.norm(again.moved)
    assert 0.0 < change < 0.01


def test_symmetric_die_leaves_a_symmetric_block(pressed: dict[str, Pressed]) -> None:
    moved = pressed["waves"].moved
    mirrored = moved[..., ::-1] * np.array([-1.0, 1.0])[:, None, None]
    # Rounding, which buckling may make larger: far below what is stored.
    assert np.abs(moved - mirrored).max() < 1e-7 * np.abs(moved).max()


def test_flattened_block_has_no_answer() -> None:
    flat = press(Forging(columns=4, rows=2, frames=3, duration=5.2), np.zeros(8))
    assert flat.error == np.inf
    assert len(flat.energies) < 2


def test_die_between_two_nodes_is_an_error(pressed: dict[str, Pressed]) -> None:
    good = pressed["waves"]
    assert good._replace(overlap=0.4 * good.spacing).error == good.error
    assert good._replace(overlap=0.6 * good.spacing).error == np.inf


class Strict(PlasticitySet):
    gate: ClassVar[float] = 0.0


def small(kind: type[PlasticitySet] = PlasticitySet) -> PlasticitySet:
    return kind(train=2, validation=1, test=1, columns=10, rows=3, frames=3)


def test_gate_drops_and_counts_samples() -> None:
    shard = small(Strict).make(0)
    assert shard.n_dropped == 2
    assert len(shard.arrays["number"]) == len(shard.arrays["field"]) == 0
    kept = small().make(0)
    assert kept.n_dropped == 0
    assert 0.0 < kept.worst_error <= PlasticitySet.gate


def test_set_is_laid_out_as_the_official_file() -> None:
    dataset = small()
    arrays: dict[str, Any] = dataset.make(0).arrays
    assert arrays["die"].shape == (2, 11)
    assert arrays["field"].shape == (2, 11, 4, 3, 4)
    assert (arrays["die"] >= -1e-6).all()
    place, moved = np.split(arrays["field"], 2, axis=-1)
    rest = np.stack(np.meshgrid(-5.0 * np.arange(11), 15.0 - 5.0 * np.arange(4), indexing="ij"), -1)
    np.testing.assert_allclose(
        place - moved, np.broadcast_to(rest[:, :, None], place.shape), atol=1e-4
    )
    assert not moved[:, :, :, 0].any()
    problem = PROBLEMS["plasticity"]
    batch = problem.read(arrays)
    assert batch.points.shape == (2, 11 * 4 * 3, 3)
    np.testing.assert_array_equal(batch.values[0, -1], arrays["field"][0, -1, -1, -1])
    assert problem.regions["displacement"](arrays)[..., :2].sum() == 0


def test_check_sees_what_is_wrong() -> None:
    dataset = small()
    arrays = dataset.make(0).arrays
    wrong = {**arrays, "field": arrays["field"] * np.float32(1.05)}
    assert not any(c.is_met for c in dataset.check(wrong, 1, np.random.default_rng(0)))

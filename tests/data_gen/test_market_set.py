"""The market set: what its slices and labels are, and that what is learned follows from them."""

import numpy as np
import pytest
import torch

from amo.data.batch import read_operator_arrays
from data_gen.dataset import Arrays
from data_gen.options.market_set import LABELS, MarketSet
from pricing.random_schedules import random_schedules
from pricing.surrogate.market_coding import DIRECTIONS

SET = MarketSet(markets=16, contracts=6, moments=3, spots=2)


@pytest.fixture(scope="module")
def arrays() -> Arrays:
    return SET.make(0).arrays


def test_labels_agree_with_contracts_solved_alone_on_finer_grids(arrays: Arrays) -> None:
    for check in SET.check(arrays, 40, np.random.default_rng(0)):
        assert check.is_met, check


def test_every_slice_is_another_and_all_of_its_contracts_share_it(arrays: Arrays) -> None:
    options = SET.sliced(SET.draw(0))
    n = len(options) // SET.contracts
    slices = options.market_slices
    share = (slices.cash / options.spot[:, None]).reshape(n, SET.contracts, -1)
    assert np.ptp(share, axis=1).max() == 0
    assert np.ptp(options.expiry.reshape(n, -1), axis=1).max() == 0
    assert len(np.unique(arrays["number"])) == len(arrays["number"]) <= n
    kinds = np.unique(np.column_stack([arrays["expiry"], arrays["payment_cash"][:, 0]]), axis=0)
    assert len(kinds) > 0.4 * n


def test_many_payments_are_drawn_more_often_than_markets_at_random_have_them() -> None:
    """Now, before any later moment: errors are largest there."""
    rng = np.random.default_rng(0)
    dataset = MarketSet(markets=512, contracts=1)
    drawn = [dataset.draw(shard).options.market_slices for shard in range(dataset.n_shards)]
    many = np.concatenate([slices.n_payments >= 6 for slices in drawn]).mean()
    usual = random_schedules(dataset.domain, 4096, rng, 1).market_slices.n_payments >= 6
    assert many > 1.5 * usual.mean()


def test_values_and_slopes_are_the_labels_above_the_floor(arrays: Arrays) -> None:
    """The floor is what is missing between the two: it does not depend on the labels."""
    floor = arrays["price"] - arrays["values"][..., 0]
    assert (floor > -1e-7).all()
    assert (arrays["values"] >= -SET.gate).all()
    exercised = np.maximum(
        np.where(arrays["is_call"], arrays["spot"] - 1.0, 1.0 - arrays["spot"]), 0.0
    )
    np.testing.assert_allclose(arrays["least"][..., 0] + floor, exercised, atol=1e-6)
    assert (arrays["values"] >= arrays["least"] - 1e-6).all()
    shape = (*arrays["price"].shape, len(DIRECTIONS), 1)
    assert arrays["value_tangents"].shape == shape
    assert set(LABELS) <= arrays.keys()


def test_a_batch_can_be_read_and_has_everything_at_its_queries(arrays: Arrays) -> None:
    batch = read_operator_arrays(arrays)
    assert batch.queries is not None
    assert batch.mask is not None
    thin = batch.thinned(None, 3, torch.Generator().manual_seed(0))
    assert thin.values.shape[1] == thin.least.shape[1] == 3  # type: ignore[union-attr]
    assert (batch.mask.sum(1) >= 4).all()

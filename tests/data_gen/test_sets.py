"""What the sets hold, and how right it is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from data_gen.dataset import SPLITS, DataSet, split_of
from data_gen.options.coded_labels import LABELS
from data_gen.options.market_set import MarketSet
from data_gen.options.paper_options import RANGES, PaperOptionsSet
from data_gen.options.surrogate_sets import AmericanSet, EuropeanSet, ServingSet
from data_gen.sampling import power_of_two_below, sobol
from data_gen.toys import AntiderivativeSet, DiffusionSet
from pricing import fd
from pricing.fd import FDSettings
from pricing.options import Options
from pricing.surrogate.domain import Domain
from pricing.surrogate.encoding import Put, code_rate

SMALL = FDSettings(n_space=48, n_time=24)


def small_sets() -> list[DataSet]:
    return [
        EuropeanSet(states=8, vols=2, points=16),
        AmericanSet(states=8, vols=2, points=16),
        MarketSet(markets=8, contracts=4, moments=2, spots=2),
        PaperOptionsSet(train=10, validation=3, test=3, resolution=16),
        AntiderivativeSet(samples=384, points=16),
        DiffusionSet(samples=384, points=16),
    ]


@pytest.mark.parametrize("dataset", small_sets(), ids=lambda d: type(d).__name__)
def test_shard_is_a_function_of_settings_and_number(dataset: DataSet) -> None:
    one, two = dataset.make(1), dataset.make(1)
    assert one.arrays.keys() == dataset.units.keys()
    for name, values in one.arrays.items():
        assert np.array_equal(values, two.arrays[name], equal_nan=True)
        assert values.dtype in (np.float32, np.int32, np.int64, np.bool_)
    assert {dataset.split(i) for i in range(dataset.n_shards)} == set(SPLITS)


def test_european_labels_agree_with_the_closed_form() -> None:
    shard = EuropeanSet(states=64, vols=8).make(0)
    rng = np.random.default_rng(0)
    for check in EuropeanSet().check(shard.arrays, 300, rng):
        assert check.is_met, check
    assert shard.worst_error <= EuropeanSet.gate


def test_american_labels_agree_with_qdfp_high_precision() -> None:
    shard = AmericanSet(states=64, vols=8).make(0)
    for check in AmericanSet().check(shard.arrays, 24, np.random.default_rng(0)):
        assert check.is_met, check


@pytest.mark.parametrize("dataset", [AntiderivativeSet(), DiffusionSet()])
def test_toy_answers_agree_with_a_second_method(dataset: DataSet) -> None:
    arrays = dataset.make(0).arrays
    for check in dataset.check(arrays, 20, np.random.default_rng(0)):
        assert check.is_met, check
    shifted = {**arrays, "values": arrays["values"] + np.float32(1e-3)}
    assert not any(c.is_met for c in dataset.check(shifted, 20, np.random.default_rng(0)))
    assert len(dataset.picture(arrays).data) == 8


@pytest.mark.parametrize("changes", [{"samples": 10}, {"points": 4}, {"seed": -1}])
def test_toy_sets_refuse_nonsense(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        DiffusionSet(**changes)


def test_points_lie_in_the_domain_and_states_fill_it() -> None:
    dataset = AmericanSet(states=64, vols=8, points=8, grid=SMALL)
    d = dataset.domain.widened()  # what is served lies inside of what is learned
    for name, (low, high) in dataset.domain.as_dict().items():
        wide = getattr(d, name)
        assert wide[0] <= low
        assert wide[1] > high
    shards = [dataset.make(i).arrays for i in range(2)]
    for arrays in shards:
        assert (np.abs(arrays["log_moneyness"]) <= d.log_moneyness[1] + 1e-6).all()
        assert (arrays["time_to_expiry"] > 0).all()
        assert (arrays["time_to_expiry"] <= d.expiry[1] + 1e-6).all()
    rates = np.concatenate([dataset._options(i)[1].rate for i in range(dataset.n_shards)])
    codes = code_rate(np.unique(rates))
    counts, _ = np.histogram(codes, bins=8, range=(0.0, code_rate(d.rate[1])))
    assert (counts == 8).all(), "a Sobol net fills every eighth equally"
    volatility = np.concatenate(
        [dataset._options(i)[1].volatility for i in range(dataset.n_shards)]
    )
    assert np.median(volatility) < 0.45, "more weight on small volatilities"


def test_stopped_points_hold_the_values_of_an_exercised_put() -> None:
    arrays = AmericanSet(states=64, vols=8).make(0).arrays
    spot = np.exp(arrays["log_moneyness"].astype(np.float64))
    stopped = spot < arrays["boundary"] * (1 - 1e-6)
    assert stopped.sum() > 100
    assert np.abs(arrays["price"] - (1 - spot))[stopped].max() < 1e-6
    assert (arrays["delta"][stopped] == -1).all()
    for name in ("gamma", "vega", "rho", "dividend_rho"):
        assert (arrays[name][stopped] == 0).all()


def test_gate_drops_and_counts_surfaces() -> None:
    class Strict(EuropeanSet):
        gate = 2e-6

    class Impossible(EuropeanSet):
        gate = 0.0

    shard = Strict(states=64, vols=2, points=4, grid=SMALL).make(0)
    assert 0 < shard.n_dropped < 8
    assert shard.n_dropped + len(shard.arrays["rate"]) == 8
    assert shard.worst_error <= 2e-6
    empty = Impossible(states=64, vols=2, points=4, grid=SMALL).make(0)
    assert empty.n_dropped == 8
    assert all(len(values) == 0 for values in empty.arrays.values())


@pytest.mark.parametrize("is_american", [False, True])
def test_call_put_symmetry_holds_on_the_grid(
    is_american: bool, random_options: Callable[..., Options]
) -> None:
    """call(S, K, r, q) = put(K, S, q, r): why the sets hold puts only."""
    call = random_options(24, seed=50, is_american=is_american).with_values(
        is_call=np.ones(24, bool)
    )
    put = call.with_values(
        spot=call.strike,
        strike=call.spot,
        rate=call.dividend_yield,
        dividend_yield=call.rate,
        is_call=np.zeros(24, bool),
    )
    a, b = (fd.evaluate(o, ("price",))["price"] for o in (call, put))
    assert np.abs(a - b).max() < (1e-3 if is_american else 1e-6)


@pytest.mark.parametrize("make", [EuropeanSet, AmericanSet])
def test_coded_values_and_slopes_are_the_labels(make: type[ServingSet]) -> None:
    """What an operator learns, put together again, is the label and its Greeks."""
    arrays = {
        name: values.astype(np.float64)
        for name, values in make(states=64, vols=4, points=32).make(0).arrays.items()
    }
    n = len(arrays["rate"])
    flat = {name: arrays[name].reshape(n, -1) for name in LABELS}
    x, tau = (arrays[name].reshape(n, -1) for name in ("log_moneyness", "time_to_expiry"))
    sigma = np.repeat(arrays["volatility"], 32, axis=1)
    terms = (
        np.exp(x),
        1.0,
        tau,
        arrays["rate"][:, None] + 0 * x,
        arrays["dividend_yield"][:, None] + 0 * x,
        sigma,
        False,
    )
    below = make.coding.offset(*terms, LABELS)
    put = Put(x, tau, terms[3], terms[4], sigma)
    unit, reach = make.coding.unit(put), (*make.coding.reach(put), 1.0, 1.0)
    value = unit * arrays["values"][..., 0]
    assert np.allclose(value + below["price"], flat["price"], atol=2e-6)
    slopes = {
        "delta": np.exp(x) * (flat["delta"] - below["delta"]),
        "vega": flat["vega"] - below["vega"],
        "rho": flat["rho"] - below["rho"],
        "dividend_rho": flat["dividend_rho"] - below["dividend_rho"],
    }
    for place, (name, expected) in enumerate(slopes.items()):
        found = arrays["value_tangents"][..., place, 0]
        assert np.allclose(unit * found / reach[place], expected, atol=2e-5), name
    state = np.stack([arrays["rate"], arrays["dividend_yield"]], axis=1)
    assert np.allclose(arrays["features"][..., 0], code_rate(state), atol=1e-6)
    output = value / (unit * arrays["scale"][..., 0])
    if "gap" in arrays:
        mean = np.sqrt(np.maximum(value * (value + unit * arrays["gap"][..., 0]), 0.0))
        output = mean / (unit * arrays["scale"][..., 0])
    known = unit * arrays["scale"][..., 0] > 1e-3
    assert output[known].max() <= 1.0 + 1e-3
    assert output[known].min() > -1e-3


def test_paper_options_carry_two_codings_of_one_price() -> None:
    dataset = PaperOptionsSet(train=20, validation=4, test=4, resolution=32)
    arrays = dataset.make(0).arrays
    assert arrays["price"].shape == (20, 32, 32)
    assert arrays["inputs"].shape == (20, len(RANGES))
    with np.errstate(divide="ignore", invalid="ignore"):
        output = (arrays["price"] - arrays["offset"]) / arrays["scale"]
    live = arrays["scale"] > 0
    assert live.mean() > 0.95
    assert output[live].min() > -1e-3
    assert output[live].max() < 0.4
    for row in range(20):
        strike, is_call = arrays["inputs"][row, 3], arrays["inputs"][row, 5]
        payoff = np.maximum((arrays["spot"][row] - strike) * (1 if is_call else -1), 0)
        assert np.allclose(arrays["price"][row, -1], payoff, atol=1e-4), "t = T is last"
    for check in dataset.check(arrays, 500, np.random.default_rng(0)):
        assert check.is_met, check


def test_splits_of_the_paper_set_share_no_sample() -> None:
    dataset = PaperOptionsSet(train=70, validation=10, test=10, resolution=8)
    inputs = [dataset.make(i).arrays["inputs"] for i in range(dataset.n_shards)]
    assert [len(x) for x in inputs] == [64, 6, 10, 10]
    assert len(np.unique(np.concatenate(inputs), axis=0)) == 90


def test_pictures_show_labels_and_boundary() -> None:
    for dataset in small_sets():
        assert len(dataset.picture(dataset.make(0).arrays).data) >= 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: EuropeanSet(states=0),
        lambda: EuropeanSet(states=2),
        lambda: AmericanSet(vols=0),
        lambda: AmericanSet(seed=-1),
        lambda: MarketSet(markets=2),
        lambda: MarketSet(contracts=0),
        lambda: MarketSet(seed=-1),
        lambda: PaperOptionsSet(train=0),
        lambda: PaperOptionsSet(resolution=2),
        lambda: Domain(volatility=(0.0, 1.0)),
        lambda: Domain(rate=(0.1, 0.0)),
        lambda: Domain(rate=(-0.1, 0.1)),
        lambda: Domain(expiry=(-1.0, 1.0)),
    ],
)
def test_nonsense_settings_are_refused_before_work(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        make()


def test_domain_survives_json() -> None:
    domain = Domain(rate=(0.0, 0.05))
    assert Domain.from_dict(domain.as_dict()) == domain


def test_sobol_shards_are_pieces_of_one_sequence() -> None:
    whole = sobol(3, 0, 0, 64, 2)
    assert np.array_equal(sobol(3, 0, 32, 16, 2), whole[32:48])
    assert not np.array_equal(sobol(4, 0, 0, 64, 2), whole)
    assert not np.array_equal(sobol(3, 1, 0, 64, 2), whole)


def test_power_of_two_below() -> None:
    assert [power_of_two_below(n) for n in (0, 1, 3, 4, 100)] == [1, 1, 2, 4, 64]


def test_splits_hold_out_the_last_shards() -> None:
    assert [split_of(i, 4) for i in range(4)] == ["train", "train", "validation", "test"]
    assert [split_of(i, 32) for i in range(28, 32)] == ["validation"] * 2 + ["test"] * 2


def test_serving_sets_declare_their_labels() -> None:
    for make in (EuropeanSet, AmericanSet):
        assert issubclass(make, ServingSet)
        assert set(LABELS) <= set(make().units)

"""Which engines are said to be beaten by none, and charts of errors."""

import pytest

from app.model_charts import error_histogram
from app.pareto import front, front_in_words

TIME = "microseconds_price"


def engines(**rows: tuple[float, float]) -> dict[str, dict[str, float]]:
    return {name: {TIME: time, "price_rmse": error} for name, (time, error) in rows.items()}


def test_the_front_holds_what_nothing_beats() -> None:
    found = front(
        engines(slow=(9.0, 1e-5), amo=(1.0, 1e-3), fair=(5.0, 1e-4), bad=(6.0, 1e-3)), TIME
    )
    assert found == ["amo", "fair", "slow"]


@pytest.mark.parametrize("rival", [(1.0, 5e-4), (0.5, 1e-3), (0.5, 5e-4)])
def test_as_fast_and_more_exact_or_as_exact_and_faster_is_ahead(rival: tuple[float, float]) -> None:
    rows = engines(amo=(1.0, 1e-3), mlp=rival, fd=(9.0, 1e-5))
    assert front(rows, TIME) == ["mlp", "fd"]
    assert "`amo` is behind `mlp`" in front_in_words(rows | engines(fd=(9.0, 1e-5)))


def test_engines_without_a_time_are_not_judged() -> None:
    rows = {**engines(amo=(1.0, 1e-3)), "exact": {"price_rmse": 0.0}}
    assert front(rows, TIME) == ["amo"]
    assert "behind" not in front_in_words(rows | engines(slow=(2.0, 1e-2)))


def test_the_words_of_a_histogram_stand_at_its_line() -> None:
    figure = error_histogram([1e-4, 1e-3, 1e-2], [3, 1], 5e-3)
    (words,), (line,) = figure.layout.annotations, figure.layout.shapes
    assert words.text == "99 %"
    assert 10.0**words.x == pytest.approx(line.x0)

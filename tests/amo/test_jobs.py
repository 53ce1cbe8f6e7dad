"""Jobs: the same answers everywhere, and one that fails fails alone."""

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from amo.errors import ClusterError, FileError, SettingsError
from amo.jobs import Failed, run_jobs
from tests import jobs

NUMBERS = range(6)
SQUARES = {number: number * number for number in NUMBERS}


@contextmanager
def executor_of(kind: str | None) -> Iterator[Any]:
    if kind != "threads":
        yield kind
        return
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.mark.parametrize("kind", [None, "processes", "threads"])
def test_jobs_are_answered_wherever_they_are_done(kind: str | None) -> None:
    with executor_of(kind) as executor:
        assert dict(run_jobs(jobs.squared, NUMBERS, executor)) == SQUARES
        assert dict(run_jobs(jobs.squared, [], executor)) == {}


@pytest.mark.parametrize("kind", [None, "processes", "threads"])
@pytest.mark.parametrize(
    ("work", "error"),
    [
        (jobs.squared_but_not_three, SettingsError),
        (jobs.squared_unless_fault, ZeroDivisionError),
    ],
)
def test_job_that_always_fails_fails_alone(kind: str | None, work: Any, error: Any) -> None:
    with executor_of(kind) as executor:
        answers = dict(run_jobs(work, NUMBERS, executor, workers=1, retries=1))
    failed = answers.pop(3)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, error)
    assert answers == {number: square for number, square in SQUARES.items() if number != 3}


def test_job_that_always_kills_its_process_fails_alone() -> None:
    answers = dict(run_jobs(jobs.killed_at_three, NUMBERS, "processes", workers=2, retries=1))
    failed = answers.pop(3)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, ClusterError)
    assert "killed 2 times" in str(failed.error)
    assert answers == {number: square for number, square in SQUARES.items() if number != 3}


def test_job_whose_process_was_killed_is_done_again(tmp_path: Path) -> None:
    marks = [str(tmp_path / name) for name in "ab"]
    found = dict(run_jobs(jobs.killed_the_first_time, marks, "processes", workers=2))
    assert found == {0: 1, 1: 1}


def test_job_is_tried_as_often_as_is_asked(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        for retries, kind in ((0, Failed), (1, int)):
            mark = str(tmp_path / str(retries))
            ((_, answer),) = run_jobs(jobs.fails_the_first_time, [mark], threads, retries=retries)
            assert isinstance(answer, kind)
            if isinstance(answer, Failed):
                assert isinstance(answer.error, FileError)


def test_executor_that_breaks_is_an_error_with_the_way_out() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        found = run_jobs(jobs.killed_at_three, [3], processes)
        with pytest.raises(ClusterError, match=r"executor went away.*the same call goes on"):
            list(found)


def test_executor_that_was_shut_down_is_an_error_with_the_way_out() -> None:
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    with pytest.raises(ClusterError, match="executor went away"):
        list(run_jobs(jobs.squared, NUMBERS, threads))


def test_interrupt_lets_jobs_under_way_end_and_starts_no_others() -> None:
    found: list[tuple[int, Any]] = []
    with ThreadPoolExecutor(1) as threads, pytest.raises(KeyboardInterrupt):
        found.extend(run_jobs(jobs.interrupted_at_zero, range(50), threads))
    assert found[0] == (0, 0)
    assert len(found) < 50
    assert all(answer == number for number, answer in found)


def test_unknown_executor_is_refused() -> None:
    wrong: list[Any] = ["threads", 4, Executor]
    for executor in wrong:
        with pytest.raises(SettingsError, match=r"executor= takes None, \"processes\""):
            list(run_jobs(jobs.squared, NUMBERS, executor))

"""Threads of our own: one torch thread each, the caller's settings untouched, errors told."""

import subprocess
import sys
import threading

import pytest
import torch

from amo.system import n_cores
from pricing.threads import in_threads


def test_answers_come_in_order_and_each_thread_computes_alone() -> None:
    before = torch.get_num_threads()
    seen: set[tuple[int, str]] = set()

    def work(number: int) -> int:
        seen.add((torch.get_num_threads(), threading.current_thread().name.split("_")[0]))
        return number * number

    assert list(in_threads(work, range(100))) == [n * n for n in range(100)]
    assert seen == {(1, "pricing")}
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("used", ["", "list(in_threads(lambda n: n, range(4)))\n"])
def test_each_thread_computes_alone_whatever_torch_is_told(used: str) -> None:
    """In a process of its own, because other tests have started the threads of this one."""
    program = (
        "import torch\n"
        "torch.set_num_threads(2)\n"
        "from pricing.threads import in_threads\n"
        f"{used}"
        "def work(n):\n"
        "    torch.rand(300, 300) @ torch.rand(300, 300)\n"
        "    return torch.get_num_threads()\n"
        "print(set(in_threads(work, range(20))), torch.get_num_threads())\n"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["{1}", "2"]


def test_no_more_workers_than_asked_are_under_way() -> None:
    under_way, most, lock = 0, 0, threading.Lock()

    def work(_: int) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        torch.rand(200, 200) @ torch.rand(200, 200)
        with lock:
            under_way -= 1

    list(in_threads(work, range(20), workers=1))
    assert most == 1
    list(in_threads(work, range(20)))
    assert most <= n_cores()


def test_what_the_work_raises_is_raised_to_the_caller() -> None:
    def work(number: int) -> int:
        return 1 // number

    with pytest.raises(ZeroDivisionError):
        list(in_threads(work, [1, 0, 1]))


def test_a_thread_of_others_that_begins_later_keeps_the_user_s_setting() -> None:
    program = (
        "import threading, torch\n"
        "torch.set_num_threads(3)\n"
        "from pricing.threads import in_threads\n"
        "list(in_threads(lambda n: n, range(4)))\n"
        "found = []\n"
        "t = threading.Thread(target=lambda: found.append(torch.get_num_threads()))\n"
        "t.start(); t.join()\n"
        "assert found == [3], found\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

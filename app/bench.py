"""python -m app.bench: how fast the dashboard answers, and whether sessions mind each other.

Two measurements. A real browser opens the Price page and changes an input: the time to the first
price, and from the key to the new one. Then many sessions speak the browser's own protocol over
websockets on the loopback, each changing its own contract: every answer must be the library's
price of that contract, and the server's memory must stay put.
"""

import argparse
import asyncio
import json
import random
import re
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import websockets
from playwright.sync_api import Page
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from amo.files import write_text
from app.serving import PATIENCE, browser, serve
from pricing import price_frame

_CHANGES = 15  # of an input in the browser
_WARM_UP = 20.0  # seconds of the sessions before memory counts
_PRICE = "Price, amo"  # the metric that shows it
_CONTRACT: dict[str, float | str] = {
    "spot": 100.0, "strike": 100.0, "expiry": 1.0, "rate": 0.05, "dividend_yield": 0.02,
    "volatility": 0.2, "option_type": "put", "exercise": "american",
}  # fmt: skip


def shown_prices(spots: Iterable[float]) -> dict[float, str]:
    """Return the prices of the page's first contract at other spots, as it writes them."""
    frame = pd.DataFrame([{**_CONTRACT, "spot": spot} for spot in spots])
    prices = price_frame(frame, "amo", greeks=False, progress=False)["price"]
    return {spot: f"{price:,.4f}" for spot, price in zip(frame["spot"], prices, strict=True)}


def latency(url: str) -> dict[str, float]:
    """Return milliseconds to the first price, and from a key to the changed price."""
    spots = [80.0 + 2.5 * n for n in range(_CHANGES)]
    expected = shown_prices([100.0, *spots])
    with browser() as where:
        page = where.new_page(viewport={"width": 1280, "height": 900})
        start = time.perf_counter()
        page.goto(url)
        _wait_for_price(page, expected[100.0])
        first = time.perf_counter() - start
        answers = []
        for spot in spots:
            box = page.get_by_label("Spot", exact=True)
            box.fill(f"{spot:g}")
            start = time.perf_counter()
            box.press("Enter")
            _wait_for_price(page, expected[spot])
            answers.append(time.perf_counter() - start)
        again = where.new_page(viewport={"width": 1280, "height": 900})
        start = time.perf_counter()
        again.goto(url)
        _wait_for_price(again, expected[100.0])
        second = time.perf_counter() - start
    return {
        "first_price_milliseconds": 1e3 * first,  # of the server's first visitor
        "later_visitor_milliseconds": 1e3 * second,
        "change_median_milliseconds": 1e3 * statistics.median(answers[1:]),
        "change_slowest_milliseconds": 1e3 * max(answers[1:]),
        "changes": len(answers) - 1,
    }


def _wait_for_price(page: Page, text: str) -> None:
    metric = page.get_by_test_id("stMetric").filter(has_text=_PRICE)
    metric.filter(has_text=text).wait_for(timeout=PATIENCE)


@dataclass
class _Session:
    """One browser-like client: it knows the widgets it was shown and the last price."""

    widgets: dict[str, str] = field(default_factory=dict)  # number inputs, by label
    price: str = ""
    errors: list[str] = field(default_factory=list)

    def read(self, message: ForwardMsg) -> bool:
        """Take in a message; return whether the script has finished."""
        if message.WhichOneof("type") == "delta" and message.delta.HasField("new_element"):
            element = message.delta.new_element
            kind = element.WhichOneof("type")
            if kind == "number_input":
                self.widgets[element.number_input.label] = element.number_input.id
            elif kind == "metric" and element.metric.label == _PRICE:
                self.price = element.metric.body
            elif kind == "exception":
                self.errors.append(element.exception.message)
        return message.WhichOneof("type") == "script_finished"


async def _run_script(socket: Any, session: _Session, spot: float | None) -> None:  # noqa: ANN401
    request = BackMsg()
    request.rerun_script.query_string = ""
    if spot is not None:
        state = WidgetState(id=session.widgets["Spot"], double_value=spot)
        request.rerun_script.widget_states.widgets.append(state)
    await socket.send(request.SerializeToString())
    while True:
        message = ForwardMsg()
        message.ParseFromString(await asyncio.wait_for(socket.recv(), timeout=60))
        if session.read(message):
            return


async def _visit(
    url: str, number: int, until: float, expected: dict[float, str]
) -> tuple[int, list[str], list[float]]:
    """Change one session's spot until the time is up; return answers, faults and seconds."""
    rng, session, times = random.Random(number), _Session(), []  # noqa: S311  # no secrets
    faults: list[str] = []
    address = url.replace("http", "ws") + "/_stcore/stream"
    async with websockets.connect(address, max_size=None, subprotocols=["streamlit"]) as socket:  # type: ignore[list-item]
        await _run_script(socket, session, None)
        while time.monotonic() < until:
            spot = rng.choice(list(expected))
            start = time.monotonic()
            await _run_script(socket, session, spot)
            times.append(time.monotonic() - start)
            if session.price != expected[spot]:
                faults.append(f"session {number}, spot {spot:g}: {session.price}")
            await asyncio.sleep(0.5 * rng.random())
    return len(times), faults + session.errors, times


async def _visit_all(
    url: str, pid: int, n: int, seconds: float, expected: dict[float, str]
) -> dict[str, Any]:
    until = time.monotonic() + seconds
    visits = [asyncio.create_task(_visit(url, i, until, expected)) for i in range(n)]
    await asyncio.sleep(min(_WARM_UP, 0.5 * seconds))
    before = _resident_megabytes(pid)
    found = await asyncio.gather(*visits)
    times = [t for _, _, some in found for t in some]
    faults = [fault for _, some, _ in found for fault in some]
    return {
        "sessions": n,
        "seconds": seconds,
        "answers": sum(count for count, _, _ in found),
        "faults": len(faults),
        "first_faults": faults[:5],
        "answer_median_milliseconds": 1e3 * statistics.median(times),
        "memory_megabytes": _resident_megabytes(pid),
        "memory_growth_megabytes": _resident_megabytes(pid) - before,
    }


def sessions(url: str, pid: int, n: int, seconds: float) -> dict[str, Any]:
    """Let many sessions change their contracts at once."""
    expected = shown_prices([60.0 + 0.5 * k for k in range(160)])
    return asyncio.run(_visit_all(url, pid, n, seconds, expected))


def _resident_megabytes(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    if found is None:
        raise RuntimeError("this system does not say how much memory a process holds")
    return int(found.group(1)) / 1e3


def main() -> None:
    """Measure and print, or write a results file."""
    parser = argparse.ArgumentParser(prog="python -m app.bench", description=__doc__)
    parser.add_argument("--sessions", type=int, default=20, metavar="N")
    parser.add_argument("--seconds", type=float, default=120.0, metavar="S")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    with serve() as server:
        results: dict[str, Any] = {
            "command": f"python -m app.bench --sessions {args.sessions} --seconds {args.seconds:g}",
            "browser": latency(server.url),
            "sessions": sessions(server.url, server.pid, args.sessions, args.seconds),
        }
        log = server.log.read_text()
        results["tracebacks_in_the_log"] = log.count("Traceback")
    text = json.dumps(results, indent=2)
    if args.json is None:
        print(text)  # noqa: T201  # what the command is for
    else:
        write_text(text + "\n", args.json)


if __name__ == "__main__":
    main()

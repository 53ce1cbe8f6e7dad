"""How fast the dashboard answers, and whether sessions disturb each other.

Three measurements. A real browser opens the Price page and changes an input: the time to the first
paint and price, and from the keystroke to the new price. It opens the pages under a market, and
applies a dividend to a chain. Then many sessions speak the browser's own
protocol over websockets on the loopback, each changing its own contract: every answer must be the
library's price of that contract, and the server's memory must stay put.
"""

import asyncio
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
from playwright.sync_api import Browser, Page
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from app.documents.engine_tables import (
    DashboardResults,
    Latency,
    Many,
    PageTimes,
    dashboard_table,
)
from app.measuring.serving import PATIENCE, browser, serve, settle
from pricing import price_frame

_CHANGES = 15  # of an input in the browser
_PRINTED = 1e-4  # the page writes four decimals
_WARM_UP = 20.0  # seconds of the sessions before memory counts
_TERMS = "carry=market&as_of=2026-11-18&until=2027-06-18"
_PAGES = {  # the chain of the Market page is the sample's
    "Price": f"?{_TERMS}",
    "Surface": f"surface?{_TERMS}",
    "Greeks": f"greeks?{_TERMS}",
    "Market": "market",
}
_PRICE = "Price, amo"  # the metric that shows the price
_CONTRACT: dict[str, float | str] = {
    "spot": 100.0, "strike": 100.0, "expiry": 1.0, "rate": 0.05, "dividend_yield": 0.02,
    "volatility": 0.2, "option_type": "put", "exercise": "american",
}  # fmt: skip


def prices_at(spots: Iterable[float]) -> dict[float, float]:
    """Return the library's prices of the page's first contract at other spots."""
    frame = pd.DataFrame([{**_CONTRACT, "spot": spot} for spot in spots])
    prices = price_frame(frame, "amo", greeks=False, progress=False)["price"]
    return dict(zip(frame["spot"], prices, strict=True))


def latency(url: str) -> Latency:
    """Return milliseconds to the first paint and price, and from a keystroke to the new price."""
    spots = [80.0 + 2.5 * n for n in range(_CHANGES)]
    expected = {spot: f"{prices_at([spot])[spot]:,.4f}" for spot in (100.0, *spots)}
    with browser() as where:
        page = where.new_page(viewport={"width": 1280, "height": 900})
        start = time.perf_counter()
        page.goto(url)
        page.get_by_label("Spot", exact=True).wait_for(timeout=PATIENCE)
        paint = time.perf_counter() - start
        _wait_for_price(page, expected[100.0])
        first = time.perf_counter() - start
        answers = []
        for spot in spots:
            settle(page)
            page.wait_for_timeout(500)  # a reader looks before the next change
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
        "first_paint_milliseconds": 1e3 * paint,  # of the server's first visitor
        "first_price_milliseconds": 1e3 * first,
        "later_visitor_milliseconds": 1e3 * second,
        "change_median_milliseconds": 1e3 * statistics.median(answers[1:]),
        "change_slowest_milliseconds": 1e3 * max(answers[1:]),
        "changes": len(answers) - 1,
    }


def pages(url: str) -> dict[str, PageTimes]:
    """Return milliseconds to paint and to answer of the pages under a market, and the chain's."""
    found: dict[str, PageTimes] = {}
    with browser() as where:
        for name, path in _PAGES.items():
            paint, answer = _opened(where, f"{url}/{path}")
            found[name] = {
                "paint_milliseconds": paint,
                "answer_milliseconds": answer,
                "again_milliseconds": _opened(where, f"{url}/{path}")[1],
            }
    return found


def _opened(where: Browser, address: str) -> tuple[float, float]:
    """Return milliseconds to the heading of a page, and until its script has run with charts."""
    page = where.new_page(viewport={"width": 1280, "height": 900})
    start = time.perf_counter()
    page.goto(address)
    page.get_by_role("heading").first.wait_for(timeout=PATIENCE)
    paint = time.perf_counter() - start
    settle(page)
    page.get_by_test_id("stPlotlyChart").last.wait_for(timeout=PATIENCE)
    answer = time.perf_counter() - start
    page.close()
    return 1e3 * paint, 1e3 * answer


def applied(url: str) -> float:
    """Return milliseconds from Apply, with a dividend that nobody has asked for, to new marks."""
    with browser() as where:
        page = where.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{url}/market")
        page.get_by_test_id("stMetric").first.wait_for(timeout=PATIENCE)
        settle(page)
        page.get_by_text("Market: date, rate, dividends, method").click()
        page.get_by_role("textbox", name="Dividends").fill("2025-11-10 0.26\n2026-02-09 4.00")
        before = page.get_by_test_id("stMetric").nth(2).inner_text()
        start = time.perf_counter()
        page.get_by_role("button", name="Apply").click()
        changed = page.get_by_test_id("stMetric").nth(2).filter(has_not_text=before.split()[-1])
        changed.wait_for(timeout=PATIENCE)
        return 1e3 * (time.perf_counter() - start)


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
                self.price = element.metric.body.replace(",", "")
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
    url: str, number: int, until: float, expected: dict[float, float]
) -> tuple[list[float], list[str]]:
    """Change one session's spot until the time is up; return response times, and faults."""
    rng, session, times = random.Random(number), _Session(), []  # noqa: S311  # no secrets
    faults: list[str] = []
    address = url.replace("http", "ws") + "/_stcore/stream"
    protocols = [websockets.Subprotocol("streamlit")]
    try:
        async with websockets.connect(address, max_size=None, subprotocols=protocols) as socket:
            await _run_script(socket, session, None)
            while time.monotonic() < until:
                spot = rng.choice(list(expected))
                session.price = ""
                start = time.monotonic()
                await _run_script(socket, session, spot)
                times.append(time.monotonic() - start)
                if not session.price or abs(float(session.price) - expected[spot]) > _PRINTED:
                    faults.append(f"session {number}, spot {spot:g}: {session.price or 'no price'}")
                await asyncio.sleep(0.5 * rng.random())
    except (OSError, KeyError, TimeoutError, websockets.WebSocketException) as error:
        faults.append(f"session {number}: {type(error).__name__} {error}")
    return times, faults + session.errors


async def _visit_all(
    url: str, pid: int, seconds: float, expected: list[dict[float, float]]
) -> Many:
    until = time.monotonic() + seconds
    visits = [
        asyncio.create_task(_visit(url, number, until, own)) for number, own in enumerate(expected)
    ]
    warm_up = min(_WARM_UP, 0.25 * seconds)
    await asyncio.sleep(warm_up)
    before = _resident_megabytes(pid)
    await asyncio.sleep(seconds - warm_up - 1.0)
    after = _resident_megabytes(pid)  # all sessions are still open
    found = await asyncio.gather(*visits)
    times = [t for some, _ in found for t in some]
    faults = [fault for _, some in found for fault in some]
    return {
        "sessions": len(expected),
        "seconds": seconds,
        "answers": len(times),
        "faults": len(faults),
        "first_faults": faults[:5],
        "answer_median_milliseconds": 1e3 * statistics.median(times) if times else 0.0,
        "memory_megabytes": after,
        "memory_growth_megabytes": after - before,
    }


def sessions(url: str, pid: int, n: int, seconds: float) -> Many:
    """Let many sessions change their contracts at once, each among its own spots.

    There are more spots than the server's caches hold, so that it has to price.
    """
    expected = [
        prices_at(60.0 + 0.4 * k + 0.4 * number / n for k in range(200)) for number in range(n)
    ]
    return asyncio.run(_visit_all(url, pid, seconds, expected))


def _resident_megabytes(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    if found is None:
        raise RuntimeError("this system does not say how much memory a process holds")
    return int(found.group(1)) / 1e3


def run(n_sessions: int, seconds: float) -> DashboardResults:
    """Measure the dashboard with one reader and with many."""
    with serve() as server:
        alone = latency(server.url)
        opened, apply = pages(server.url), applied(server.url)
        many = sessions(server.url, server.pid, n_sessions, seconds)
        log = server.log.read_text()
    return {
        "command": f"python -m app bench --sessions {n_sessions} --seconds {seconds:g}",
        "browser": alone,
        "pages": opened,
        "apply_milliseconds": apply,
        "sessions": many,
        "tracebacks_in_the_log": log.count("Traceback"),
    }


def as_text(results: DashboardResults) -> str:
    """Return the results as plain text."""
    return dashboard_table(results).strip()

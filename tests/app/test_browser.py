"""The dashboard in a real browser: Debian's Chromium, driven by Playwright."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, sync_playwright

from pricing import price_frame

CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

pytestmark = pytest.mark.browser
if CHROMIUM is None and "REQUIRE_BROWSER" not in os.environ:
    pytest.skip("no chromium on this machine", allow_module_level=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.port", str(port)]
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=Path(__file__).parents[2], stdout=out, stderr=subprocess.STDOUT
        )
        try:
            _wait_for(f"http://localhost:{port}/_stcore/health", process, log)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()
            process.wait(10)
    assert "deprecat" not in log.read_text().lower()
    assert "Traceback" not in log.read_text()


def _wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(120):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310  # loopback
                return
        except OSError:
            time.sleep(0.25)
    raise AssertionError(f"the server does not answer: {log.read_text()}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def test_price_page_paints_without_error_wide_and_narrow(server: str, browser: Browser) -> None:
    for width in (1280, 400):
        page = browser.new_page(viewport={"width": width, "height": 900})
        problems: list[str] = []
        page.on("pageerror", lambda error, found=problems: found.append(str(error)))
        page.goto(server)
        page.get_by_role("heading", name="American").wait_for(timeout=60_000)
        page.get_by_test_id("stDataFrame").nth(1).wait_for(timeout=60_000)
        assert page.get_by_test_id("stException").count() == 0
        overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert overflow <= 0
        assert problems == []
        page.close()


def test_input_can_be_changed_and_priced(server: str, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(server)
    page.get_by_label("Spot").wait_for(timeout=60_000)
    page.get_by_label("Spot").fill("130")
    page.get_by_role("button", name="Price").click()
    contract = {"S": 130.0, "K": 100.0, "T": 1.0, "r": 0.05, "q": 0.02, "sigma": 0.2, "type": "put"}
    expected = price_frame(pd.DataFrame([contract]), "analytic")["price"].iloc[0]
    cells = page.get_by_test_id("stDataFrame").first.locator("td")
    cells.filter(has_text=repr(float(expected))[:10]).first.wait_for(
        state="attached", timeout=60_000
    )
    assert page.get_by_test_id("stException").count() == 0
    page.close()

"""The dashboard served on this machine and looked at by a browser: for tests, pictures, benches."""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
PATIENCE = 60_000  # milliseconds
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


class Server(NamedTuple):
    """A running dashboard."""

    url: str
    pid: int
    log: Path


@contextmanager
def serve() -> Iterator[Server]:
    """Serve the dashboard on a free port of the loopback until the block ends."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.port", str(port)]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.txt"
        with log.open("w") as out:
            process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
                command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT
            )
            try:
                _wait_for(f"http://localhost:{port}/_stcore/health", process, log)
                yield Server(f"http://localhost:{port}", process.pid, log)
            finally:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()


def _wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(240):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {log.read_text()}")
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310  # loopback
                return
        except OSError:
            time.sleep(0.25)
    raise RuntimeError(f"the server does not answer: {log.read_text()}")


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Debian's Chromium, headless."""
    if CHROMIUM is None:
        raise RuntimeError("chromium is not installed: `apt-get install chromium`")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        yield found
        found.close()


def settle(page: Page) -> None:
    """Wait until the page's script has run."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for(
        timeout=PATIENCE
    )

"""The installed package: a wheel in an environment of its own, outside of the checkout.

``python tests/installed.py WHEEL`` makes a new environment in a temporary folder, installs the
wheel there as a user would, with the versions of constraints.txt, prices a row by every engine, and
looks at every page of the dashboard that it serves.
"""

import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = """
import sys
import pandas as pd
import amo, app, data_gen, pricing
from amo import AMO, AMOConfig
from pricing import ENGINES, implied_vol_frame, price_frame
home = sys.argv[1]
assert all(m.__file__.startswith(home) for m in (amo, app, data_gen, pricing)), pricing.__file__
print("amo-pricing", pricing.__version__)
row = {"S": 95.0, "K": 100.0, "T": 0.5, "r": 0.04, "q": 0.01, "sigma": 0.25, "type": "put"}
for engine in ENGINES:
    style = "european" if engine == "analytic" else "american"
    priced = price_frame(pd.DataFrame([row]), engine, exercise=style)
    print(f"{engine:<26}{priced['price'].iloc[0]:.6f}")
    assert priced["engine"].iloc[0] == engine
    assert abs(priced["price"].iloc[0] - (8.8 if style == "american" else 8.7)) < 0.3
stated = price_frame(pd.DataFrame([row]), "amo", exercise="american", error_bars=True)
assert 0 < stated["price_error"].iloc[0] < 0.1
absent = [m for m in ("streamlit", "playwright", "skfem", "h5py", "matplotlib") if m in sys.modules]
assert not absent, absent
"""
PAGES = ("", "surface", "greeks", "book", "market", "accuracy", "model", "benchmarks")


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, check=False, capture_output=True, text=True, timeout=900
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(python: Path, what: str, folder: Path) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*command, "-c", str(ROOT / "constraints.txt"), what, cwd=folder)


def look_at_pages(script: Path, folder: Path) -> None:
    """Serve the dashboard by its own command and open its pages."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    url = f"http://localhost:{port}"
    server = subprocess.Popen(
        [str(script), "app", "--server.port", str(port)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        for _ in range(120):
            try:
                with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1) as answer:  # noqa: S310
                    assert answer.read() == b"ok"
                    break
            except OSError:
                time.sleep(0.5)
        else:
            server.kill()
            told = server.communicate()[0].decode()
            raise SystemExit(f"the dashboard does not answer: {told}")
        for page in PAGES:
            with urllib.request.urlopen(f"{url}/{page}", timeout=10) as answer:  # noqa: S310
                assert answer.status == 200, page
    finally:
        server.terminate()
        server.wait(10)


SCRIPTS = """
import os, sys
from streamlit.testing.v1 import AppTest
home = sys.argv[1]
for page in ("price", "surface", "greeks", "book", "market", "accuracy", "model", "benchmarks"):
    test = AppTest.from_file(os.path.join(home, "app", "main.py"), default_timeout=120)
    test.switch_page(os.path.join("views", f"{page}.py"))
    test.run()
    assert not test.exception, (page, test.exception)
    print("page", page)
"""


def main() -> None:
    wheel = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="installed-") as name:
        folder = Path(name).resolve()
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        install(python, str(wheel), folder)
        home = run(
            str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
        ).strip()
        print(run(str(python), "-c", LIBRARY, home, cwd=folder), end="")
        script = folder / "env" / "bin" / "amo-pricing"
        assert "implied-vol" in run(str(script), "--help", cwd=folder)
        refused = subprocess.run([str(script), "app"], cwd=folder, check=False, capture_output=True)
        assert refused.returncode == 2, "the library alone has no dashboard, and says so"
        assert b"amo-pricing[app]" in refused.stderr
        told = subprocess.run(
            [str(python), "-m", "app", "report"], cwd=folder, check=False, capture_output=True
        )
        assert told.returncode == 1, told.stderr
        assert b"Traceback" not in told.stderr
        install(python, f"{wheel}[app]", folder)
        look_at_pages(script, folder)
        print(run(str(python), "-c", SCRIPTS, home, cwd=folder), end="")
    print("the wheel works outside of the checkout")


if __name__ == "__main__":
    main()

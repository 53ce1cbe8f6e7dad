"""Every page in light and dark, wide and narrow.

Pages grow to their whole height, so that one picture shows all of it.
"""

from pathlib import Path

from playwright.sync_api import Browser
from tqdm import tqdm

from app.measuring.serving import PATIENCE, ROOT, browser, serve, settle

PAGES = ("price", "surface", "greeks", "book", "market", "accuracy", "model", "benchmarks")
_SCHEMES = ("light", "dark")
_BUTTONS = {"book": ("Price the book", "Run scenarios")}  # what a reader would press


def take(url: str, where: Browser, folder: Path, widths: tuple[int, ...]) -> list[Path]:
    """Write PAGE-SCHEME.png, with the width in the name where it is not the first."""
    paths = []
    jobs = [(p, s, w) for p in PAGES for s in _SCHEMES for w in widths]
    for name, scheme, width in tqdm(jobs, unit="picture"):
        context = where.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = context.new_page()
        page.goto(f"{url}/{'' if name == 'price' else name}")
        page.get_by_role("heading").first.wait_for(timeout=PATIENCE)
        settle(page)
        for button in _BUTTONS.get(name, ()):
            page.get_by_role("button", name=button).click()
            page.wait_for_timeout(500)
            settle(page)
        page.wait_for_timeout(1500)  # charts move into place
        height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight + 60")
        page.set_viewport_size({"width": width, "height": min(int(height), 6000)})
        page.wait_for_timeout(700)
        suffix = "" if width == widths[0] else f"-{width}"
        path = folder / f"{name}-{scheme}{suffix}.png"
        page.screenshot(path=path)
        paths.append(path)
        context.close()
    return paths


def take_all(folder: Path | None, widths: tuple[int, ...]) -> None:
    """Take all pictures, by default into docs/screenshots."""
    folder = ROOT / "docs" / "screenshots" if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    with serve() as server, browser() as where:
        take(server.url, where, folder, widths)

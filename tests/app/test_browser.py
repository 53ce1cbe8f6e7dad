"""The dashboard in a real browser: Debian's Chromium, driven by Playwright.

One long file on purpose: all tests share one server and one browser.
"""

import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect

from app import inputs
from app.measuring import serving
from app.measuring.serving import PATIENCE, settle
from pricing import Market, mark_chain, price_frame, read_chain
from pricing.analysis.examples import sample_book, sample_quotes
from pricing.engines.registry import get_engine

PAGES = {
    "Price": 1,
    "Surface": 3,
    "Greeks": 6,
    "Book": 0,
    "Market": 8,  # a smile an expiry
    "Accuracy": 6,
    "Model": 4,  # the American model has one block
    "Benchmarks": 7,
}  # with the number of charts each shows at least

pytestmark = pytest.mark.browser
if serving.CHROMIUM is None and "REQUIRE_BROWSER" not in os.environ:
    pytest.skip("no chromium on this machine", allow_module_level=True)
expect.set_options(timeout=PATIENCE)

Open = Callable[..., Page]
BRIGHTNESS = (  # mean of red, green and blue behind a page
    "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    ".match(/[0-9]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3"
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving.serve() as found:
        yield found.url
        log = found.log.read_text()
    assert "deprecat" not in log.lower()
    assert "Traceback" not in log


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Compute as the dashboard does, to the last bit: sums round as the threads are cut."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with serving.browser() as found:
        yield found


@pytest.fixture
def open_page(server: str, browser: Browser) -> Iterator[Open]:
    """Open pages in a context of their own; no script error and no exception may be left."""
    pages: list[Page] = []
    problems: list[str] = []

    def open_one(path: str = "", width: int = 1280, scheme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        pages.append(page)
        page.goto(f"{server}/{path}")
        page.get_by_role("heading").first.wait_for(timeout=PATIENCE)
        settle(page)
        return page

    yield open_one
    for page in pages:
        assert page.get_by_test_id("stException").count() == 0
        page.context.close()
    assert problems == []


def cells(table: Locator) -> Locator:
    """Return the cells of a table, which it holds for readers of screens."""
    return table.locator("td")


def shows(page: Page, value: float, number: int = 0) -> None:
    """Wait until a table holds a value, to the digits that are printed."""
    text = repr(float(value))[:10]
    cells(page.get_by_test_id("stDataFrame").nth(number)).filter(has_text=text).first.wait_for(
        state="attached", timeout=PATIENCE
    )


def price_of(engine: str, **changes: float | str) -> float:
    contract: dict[str, float | str] = {
        "spot": 100.0,
        "strike": 100.0,
        "expiry": 1.0,
        "rate": 0.05,
        "dividend_yield": 0.02,
        "volatility": 0.2,
        "option_type": "put",
        "exercise": "american",
        **changes,
    }
    # asked as the page asks: what is encoded together rounds together
    return float(price_frame(pd.DataFrame([contract]), engine, greeks="second")["price"].iloc[0])


@pytest.mark.parametrize("title", PAGES)
def test_page_paints_its_charts_and_does_not_scroll_sideways(open_page: Open, title: str) -> None:
    page = open_page("" if title == "Price" else title.lower())
    expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    charts = page.get_by_test_id("stPlotlyChart")
    if PAGES[title]:
        charts.nth(PAGES[title] - 1).wait_for(timeout=PATIENCE)
        for number in range(charts.count()):
            assert charts.nth(number).get_by_role("img").first.get_attribute("aria-label") or (
                charts.nth(number).locator("[aria-label]").count()
            )
    check_paper(page, is_dark=False)
    page.set_viewport_size({"width": 400, "height": 900})  # a telephone at night
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"({BRIGHTNESS}) < 80", timeout=PATIENCE)
    check_paper(page, is_dark=True)


def test_page_that_is_opened_in_the_dark_is_dark(open_page: Open) -> None:
    check_paper(open_page("surface", 400, "dark"), is_dark=True)


def check_paper(page: Page, *, is_dark: bool) -> None:
    """Check that nothing is wider than the window, and what colour is behind it."""
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert (page.evaluate(BRIGHTNESS) < 80) == is_dark


def test_changed_inputs_show_what_the_library_returns(open_page: Open) -> None:
    page = open_page()
    shows(page, price_of("amo"))
    page.get_by_label("Spot", exact=True).fill("130")
    page.get_by_label("Spot", exact=True).press("Enter")
    for engine in ("amo", "quantlib", "fd"):
        shows(page, price_of(engine, spot=130.0))
    page.get_by_role("radio", name="call").click()
    shows(page, price_of("amo", spot=130.0, option_type="call"))
    page.get_by_role("radio", name="european").click()
    for engine in ("amo", "analytic"):
        shows(page, price_of(engine, spot=130.0, option_type="call", exercise="european"))
    expect(page).to_have_url(re.compile(r"(?=.*spot=130)(?=.*exercise=european)"))


def test_link_reproduces_the_page(open_page: Open) -> None:
    page = open_page("?spot=80&volatility=35&option_type=call&exercise=european")
    expect(page.get_by_label("Spot", exact=True)).to_have_value("80")
    expected = {"spot": 80.0, "volatility": 0.35, "option_type": "call", "exercise": "european"}
    shows(page, price_of("analytic", **expected))
    shows(page, price_of("amo", **expected))


def test_contract_follows_from_page_to_page(open_page: Open) -> None:
    page = open_page("?spot=85&exercise=european")
    page.get_by_role("link", name="Surface").click()
    expect(page.get_by_text("European put, S 85")).to_be_visible()


def test_every_page_keeps_the_contract_in_its_address_after_a_reload(open_page: Open) -> None:
    page = open_page("?spot=120&exercise=european&volatility=33")
    for name in ("Surface", "Greeks", "Model", "Book", "Price"):
        path = "" if name == "Price" else name.lower()
        # the address of the page that is left is whole too: only the new one's counts
        whole = re.compile(rf"/{path}\?(?=.*spot=120)(?=.*volatility=33)(?=.*exercise=european)")
        page.get_by_role("link", name=name).first.click()
        expect(page).to_have_url(whole)
        settle(page)
        page.reload()
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        settle(page)
        expect(page).to_have_url(whole)
    expect(page.get_by_label("Spot", exact=True)).to_have_value("120")
    expect(page.get_by_label("Volatility, %", exact=True)).to_have_value("33")


def test_dividends_follow_from_page_to_page_and_an_edited_one_moves_the_price(
    open_page: Open,
) -> None:
    terms = "carry=market&as_of=2026-11-18&until=2027-06-18&curves=1+4+0&option_type=call"
    page = open_page(f"?{terms}&dividends=2027-02-08+0.8+0,2027-05-10+0.9+0")
    market = Market(spot=100.0, rate=0.04, as_of="2026-11-18",
                    dividends=[("2027-02-08", 0.8), ("2027-05-10", 0.9)])  # fmt: skip
    contract = {"underlying": "stock", "strike": 100.0, "expiry": "2027-06-18", "volatility": 0.2,
                "option_type": "call", "exercise": "american"}  # fmt: skip

    def price(cash: float) -> float:
        known = market.replaced(dividends=[("2027-02-08", cash), ("2027-05-10", 0.9)])
        priced = price_frame(pd.DataFrame([contract]), "fd", markets={"stock": known})
        return float(priced["price"].iloc[0])

    shows(page, price(0.8), number=2)
    grid = page.get_by_test_id("stDataFrame").first
    box = grid.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 190, box["y"] + 52)
    for keys in ("Enter", "Control+A", "3", "Enter"):
        page.wait_for_timeout(300)  # the editor of a cell opens over the grid
        page.keyboard.press(keys)
    shows(page, price(3.0), number=2)
    expect(page).to_have_url(re.compile("dividends=2027-02-08.3.0"))
    page.get_by_role("link", name="Surface").click()
    expect(page.get_by_text("2027-06-18, vol 0.2, 2 dividends")).to_be_visible()
    expect(page).to_have_url(re.compile("surface.*dividends=2027-02-08.3.0"))


def test_keyboard_reaches_every_input_of_the_price_page(open_page: Open) -> None:
    page = open_page()
    shows(page, price_of("amo"))
    seen: set[str] = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "(e => e.getAttribute('aria-label') || e.innerText || '')(document.activeElement)"
            ).strip()
        )
    for field in inputs.FIELDS.values():
        assert field.label in seen
        assert any(f"{field.label}, slider" in text for text in seen), seen
    assert set(inputs.PRESETS) <= seen
    assert {"put", "american"} <= seen


def upload(page: Page, name: str, data: bytes) -> None:
    page.get_by_role("radio", name="upload").click()
    page.locator('input[type="file"]').first.set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    )


def test_uploaded_book_is_priced_and_comes_back_as_csv_and_parquet(open_page: Open) -> None:
    book = sample_book().reset_index(drop=True).assign(note="=HYPERLINK(1)")
    page = open_page("book")
    upload(page, "mine.csv", book.to_csv(index=False).encode())
    expect(page.get_by_text("All 60 rows can be read.")).to_be_visible()
    page.get_by_role("button", name="Price the book").click()
    expected = price_frame(book, "amo", error_bars=True, errors="coerce")
    for label, read in (("CSV", pd.read_csv), ("Parquet", pd.read_parquet)):
        with page.expect_download(timeout=PATIENCE) as download:
            page.get_by_role("button", name=f"Download {label}").click()
        again = read(io.BytesIO(Path(download.value.path()).read_bytes()))
        for name in ("price", "delta", "gamma", "vega", "theta", "rho"):
            np.testing.assert_allclose(again[name], expected[name], rtol=1e-12)
        mark = "'" if label == "CSV" else ""  # no spreadsheet runs it
        assert (again["note"] == f"{mark}=HYPERLINK(1)").all()
    page.get_by_role("button", name="Run scenarios").click()
    expect(page.get_by_text("P/L of the book")).to_be_visible()


def test_bad_uploads_get_clear_messages(open_page: Open, tmp_path: Path) -> None:
    header = b"spot,strike,expiry,rate,dividend_yield,volatility,type,style\n"
    rows = b"100,100,1,0.05,0.02,high,put,a\n100,100,1,0.05,0.02,0.2,put,a\n"
    page = open_page("book")
    page.get_by_role("radio", name="upload").click()
    for name, data, words in (
        ("columns.csv", b"alpha,beta\n1,2\n", "No column for spot"),
        ("text.csv", header + rows, "1 of 2 rows cannot be priced"),
        ("large.csv", b"spot\n" + b"1\n" * (26 * 2**20), "File must be 50.0MB or smaller"),
    ):
        (tmp_path / name).write_bytes(data)  # large ones only go by path
        page.locator('input[type="file"]').first.set_input_files(tmp_path / name)
        expect(page.get_by_text(words).last).to_be_visible()


def test_edited_grid_is_what_gets_priced(open_page: Open) -> None:
    page = open_page("book")
    grid = page.get_by_test_id("stDataFrame").first
    box = grid.bounding_box()
    assert box is not None
    quantity = cells(grid).nth(1)  # of the first row
    expect(quantity).to_have_text("50")
    page.mouse.click(box["x"] + 190, box["y"] + 52)
    for keys in ("Enter", "Control+A", "0", "Enter"):
        page.wait_for_timeout(300)  # the editor of a cell opens over the grid
        page.keyboard.press(keys)
    expect(quantity).to_have_text("0")
    settle(page)
    page.get_by_role("button", name="Price the book").click()
    book = sample_book().reset_index(drop=True)
    priced = price_frame(book, "amo", greeks=False)["price"]
    held = book["quantity"].mask(book.index == 0, 0)
    expect(page.get_by_test_id("stMetric").first).to_contain_text(f"{(priced * held).sum():,.2f}")


def test_pasted_quotes_are_inverted(open_page: Open) -> None:
    page = open_page("market")
    page.get_by_role("radio", name="paste").click()
    area = page.get_by_role("textbox", name="CSV with a header")
    area.fill("strike,expiry,type,price\n100,1,call,9.0\n105,1,call,0.0")
    area.press("Control+Enter")
    page.get_by_role("radio", name="european").click()
    expect(page.get_by_text("1 of 2 quotes have an implied volatility")).to_be_visible()


def test_uploaded_chain_is_marked_and_a_dividend_moves_its_vols(open_page: Open) -> None:
    page = open_page("market?view=quotes")
    page.get_by_role("radio", name="upload").click()
    page.locator("input[type=file]").first.set_input_files(
        {"name": "aapl.csv", "mimeType": "text/csv",
         "buffer": sample_quotes().to_csv(index=False).encode()}
    )  # fmt: skip
    page.get_by_role("textbox", name="As of").fill("2025-10-06")
    page.get_by_role("textbox", name="Dividends").fill("2025-11-10 0.26\n2026-02-09 5.00")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_test_id("stMetric")).to_have_count(5)
    settle(page)
    expiries = page.get_by_role("combobox", name="Expiries")
    expiries.click()
    expiries.press_sequentially("2026-06-18")
    page.wait_for_timeout(300)  # the list opens over the page
    expiries.press("Enter")
    expiries.press("Escape")  # an open list hides the page from readers of screens
    expect(page.get_by_text("of 598 quotes.")).not_to_have_text("598 of 598 quotes.")
    chain = read_chain(sample_quotes(), as_of="2025-10-06")
    for cash in (5.0, 0.26):
        dividends = [("2025-11-10", 0.26), ("2026-02-09", cash)]
        expected = mark_chain(chain, rate=0.04, dividends=dividends, workers=1)
        spot = page.get_by_test_id("stMetric").first
        expect(spot).to_contain_text(f"{expected.fit.market.spot:,.2f}")
        later = expected.marks[expected.marks["expiry"] == "2026-06-18"]
        shows(page, float(later["mid_vol"].dropna().iloc[0]), number=-1)
        page.get_by_role("textbox", name="Dividends").fill("2025-11-10 0.26\n2026-02-09 0.26")
        page.get_by_role("button", name="Apply").click()
        settle(page)
    page.get_by_role("textbox", name="Dividends").fill("2025-11-10")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("line 1")).to_be_visible()
    expect(page.get_by_test_id("stMetric")).to_have_count(0)
    expect(page.get_by_test_id("stPlotlyChart")).to_have_count(0)


def test_filters_of_a_chain_are_in_its_address(open_page: Open) -> None:
    page = open_page("market?liquid=true&smiles=one+expiry")
    found = mark_chain(read_chain(sample_quotes(), as_of="2025-10-06"), rate=0.04).summary()
    expect(page.get_by_role("radio", name="one expiry")).to_be_checked()
    page.get_by_role("radio", name="quotes").click()
    liquid, whole = f"{found['liquid']:,.0f}", f"{found['quotes']:,.0f}"
    expect(page.get_by_text(f"{liquid} of {whole} quotes.")).to_be_visible()


def test_attack_opens_its_worst_contract_on_the_price_page(open_page: Open) -> None:
    page = open_page("accuracy")
    page.get_by_label("Contracts").fill("200")
    page.get_by_label("Contracts").press("Enter")
    settle(page)
    page.get_by_role("button", name="Draw and price").click()
    expect(page.get_by_text("Within the stated error")).to_be_visible()
    link = cells(page.get_by_test_id("stDataFrame").last).filter(has_text="/?spot=").first
    link.wait_for(state="attached", timeout=PATIENCE)
    again = open_page(str(link.text_content()).lstrip("/"))
    assert get_engine("amo").name == "amo"
    expect(again.get_by_test_id("stDataFrame").first).to_be_visible()


def test_the_model_page_says_how_far_poles_move(open_page: Open) -> None:
    page = open_page("model")
    for style in ("European", "American"):
        page.get_by_role("radio", name=style).click()
        page.get_by_text("Block 1 captures").wait_for(timeout=PATIENCE)
        settle(page)
        expect(page.get_by_text("Along the path poles move by about")).to_be_visible()

"""The website: every page and rule is on it, no link is broken, and it opens in a browser."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from ta_lint.core.catalogue import catalogue

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest.importorskip("material")
ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    built = subprocess.run([sys.executable, ROOT / "docs" / "site.py", out], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr  # --strict: a broken link or anchor is an error
    assert built.stderr == ""
    return out


def test_every_rule_has_a_page_at_its_address(site: Path) -> None:
    for rule in catalogue().values():
        assert (site / "rules" / rule.stem / "index.html").is_file(), rule.id


def test_the_start_page_leads_to_a_page_of_the_site_and_into_the_repository(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="docs/linting/"' in page
    assert 'href="https://github.com/ta-lint/ta-lint/blob/main/examples/README.md"' in page


def test_no_page_has_a_script_a_style_or_a_picture_of_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe|source)[^>]*\bsrc="?(?:https?:)?//[^>]*>', text), page
        assert not re.findall(
            r'<link[^>]*rel="?(?:stylesheet|preconnect|icon)"?[^>]*href="?(?:https?:)?//[^>]*>', text
        ), page


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(params=[1280, 390], ids=["desktop", "phone"])
def page(request: pytest.FixtureRequest, address: str) -> "Iterator[Page]":
    """An empty page of a browser that fails the test if a script fails, or if another host is asked for anything."""
    if CHROMIUM is None:
        assert not os.environ.get("CI"), "install chromium"
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": request.param, "height": 800}, base_url=address)
        errors: list[str] = []
        asked: set[str] = set()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: asked.add(request.url))
        yield page
        browser.close()
    assert not errors
    assert {url for url in asked if not url.startswith((f"{address}/", "data:"))} == set()


def width(page: "Page") -> tuple[int, int]:
    """How wide the content of a page is, and how wide the screen."""
    return page.evaluate("document.documentElement.scrollWidth"), page.evaluate("innerWidth")


def test_a_rule_can_be_read_and_searched_for_in_a_browser(page: "Page") -> None:
    page.goto("/rules/TA600-missing-zero-grad/")
    assert "TA600" in page.inner_text("h1")
    assert "seen by linter and run" in page.inner_text("article")
    content, screen = width(page)
    assert content <= screen
    page.keyboard.press("s")
    page.keyboard.type("double-softmax", delay=20)
    page.wait_for_selector(".md-search-result__item >> text=TA406")


def test_the_start_page_asks_no_other_host_and_shows_its_picture(page: "Page") -> None:
    """Frictions: the site asked GitHub twice a page, and took its picture from there."""
    page.goto("/", wait_until="networkidle")
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    content, screen = width(page)
    assert content <= screen


def test_the_list_of_rules_fits_the_screen_and_can_be_filtered(page: "Page") -> None:
    """Frictions: it began with "Made by ... Do not edit it", had no summaries and no filter, and ran off a phone's screen."""
    page.goto("/docs/rules/")
    text = page.inner_text("article")
    assert "Made by" not in text
    assert "edit" not in text[:500]
    assert catalogue()["TA600"].finds.replace("`", "") in text.replace("\n", " ")
    for box in page.locator("article table").all()[:10]:
        found = box.bounding_box()
        assert found is not None
        assert found["x"] + found["width"] <= page.evaluate("innerWidth")
    rows = page.locator("tbody tr:visible")
    everything = rows.count()
    page.fill(".rule-filter", "optimizer error")
    left = [row.lower() for row in rows.all_inner_texts() if row.startswith("TA")]
    assert 0 < len(left) < everything
    assert all("optimizer" in row and "error" in row for row in left[:1])
    page.fill(".rule-filter", "")
    assert rows.count() == everything

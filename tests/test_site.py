"""The website: every page and rule is on it, no link is broken, and it opens in a browser."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ta_lint.core.catalogue import catalogue

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


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    for page in (site / "rules").rglob("index.html"):
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text
        assert "fonts.googleapis" not in text


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


@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_a_rule_can_be_read_and_searched_for_in_a_browser(address: str, width: int) -> None:
    if CHROMIUM is None:
        assert not os.environ.get("CI"), "install chromium"
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address}/rules/TA600-missing-zero-grad/")
        assert "TA600" in page.inner_text("h1")
        assert "seen by linter and run" in page.inner_text("article")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("s")
        page.keyboard.type("double-softmax", delay=20)
        page.wait_for_selector(".md-search-result__item >> text=TA406")
        assert not errors
        browser.close()

"""Where the pages for readers point to: files that there are, headings that they have, and from a package index as well."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "*.md", ":!tests"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
]


def links(text: str) -> Iterator[str]:
    """Where the links of a page lead, those in code left out."""
    prose = re.sub(r"`+[^`\n]+`+", "", re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE))
    return (match[1] for match in re.finditer(r"\]\(([^)\s]+)\)", prose))


def anchors(page: Path) -> set[str]:
    """The headings of a page, as a code host makes anchors of them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = (
        re.sub(r"\]\([^)]*\)", "", match[1]) for match in re.finditer(r"^#+ (.+)$", text, re.MULTILINE)
    )
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading_that_there_are(page: Path) -> None:
    """N18: README's headings come and go, and others link to them."""
    for link in links(page.read_text(encoding="utf-8")):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link

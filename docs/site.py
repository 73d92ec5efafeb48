"""Builds the website of `rules/`, `docs/` and the README: `python docs/site.py OUT` (`pip install 'ta-lint[site]'`).

The Markdown stays as it is read in the repository. What only a website wants is done to a copy: the header of a rule becomes a
line of its properties, code blocks lose what only tests read, and links that leave the site lead to the repository. No page asks another host for anything.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ta_lint.core.catalogue import Rule, catalogue

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/ta-lint/ta-lint/blob/main"

PICTURES = "https://raw.githubusercontent.com/ta-lint/ta-lint/main/docs/images"
"""Where README has its pictures, for the pages of package indexes; the site has them itself."""

_LINK = re.compile(r"(?<!`)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^```(python|json)[ \t]+\S[^\n]*$", re.MULTILINE)
_HEADER = re.compile(r"(?<=\n)```toml\n.*?```\n", re.DOTALL)
_OBSERVERS = {"static": "linter", "runtime": "run"}


def main() -> int:
    """Build the site; returns the exit status of the generator."""
    parser = argparse.ArgumentParser(description="Build the website.")
    parser.add_argument("out", type=Path, help="folder to write")
    out = parser.parse_args().out.resolve()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in pages():
            page = Path(folder, "pages", name)
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8")
        shutil.copytree(ROOT / "docs" / "images", Path(folder, "pages", "docs", "images"))
        for name in ("site.css", "site.js"):
            shutil.copy(ROOT / "docs" / name, Path(folder, "pages", "docs"))
        settings = Path(folder, "mkdocs.yml")
        settings.write_text((ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8"), encoding="utf-8")
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
        quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        return subprocess.run(
            [*command, "-f", str(settings), "-d", str(out)], check=False, env=quiet
        ).returncode


def pages() -> Iterator[tuple[str, str]]:
    """Each page of the site, by its path there, with its text."""
    sources = {"index.md": ROOT / "README.md"}
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("rules/TA*.md")]:
        if path.name != "README.md":
            sources[path.relative_to(ROOT).as_posix()] = path
    for name, path in sorted(sources.items()):
        text = path.read_text(encoding="utf-8")
        if path.parent.name == "rules":
            text = _HEADER.sub(_properties(catalogue()[path.stem[:5]]), text, count=1)
        text = _FENCE.sub(r"```\1", text).replace(f"]({PICTURES}/", "](docs/images/")
        yield name, _LINK.sub(partial(_link, path, set(sources.values())), text)


def _properties(rule: Rule) -> str:
    """The properties of a rule as one line of text, in the place of its header."""
    observers = " and ".join(_OBSERVERS[each] for each in rule.observers)
    state = "on by default" if rule.default else "off by default"
    fix = "no fix" if rule.fix == "none" else f"{rule.fix} fix"
    tests = () if rule.tests else ("not in tests",)
    parts = (
        rule.severity,
        f"seen by {observers}",
        state,
        f"{rule.precision} precision",
        fix,
        *tests,
        *rule.tags,
    )
    return f"\n**{' · '.join(parts)}**\n\n"


def _link(page: Path, pages: set[Path], found: re.Match[str]) -> str:
    """A link between pages, or to a picture, as it is; to the start page by its name there; to anything else, into the repository."""
    target, anchor = (page.parent / found[1]).resolve(), found[2] or ""
    if target == ROOT / "README.md":
        up = "../" if page.parent != ROOT else ""
        return f"]({up}index.md{anchor})"
    if target in pages or target.parent == ROOT / "docs" / "images":
        return found[0]
    return f"]({REPOSITORY}/{target.relative_to(ROOT).as_posix()}{anchor})"


if __name__ == "__main__":
    sys.exit(main())

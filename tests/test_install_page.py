"""D32: one page says how to install ta-lint today and once it is published; all pages that name an installation lead to it."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
INSTALL = ROOT / "docs" / "install.md"
TEXT = INSTALL.read_text(encoding="utf-8")
PUBLISHED = re.compile(r"pip install (?:--?\w+ )*'?ta-lint\b|uses: ta-lint/ta-lint@|rev: v\d")
PAGES = [
    path
    for path in [
        *(ROOT / "docs").glob("*.md"),
        ROOT / "editors" / "vscode" / "README.md",
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    ]
    if path != INSTALL and PUBLISHED.search(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_that_names_a_release_leads_to_the_page_that_says_what_works_today(page: Path) -> None:
    assert re.search(r"\]\((?:https://\S*/docs/)?install\.md(?:#\w+)?\)", page.read_text(encoding="utf-8"))


def test_what_works_once_it_is_published_stands_below_its_heading() -> None:
    today, _, published = TEXT.partition("## Once it is published")
    assert not PUBLISHED.search(re.sub(r"/path/to/ta-lint", "/path", today))
    assert PUBLISHED.search(published)


def test_each_extra_of_a_user_has_a_row() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    told = set(
        re.findall(
            r"`(\w+)`", "".join(line.split(" | ")[0] for line in TEXT.partition("## Extras")[2].splitlines())
        )
    )
    assert told == extras.keys() - {"dev", "test", "site"}


def test_its_blocks_are_yaml_and_its_hook_is_the_one_that_is_published() -> None:
    local, *_ = blocks = [
        yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    ]
    assert len(blocks) == 4
    [hook] = local["repos"][0]["hooks"]
    [published] = [
        hook
        for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
        if hook["id"] == "ta-lint"
    ]
    for key in ("entry", "types_or", "require_serial"):
        assert hook[key] == published[key]


def test_contributing_names_the_class_of_a_fix() -> None:
    """D32: it named `Fix`, which is another."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "fix=ProposedFix(" in text
    assert not re.search(r"(?<!Proposed)\bFix\(", text)

"""Every rule page and every case file is executed: the findings are those marked, on the marked lines, and no other.

A page (`rules/`) is linted with the default rules and its own; a case (`tests/cases/`) with its own rule and those it
marks, so that it may leave names undefined. The info string of a block may set `path=` and `target-torch=`.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from marked import Block, blocks, fixes

from ta_lint import checks
from ta_lint.core.catalogue import Rule, catalogue
from ta_lint.core.config import Configs, Options
from ta_lint.engine import lint_file
from ta_lint.file import File
from ta_lint.fixing import Fixed, fix_file

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "rules").glob("TA*.md"))
CASES = sorted((ROOT / "tests" / "cases").glob("TA*.md"))
PAGE_BLOCKS = [block for page in PAGES for block in blocks(page)]
CASE_BLOCKS = [block for page in CASES for block in blocks(page) if "verdict" not in block.words]
FIXES = [pair for page in [*PAGES, *CASES] for pair in fixes(page)]


def written(code: str, settings: dict[str, str], folder: Path, **options: Any) -> File:
    path = folder / settings.get("path", "example.py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, encoding="utf-8")
    config = Configs(Options(target_torch=settings.get("target-torch"), **options), folder).root_config
    return File(path, path.relative_to(folder).as_posix(), config)


def found_in(block: Block, folder: Path, **options: list[str]) -> set[tuple[int, str]]:
    findings = lint_file(written(block.code, block.settings, folder, **options))
    return {(finding.site.line, finding.rule) for finding in findings if finding.counts}


def fixed(code: str, bad: Block, folder: Path) -> Fixed:
    """The code of a page with every fix of its own rule, and of no other."""
    rule = bad.page[:5]
    (folder / "pyproject.toml").write_text(f'[tool.ta]\nfixable = ["{rule}"]\n')
    return fix_file(written(code, bad.settings, folder, extend_select=[rule], unsafe_fixes=True))


@pytest.mark.parametrize("block", PAGE_BLOCKS, ids=str)
def test_a_rule_page_gives_exactly_the_findings_it_marks(block: Block, tmp_path: Path) -> None:
    assert found_in(block, tmp_path, extend_select=[block.page[:5]]) == block.expected("static")
    marked = block.expected("static") | block.expected("runtime")
    assert ("bad" in block.words) == bool(marked), "a bad block has marks, a good one has none"


@pytest.mark.parametrize("block", CASE_BLOCKS, ids=str)
def test_a_case_gives_exactly_the_findings_it_marks(block: Block, tmp_path: Path) -> None:
    rules = {block.page[:5], *(rule for _, rule in block.expected("static"))}
    assert found_in(block, tmp_path, select=sorted(rules)) == block.expected("static")


@pytest.mark.parametrize(("bad", "good"), FIXES, ids=str)
def test_the_fixes_of_a_rule_turn_the_marked_block_into_the_fixed_one(
    bad: Block, good: Block, tmp_path: Path
) -> None:
    result = fixed(bad.unmarked, bad, tmp_path)
    assert result.after.decode() == good.unmarked
    assert not result.complaints
    again = fixed(good.unmarked, bad, tmp_path)
    assert again.after == again.before
    assert not [finding for finding in again.findings if finding.fix is not None]


@pytest.mark.parametrize("rule", catalogue().values(), ids=lambda rule: rule.id)
def test_a_page_shows_the_fix_that_it_claims(rule: Rule) -> None:
    shown = any(good.page == rule.stem for _, good in fixes(ROOT / "rules" / f"{rule.stem}.md"))
    assert (rule.fix != "none") == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_rule_page_has_the_sections_that_readers_expect(page: Path) -> None:
    sections = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name in sections if name in ("What each observer sees", "Limits")] == [
        "What each observer sees",
        "Limits",
    ]
    checked = page.stem[:5] in checks.stems()
    words = {word for block in blocks(page) for word in block.words}
    assert not checked or {"bad", "good"} <= words, "a rule with a check shows both"


@pytest.mark.parametrize("rule", sorted(checks.stems()))
def test_a_check_has_the_stem_of_its_page_and_cases_of_its_own(rule: str) -> None:
    page = catalogue()[rule]
    assert checks.stems()[rule] == f"{rule.lower()}_{page.name.replace('-', '_')}"
    own = [block for block in CASE_BLOCKS if block.page == page.stem]
    assert sum(bool(block.expected("static")) for block in own) >= 1
    assert sum(not block.expected("static") for block in own) >= 1


@pytest.mark.parametrize("rule", catalogue().values(), ids=lambda rule: rule.id)
def test_a_page_claims_the_observers_that_exist(rule: Rule) -> None:
    engine_level = rule.id in ("TA000", "TA001", "TA002")
    assert ("static" in rule.observers) == (engine_level or rule.id in checks.stems())

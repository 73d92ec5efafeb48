"""Every rule page that names the run is executed under it, every step audited: the findings are those marked.

A page runs with the default rules and its own, a case (`tests/cases/`, blocks with the word `runtime`) with its own and
those it marks. A block with the word `cuda` needs a CUDA device, one with `preflight` begins with a preflight, one with
`ranks=2` is run by `test_distributed_rules`. `raises=` names the exception a block ends with.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from marked import Block, blocks
from observed import observed

from ta_lint.core.catalogue import Rule, catalogue
from ta_runtime import checks

ROOT = Path(__file__).parents[1]
PAGES = [
    page
    for page in sorted((ROOT / "rules").glob("TA*.md"))
    if "runtime" in catalogue()[page.stem[:5]].observers
]
PAGE_BLOCKS = [
    block for page in PAGES for block in blocks(page) if page.stem[:5] in checks.stems() and block.alone
]
CASE_BLOCKS = [
    block
    for page in sorted((ROOT / "tests" / "cases").glob("TA*.md"))
    for block in blocks(page)
    if "runtime" in block.words
]


def found_by_run(block: Block, folder: Path, **options: Any) -> set[tuple[int, str]]:
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    elif "cuda" in block.words:
        pytest.skip("needs a CUDA device")
    torch.seed() if "unseeded" in block.words else torch.manual_seed(0)
    path = block.settings.get("path", "example.py")
    every = int(block.settings.get("every", 1))
    if block.invariants:
        (folder / "invariants.json").write_text(block.invariants)
        options["invariants"] = folder / "invariants.json"
    if "preflight" in block.words:
        options["preflight"] = True
    findings = observed(block.code, folder, path=path, every_n_steps=every, **options)
    return {(finding.site.line, finding.rule) for finding in findings if finding.counts}


@pytest.mark.parametrize("block", PAGE_BLOCKS, ids=str)
def test_a_rule_page_run_gives_exactly_the_findings_it_marks(block: Block, tmp_path: Path) -> None:
    found = found_by_run(block, tmp_path, extend_select=[block.page[:5]])
    assert found == block.expected("runtime")


@pytest.mark.parametrize("block", [block for block in CASE_BLOCKS if block.alone], ids=str)
def test_a_case_run_gives_exactly_the_findings_it_marks(block: Block, tmp_path: Path) -> None:
    rules = {block.page[:5], *(rule for _, rule in block.expected("runtime"))}
    assert found_by_run(block, tmp_path, rules=sorted(rules)) == block.expected("runtime")


@pytest.mark.parametrize("rule", sorted(checks.stems()))
def test_a_check_of_the_run_has_the_stem_of_its_page_and_cases_of_its_own(rule: str) -> None:
    page = catalogue()[rule]
    assert checks.stems()[rule] == f"{rule.lower()}_{page.name.replace('-', '_')}"
    assert checks.load(rule)
    own = [block for block in CASE_BLOCKS if block.page == page.stem]
    assert sum(bool(block.expected("runtime")) for block in own) >= 1, "a case that is found"
    assert sum(not block.expected("runtime") for block in own) >= 2, "near misses that are not"


@pytest.mark.parametrize("rule", catalogue().values(), ids=lambda rule: rule.id)
def test_a_page_names_the_run_if_it_sees_the_pitfall(rule: Rule) -> None:
    assert ("runtime" in rule.observers) == (rule.id == "TA000" or rule.id in checks.stems())

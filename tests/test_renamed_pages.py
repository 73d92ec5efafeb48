"""A page under other names: the rules that stand on the dry run find the same, on the same lines, whatever a program calls its things.

Arguments that nobody passes and names that nothing binds keep their names, as the dry run guesses what these are.
"""

import zlib
from pathlib import Path

import pytest
from marked import Block
from renaming import STYLES, renamed
from test_rules import CASE_BLOCKS, PAGE_BLOCKS, found_in

from ta_lint import checks
from ta_lint.dryrun.dryrun import dry_run

RULES = sorted(checks.shared())
OTHERS = [style for style in STYLES if style != "neutral"]
EVIDENCE = {
    "TA206-unseen: Steps of a Lightning module that are chosen by name, with an optimizer whose class the settings name [3]": "Lightning calls what is assigned to `training_step`",
    "TA402-from-the-page: groups by type that forget the own norm [2]": "a class that is called RMSNorm is a norm",
    "TA402-weight-decay-on-norm-or-bias: torch-audit: a norm of one's own [2]": "a class that is called RMSNorm is a norm",
    "TA605-scaled-gradient-clipped: Optimizers and scalers that are looked up by their names [24]": "nothing else says what is looked up",
    "TA704-spellings: Networks that are saved and loaded one by one, by their names [1]": "its attributes are looked up by their names",
}
"""Where a name itself is the evidence."""
BAD = [
    block
    for block in (*PAGE_BLOCKS, *CASE_BLOCKS)
    if any(rule in RULES for _, rule in block.expected("static")) and "path" not in block.settings
    if str(block) not in EVIDENCE
]


def other_of(block: Block) -> str:
    """One more style for a block, always the same."""
    return OTHERS[zlib.crc32(str(block).encode()) % len(OTHERS)]


@pytest.mark.parametrize("block", BAD, ids=str)
def test_other_names_change_no_finding(block: Block, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(block.unmarked, "utf-8")
    machine = dry_run(str(script))
    script.unlink()
    marks = {(line, rule) for line, rule in block.expected("static") if rule in RULES}
    rules = sorted({rule for _, rule in marks})
    for style in ("neutral", other_of(block)):
        text = renamed(block.unmarked, STYLES[style], machine)
        again = Block(block.page, block.heading, block.number, block.words, block.settings, text)
        assert found_in(again, tmp_path, select=rules) == marks, style


def test_each_page_that_is_left_out_is_there() -> None:
    assert set(EVIDENCE) <= set(map(str, CASE_BLOCKS))


def test_there_are_pages_to_rename() -> None:
    assert {block.page[:5] for block in BAD} >= set(RULES)

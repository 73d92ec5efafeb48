"""Messages and rule pages are read once, by people who know PyTorch and not this project (docs/style.md)."""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ta_lint.core.finding import Finding, Severity, Site
from ta_lint.core.fingerprint import named
from ta_lint.core.source import Source

ROOT = Path(__file__).parents[1]
CHECKS = sorted((ROOT / "ta_lint" / "checks").glob("ta*.py")) + sorted(
    (ROOT / "ta_runtime" / "checks").glob("ta*.py")
)
PAGES = sorted((ROOT / "rules").glob("TA*.md"))
RIDDLES = re.compile(
    r"\b(of which|by which|is nothing to|is none|are none|go(es)? along|passes? by|(?<!-)alike|anew|by right|but for|"
    r"whoever|as ever|all the same|other than in|to be had|of its like|laid out|out of sight|in sight|(its|their) kin|"
    r"hand(s|ed)? (on|over)|says nothing|nothing is (said|seen)|does not look for (it|this)|beyond doubt|for want of|"
    r"of one's own|in the place of|lies?|hence|thus|mended|spoilt|ha(s|ve) to do with|go(es)? by|save for|to and fro)\b"
    r"|(^|[.:-] )(Where|Of (an?|the|several|two|what|which|those|such|these|each|most|some|other|another)|Who) "
)


def messages(path: Path) -> Iterator[str]:
    """The text of each `Suspicion`, and what is called a message, with a letter in the place of each value."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Suspicion":
            yield from _written(node.args[1:2])
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "message":
            yield from _written([node.value])


def _written(nodes: Sequence[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)


def prose(page: Path) -> str:
    """A page in one line, with a full stop for each heading and block, and a letter for code and addresses."""
    text = re.sub(
        r"^(```.*?^```|#[^\n]*)", ".", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return " ".join(re.sub(r"`[^`]*`|(?<=\])\([^)]*\)", "x", text).split())


@pytest.mark.parametrize("path", CHECKS, ids=lambda path: f"{path.parts[-3]}-{path.stem[:5]}")
def test_a_message_is_short_and_says_it_in_plain_words(path: Path) -> None:
    for message in messages(path):
        assert len(message) <= 100, message
        assert not RIDDLES.search(message), message
        assert not message.endswith("."), message


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem[:5])
def test_a_rule_page_says_it_in_plain_words(page: Path) -> None:
    assert not (riddle := RIDDLES.search(prose(page))), riddle


PAGES = sorted(
    {*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md")}
    - {ROOT / "docs" / "style.md"}
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_in_plain_words(page: Path) -> None:
    """In its prose: code, and questions, which begin with `Where` and `Who`, are left out."""
    text = page.read_text(encoding="utf-8")
    for left_out in (r"^ *```.*?^ *```", r"`[^`]+`", r"[^.?]*\?"):
        text = re.sub(left_out, "", text, flags=re.DOTALL | re.MULTILINE)
    found = RIDDLES.search(text)
    assert found is None, text[found.start() - 40 : found.end() + 40]


def test_a_fingerprint_does_not_depend_on_the_message() -> None:
    source, site = Source("train.py", "optimizer.step()\n"), Site("train.py", 1, 1, 1, 17)
    one, other = (Finding("TA600", message, Severity.ERROR, site) for message in ("as it was", "as it is"))
    assert named([one], source)[0].fingerprint == named([other], source)[0].fingerprint


def test_the_pairs_of_the_style_page_are_twenty_and_the_second_is_plain() -> None:
    page = (ROOT / "docs" / "style.md").read_text(encoding="utf-8")
    rows = [
        row.strip("| ").split(" | ")
        for row in page.partition("| before | after |")[2].splitlines()[2:]
        if row
    ]
    assert len(rows) == 20
    for _before, after in rows:
        assert not RIDDLES.search(after), after

"""Code blocks in Markdown whose expected findings are marked on the line: `# static: TA401  # runtime: TA401`."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_BLOCK = re.compile(r"^```python(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_INVARIANTS = re.compile(r"^```json invariants\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
_MARK = re.compile(
    r"#\s*(?P<observer>static|runtime|confirmed|refuted|unobserved):(?P<rules>(?:\s+TA\d{3})+)"
)


_MARKS = re.compile(r"[ \t]*#\s*(?:static|runtime|confirmed|refuted|unobserved):(?:\s+TA\d{3})+.*")


@dataclass(frozen=True)
class Block:
    """A block of a page: `words` of its info string without `=` (bad, good), `settings` those with one."""

    page: str
    heading: str
    number: int
    words: tuple[str, ...]
    settings: dict[str, str]
    code: str
    invariants: str = ""
    """The file of invariants that it is held against: the nearest block `json invariants` above it."""

    @property
    def alone(self) -> bool:
        """Whether one process runs it. With `ranks=2` two do: `test_distributed_rules`."""
        return "ranks" not in self.settings

    def expected(self, observer: str) -> set[tuple[int, str]]:
        """(line, rule) of every mark of an observer, static or runtime, or of a verdict: confirmed, refuted, unobserved."""
        return {
            (number, rule)
            for number, line in enumerate(self.code.split("\n"), 1)
            for mark in _MARK.finditer(line)
            if mark["observer"] == observer
            for rule in mark["rules"].split()
        }

    @property
    def unmarked(self) -> str:
        """The code without its marks."""
        return _MARKS.sub("", self.code)

    def __str__(self) -> str:
        return f"{self.page}: {self.heading} [{self.number}]"


def fixes(page: Path) -> list[tuple[Block, Block]]:
    """Each block with the word `fixed`, after the nearest one above it that has marks."""
    found: list[tuple[Block, Block]] = []
    marked: Block | None = None
    for block in blocks(page):
        if "fixed" in block.words:
            assert marked is not None, f"{block} fixes nothing"
            found.append((marked, block))
        elif block.expected("static"):
            marked = block
    return found


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    text = page.read_text(encoding="utf-8")
    found = []
    for number, match in enumerate(_BLOCK.finditer(text), 1):
        headings = [heading["text"] for heading in _HEADING.finditer(_BLOCK.sub("", text[: match.start()]))]
        info = match["info"].split()
        settings = dict(word.split("=", 1) for word in info if "=" in word)
        words = tuple(word for word in info if "=" not in word)
        heading = headings[-1] if headings else ""
        invariants = [given["text"] for given in _INVARIANTS.finditer(text[: match.start()])]
        known = invariants[-1] if invariants else ""
        found.append(Block(page.stem, heading, number, words, settings, match["code"], known))
    return tuple(found)

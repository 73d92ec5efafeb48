"""The pairs of training scripts: one with a silent bug and a healthy one that looks alike, and what must be found.

`scripts/NAME/` holds `buggy.py`, `healthy.py` and `case.toml`. The line of a bug ends in a mark: `# bug: TA600` for both
observers, `# bug: TA801 (runtime)` for one, `# bug: TA104 or TA432` where either names it, `# bug: any` where no rule of the
catalogue does and any error or warning on the line counts. `# suspected: TA314` in a healthy script is what the linter
cannot but suspect and the run must not report.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

Kind = Literal["buggy", "healthy"]
Observer = Literal["static", "runtime"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OBSERVERS: tuple[Observer, ...] = get_args(Observer)

FOLDER = Path(__file__).parent / "scripts"
ANY = "any"

_KEYS = {"rule", "source", "trigger", "what", "ranks", "raises", "device", "hand", "missed"}
_MARK = re.compile(
    r"#\s*(?P<word>bug|suspected):\s+(?P<rules>(?:TA\d{3}(?:\s+or\s+TA\d{3})*|any))(?:\s+\((?P<observer>static|runtime)\))?\s*$"
)


@dataclass(frozen=True)
class Mark:
    """What must be found on a line: any one of `rules`, by each of `observers`."""

    line: int
    rules: frozenset[str]
    observers: frozenset[Observer]


@dataclass(frozen=True)
class Case:
    """A pair of scripts, as its `case.toml` describes it."""

    name: str
    what: str
    """What is wrong, and what the healthy one has instead if that is no plain correction."""
    rule: str = ""
    """Empty if no rule of the catalogue is about it."""
    source: str = ""
    """The error of the TrainCheck paper that it reproduces, if any."""
    trigger: int = 0
    """Of such an error: how many optimizer steps are over when it first does harm."""
    ranks: int = 1
    raises: bool = False
    """Whether the buggy script ends with an exception."""
    device: str = ""
    """The device that a run needs to see it, if not any."""
    hand: str = ""
    """`page` where somebody wrote the pair from the page of the rule alone, who had not seen the check."""
    missed: tuple[Observer, ...] = ()
    """Who does not find the bug today, though it is marked for them."""

    def path(self, kind: Kind) -> Path:
        return FOLDER / self.name / f"{kind}.py"

    def text(self, kind: Kind) -> str:
        return self.path(kind).read_text(encoding="utf-8")

    def bugs(self) -> list[Mark]:
        return _marks(self.text("buggy"), "bug")

    def suspicions(self) -> list[Mark]:
        return _marks(self.text("healthy"), "suspected")


def cases(pattern: str = "*") -> list[Case]:
    """The cases whose name fits a glob, by name.

    Raises:
        ValueError: a `case.toml` has a key that means nothing, or lacks `what`.
    """
    return [_read(path) for path in sorted(FOLDER.glob(f"{pattern}/case.toml"))]


def _read(path: Path) -> Case:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if table.keys() - _KEYS or "what" not in table:
        raise ValueError(f"{path}: keys are {', '.join(sorted(_KEYS))}, and `what` is needed")
    table["missed"] = tuple(table.get("missed", ()))
    return Case(name=path.parent.name, **table)


def _marks(text: str, word: str) -> list[Mark]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _MARK.search(line)
        if match is not None and match["word"] == word:
            observer = cast(Observer | None, match["observer"])
            observers = frozenset(OBSERVERS if observer is None else [observer])
            found.append(Mark(number, frozenset(match["rules"].split(" or ")), observers))
    return found

"""One module per rule, named as its page: `ta600_missing_zero_grad` checks TA600.

A module has `KEYWORDS`, the plain words that a file must contain before the check looks at it (`gate`), and either
`check(module: FileFacts) -> Iterator[Suspicion]` over facts or `check_text(source: Source) -> Iterator[TextFinding]`
over text. There is no list of the modules: the folder is the list.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from ta_lint.checks.gate import Entry, Gate, Text, WordsAround, nothing

if TYPE_CHECKING:
    from ta_lint.core.source import Source
    from ta_lint.facts import FileFacts, Suspicion


class TextFinding(NamedTuple):
    """The result of a check over text: positions as in `core.finding.Site`, `is_note` as in `Suspicion`."""

    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    is_note: bool = False


@dataclass(frozen=True)
class Check:
    """A loaded check module."""

    rule: str
    gate: Gate
    over_facts: "Callable[[FileFacts], Iterator[Suspicion]] | None"
    over_text: "Callable[[Source], Iterator[TextFinding]] | None"

    def wants(self, text: Text, around: Callable[[], frozenset[Entry]] = nothing) -> bool:
        """Whether a file may contain what this check looks for; `around` gives the words in the files around it."""
        return self.gate.admits(text, around)


@cache
def stems() -> dict[str, str]:
    """The module name of each rule with a check in this folder."""
    names = (name.removesuffix(".py") for name in os.listdir(__path__[0]) if name.endswith(".py"))
    return {name[:5].upper(): name for name in sorted(names) if re.fullmatch(r"ta\d{3}_\w+", name)}


@cache
def enabled(rules: frozenset[str]) -> list[Check]:
    """The checks of these rules, in order of id. Loading them loads libcst."""
    return [check for rule in sorted(rules) if (check := load(rule)) is not None]


@cache
def words_around(rules: frozenset[str]) -> WordsAround:
    """The `AROUND` of the checks of these rules."""
    return WordsAround([check.gate for check in enabled(rules)])


@cache
def load(rule: str) -> Check | None:
    """The check of a rule; None if only the run or the engine itself finds violations."""
    if rule not in stems():
        return None
    module = import_module(f"{__name__}.{stems()[rule]}")
    return Check(
        rule=rule,
        gate=Gate(module.KEYWORDS, getattr(module, "AROUND", ())),
        over_facts=getattr(module, "check", None),
        over_text=getattr(module, "check_text", None),
    )

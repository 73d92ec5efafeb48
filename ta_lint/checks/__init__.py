"""One module per rule, named as its page: `ta600_missing_zero_grad` checks TA600.

A module has `NEEDS`, regular expressions that a file's text must all match before the check looks at it (a tuple among
them: any one of its own; plain words such as `zero_grad|DataLoader` are looked up, which is fastest), and one of
`check(module: Module) -> Iterator[Suspicion]` over facts, or
`check_source(source: Source) -> Iterator[Report]` over text.
Nothing lists the modules: the folder is the list.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ta_lint.core.source import Source
    from ta_lint.facts import Module, Suspicion


class Report(NamedTuple):
    """What a check over text returns: positions as in `core.finding.Site`."""

    line: int
    column: int
    end_line: int
    end_column: int
    message: str


Need = Callable[[bytes], object]

# Words without a character that means something in a regular expression.
_PLAIN = re.compile(r"(?:[\w ]|\\[.()])+(?:\|(?:[\w ]|\\[.()])+)*")


@dataclass(frozen=True)
class Check:
    """A loaded check module."""

    rule: str
    needs: tuple[Need, ...]
    over_facts: "Callable[[Module], Iterator[Suspicion]] | None"
    over_source: "Callable[[Source], Iterator[Report]] | None"

    def wants(self, data: bytes) -> bool:
        """Whether a file may hold what this check looks for."""
        return all(test(data) for test in self.needs)


@cache
def stems() -> dict[str, str]:
    """The module name of each rule that has a check here."""
    names = (
        entry.name.removesuffix(".py") for entry in files(__name__).iterdir() if entry.name.endswith(".py")
    )
    return {name[:5].upper(): name for name in sorted(names) if re.fullmatch(r"ta\d{3}_\w+", name)}


@cache
def enabled(rules: frozenset[str]) -> list[Check]:
    """The checks of these rules, in order of id. Loading them loads libcst."""
    return [check for rule in sorted(rules) if (check := load(rule)) is not None]


@cache
def load(rule: str) -> Check | None:
    """The check of a rule, None for one that has none: it is seen by the run alone, or by the engine itself."""
    if rule not in stems():
        return None
    module = import_module(f"{__name__}.{stems()[rule]}")
    return Check(
        rule=rule,
        needs=tuple(map(need, module.NEEDS)),
        over_facts=getattr(module, "check", None),
        over_source=getattr(module, "check_source", None),
    )


def need(wanted: str | tuple[str, ...]) -> Need:
    """The test of one entry of `NEEDS`."""
    if isinstance(wanted, tuple):
        tests = [need(pattern) for pattern in wanted]
        return lambda data: any(test(data) for test in tests)
    if _PLAIN.fullmatch(wanted):
        return _holds([re.sub(r"\\(.)", r"\1", word).encode() for word in wanted.split("|")])
    return re.compile(wanted.encode(), re.MULTILINE).search


def _holds(words: list[bytes]) -> Need:
    if len(words) == 1:
        return lambda data: words[0] in data
    return lambda data: any(word in data for word in words)

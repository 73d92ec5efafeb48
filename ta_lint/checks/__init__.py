"""One module per rule, named as its page: `ta600_missing_zero_grad` checks TA600.

A module has `KEYWORDS`, the plain words that a file must contain before the check looks at it (`gate`), and

- `check_progress(run: Run)` or `check_run(run: Run)`, over what happens in a run, as both observers see it: a dry run here, and the
  real one in `ta_runtime`, which asks the first again and again while it goes on. They may say that a suspicion is refuted, which
  counts for a real run alone;
- or `check_step(step)`, over what a run holds of each step that was looked at, and a dry run of all of them together;
- or `check_optimizer(optimizer: HasGroups)`, the same for each optimizer that is built;
- or `check(module: FileFacts) -> Iterator[Suspicion]` over facts about the source, and beside it perhaps `check_run`, for what only
  running the program shows; where both find the same line, what the source says stands;
- or `check_text(source: Source, may_give: MayGive) -> Iterator[TextFinding]` over text, and what other files give it by `import *`.

A dry run is made of each file that a check over runs wants. In a package of hundreds of files, a check that has `check` as well, or says
`ALONG = True` since it is about how models are built, takes the dry run that other checks want, and none is made for it.

There is no list of the modules: the folder is the list.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from ta_lint.checks.gate import Entry, Gate, Text, WordsAround, nothing

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.core.source import Source
    from ta_lint.events.run import Run
    from ta_lint.events.suspicion import Said
    from ta_lint.facts import FileFacts, Suspicion
    from ta_lint.project.project import Project
    from ta_lint.syntax.edits import ProposedFix


class TextFinding(NamedTuple):
    """The result of a check over text: positions as in `core.finding.Site`, `is_note` as in `Suspicion`."""

    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    is_note: bool = False


MayGive = Callable[[tuple[str, ...], str], bool]
"""Whether `from module import *` of one of these modules may give the file a name."""


@dataclass(frozen=True)
class Check:
    """A loaded check module."""

    rule: str
    gate: Gate
    over_facts: "Callable[[FileFacts], Iterator[Suspicion]] | None"
    over_text: "Callable[[Source, MayGive], Iterator[TextFinding]] | None"
    over_runs: "tuple[Callable[[Run], Iterator[Said]], ...]" = ()
    fix: "Callable[[FileFacts, Site], ProposedFix | None] | None" = None
    """The edit for what a check over runs finds at a place."""
    along: bool = False
    """Whether no file of a large package is run dry for it alone."""

    def wants(self, text: Text, around: Callable[[], frozenset[Entry]] = nothing) -> bool:
        """Whether a file may contain what this check looks for; `around` gives the words in the files around it."""
        return self.gate.admits(text, around)


@cache
def stems() -> dict[str, str]:
    """The module name of each rule with a check in this folder."""
    return {**_stems_in(__path__[0]), **shared()}


@cache
def shared() -> dict[str, str]:
    """The same of the rules with one check for both observers, in the folder `runs`."""
    return _stems_in(os.path.join(__path__[0], "runs"))


def _stems_in(folder: str) -> dict[str, str]:
    names = (name.removesuffix(".py") for name in os.listdir(folder) if name.endswith(".py"))
    return {name[:5].upper(): name for name in sorted(names) if re.fullmatch(r"ta\d{3}_\w+", name)}


def module_of(rule: str) -> ModuleType:
    """The module that checks a rule.

    Raises:
        KeyError: there is none.
    """
    return import_module(f"{__name__}.{'runs.' if rule in shared() else ''}{stems()[rule]}")


@cache
def enabled(rules: frozenset[str]) -> list[Check]:
    """The checks of these rules, in order of id. Loading them loads libcst."""
    return [check for rule in sorted(rules) if (check := load(rule)) is not None]


class Enabled(NamedTuple):
    """The checks of these rules; those that are `gated` look at what has their words alone."""

    rules: frozenset[str]
    gated: bool

    @property
    def checks(self) -> list[Check]:
        """All of them."""
        return enabled(self.rules)

    def looking(self, project: "Project", path: str, text: bytes) -> list[Check]:
        """Those that look at a file with this text, as `core.letters.searchable` gives it."""
        code = Text(text)
        around = cache(lambda: project.around.said(path, text, words_around(self.rules)))
        looking = [check for check in self.checks if check.wants(code, around)] if self.gated else self.checks
        if not any(check.along for check in looking) or not project.around.is_in_library(path):
            return looking
        return admitted(looking, code, around)


@cache
def words_around(rules: frozenset[str]) -> WordsAround:
    """The `AROUND` of the checks of these rules, and of those that decide whether a file is run dry if one of them asks that."""
    wanted = enabled(rules)
    others = _making_runs() if any(check.along for check in wanted) else []
    return WordsAround([check.gate for check in (*wanted, *others)])


def admitted(
    checks: list[Check], text: Text, around: Callable[[], frozenset[Entry]] = nothing
) -> list[Check]:
    """These checks without what asks a dry run that nobody wants of this file."""
    if any(check.wants(text, around) for check in _making_runs()):
        return checks
    kept = (replace(check, over_runs=()) if check.along else check for check in checks)
    return [check for check in kept if check.over_runs or check.over_facts or check.over_text]


@cache
def _making_runs() -> list[Check]:
    every = enabled(frozenset(stems()))
    return [check for check in every if check.over_runs and not check.along]


def _over_runs(module: ModuleType) -> "tuple[Callable[[Run], Iterator[Said]], ...]":
    every = vars(module)
    found = [every[name] for name in ("check_progress", "check_run") if name in every]
    if not found and "check_step" in every:
        found.append(every["check_step"])
    if (of_one := every.get("check_optimizer")) is not None:
        found.append(lambda run: (said for optimizer in run.optimizers for said in of_one(optimizer)))
    return tuple(found)


@cache
def load(rule: str) -> Check | None:
    """The check of a rule; None if only the run or the engine itself finds violations."""
    if rule not in stems():
        return None
    module = module_of(rule)
    over_runs, over_facts = _over_runs(module), getattr(module, "check", None)
    return Check(
        rule=rule,
        gate=Gate(module.KEYWORDS, getattr(module, "AROUND", ())),
        over_runs=over_runs,
        fix=getattr(module, "fix", None),
        over_facts=over_facts,
        over_text=getattr(module, "check_text", None),
        along=bool(over_runs) and (over_facts is not None or getattr(module, "ALONG", False)),
    )

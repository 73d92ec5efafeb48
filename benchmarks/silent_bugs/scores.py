"""What the findings on the pairs are worth: which bugs a tool names, whether on their line, and its false alarms."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from pairs import ANY, KINDS, Case, Kind, Mark
from tools import TORCH_AUDIT_RULES, Found, Outcome

from ta_lint.core.catalogue import catalogue

Hit = Literal["line", "found", "missed", "-"]
"""The bug is named on its line, somewhere, or not at all; `-`: this tool cannot be asked."""


@dataclass(frozen=True)
class Results:
    """What each tool said of each script, by case, kind of script and tool."""

    outcomes: dict[tuple[str, Kind, str], Outcome] = field(default_factory=dict)

    def of(self, case: Case, kind: Kind, tool: str) -> Outcome | None:
        return self.outcomes.get((case.name, kind, tool))


def hit(case: Case, results: Results, tool: str) -> Hit:
    """How well a tool names the bug of a case: by one of its marks, if there are several."""
    outcome = results.of(case, "buggy", tool)
    if outcome is None or not askable(case, tool):
        return "-"
    if tool == "torch-audit":
        rules = {rule for mark in case.bugs() for rule in mark.rules} & TORCH_AUDIT_RULES
        return "found" if rules & {found.rule for found in outcome.found} else "missed"
    if tool == "detect_anomaly":
        return "found" if outcome.found and not case.raises else "missed"
    return _best(["missed", *(each for mark in case.bugs() for each in _hits(mark, outcome.found))])


def together(case: Case, results: Results, tools: Iterable[str]) -> Hit:
    """The best that several tools say of a case."""
    return _best(hit(case, results, tool) for tool in tools)


def askable(case: Case, tool: str) -> bool:
    """Whether a tool is meant to see it here: not the linter a rule of the run, nor the run what needs a device."""
    if tool == "lint":
        return any("static" in mark.observers for mark in case.bugs()) or _is_static(case)
    return not case.device and any("runtime" in mark.observers for mark in case.bugs())


def false_alarms(case: Case, results: Results, tool: str) -> list[Found]:
    """Errors and warnings on the healthy script, but for suspicions of the linter that the case allows."""
    outcome = results.of(case, "healthy", tool)
    if outcome is None:
        return []
    allowed = (
        {(mark.line, rule) for mark in case.suspicions() for rule in mark.rules}
        if tool in ("lint", "run --lint")
        else set()
    )
    return [found for found in outcome.found if found.is_alarm and (found.line, found.rule) not in allowed]


def alarms(case: Case, results: Results, tool: str) -> list[Found]:
    """Errors and warnings of whatever rule on the buggy script."""
    outcome = results.of(case, "buggy", tool)
    return [found for found in outcome.found if found.is_alarm] if outcome is not None else []


def judged(case: Case, results: Results) -> list[Found]:
    """The suspicions about a healthy script, each with the verdict of the run."""
    outcome = results.of(case, "healthy", "run --lint")
    rules = {rule for mark in case.suspicions() for rule in mark.rules}
    return [found for found in outcome.found if found.rule in rules] if outcome is not None else []


def problems(cases: Iterable[Case], results: Results) -> Iterator[str]:
    """What could not be asked, and why, and findings outside of the script."""
    for case in cases:
        for kind in KINDS:
            for (name, of, tool), outcome in results.outcomes.items():
                expected = case.raises and kind == "buggy"
                if (name, of) == (case.name, kind) and outcome.problem and not expected:
                    yield f"{case.name}/{kind}.py, {tool}: {outcome.problem}"


def _is_static(case: Case) -> bool:
    rules = {rule for mark in case.bugs() for rule in mark.rules}
    return any(rule in catalogue() and "static" in catalogue()[rule].observers for rule in rules)


def _hits(mark: Mark, found: Iterable[Found]) -> Iterator[Hit]:
    for each in found:
        if ANY in mark.rules:
            if each.line == mark.line and each.is_alarm:
                yield "line"
        elif each.rule in mark.rules and each.verdict != "refuted":
            yield "line" if each.line == mark.line else "found"


def _best(hits: Iterable[Hit]) -> Hit:
    grades: tuple[Hit, ...] = ("line", "found", "missed")
    given = set(hits)
    return next((grade for grade in grades if grade in given), "-")

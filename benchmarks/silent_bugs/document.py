"""The table of `docs/silent-bugs.md`, made of the results."""

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # `sections` and `tables` lie there

from pairs import Case
from scores import Hit, Results, alarms, false_alarms, hit, judged, together
from sections import write_section
from tables import aligned
from tools import TOOLS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "silent-bugs.md"

OURS = ("lint", "run", "run of 40 steps", "killed at step 40", "run --every 1", "run --lint")
_WORDS: dict[Hit, str] = {"line": "line", "found": "yes", "missed": "no", "-": ""}


def write(chosen: list[Case], results: Results) -> None:
    """Put summary and table between the markers of the document."""
    text = "\n".join(["", *made(chosen, results), "", ""])
    write_section(DOCUMENT, "benchmarks/silent_bugs/run.py", text)


def made(chosen: list[Case], results: Results) -> Iterator[str]:
    """Summary and table of the pairs that the authors of the rules wrote, and of those that were written from the pages."""
    for hand, heading in (("", "## By the authors of the rules"), ("page", "## From the pages alone")):
        cases = [case for case in chosen if case.hand == hand]
        if cases:
            yield from (heading, "", *summary(cases, results), "", *rendered(cases, results), "")


def rendered(chosen: list[Case], results: Results) -> Iterator[str]:
    """A row for each case: `line` where the bug is named on its line, `yes` where it is named, `no` where it is not."""
    asked = _asked(chosen, results)
    rows: list[tuple[str, ...]] = [("case", "TrainCheck", *asked, "on the healthy one")]
    for case in chosen:
        cells = [_WORDS[hit(case, results, tool)] for tool in asked]
        false = sorted(
            {f"{tool}: {found.rule}" for tool in asked for found in false_alarms(case, results, tool)}
        )
        rows.append((case.name, case.source, *cells, ", ".join(false)))
    yield from aligned(rows)


def summary(chosen: list[Case], results: Results) -> Iterator[str]:
    """Totals for each tool, and for ours together; then each false alarm of ours."""
    rows: list[tuple[str, ...]] = [
        ("", "bugs", "named", "on the line", "any alarm on buggy", "any alarm on healthy")
    ]
    asked = _asked(chosen, results)
    several = [*((tool,) for tool in asked), ("lint", "run"), ("lint", "run --every 1")]
    rows += [_total(tools, chosen, results) for tools in several if set(tools) <= set(asked)]
    yield from aligned(rows)
    reproduced = [case for case in chosen if case.source]
    named = [case for case in reproduced if together(case, results, OURS) in ("line", "found")]
    if reproduced:
        yield ""
        yield f"Of {len(reproduced)} errors of the TrainCheck paper, linter or run name {len(named)}."
    suspected = [(case, found) for case in chosen for found in judged(case, results)]
    refuted = [found for _, found in suspected if found.verdict == "refuted"]
    if suspected:
        yield f"Of {len(suspected)} suspicions about near misses, the run refutes {len(refuted)}."
    for case, found in suspected:
        if found.verdict != "refuted":
            yield f"- {found.verdict}: {case.name}/healthy.py:{found.line} {found.rule}"
    for case in chosen:
        for tool in OURS:
            for found in false_alarms(case, results, tool):
                yield f"- false: {case.name}/healthy.py:{found.line} {found.rule} ({tool}): {found.message}"


def _asked(chosen: list[Case], results: Results) -> list[str]:
    """The tools that have been run on these, in order."""
    names = {case.name for case in chosen}
    answered = {tool for name, _, tool in results.outcomes if name in names}
    return [tool for tool in TOOLS if tool in answered]


def _total(tools: tuple[str, ...], chosen: list[Case], results: Results) -> tuple[str, ...]:
    grades = [together(case, results, tools) for case in chosen]
    asked = [grade for grade in grades if grade != "-"]
    named = [grade for grade in asked if grade != "missed"]
    on_buggy = [case for case in chosen if any(alarms(case, results, tool) for tool in tools)]
    on_healthy = [case for case in chosen if any(false_alarms(case, results, tool) for tool in tools)]
    return (
        " and ".join(tools),
        str(len(asked)),
        _share(len(named), len(asked)),
        _share(named.count("line"), len(named)) if set(tools) <= set(OURS) else "",
        str(len(on_buggy)),
        str(len(on_healthy)),
    )


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part // whole} %)" if whole else "0"

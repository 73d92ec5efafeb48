"""The verdict of runs on what the source suspects: confirmed, refuted, or unobserved.

A suspicion and what a run says meet where they are of one rule and one statement, by fingerprint and never by line, so
the file may have been edited in between. Each may also name related places: a loss that is cut off the graph is suspected
where `.item()` stands and measured where `backward()` runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ta_lint.core.catalogue import catalogue
from ta_lint.core.finding import Finding, Related, Suppression, Verdict

BOTH = "both"
_SEEN = "the run measures it here"


def joined(
    suspected: Iterable[Finding], measured: Iterable[Finding], refuted: Iterable[Finding]
) -> list[Finding]:
    """One list of findings: each suspicion of the source with its verdict, then what only a run has found.

    `measured` are the findings of one or more runs, `refuted` the places where a run looked and found nothing, as
    findings too. One run that confirms outweighs all that refute. A refuted finding is suppressed, with the numbers as
    justification; one of a rule that no run sees has no verdict. The order is that of `suspected`, then of `measured`.
    """
    suspicions = list(suspected)
    found, cleared = list(measured), list(refuted)
    rules = catalogue()
    confirming = _pairs(suspicions, found)
    refuting = _pairs(suspicions, cleared)
    result = []
    used: set[int] = set()
    for index, suspicion in enumerate(suspicions):
        if "runtime" not in rules[suspicion.rule].observers:
            result.append(suspicion)
        elif index in confirming:
            evidence = confirming[index]
            used.update(id(finding) for finding in evidence)
            result.append(_confirmed(suspicion, evidence))
        elif index in refuting:
            result.append(_refuted(suspicion, refuting[index][0]))
        else:
            result.append(replace(suspicion, verdict=Verdict.UNOBSERVED))
    alone = [finding for finding in found if id(finding) not in used]
    return result + [replace(finding, verdict=Verdict.CONFIRMED) for finding in _one_per_fingerprint(alone)]


def _pairs(suspicions: Sequence[Finding], said: Sequence[Finding]) -> dict[int, list[Finding]]:
    """For each suspicion, by its index, what was said of it, the nearest first."""
    by_rule: dict[str, list[int]] = defaultdict(list)
    for index, suspicion in enumerate(suspicions):
        by_rule[suspicion.rule].append(index)
    found: dict[int, list[Finding]] = defaultdict(list)
    for saying in said:
        meeting = [index for index in by_rule[saying.rule] if _meet(suspicions[index], saying)]
        if meeting:
            nearest = min(abs(suspicions[index].site.line - saying.site.line) for index in meeting)
            for index in meeting:
                # equal statements of one function have one fingerprint: the line tells them apart
                if abs(suspicions[index].site.line - saying.site.line) == nearest:
                    found[index].append(saying)
    for index, sayings in found.items():
        sayings.sort(key=lambda saying: abs(saying.site.line - suspicions[index].site.line))
    return found


def _meet(suspicion: Finding, saying: Finding) -> bool:
    """Whether one of them stands on a statement that the other is about."""
    first, second = _statement(suspicion), _statement(saying)
    return bool(first and (first == second or first in _related(saying))) or second in _related(suspicion)


def _statement(finding: Finding) -> str:
    return finding.fingerprint.partition(":")[0]


def _related(finding: Finding) -> set[str]:
    return {other.fingerprint for other in finding.related if other.fingerprint}


def _confirmed(suspicion: Finding, evidence: Sequence[Finding]) -> Finding:
    first = evidence[0]
    places = [
        Related(other.site, f"{_SEEN}: {other.message}", _statement(other))
        for other in evidence
        if other.site.line != suspicion.site.line or other.site.path != suspicion.site.path
    ]
    return replace(
        suspicion,
        observer=BOTH,
        verdict=Verdict.CONFIRMED,
        evidence=first.evidence,
        related=(*suspicion.related, *places, *first.related),
    )


def _refuted(suspicion: Finding, saying: Finding) -> Finding:
    why = Suppression(in_source=False, justification=f"refuted by a run: {measured(saying)}")
    return replace(
        suspicion,
        observer=BOTH,
        verdict=Verdict.REFUTED,
        evidence=saying.evidence,
        suppression=suspicion.suppression or why,
    )


def measured(finding: Finding) -> str:
    """Its evidence in words: `share of step 0.02, ms per batch 0.4`."""
    return ", ".join(f"{name} {value}" for name, value in finding.evidence.items())


def _one_per_fingerprint(findings: Iterable[Finding]) -> list[Finding]:
    """What several runs or ranks found is one finding, with the evidence of the first."""
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        key = (finding.rule, finding.site.path, finding.fingerprint or str(finding.site))
        found.setdefault(key, finding)
    return list(found.values())

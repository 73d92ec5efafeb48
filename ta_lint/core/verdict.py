"""The verdicts of runs on the linter's suspicions: confirmed, refuted, or unobserved.

A suspicion matches a report of a run if both are of one rule and one statement, by fingerprint and never by line, so
the file may be edited in between. Related places match as well: a loss detached from the graph is suspected at `.item()`
and measured at `backward()`. What shows elsewhere than where it is caused matches the only suspicion in the code that
took part.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ta_lint.core.catalogue import catalogue
from ta_lint.core.finding import Finding, Related, Suppression, Verdict

BOTH = "both"
_MEASURED_HERE = "the run measures it here"
_REFUTED_BY_A_RUN = "refuted by a run"


def joined(
    suspected: Iterable[Finding], measured: Iterable[Finding], inspected: Iterable[Finding]
) -> list[Finding]:
    """One list of findings: each suspicion of the source with its verdict, then what only a run has found.

    `measured` are the findings of one or more runs; `inspected` are the places where a run looked and found nothing, or could
    not look, also as findings. One run that confirms outweighs all that refute, one that refutes outweighs all that could
    not look, and an earlier verdict stays if these runs say nothing. A refuted finding is suppressed, with what the run
    looked at as justification; a rule that no run checks gets no verdict. The order is that of `suspected`, then of
    `measured`.
    """
    suspicions = list(suspected)
    found, looked = list(measured), list(inspected)
    rules = catalogue()
    confirming = _pairs(suspicions, found)
    confirming |= _alone_in_scope(suspicions, found, confirming)
    confirming |= _alone_where_it_ran(suspicions, found, confirming)
    refuting = _pairs(suspicions, [look for look in looked if look.verdict is not Verdict.UNOBSERVED])
    missing = _pairs(suspicions, [look for look in looked if look.verdict is Verdict.UNOBSERVED])
    result = []
    used: set[int] = set()
    for index, suspicion in enumerate(suspicions):
        if "runtime" not in rules[suspicion.rule].observers:
            result.append(suspicion)
        elif suspicion.verdict is Verdict.CONFIRMED:  # in an earlier merge
            used.update(id(finding) for finding in confirming.get(index, ()))
            result.append(suspicion)
        elif index in confirming:
            evidence = confirming[index]
            used.update(id(finding) for finding in evidence)
            result.append(_confirmed(suspicion, evidence))
        elif index in refuting:
            result.append(_refuted(suspicion, refuting[index][0]))
        elif suspicion.verdict is Verdict.REFUTED:  # in an earlier merge
            result.append(suspicion)
        else:
            because = missing[index][0].because if index in missing else suspicion.because
            result.append(replace(suspicion, verdict=Verdict.UNOBSERVED, because=because))
    alone = [finding for finding in found if id(finding) not in used]
    return result + [replace(finding, verdict=Verdict.CONFIRMED) for finding in _one_per_fingerprint(alone)]


def _pairs(suspicions: Sequence[Finding], reports: Sequence[Finding]) -> dict[int, list[Finding]]:
    """For each suspicion, by index, the reports on it, the nearest first."""
    by_rule: dict[str, list[int]] = defaultdict(list)
    for index, suspicion in enumerate(suspicions):
        by_rule[suspicion.rule].append(index)
    found: dict[int, list[Finding]] = defaultdict(list)
    for report in reports:
        matching = [index for index in by_rule[report.rule] if _match(suspicions[index], report)]
        nearest = min((_distance(suspicions[index], report) for index in matching), default=None)
        for index in matching:
            if _distance(suspicions[index], report) == nearest:
                found[index].append(report)
    for index, listed in found.items():
        listed.sort(key=partial(_distance, suspicions[index]))
    return found


def _distance(suspicion: Finding, report: Finding) -> tuple[bool, bool, int]:
    """Sort key that tells equal statements of one function apart; their fingerprints differ only in the number.

    The distance in lines is between the statements that match: several sums may keep one loss.
    """
    lines = min(
        (
            abs(one - other)
            for first, one in _lines(suspicion)
            for second, other in _lines(report)
            if first == second
        ),
        default=abs(suspicion.site.line - report.site.line),
    )
    return lines > 0, suspicion.fingerprint != report.fingerprint, lines


def _lines(finding: Finding) -> list[tuple[str, int]]:
    """The statements that a finding is about, with their lines."""
    related = [(other.fingerprint, other.site.line) for other in finding.related if other.fingerprint]
    return [(_statement(finding), finding.site.line), *related]


def _alone_in_scope(
    suspicions: Sequence[Finding], found: Sequence[Finding], paired: Mapping[int, list[Finding]]
) -> dict[int, list[Finding]]:
    """Pairs a run's only finding of a rule in a function with the only suspicion of that rule there.

    This only confirms: a run that looked elsewhere in the function and found nothing does not refute.
    """
    taken = {id(finding) for findings in paired.values() for finding in findings}
    left: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index, suspicion in enumerate(suspicions):
        if index not in paired:
            left[_scope(suspicion)].append(index)
    seen: dict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for finding in found:
        if id(finding) not in taken:
            seen[_scope(finding)].append(finding)
    return {
        indices[0]: seen[scope]
        for scope, indices in left.items()
        if len(indices) == 1 and len({finding.fingerprint for finding in seen[scope]}) == 1
    }


def _alone_where_it_ran(
    suspicions: Sequence[Finding], found: Sequence[Finding], paired: Mapping[int, list[Finding]]
) -> dict[int, list[Finding]]:
    """Pairs what shows elsewhere than where it is caused with the only suspicion of its rule in the code that took part.

    A softmax over the wrong dimension is in the model, and shows at the loss. If two suspicions, or two findings, are
    candidates, nothing says which belong together.
    """
    taken = {id(finding) for findings in paired.values() for finding in findings}
    causes: dict[str, list[int]] = {}
    seen: dict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        if id(finding) in taken or not finding.scopes:
            continue
        key = f"{finding.rule} {finding.fingerprint}"
        seen[key].append(finding)
        causes[key] = [
            index
            for index, suspicion in enumerate(suspicions)
            if index not in paired and suspicion.rule == finding.rule and _took_part(suspicion, finding)
        ]
    claims = Counter(index for indices in causes.values() for index in indices)
    return {
        indices[0]: seen[key]
        for key, indices in causes.items()
        if len(indices) == 1 and claims[indices[0]] == 1
    }


def _took_part(suspicion: Finding, finding: Finding) -> bool:
    """Whether the function of a suspicion, or its class, is among those that a run's finding names."""
    path, name = suspicion.site.path, suspicion.site.name
    return any(
        path == where and (name == scope or name.startswith(f"{scope}.") * bool(scope))
        for where, scope in finding.scopes
    )


def _scope(finding: Finding) -> tuple[str, str, str]:
    return finding.rule, finding.site.path, finding.site.name


def _match(suspicion: Finding, report: Finding) -> bool:
    """Whether the statement of one is the statement or a related place of the other."""
    first, second = _statement(suspicion), _statement(report)
    return bool(first and (first == second or first in _related(report))) or second in _related(suspicion)


def _statement(finding: Finding) -> str:
    return finding.fingerprint.partition(":")[0]


def _related(finding: Finding) -> set[str]:
    return {other.fingerprint for other in finding.related if other.fingerprint}


def _confirmed(suspicion: Finding, evidence: Sequence[Finding]) -> Finding:
    """A suspicion with what a run measured, and the graver severity: what the linter takes for unused has run."""
    first = evidence[0]
    places = [
        Related(other.site, f"{_MEASURED_HERE}: {other.message}", _statement(other))
        for other in evidence
        if _statement(other) != _statement(suspicion)
    ]
    mark = suspicion.suppression
    refuted_before = mark is not None and mark.justification.startswith(_REFUTED_BY_A_RUN)
    return replace(
        suspicion,
        severity=max((suspicion, *evidence), key=lambda finding: finding.severity.rank).severity,
        observer=BOTH,
        verdict=Verdict.CONFIRMED,
        suppression=None if refuted_before else mark,
        because="",
        evidence=first.evidence,
        related=(*suspicion.related, *places, *first.related),
    )


def _refuted(suspicion: Finding, report: Finding) -> Finding:
    because = f": {report.because}" if report.because else ""
    why = Suppression(in_source=False, justification=f"{_REFUTED_BY_A_RUN}{because}")
    return replace(
        suspicion,
        observer=BOTH,
        verdict=Verdict.REFUTED,
        because=report.because,
        evidence=report.evidence,
        suppression=suspicion.suppression or why,
    )


def _one_per_fingerprint(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for what several runs or ranks report, with the evidence of the first."""
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        key = (finding.rule, finding.site.path, finding.fingerprint or str(finding.site))
        found.setdefault(key, finding)
    return list(found.values())

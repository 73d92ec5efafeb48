"""Incidents as findings: with a place in the project, a fingerprint, and what the source says about suppression."""

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path

from ta_lint.core import baseline
from ta_lint.core.baseline import Entry
from ta_lint.core.catalogue import catalogue
from ta_lint.core.errors import Unreadable
from ta_lint.core.finding import Finding, Related, Severity, Site, Verdict
from ta_lint.core.fingerprint import named
from ta_lint.core.reading import read
from ta_lint.core.source import Source, decode
from ta_lint.core.suppress import suppressed
from ta_lint.events.site import site_of
from ta_runtime import cells
from ta_runtime.facts import Refutation
from ta_runtime.incidents import Incident, Inspection
from ta_runtime.probes.places import Place
from ta_runtime.settings import Settings

OBSERVER = "runtime"


def findings(
    incidents: Iterable[Incident], settings: Settings, script: str, accepted: list[Entry]
) -> list[tuple[Incident, Finding]]:
    """Each incident with its finding, in order of place; suppressed ones, and those in the baseline, are marked.

    A finding carries as evidence what its check measured when it first showed, `step`, that step, and `times`, in how
    many steps it was seen. `script` stands in for a place outside the user's code, and `accepted` is the baseline.
    """
    by_path: dict[str, list[tuple[Incident, Finding]]] = defaultdict(list)
    for incident in incidents:
        finding = _finding(incident, settings.root, script)
        by_path[finding.site.path].append((incident, finding))
    result: list[tuple[Incident, Finding]] = []
    for path, of_file in sorted(by_path.items()):
        of_file.sort(
            key=lambda pair: (pair[1].site.line, pair[1].site.column, pair[1].rule)
        )  # as `named` does
        source = _source(path, settings.root)
        ignored = settings.config.ignored_rules(settings.root / path)
        found = suppressed(
            named([finding for _, finding in of_file], source, partial(_source, root=settings.root)),
            source,
            ignored,
            settings.rules,
        )
        marked, _ = baseline.marked(found, accepted)
        result += [(incident, finding) for (incident, _), finding in zip(of_file, marked, strict=True)]
    return result


def inspected(seen: Iterable[Inspection], settings: Settings, script: str) -> list[Finding]:
    """Where the run looked and found nothing, or could not look, as findings with that verdict, in order of place.

    They are evidence for `ta_lint.core.verdict.joined`, and are not reported by themselves.
    """
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for look in seen:
        said = look.said
        evidence: dict[str, float | int | str] = {}
        if isinstance(said, Refutation):
            evidence = {**said.evidence, "step": look.last_step, "times": look.times, **_ranks(look.ranks)}
        finding = Finding(
            rule=look.rule,
            message="the run looked here and did not find it",
            severity=catalogue()[look.rule].severity,
            site=_site(said.place, settings.root, script),
            observer=OBSERVER,
            related=tuple(Related(_site(place, settings.root, script), "") for place in said.related),
            evidence=evidence,
            verdict=Verdict.REFUTED if look.refutes else Verdict.UNOBSERVED,
            because=said.because,
        )
        by_path[finding.site.path].append(finding)
    return [
        finding
        for path, found in sorted(by_path.items())
        for finding in named(found, _source(path, settings.root), partial(_source, root=settings.root))
    ]


def _ranks(ranks: set[int]) -> dict[str, str]:
    return {"ranks": ",".join(map(str, sorted(ranks)))} if ranks else {}


def _finding(incident: Incident, root: Path, script: str) -> Finding:
    suspicion = incident.suspicion
    evidence: dict[str, float | int | str] = dict(suspicion.evidence)
    if suspicion.subject and suspicion.subject not in evidence.values():
        evidence.setdefault("name", suspicion.subject)
    evidence |= {"step": incident.first_step, "times": incident.times}
    for name, which in _ranks(
        incident.ranks
    ).items():  # those that saw it, unless it says which ranks it is about
        evidence.setdefault(name, which)
    related = [*suspicion.related, *incident.followers]
    return Finding(
        rule=incident.rule,
        message=suspicion.message,
        severity=Severity.NOTE if suspicion.is_note else catalogue()[incident.rule].severity,
        site=_site(suspicion.place, root, script),
        observer=OBSERVER,
        related=tuple(Related(_site(place, root, script), message) for place, message in related),
        evidence=evidence,
        scopes=tuple((_path(scope.path, root), scope.name) for scope in incident.scopes),
    )


def _site(place: Place, root: Path, script: str) -> Site:
    """A place as findings have it: columns in code points from 1, the path relative to the project if it is inside."""
    path = cells.named(place.path) or _path(place.path or script or "<unknown>", root)
    return site_of(place, path, _source(path, root).lines)


def _path(path: str, root: Path) -> str:
    absolute = Path(path).absolute()
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else str(absolute)


def _source(path: str, root: Path) -> Source:
    """The source of a file, empty if it cannot be read: an interactive cell, or a file changed since."""
    if (text := cells.source(path)) is not None:
        return Source(path, text)
    full = root / path
    try:
        stamp = full.stat().st_mtime_ns
    except OSError:
        return Source(path, "")
    return _read(path, full, stamp)


@lru_cache(maxsize=64)
def _read(path: str, full: Path, stamp: int) -> Source:
    try:
        return Source(path, decode(read(full)))
    except Unreadable:
        return Source(path, "")

"""Linting one file: keywords, tree, facts, checks, places, suppression.

A check runs only on files that contain its keywords; running it on all files gives the same findings.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from ta_lint import checks
from ta_lint.core import collector
from ta_lint.core.catalogue import outside_tests, rule_of
from ta_lint.core.config import Config
from ta_lint.core.errors import PASSING, Unreadable, crash, refused
from ta_lint.core.expected import ExpectedFailures
from ta_lint.core.finding import Applicability, Finding, Fix, Related, Severity, Site
from ta_lint.core.fingerprint import named
from ta_lint.core.letters import searchable
from ta_lint.core.libraries import is_ours, may_be_ours
from ta_lint.core.reading import read
from ta_lint.core.source import NOTEBOOK, Source, source_of
from ta_lint.core.suppress import suppressed
from ta_lint.core.terms import InTests
from ta_lint.file import File
from ta_lint.project.holders import Holders
from ta_lint.project.project import project_of
from ta_lint.project.trail import Answer, Leaf, Surface, leaves

if TYPE_CHECKING:
    from ta_lint.checks import MayGive
    from ta_lint.events.place import Place
    from ta_lint.events.suspicion import Suspicion as OfARun
    from ta_lint.facts import FileFacts, Suspicion
    from ta_lint.scripts import Told
    from ta_lint.syntax.edits import ProposedFix
    from ta_lint.syntax.tree import Node

_OWN_SUPPRESSION = re.compile(rb"noqa.*(\bTA\d|[a-z]-[a-z])", re.IGNORECASE)  # an id, or what may be a name


class Examined(NamedTuple):
    """The findings in a file, and its source; the source of a notebook is its joined cells."""

    findings: list[Finding]
    """With positions in the source."""
    located: list[Finding]
    """The same with reported positions: in a notebook by cell, and line in the cell."""
    source: Source


def lint_file(file: File) -> list[Finding]:
    """The findings of one file, in order of place, with suppressed ones marked. Never raises because of the content."""
    try:
        data = contents(file)
    except Unreadable as error:
        return _finished([_unread(error, file)], file, Source(file.name, ""))
    return lint(file, data)


def dependencies(file: File, data: bytes) -> set[Leaf]:
    """What the findings of a file with this content depend on besides that, once it was linted."""
    project = project_of(file.root)
    sources: set[Leaf | Answer] = set()
    with project.layout.trail.into(sources):
        around = project.around.files(file.absolute, searchable(data))
    sources.update(map(Surface, around))
    return (leaves(sources) | project.imports.used(file.absolute)) - {Surface(file.absolute)}


def surface(path: str, file: File) -> str:
    """A digest of what others see of the file at a path without reading it through: its imports, what it defines, words of checks.

    The words are those of the rules that are on for `file`, which is of the same project.
    """
    return project_of(file.root).imports.surface(path, checks.words_around(file.config.rules))


def contents(file: File) -> bytes:
    """The bytes of a file.

    Raises:
        Unreadable: as for `core.reading.read`.
    """
    return file.given if file.given is not None else read(file.location)


@collector.paused()  # until the source, which holds Python's own tree, is freed
def lint(file: File, data: bytes) -> list[Finding]:
    """The findings of a file with this content, as reported; see `examine`."""
    return examine(file, data).located


@collector.paused()
def examine(file: File, data: bytes) -> Examined:
    """Lint a file with this content.

    One file never stops the others: any exception becomes the only finding of this file.
    """
    try:
        findings, source = _examine(file, data)
        findings = project_of(file.root).judged(findings, file.absolute)
        return Examined(findings, located(findings, source), source)
    except PASSING:
        raise
    except BaseException as error:  # noqa: BLE001 - see above; a panic of libcst's parser is no `Exception`
        findings = crashed(file, "linting it", error)
        return Examined(findings, findings, Source(file.name, ""))


def crashed(file: File, doing: str, error: BaseException) -> list[Finding]:
    """The TA000 finding for an exception caused by a bug in ta-lint; empty if TA000 is ignored.

    It reads nothing from the file, as that may be what failed.
    """
    source = Source(file.name, "")
    return _finished([_crash(doing, error, source)], file, source)


def located(findings: list[Finding], source: Source) -> list[Finding]:
    """Findings with reported positions: in a notebook by cell, and line in the cell."""
    if source.notebook is None:
        return findings
    return [finding if finding.site.cell else source.notebook.located(finding) for finding in findings]


def _examine(file: File, data: bytes) -> tuple[list[Finding], Source]:
    """The findings of a file, with positions in its source, and that source."""
    enabled = file.config.rules
    source = Source(file.name, "")
    text = searchable(data)
    own_suppression = "TA002" in enabled and _may_name_a_rule(text)
    findings: list[Finding] = []
    try:
        if file.name.endswith(NOTEBOOK) and (may_be_ours(text) or own_suppression):
            source = source_of(file.name, data)
            text = searchable(source.text.encode("utf-8", "surrogatepass"))
            own_suppression = "TA002" in enabled and _may_name_a_rule(text)
        ours = is_ours(text) or file.is_used_by_ours(text)
        if ours or b"\0" in data or own_suppression:
            source = source if source.notebook is not None else source_of(file.name, data)
        if ours:
            findings = list(_check(source, _looking(file, text), file))
            former = [refused(source.former)] if source.former is not None else []
            findings += [_unread(refusal, file) for refusal in (*source.refusals, *former)]
    except Unreadable as error:
        findings = [_unread(error, file)]
    if not (findings or own_suppression):  # looking for comments of other linters costs as much as a parse
        return [], source
    return _finished(findings, file, source), source


def _may_name_a_rule(text: bytes) -> bool:
    """Whether a comment may suppress one of our rules by id or name."""
    return b"noqa" in text.lower() and _OWN_SUPPRESSION.search(text) is not None


def _looking(file: File, text: bytes) -> list[checks.Check]:
    """The checks that look at a file with this text."""
    enabled = checks.Enabled(file.config.rules - file.skipped, file.gated)
    return enabled.looking(project_of(file.root), file.absolute, text)


def _unread(error: Unreadable, file: File) -> Finding:
    site = Site(file.name, error.line, error.column, error.line, error.column)
    return _finding("TA001", error.reason, site)


def _finished(findings: list[Finding], file: File, source: Source) -> list[Finding]:
    """The findings of enabled rules, with fingerprints, suppressions, and the fixes that the settings allow."""
    enabled = file.config.rules
    findings = [finding for finding in findings if finding.rule in enabled]
    findings = _held(named(findings, source), source, file)
    findings = suppressed(findings, source, file.config.ignored_rules(file.path), enabled)
    return [_with_admitted_fix(finding, file.config) for finding in findings]


def _held(findings: list[Finding], source: Source, file: File) -> list[Finding]:
    """Findings with the definitions around them that may be unused; a note says so already, whatever uses it."""
    if all(finding.severity is Severity.NOTE for finding in findings):
        return findings
    try:
        holders = Holders(source)
    except Unreadable:  # a finding says so
        return findings
    return [
        finding
        if finding.severity is Severity.NOTE
        else replace(finding, held_by=(*holders.of(finding.site.line), *finding.held_by))
        for finding in findings
    ]


def _with_admitted_fix(finding: Finding, config: Config) -> Finding:
    if finding.fix is None:
        return finding
    unsafe = finding.fix.applicability is Applicability.UNSAFE
    applicability = config.applicability(finding.rule, unsafe)
    fix = replace(finding.fix, applicability=applicability) if applicability is not None else None
    return replace(finding, fix=fix)


def _check(source: Source, looking: list[checks.Check], file: File) -> Iterator[Finding]:
    looks = _Looks(source, file, looking)
    if any(check.over_facts is not None for check in looking):
        _ = looks.facts  # it says whether the file can be parsed
    elif "TA001" in file.config.rules and isinstance(source.symbols, SyntaxError):
        from ta_lint.syntax.concrete import whole

        whole(source)
    for check in checks.enabled(file.config.rules - file.skipped):
        try:
            yield from list(_found(check, looks))
        except Unreadable:
            raise
        except Exception as error:  # noqa: BLE001 - a check never stops the job
            doing = "the dry run" if error is looks.broken else f"the check of {check.rule}"
            yield _crash(doing, error, source)
    if (
        any(check.over_runs for check in looking)
        and isinstance(source.symbols, SyntaxError)
        and isinstance(source.syntax, SyntaxError)  # which accepts more, and costs more
    ):
        yield _not_run(source.syntax, source)


def _not_run(error: SyntaxError, source: Source) -> Finding:
    """A note that a file, which libcst reads, cannot be run dry."""
    site = Site(source.path, error.lineno or 1, error.offset or 1, error.lineno or 1, error.offset or 1)
    running = ".".join(map(str, sys.version_info[:2]))
    reason = (
        f"this is newer syntax than that of Python {running}, so the linter reads the file, but does not run it dry: "
        "lint it with the Python that it is for"
    )
    return replace(_finding("TA001", reason, site), severity=Severity.NOTE)


class _Looks:
    """What checks are asked about one file, made when the first of them needs it."""

    def __init__(self, source: Source, file: File, looking: list[checks.Check]) -> None:
        self.source = source
        self.file = file
        self.rules = {check.rule for check in looking}
        """Those whose checks look at the text and the facts of the file,"""
        self._at_runs = frozenset(check.rule for check in looking if check.over_runs)
        """and at its run."""
        self.broken: Exception | None = None
        """What a dry run has raised: there is no other."""

    def weighed(self, finding: Finding, *, in_tests: bool) -> Iterator[Finding]:
        """A finding as it counts in this file, or none: a test may expect the failure, and not all matters `in_tests`."""
        if self._is_expected(finding):
            return
        as_test = InTests.LINT if in_tests else self.file.as_test
        if as_test is not InTests.SKIP:
            yield replace(finding, severity=Severity.NOTE) if as_test is InTests.NOTE else finding

    def _is_expected(self, finding: Finding) -> bool:
        """Whether a test expects the code to fail. A secret in it is one all the same."""
        return rule_of(finding.rule).security_severity is None and self._expected.hold(finding)

    @cached_property
    def _expected(self) -> ExpectedFailures:
        return ExpectedFailures(self.source)

    @cached_property
    def facts(self) -> "FileFacts":
        """What the source says."""
        from ta_lint.facts import FileFacts
        from ta_lint.facts.program.program import program_of

        program, config = program_of(self.file.root), self.file.config
        opened = program.open(self.file.absolute, self.source)
        return FileFacts(program, opened, config.target_torch, old_frameworks=config.old_frameworks)

    @cached_property
    def may_give(self) -> "MayGive":
        """Whether the file may have a name by `from module import *` of some modules."""
        return partial(project_of(self.file.root).imports.may_give, self.file.absolute)

    @cached_property
    def scripts(self) -> "list[Told]":
        """What the scripts tell that the file is part of, run dry."""
        from ta_lint.scripts import told_around

        enabled = checks.Enabled(self.file.config.rules, self.file.gated)
        project, path = project_of(self.file.root), self.file.absolute
        try:
            return told_around(project, path, self.source.text, enabled, self._at_runs)
        except Exception as error:
            self.broken = error
            raise


def _found(check: checks.Check, looks: _Looks) -> Iterator[Finding]:
    """What a check finds in a file: in its text and facts if it looks at them, and in the scripts that it is part of."""
    in_tests, looking = check.rule not in outside_tests(), check.rule in looks.rules
    lines = set[int]()
    if check.over_text is not None and looking:
        for report in check.over_text(looks.source, looks.may_give):
            found = _finding(check.rule, report.message, Site(looks.source.path, *report[:4]))
            found = replace(found, severity=Severity.NOTE) if report.is_note else found
            yield from looks.weighed(found, in_tests=in_tests)
    if check.over_facts is not None and looking:
        for suspicion in check.over_facts(looks.facts):
            if looks.facts.is_here(suspicion.node):
                found = _placed(check.rule, suspicion, looks.facts)
                lines.add(found.site.line)
                yield from looks.weighed(found, in_tests=in_tests and suspicion.in_tests)
    if check.over_runs and looks.broken is None:
        said = (one for told in looks.scripts for one in _of(told.get(check.rule, [])))
        for found in _happened(check.rule, said, looks):
            if found.site.line in lines:  # the source says so already
                continue
            fix = check.fix(looks.facts, found.site) if check.fix is not None else None
            found = _fixed(found, fix, looks.facts) if fix is not None else found
            yield from looks.weighed(found, in_tests=in_tests)


def _of(said: "list[OfARun] | Exception") -> "list[OfARun]":
    if isinstance(said, Exception):
        raise said
    return said


def _happened(rule: str, said: "Iterable[OfARun]", looks: _Looks) -> Iterator[Finding]:
    """What a check says of this file in dry runs; what one of them takes for certain is no note."""
    from ta_lint.events.site import site_of

    def site(place: "Place") -> Site:
        return site_of(place, looks.source.path, looks.source.lines)

    here = [one for one in said if one.place.path == looks.file.absolute]
    notes_first = sorted(here, key=lambda one: one.is_note, reverse=True)
    suspicions = {one.identity: one for one in notes_first}
    for one in suspicions.values():
        beside = [(place, message) for place, message in one.related if place.path == one.place.path]
        related = tuple(Related(site(place), message) for place, message in beside)
        found = _finding(rule, one.message, site(one.place), related)
        needs = [place.line for place in one.needs if place.path == one.place.path]
        found = _needing(found, needs, looks.source)
        yield replace(found, severity=Severity.NOTE) if one.is_note else found


def _needing(finding: Finding, lines: list[int], source: Source) -> Finding:
    """A finding that counts only if these lines run too."""
    if not lines:
        return finding
    holders = Holders(source)
    return replace(finding, held_by=tuple(one for line in lines for one in holders.of(line)))


def _placed(rule: str, suspicion: "Suspicion", facts: "FileFacts") -> Finding:
    """Turn a suspicion, which refers to nodes, into a finding with positions and edits."""

    def site(node: "Node") -> Site:
        parsed = facts.parsed(node)
        return Site(parsed.source.path, *parsed.places.span(node))

    related = tuple(Related(site(node), message) for node, message in suspicion.related)
    finding = _finding(rule, suspicion.message, site(suspicion.node), related)
    if suspicion.is_note:
        finding = replace(finding, severity=Severity.NOTE)
    return _fixed(finding, suspicion.fix, facts)


def _fixed(finding: Finding, fix: "ProposedFix | None", facts: "FileFacts") -> Finding:
    """A finding with the edits of a fix, if they can be made."""
    from ta_lint.syntax.text_edits import text_edits

    edits = text_edits(fix, facts.tree, facts.source, facts.places) if fix is not None else None
    if fix is None or edits is None:
        return finding
    applicability = Applicability.UNSAFE if fix.unsafe else Applicability.SAFE
    return replace(finding, fix=Fix(fix.title, edits, applicability))


def _finding(rule: str, message: str, site: Site, related: tuple[Related, ...] = ()) -> Finding:
    return Finding(rule, message, rule_of(rule).severity, site, related=related)


def _crash(doing: str, error: BaseException, source: Source) -> Finding:
    return _finding("TA000", crash(doing, error), Site(source.path, 1, 1, 1, 1))

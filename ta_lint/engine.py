"""Linting one file: gates, parse, facts, checks, places, suppression.

Two gates stand before libcst's parser, which would be most of what a file costs: its text must hold the words that a
check needs, and over a skeleton of its tree the check must suspect something. Then only the statements are parsed that
the finding is in. Without all this the findings are the same.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ta_lint import checks
from ta_lint.checks.gate import Text
from ta_lint.core import collector
from ta_lint.core.bounds import check_work, may_take_minutes
from ta_lint.core.catalogue import rule_of
from ta_lint.core.config import Config
from ta_lint.core.errors import PASSING, Unreadable, crash, oneline, refused
from ta_lint.core.finding import Applicability, Finding, Fix, Related, Site
from ta_lint.core.fingerprint import named
from ta_lint.core.letters import searchable, undisguised
from ta_lint.core.libraries import is_ours, may_be_ours
from ta_lint.core.source import NOTEBOOK, Source, read, source_of
from ta_lint.core.suppress import suppressed
from ta_lint.file import File

if TYPE_CHECKING:
    import libcst as cst

    from ta_lint.facts import Module, Suspicion
    from ta_lint.syntax.tree import Tree

# What no newer Python reads either: nesting, for which libcst would take minutes or the whole stack, and literals.
_FINAL = re.compile(r"too many|\((?:unicode|value) error\)|Exceeds the limit")

_OWN_SUPPRESSION = re.compile(rb"noqa.*(\bTA\d|[a-z]-[a-z])", re.IGNORECASE)  # an id, or perhaps a name


class Examined(NamedTuple):
    """What was found in a file, and its source: that of a notebook is its cells, joined."""

    findings: list[Finding]
    """Where they are in the source."""
    located: list[Finding]
    """The same, as they are reported: those in a notebook by cell, and line in the cell."""
    source: Source


def lint_file(file: File) -> list[Finding]:
    """The findings of one file, in order of place, suppressed ones marked. Never raises for what the file holds."""
    try:
        data = contents(file)
    except Unreadable as error:
        return _finished([_unread(error, file)], file, Source(file.name, ""))
    return lint(file, data)


def contents(file: File) -> bytes:
    """The bytes of a file.

    Raises:
        Unreadable: as `core.source.read` says.
    """
    return file.given if file.given is not None else read(file.location)


@collector.paused()  # until the source, which holds Python's own tree, is gone
def lint(file: File, data: bytes) -> list[Finding]:
    """The findings of a file that holds these bytes; see `examine`."""
    return examine(file, data).located


@collector.paused()
def examine(file: File, data: bytes) -> Examined:
    """What is found in a file that holds these bytes.

    One file never stops the others: whatever is raised on the way becomes the one finding of this one.
    """
    try:
        findings, source = _examine(file, data)
        return Examined(findings, located(findings, source), source)
    except PASSING:
        raise
    except BaseException as error:  # noqa: BLE001 - as it says above; a panic of libcst's parser is no `Exception`
        findings = crashed(file, "linting it", error)
        return Examined(findings, findings, Source(file.name, ""))


def crashed(file: File, doing: str, error: BaseException) -> list[Finding]:
    """The finding that says of a file what went wrong with it through a defect of ours; none where that is ignored.

    It names nothing in the file, for to look there may be what went wrong.
    """
    source = Source(file.name, "")
    return _finished([_crash(doing, error, source)], file, source)


def located(findings: list[Finding], source: Source) -> list[Finding]:
    """Findings as they are reported: those in a notebook by cell, and line in the cell."""
    if source.notebook is None:
        return findings
    return [finding if finding.site.cell else source.notebook.located(finding) for finding in findings]


def _examine(file: File, data: bytes) -> tuple[list[Finding], Source]:
    """The findings of a file, where they are in its source, and that source."""
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
        ours = is_ours(text)
        if ours or b"\0" in data or own_suppression:
            source = source if source.notebook is not None else source_of(file.name, data)
        if ours:
            findings = list(_check(source, _wanted(text, file), file))
            if source.notebook is not None:
                findings += [_unread(refusal, file) for refusal in source.notebook.refusals]
    except Unreadable as error:
        findings = [_unread(error, file)]
    if not (
        findings or own_suppression
    ):  # to look for the comments of other linters takes as long as a parse
        return [], source
    return _finished(findings, file, source), source


def _may_name_a_rule(text: bytes) -> bool:
    """Whether a comment may suppress a rule of ours by its name."""
    return b"noqa" in text.lower() and _OWN_SUPPRESSION.search(text) is not None


def _wanted(text: bytes, file: File) -> list[checks.Check]:
    code = Text(text)
    return [check for check in checks.enabled(file.config.rules) if not file.gated or check.wants(code)]


def _unread(error: Unreadable, file: File) -> Finding:
    site = Site(file.name, error.line, error.column, error.line, error.column)
    return _finding("TA001", error.reason, site)


def _finished(findings: list[Finding], file: File, source: Source) -> list[Finding]:
    """The findings of enabled rules, named, with their suppressions, and with the fixes that the settings admit."""
    enabled = file.config.rules
    findings = [finding for finding in findings if finding.rule in enabled]
    findings = suppressed(named(findings, source), source, file.config.ignored_rules(file.path), enabled)
    return [_with_admitted_fix(finding, file.config) for finding in findings]


def _with_admitted_fix(finding: Finding, config: Config) -> Finding:
    if finding.fix is None:
        return finding
    unsafe = finding.fix.applicability is Applicability.UNSAFE
    applicability = config.applicability(finding.rule, unsafe)
    fix = replace(finding.fix, applicability=applicability) if applicability is not None else None
    return replace(finding, fix=fix)


def _check(source: Source, wanted: list[checks.Check], file: File) -> Iterator[Finding]:
    over_facts = [check for check in wanted if check.over_facts is not None]
    if over_facts:
        yield from _over_facts(source, over_facts, file)
    elif "TA001" in file.config.rules and isinstance(source.symbols, SyntaxError):
        parse(source)
    for check in wanted:
        if check.over_source is None:
            continue
        try:
            for report in check.over_source(source):
                yield _finding(check.rule, report.message, Site(source.path, *report[:4]))
        except Exception as error:  # noqa: BLE001 - a check never stops the job
            yield _crash(f"the check of {check.rule}", error, source)


def _over_facts(source: Source, wanted: list[checks.Check], file: File) -> list[Finding]:
    """What these checks find, over as much of libcst's tree of the file as they need."""
    from ta_lint.facts import Module

    target = file.config.target_torch
    if file.gated and isinstance(source.syntax, ast.Module):
        wanted, partly = _suspecting(source, source.syntax, wanted, target)
        if partly is not None:
            try:
                suspicions, crashes = _suspicions(wanted, partly)
                if not crashes:
                    return _placed(suspicions, partly)
            except Exception:  # noqa: BLE001, S110 - it asked for more layout: the whole tree has it
                pass
    if not wanted:
        return []
    try:
        tree = parse(source)
    except Unreadable:
        if file.gated or not isinstance(source.syntax, ast.Module):
            raise
        return _over_facts(source, wanted, file._replace(gated=True))  # is there anything to read it for?
    whole = Module(source, tree, target)
    suspicions, crashes = _suspicions(wanted, whole)
    return [*crashes.values(), *_placed(suspicions, whole)]


def _suspecting(
    source: Source, syntax: ast.Module, wanted: list[checks.Check], target: tuple[int, int] | None
) -> "tuple[list[checks.Check], Module | None]":
    """The checks that have anything to say of a file, seen without its layout; and those that need that to know.

    With them comes the file with the layout of the statements in question, where that is all that they need.
    """
    from ta_lint.facts import Module
    from ta_lint.syntax.convert import skeleton
    from ta_lint.syntax.written import Written

    try:
        root = skeleton(source, syntax)
    except Unreadable:
        raise
    except Exception:  # noqa: BLE001 - an `Unlike`, or what nobody thought of: libcst will tell
        return wanted, None
    written = Written(source, root, syntax)
    module = Module(source, root, target, written)
    suspicions, crashes = _suspicions(wanted, module)
    rules = crashes.keys() | {rule for rule, _ in suspicions}
    suspecting = [check for check in wanted if check.rule in rules]
    try:
        if suspicions and not crashes:
            nodes = _nodes(suspicions, module.tree)
            return suspecting, Module(source, written.root(nodes, module.tree), target)
    except Exception:  # noqa: BLE001, S110 - as above
        pass
    return suspecting, None


def _suspicions(
    wanted: list[checks.Check], module: "Module"
) -> "tuple[list[tuple[str, Suspicion]], dict[str, Finding]]":
    """What checks suspect in a file, each by its rule, and by rule the crashes: not what was raised, as its frames would
    hold the trees, in a circle.
    """
    found: list[tuple[str, Suspicion]] = []
    crashes: dict[str, Finding] = {}
    for check in wanted:
        assert check.over_facts is not None
        try:
            found += [(check.rule, suspicion) for suspicion in check.over_facts(module)]
        except Exception as error:  # noqa: BLE001 - a check never stops the job
            crashes[check.rule] = _crash(f"the check of {check.rule}", error, module.source)
    return found, crashes


def _placed(suspicions: "list[tuple[str, Suspicion]]", module: "Module") -> list[Finding]:
    """The findings that suspicions are. Positions cost more than parsing: they are computed for these nodes alone."""
    if not suspicions:
        return []
    from ta_lint.syntax import placing
    from ta_lint.syntax.positions import positions

    source, tree = module.source, module.tree
    syntax = source.syntax
    places = positions(tree, _nodes(suspicions, tree), None if isinstance(syntax, SyntaxError) else syntax)

    def site(node: "cst.CSTNode") -> Site:
        start, end = places[node].start, places[node].end
        return Site(source.path, start.line, start.column + 1, end.line, end.column + 1)

    findings = []
    for rule, suspicion in suspicions:
        related = tuple(Related(site(node), message) for node, message in suspicion.related)
        finding = _finding(rule, suspicion.message, site(suspicion.node), related)
        proposed = suspicion.fix
        if proposed is not None and (edits := placing.text_edits(proposed, tree, source, places)) is not None:
            applicability = Applicability.UNSAFE if proposed.unsafe else Applicability.SAFE
            finding = replace(finding, fix=Fix(proposed.title, edits, applicability))
        findings.append(finding)
    return findings


def _nodes(suspicions: "list[tuple[str, Suspicion]]", tree: "Tree") -> "list[cst.CSTNode]":
    """The nodes whose places findings need, and those of their fixes."""
    from ta_lint.syntax import placing

    nodes = [node for _, found in suspicions for node in (found.node, *(other for other, _ in found.related))]
    for _, found in suspicions:
        nodes += placing.nodes(found.fix, tree) if found.fix is not None else ()
    return nodes


def parse(source: Source) -> "cst.Module":
    """The syntax tree. What Python refuses may be newer syntax than this Python's, which libcst knows.

    Raises:
        Unreadable: neither Python nor libcst can parse it; the position and the reason are Python's.
    """
    syntax = source.syntax
    if isinstance(syntax, ast.Module):
        check_work([syntax])
    elif _FINAL.search(syntax.msg) is not None or may_take_minutes(source):
        raise refused(syntax)
    import libcst as cst

    try:
        return cst.parse_module(undisguised(source.text))
    except cst.ParserSyntaxError as error:
        if isinstance(source.symbols, SyntaxError):  # which refuses more than `syntax` does
            raise refused(source.symbols) from error
        raise Unreadable(
            f"libcst cannot parse it: {oneline(error)}", error.raw_line, error.raw_column + 1
        ) from error


def _finding(rule: str, message: str, site: Site, related: tuple[Related, ...] = ()) -> Finding:
    return Finding(rule, message, rule_of(rule).severity, site, related=related)


def _crash(doing: str, error: BaseException, source: Source) -> Finding:
    return _finding("TA000", crash(doing, error), Site(source.path, 1, 1, 1, 1))

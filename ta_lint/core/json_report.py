"""Findings as JSON, for programs: a list of `Item`, or with `--statistics` of `RuleCount`."""

import json
from collections.abc import Callable, Iterable, Mapping

import msgspec

from ta_lint.core.catalogue import Rule
from ta_lint.core.files import encodable
from ta_lint.core.finding import Finding, Fix, Site
from ta_lint.core.report import counts, finite_evidence


class RelatedPlace(msgspec.Struct, frozen=True):
    """Another place that explains a finding, in JSON."""

    path: str
    cell: int | None
    line: int
    column: int
    end_line: int
    end_column: int
    message: str


class Mark(msgspec.Struct, frozen=True):
    """Why a finding does not count, in JSON."""

    in_source: bool
    """Whether a comment in the file suppresses it, rather than a setting."""
    justification: str
    """The comment, or the setting."""


class Edit(msgspec.Struct, frozen=True):
    """Replaces what stands between two positions with `text`, in JSON; equal positions insert it."""

    cell: int | None
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class Remedy(msgspec.Struct, frozen=True):
    """How a finding can be fixed, in JSON."""

    title: str
    applicability: str
    """safe, or unsafe if the program may then compute something else."""
    edits: list[Edit]
    """In order of place, without overlaps; they must be applied together."""


class Item(msgspec.Struct, frozen=True):
    """One finding in JSON."""

    rule: str
    name: str
    severity: str
    """error, warning or note."""
    message: str
    """What is wrong at this place, and what to write instead."""
    harm: str
    """What the rule's page says of its bug: what happens, and why it matters."""
    confidence: str
    """How often the rule is right: very-high, high, medium or low."""
    path: str
    """Relative to the project root, with forward slashes; absolute for a file outside it."""
    cell: int | None
    """In a notebook, the number of the cell among all cells, from 1; lines then count within the cell."""
    line: int
    """Lines and columns count from 1, columns in Unicode code points; the end column is exclusive."""
    column: int
    end_line: int
    end_column: int
    scope: str
    """The enclosing qualified name, empty at module level."""
    observer: str
    """static, runtime, or both if a run confirms or refutes what the source suggests."""
    verdict: str | None
    """The verdict of runs: confirmed, refuted or unobserved; null if no run has looked."""
    because: str
    """Of a refuted finding what the run looked at, of an unobserved one why it could not look; empty if the run did not say."""
    evidence: dict[str, float | int | str]
    """What a run measured; non-finite numbers are the strings nan, inf and -inf."""
    related: list[RelatedPlace]
    fix: Remedy | None
    fingerprint: str
    """Identifies the finding across edits and runs."""
    suppression: Mark | None
    baselined: bool
    """Whether the baseline accepts it; baselined and suppressed findings do not fail the run."""
    url: str
    """The address of the rule's page."""


class RuleCount(msgspec.Struct, frozen=True):
    """The findings of one rule that count, in the JSON of `--statistics`."""

    rule: str
    name: str
    severity: str
    count: int
    fixable: int
    """How many of them `--fix` would fix under the settings of the run."""


def as_json(findings: Iterable[Finding], rules: Mapping[str, Rule]) -> str:
    """All findings as a JSON list of `Item`, in ASCII so that no terminal can garble it."""
    items = [_item(finding, rules[finding.rule]) for finding in findings]
    return json.dumps(msgspec.to_builtins(items), indent=2) + "\n"


def statistics_as_json(
    findings: Iterable[Finding], rules: Mapping[str, Rule], fixes: Callable[[Finding], bool]
) -> str:
    """A JSON list of `RuleCount`, most frequent first."""
    tallies = [
        RuleCount(rule_id, rules[rule_id].name, rules[rule_id].severity.value, count, fixable)
        for rule_id, count, fixable in counts(findings, fixes)
    ]
    return json.dumps(msgspec.to_builtins(tallies), indent=2) + "\n"


def _item(finding: Finding, rule: Rule) -> Item:
    site = finding.site
    mark = finding.suppression
    return Item(
        rule=finding.rule,
        name=rule.name,
        severity=finding.severity.value,
        message=encodable(finding.message),
        harm=rule.summary,
        confidence=rule.precision,
        path=encodable(site.path),
        cell=site.cell.number if site.cell is not None else None,
        line=site.line,
        column=site.column,
        end_line=site.end_line,
        end_column=site.end_column,
        scope=site.name,
        observer=finding.observer,
        verdict=finding.verdict,
        because=finding.because,
        evidence=finite_evidence(finding),
        related=[_related(other.site, other.message) for other in finding.related],
        fix=_remedy(finding.fix) if finding.fix is not None else None,
        fingerprint=finding.fingerprint,
        suppression=Mark(mark.in_source, mark.justification) if mark is not None else None,
        baselined=finding.baselined,
        url=rule.url,
    )


def _remedy(fix: Fix) -> Remedy:
    edits = [
        Edit(edit.cell, edit.line, edit.column, edit.end_line, edit.end_column, encodable(edit.text))
        for edit in fix.edits
    ]
    return Remedy(encodable(fix.title), fix.applicability.value, edits)


def _related(site: Site, message: str) -> RelatedPlace:
    return RelatedPlace(
        encodable(site.path),
        site.cell.number if site.cell is not None else None,
        site.line,
        site.column,
        site.end_line,
        site.end_column,
        encodable(message),
    )

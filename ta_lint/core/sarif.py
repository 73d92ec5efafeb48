"""Findings as a SARIF 2.1.0 log for GitHub code scanning and SARIF viewers.

Import this module only to write SARIF: its object model is slow to load.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
import msgspec
import sarif_om as om

from ta_lint.core.catalogue import PAGES_URL, Rule
from ta_lint.core.files import encodable
from ta_lint.core.finding import Finding, Fix, Severity, Site, Suppression, Verdict
from ta_lint.core.report import finite_evidence, in_cell

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
PROJECT_URL = "https://github.com/ta-lint/ta-lint"

# Limits of code scanning, which rejects larger uploads.
MAX_RESULTS = 25_000
MAX_TAGS = 20
MAX_DESCRIPTION = 1024

FINGERPRINT = "taLint/v1"
LOOKS = (Verdict.REFUTED, Verdict.UNOBSERVED)
"""The properties of a run with the places where it looked and found nothing, and where it could not look."""

_ROOT = "%SRCROOT%"
_MARKDOWN_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def sarif_log(
    findings: Iterable[Finding],
    rules: Mapping[str, Rule],
    *,
    version: str,
    root: Path | None = None,
    category: str = "ta-lint/",
    baseline: bool = False,
    notes: Sequence[str] = (),
    inspected: Iterable[Finding] = (),
) -> str:
    """The findings as the JSON text of a log with one run; the same input gives the same bytes.

    `rules` are the rules that the tool knows, by id, including those of all findings; the log describes only rules with
    findings, as the pages of all would be most of it. `root` is the folder that relative paths start from; without it the
    log names no path of this machine. `category` separates the uploads of one commit and ends in `/`. `baseline` means
    that findings were compared with one, so that each result is marked new or unchanged. `notes` are sentences on what
    could not be checked. `inspected` are the places where a run looked and found nothing, or could not look, for `ta-lint merge`;
    they go into the run's properties, as code scanning might take results of the kind `pass` for alerts. Of more than 25,000 findings
    the worst stay, and a notification says how many were dropped.
    """
    assert category.endswith("/"), category  # code scanning ignores a category without it
    kept, dropped = _worst(list(findings))
    reported = {finding.rule for finding in kept}
    described = [rule for rule_id, rule in rules.items() if rule_id in reported]
    index = {rule.id: position for position, rule in enumerate(described)}
    run = om.Run(
        tool=om.Tool(driver=_driver(described, version)),
        invocations=_invocations(dropped, notes),
        automation_details=om.RunAutomationDetails(id=category),
        column_kind="unicodeCodePoints",
        original_uri_base_ids={_ROOT: _root_location(root)},
        results=[_result(finding, index[finding.rule], baseline) for finding in kept],
        properties=_run_properties(list(inspected)),
    )
    # readers detect the format at the start of the file
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_plain(run)]}
    return msgspec.json.format(json.dumps(log), indent=2) + "\n"


def _worst(findings: list[Finding]) -> tuple[list[Finding], int]:
    if len(findings) <= MAX_RESULTS:
        return findings, 0
    ordered = sorted(findings, key=lambda finding: (finding.counts, finding.severity.rank), reverse=True)
    return ordered[:MAX_RESULTS], len(findings) - MAX_RESULTS


def _invocations(dropped: int, notes: Sequence[str]) -> list[Any] | None:
    """Notifications on what is missing from the findings; None if there are none."""
    notifications = [_notification("not-seen", "note", note) for note in notes]
    if dropped:
        text = (
            f"Findings left out: {dropped}, the least severe, "
            f"as code scanning rejects a run of more than {MAX_RESULTS} results."
        )
        notifications.insert(0, _notification("too-many-results", "warning", text))
    if not notifications:
        return None
    return [om.Invocation(execution_successful=True, tool_execution_notifications=notifications)]


def _notification(name: str, level: str, text: str) -> Any:
    descriptor = om.ReportingDescriptorReference(id=name)
    return om.Notification(message=om.Message(text=text), level=level, descriptor=descriptor)


def _driver(rules: Sequence[Rule], version: str) -> Any:
    return om.ToolComponent(
        name="ta-lint",
        version=version,
        semantic_version=version if re.fullmatch(r"\d+\.\d+\.\d+", version) else None,
        information_uri=PROJECT_URL,
        rules=[_descriptor(rule) for rule in rules],
    )


def _descriptor(rule: Rule) -> Any:
    summary = _MARKDOWN_LINK.sub(r"\1", rule.summary)
    return om.ReportingDescriptor(
        id=rule.id,
        name="".join(word.capitalize() for word in rule.name.split("-")),
        short_description=om.MultiformatMessageString(text=_clipped(_SENTENCE_END.split(summary)[0])),
        full_description=om.MultiformatMessageString(text=_clipped(summary)),
        help=om.MultiformatMessageString(text=f"{summary}\n\n{rule.url}", markdown=_help(rule)),
        help_uri=rule.url,
        default_configuration=om.ReportingConfiguration(level=rule.severity.value, enabled=rule.default),
        properties=_rule_properties(rule),
    )


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 1] + "…"


def _help(rule: Rule) -> str:
    """The page with its links to other pages made absolute, as viewers show it elsewhere."""
    return re.sub(r"\]\((?=TA\d{3}-)", f"]({PAGES_URL}/", rule.page)


def _rule_properties(rule: Rule) -> dict[str, Any]:
    """The properties that code scanning reads; a `security-severity` turns every result into a security alert."""
    security = rule.security_severity is not None
    weaknesses = [f"external/cwe/{number.lower()}" for number in rule.cwe]
    tags = dict.fromkeys([*["security"] * security, *weaknesses, *rule.tags])
    recommendation = rule.severity is Severity.NOTE
    properties = {
        "tags": list(tags)[:MAX_TAGS],
        "precision": rule.precision,
        "problem.severity": "recommendation" if recommendation else rule.severity.value,
    }
    if security:
        properties["security-severity"] = str(rule.security_severity)
    return properties


def _result(finding: Finding, rule_index: int, baseline: bool) -> Any:
    site, fix = finding.site, finding.fix
    if site.cell is not None:
        fix = None  # its edits apply to the cell, not to the JSON of the file
    related = [
        _location(other.site, _sentence(other.message), other.fingerprint) for other in finding.related
    ]
    return om.Result(
        rule_id=finding.rule,
        rule_index=rule_index,
        level=finding.severity.value,
        message=om.Message(text=_sentence(in_cell(finding.message, site))),
        locations=[_location(site)],
        related_locations=related or None,
        fixes=[_fix(fix, site.path)] if fix is not None else None,
        partial_fingerprints={FINGERPRINT: finding.fingerprint} if finding.fingerprint else None,
        suppressions=[_suppression(finding.suppression)] if finding.suppression is not None else None,
        baseline_state=("unchanged" if finding.baselined else "new") if baseline else None,
        properties=_result_properties(finding),
    )


def _fix(fix: Fix, path: str) -> Any:
    """The edits of a fix; an empty region inserts."""
    replacements = [
        om.Replacement(
            deleted_region=om.Region(
                start_line=edit.line,
                start_column=edit.column,
                end_line=edit.end_line,
                end_column=edit.end_column,
            ),
            inserted_content=om.ArtifactContent(text=edit.text),
        )
        for edit in fix.edits
    ]
    change = om.ArtifactChange(artifact_location=_artifact(path), replacements=replacements)
    return om.Fix(
        artifact_changes=[change],
        description=om.Message(text=_sentence(fix.title)),
        properties={"applicability": fix.applicability.value},
    )


def _sentence(message: str) -> str:
    """The message with a full stop, a capital unless it begins with code, and escaped brackets where they would make a link."""
    if re.match(r"[a-z][a-z'-]*(?=[\s,;:]|$)", message):
        message = message[0].upper() + message[1:]
    message = re.sub(r"\[([^\[\]]*)\]\(", r"\\[\1\\](", message)
    return message if message.endswith((".", "?", "!")) else message + "."


def _run_properties(inspected: list[Finding]) -> dict[str, Any] | None:
    """The places where a run looked and found nothing, or could not look, by verdict; None if there are none."""
    by_verdict = {verdict: [_look(one) for one in inspected if one.verdict is verdict] for verdict in LOOKS}
    return {verdict.value: listed for verdict, listed in by_verdict.items() if listed} or None


def _look(finding: Finding) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ruleId": finding.rule,
        "locations": [_location(finding.site)],
        "relatedLocations": [_location(other.site, None, other.fingerprint) for other in finding.related],
        "fingerprint": finding.fingerprint,
        "because": finding.because,
    }
    if finding.evidence:
        found["evidence"] = finite_evidence(finding)
    return found


def _location(site: Site, message: str | None = None, fingerprint: str = "") -> Any:
    name = site.name
    return om.Location(
        physical_location=om.PhysicalLocation(
            artifact_location=_artifact(site.path),
            region=_region(site),
        ),
        logical_locations=[om.LogicalLocation(name=name.rpartition(".")[2], fully_qualified_name=name)]
        if name
        else None,
        message=om.Message(text=message) if message is not None else None,
        properties={"fingerprint": fingerprint} if fingerprint else None,
    )


def _artifact(path: str) -> Any:
    if Path(path).is_absolute():
        return om.ArtifactLocation(uri=Path(path).as_uri())
    return om.ArtifactLocation(uri=quote(path, errors="surrogateescape"), uri_base_id=_ROOT)


def _region(site: Site) -> Any:
    """A region of one line, as a pull request shows an alert only if all its lines are in the diff.

    Without an end column, a region ends with its line. For a notebook it is the line of the JSON file.
    """
    if site.cell is not None:
        return om.Region(start_line=site.cell.file_line, end_line=site.cell.file_line)
    end_column = site.end_column if site.end_line == site.line else None
    return om.Region(
        start_line=site.line, start_column=site.column, end_line=site.line, end_column=end_column
    )


def _suppression(suppression: Suppression) -> Any:
    kind = "inSource" if suppression.in_source else "external"
    return om.Suppression(kind=kind, justification=suppression.justification)


def _result_properties(finding: Finding) -> dict[str, Any]:
    properties: dict[str, Any] = {"observer": finding.observer}
    if finding.verdict is not None:
        properties["verdict"] = finding.verdict.value
    if finding.because:
        properties["because"] = finding.because
    if finding.scopes:
        properties["scopes"] = [f"{path}::{name}" for path, name in finding.scopes]
    if finding.evidence:
        properties["evidence"] = finite_evidence(finding)
    return properties


def _root_location(root: Path | None) -> Any:
    if root is None:
        description = om.Message(text="The root of the project that was checked.")
        return om.ArtifactLocation(description=description)
    return om.ArtifactLocation(uri=root.resolve().as_uri().removesuffix("/") + "/")


def _plain(node: Any) -> Any:
    """The object model as dicts and lists, without None and the schema's defaults.

    `level` always stays: if a result has none, viewers use the rule's and not the schema's.
    """
    if isinstance(node, str):
        return encodable(node)
    if isinstance(node, list):
        return [_plain(value) for value in node]
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items()}
    model: Any = type(node)
    if not attrs.has(model):
        return node
    return {
        name: _plain(value)
        for field, name, default in _schema(model)
        if (value := getattr(node, field)) is not None and (value != default or name == "level")
    }


@cache
def _schema(model: type[Any]) -> Sequence[tuple[str, str, Any]]:
    """The Python name, SARIF name and default of each field of a class of the model."""
    blank = model(**{field.name: None for field in attrs.fields(model) if field.default is attrs.NOTHING})
    return [
        (field.name, field.metadata["schema_property_name"], getattr(blank, field.name))
        for field in attrs.fields(model)
    ]

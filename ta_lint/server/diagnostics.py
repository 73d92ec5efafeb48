"""Turns findings into diagnostics of the protocol."""

from lsprotocol import types

from ta_lint.core.catalogue import catalogue
from ta_lint.core.finding import Finding, Severity
from ta_lint.server.client import Client
from ta_lint.server.linting import Linted
from ta_lint.server.positions import place

SOURCE = "ta-lint"

_SEVERITY = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
_OBSOLETE = ("TA900", "TA901", "TA905", "TA906", "TA907")  # about APIs that torch has deprecated or removed
_TAGS = {rule: [types.DiagnosticTag.Deprecated] for rule in _OBSOLETE}
_TAGS["TA002"] = [types.DiagnosticTag.Unnecessary]


def diagnostics(linted: Linted, client: Client) -> dict[str, list[types.Diagnostic]]:
    """The diagnostics of each part of a document, by its URI."""
    found: dict[str, list[types.Diagnostic]] = {part.uri: [] for part in linted.document.parts}
    for finding in linted.located:
        part, _ = place(linted.document, finding.site, client.codec)
        found[part.uri].append(diagnostic(finding, linted, client))
    return found


def diagnostic(finding: Finding, linted: Linted, client: Client) -> types.Diagnostic:
    """The diagnostic of one of the located findings of a document."""
    rule = catalogue()[finding.rule]
    _, where = place(linted.document, finding.site, client.codec)
    return types.Diagnostic(
        range=where,
        message=finding.message,
        severity=_SEVERITY[finding.severity],
        code=rule.id,
        code_description=types.CodeDescription(rule.url),
        source=SOURCE,
        tags=_TAGS.get(rule.id),
        related_information=_related(finding, linted, client) if client.relates and finding.related else None,
    )


def _related(finding: Finding, linted: Linted, client: Client) -> list[types.DiagnosticRelatedInformation]:
    result = []
    for other in finding.related:
        part, where = place(linted.document, other.site, client.codec)
        location = types.Location(part.uri, where)
        result.append(types.DiagnosticRelatedInformation(location, other.message))
    return result

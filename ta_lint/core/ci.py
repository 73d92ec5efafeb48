"""Findings in the formats of CI services: JUnit, GitLab's code quality and Azure Pipelines.

As in `core.report`, suppressed and baselined findings are left out, and text from a checked file is made harmless.
"""

import json
from collections.abc import Iterable, Mapping

from ta_lint.core.catalogue import Rule
from ta_lint.core.finding import Finding, Site
from ta_lint.core.report import in_cell
from ta_lint.core.terminal import harmless
from ta_lint.core.terms import Severity

FORMATS = ("junit", "gitlab", "azure")

_GITLAB = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.NOTE: "info"}
_NO_CHARACTERS = dict.fromkeys((0xFFFE, 0xFFFF), "\ufffd")  # XML has none of them
_AZURE = {"%": "%AZP25", "\r": "%0D", "\n": "%0A"}
_IN_MESSAGE = str.maketrans(_AZURE)
_IN_PROPERTY = str.maketrans({**_AZURE, ";": "%3B", "]": "%5D"})


def rendered(form: str, findings: Iterable[Finding], rules: Mapping[str, Rule], fail_level: Severity) -> str:
    """The findings in one of these formats."""
    shown = [finding for finding in findings if finding.counts]
    if form == "junit":
        return junit(shown, rules, fail_level)
    return gitlab(shown, rules) if form == "gitlab" else azure(shown, rules)


def junit(findings: list[Finding], rules: Mapping[str, Rule], fail_level: Severity) -> str:
    """A suite for each file with a case for each finding, which fails at `fail_level` or above; ASCII.

    Without any finding there is one case, as a report without cases counts as an error in Jenkins.
    """
    from xml.etree import ElementTree as xml

    of_file: dict[str, list[Finding]] = {}
    for finding in findings:
        of_file.setdefault(finding.site.path, []).append(finding)
    top = xml.Element("testsuites", _counts("ta-lint", findings, fail_level))
    for path, found in of_file.items():
        suite = xml.SubElement(top, "testsuite", _counts(path, found, fail_level))
        for finding in found:
            name = _plain(f"{finding.rule} {rules[finding.rule].name} at {finding.site.position}")
            place = {"classname": _plain(path), "file": _plain(path), "line": str(_line(finding.site))}
            case = xml.SubElement(suite, "testcase", {"name": name, **place, "time": "0"})
            what = _plain(f"{path}:{finding.site.position}: {finding.severity.value}: {finding.message}")
            if finding.severity.rank >= fail_level.rank:
                told = {"type": finding.severity.value, "message": _plain(finding.message)}
                xml.SubElement(case, "failure", told).text = f"{what}\n{rules[finding.rule].url}"
            else:
                xml.SubElement(case, "system-out").text = what
    if not findings:
        suite = xml.SubElement(top, "testsuite", _counts("ta-lint", findings, fail_level) | {"tests": "1"})
        xml.SubElement(suite, "testcase", {"name": "All checks passed", "classname": "ta-lint", "time": "0"})
        top.set("tests", "1")
    xml.indent(top)
    written: bytes = xml.tostring(top, encoding="us-ascii", xml_declaration=True)
    return f"{written.decode()}\n"


def gitlab(findings: list[Finding], rules: Mapping[str, Rule]) -> str:
    """A code quality report, as merge requests show it; ASCII."""
    return json.dumps([_issue(finding, rules[finding.rule]) for finding in findings], indent=2) + "\n"


def azure(findings: list[Finding], rules: Mapping[str, Rule]) -> str:
    """Logging commands for Azure Pipelines, which knows errors and warnings alone: notes are plain lines of the log."""
    return "".join(f"{_logged(finding, rules[finding.rule])}\n" for finding in findings)


def _counts(name: str, findings: list[Finding], fail_level: Severity) -> dict[str, str]:
    failures = sum(finding.severity.rank >= fail_level.rank for finding in findings)
    numbers = {"tests": len(findings), "failures": failures, "errors": 0, "skipped": 0, "time": 0}
    return {"name": _plain(name), **{key: str(number) for key, number in numbers.items()}}


def _issue(finding: Finding, rule: Rule) -> dict[str, object]:
    site = finding.site
    end = site.end_line if site.cell is None else _line(site)
    return {
        "description": f"{rule.id}: {in_cell(harmless(finding.message), site)}",
        "check_name": rule.name,
        "fingerprint": finding.fingerprint,
        "severity": _GITLAB[finding.severity],
        "location": {"path": _plain(site.path), "lines": {"begin": _line(site), "end": end}},
        "content": {"body": rule.url},
    }


def _logged(finding: Finding, rule: Rule) -> str:
    site = finding.site
    message = f"{rule.id} {rule.name}: {in_cell(finding.message, site)}"
    if finding.severity is Severity.NOTE:
        line = harmless(f"{site.path}:{site.position}: note: {message}")
        return line.replace("##", "# #")  # a command may begin anywhere in a line
    properties: dict[str, object] = {
        "type": finding.severity.value,
        "sourcepath": site.path,
        "linenumber": _line(site),
        "columnnumber": site.column if site.cell is None else 1,
        "code": rule.id,
    }
    joined = "".join(f"{key}={str(value).translate(_IN_PROPERTY)};" for key, value in properties.items())
    return harmless(f"##vso[task.logissue {joined}]{message.translate(_IN_MESSAGE)}")


def _line(site: Site) -> int:
    """The line of the file, of which a notebook's cell has another."""
    return site.line if site.cell is None else site.cell.file_line


def _plain(text: str) -> str:
    return harmless(text).translate(_NO_CHARACTERS)

"""What CI services read: JUnit, GitLab's code quality report, and the logging commands of Azure Pipelines."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import junitparser
import pytest
from test_cli import ADAM, BUGGY, Command, project, ta_lint
from test_report import BASELINED, FINDING, NOTE, RULES, SITE, SUPPRESSED, WARNING

from ta_lint.core import ci
from ta_lint.core.finding import Cell, Finding, Severity

__all__ = ["project", "ta_lint"]  # fixtures

EVIL = "a]b;c%d\r\n##vso[task.complete result=Failed]\x1b[2J<&\"'\x00\uffff\udc80é"
IN_NOTEBOOK = replace(FINDING, site=replace(SITE, path="demo.ipynb", cell=Cell(4, 77)), fingerprint="f:1")
OF_EVERY_KIND = [FINDING, WARNING, NOTE, SUPPRESSED, BASELINED, IN_NOTEBOOK]


def junit(*findings: Finding, fail_level: Severity = Severity.WARNING) -> junitparser.JUnitXml:
    text = ci.rendered("junit", findings, RULES, fail_level)
    assert text.isascii()
    return junitparser.JUnitXml.fromstring(text.encode())


def gitlab(*findings: Finding) -> list[dict[str, object]]:
    text = ci.rendered("gitlab", findings, RULES, Severity.WARNING)
    assert text.isascii()
    issues: list[dict[str, object]] = json.loads(text)
    return issues


def azure(*findings: Finding) -> list[str]:
    return ci.rendered("azure", findings, RULES, Severity.WARNING).splitlines()


# -- JUnit --------------------------------------------------------------------------------------------------------


def test_junit_has_a_suite_for_each_file_and_a_case_for_each_finding() -> None:
    suites = list(junit(*OF_EVERY_KIND))
    assert [(suite.name, suite.tests, suite.failures) for suite in suites] == [
        ("train.py", 3, 2),
        ("demo.ipynb", 1, 1),
    ]
    cases = [case for suite in suites for case in suite]
    assert [case.name for case in cases] == [
        "TA600 missing-zero-grad at 3:2",
        "TA601 step-before-backward at 3:2",
        "TA700 small-matter at 3:2",
        "TA600 missing-zero-grad at cell 4:3:2",
    ]
    assert [(case.classname, case._elem.get("line")) for case in cases][-2:] == [
        ("train.py", "3"),
        ("demo.ipynb", "77"),
    ]


def test_in_junit_a_finding_below_the_fail_level_passes_and_is_still_told() -> None:
    (suite,) = junit(NOTE)
    (case,) = suite
    assert case.is_passed
    assert case.system_out == "train.py:3:2: note: it is slow"
    (suite,) = junit(FINDING, NOTE, fail_level=Severity.NOTE)
    assert suite.failures == 2
    (failure,) = next(iter(suite)).result
    assert (failure.type, failure.message) == ("error", "gradients are never cleared")
    assert failure.text.endswith("rules/TA600-missing-zero-grad.md")


def test_junit_without_findings_is_one_case_that_passes() -> None:
    result = junit(SUPPRESSED)
    assert (result.tests, result.failures) == (1, 0)
    assert [case.name for suite in result for case in suite] == ["All checks passed"]


def test_the_numbers_of_junit_are_those_of_its_cases() -> None:
    top = ElementTree.fromstring(ci.rendered("junit", OF_EVERY_KIND, RULES, Severity.ERROR))
    for element in [top, *top.findall("testsuite")]:
        assert element.get("tests") == str(len(element.findall(".//testcase")))
        assert element.get("failures") == str(len(element.findall(".//failure")))


def test_junit_is_xml_whatever_a_file_holds() -> None:
    (suite,) = junit(replace(FINDING, message=EVIL, site=replace(SITE, path=EVIL)))
    (case,) = suite
    assert case.result[0].message.startswith("a]b;c%d")
    assert "é" in case.classname


# -- GitLab -------------------------------------------------------------------------------------------------------


def test_gitlab_gets_the_fields_that_it_reads() -> None:
    issues = gitlab(*OF_EVERY_KIND)
    assert issues[0] == {
        "description": "TA600: gradients are never cleared",
        "check_name": "missing-zero-grad",
        "fingerprint": "0123456789abcdef:1",
        "severity": "critical",
        "location": {"path": "train.py", "lines": {"begin": 3, "end": 3}},
        "content": {"body": RULES["TA600"].url},
    }
    assert [issue["severity"] for issue in issues] == ["critical", "major", "info", "critical"]
    assert issues[3]["location"] == {"path": "demo.ipynb", "lines": {"begin": 77, "end": 77}}
    assert issues[3]["description"] == "TA600: gradients are never cleared (cell 4, line 3)"


def test_gitlab_tells_findings_apart_by_fingerprint(project: Path, ta_lint: Command) -> None:
    """It shows one of those that have the same."""
    (project / "train.py").write_text(f"import torch\na = {ADAM}\na = {ADAM}\n")
    (project / "other.py").write_text(f"import torch\na = {ADAM}\n")
    ta_lint("check", "--select=TA401", "--format=gitlab")
    issues = json.loads(ta_lint.out)
    assert len(issues) == len({issue["fingerprint"] for issue in issues}) == 3
    assert not any(issue["location"]["path"].startswith(("/", ".")) for issue in issues)
    ta_lint("check", "--select=TA700", "--format=gitlab")
    assert ta_lint.out == "[]\n"


# -- Azure --------------------------------------------------------------------------------------------------------


def test_azure_gets_an_issue_for_each_error_and_warning_and_a_line_for_each_note() -> None:
    assert azure(*OF_EVERY_KIND) == [
        (
            "##vso[task.logissue type=error;sourcepath=train.py;linenumber=3;columnnumber=2;code=TA600;]"
            "TA600 missing-zero-grad: gradients are never cleared"
        ),
        (
            "##vso[task.logissue type=warning;sourcepath=train.py;linenumber=3;columnnumber=2;code=TA601;]"
            "TA601 step-before-backward: the step comes first"
        ),
        "train.py:3:2: note: TA700 small-matter: it is slow",
        (
            "##vso[task.logissue type=error;sourcepath=demo.ipynb;linenumber=77;columnnumber=1;code=TA600;]"
            "TA600 missing-zero-grad: gradients are never cleared (cell 4, line 3)"
        ),
    ]


@pytest.mark.parametrize("finding", [FINDING, NOTE])
def test_nothing_in_a_file_or_its_name_commands_azure(finding: Finding) -> None:
    (line,) = azure(replace(finding, message=EVIL, site=replace(SITE, path=EVIL)))
    assert "\x1b" not in line
    if finding is NOTE:
        assert "##" not in line
    else:
        assert line.startswith("##vso[task.logissue type=error;")
        assert "sourcepath=a%5Db%3Bc%AZP25d%0D%0A##vso[task.complete result=Failed%5D" in line


# -- the command --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ci.FORMATS)
def test_the_command_writes_them_and_nothing_else(project: Path, ta_lint: Command, form: str) -> None:
    (project / "train.py").write_text(BUGGY)
    assert ta_lint("check", "--select=TA401", f"--output-format={form}") == 1
    assert "scales the decay by" in ta_lint.out
    assert "Found" not in ta_lint.out
    shown = ta_lint.out
    assert ta_lint("check", "--select=TA401", f"--format={form}", "--output=report") == 1
    assert (project / "report").read_text() == shown
    assert ta_lint("check", f"--format={form}", "--statistics") == 2
    assert f"--statistics: not with --format {form}" in ta_lint.err


@pytest.mark.parametrize("form", ci.FORMATS)
def test_merged_logs_can_be_had_in_them_too(project: Path, ta_lint: Command, form: str) -> None:
    (project / "train.py").write_text(BUGGY)
    ta_lint("check", "--select=TA401", "--format=sarif", "--output=lint.sarif")
    assert ta_lint("merge", "lint.sarif", f"--format={form}") == 1
    assert "scales the decay by" in ta_lint.out


@pytest.mark.parametrize(
    ("heading", "schema"),
    [
        ("GitHub Action", "github-workflows"),
        ("GitLab", "gitlab-ci"),
        ("Azure Pipelines", "azure-pipelines"),
    ],
)
def test_what_the_guide_says_to_write_is_valid_there(tmp_path: Path, heading: str, schema: str) -> None:
    guide = (Path(__file__).parents[1] / "docs" / "ci.md").read_text()
    job = tmp_path / "job.yml"
    job.write_text(guide.partition(f"## {heading}\n")[2].partition("```yaml\n")[2].partition("```")[0])
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(job)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout

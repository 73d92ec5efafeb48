"""The SARIF log is what GitHub code scanning and the viewers expect."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from sarif_validator import unexplained

from ta_lint.core.catalogue import Rule, catalogue, parse_page
from ta_lint.core.finding import (
    Applicability,
    Finding,
    Fix,
    Related,
    Severity,
    Site,
    Suppression,
    TextEdit,
)
from ta_lint.core.sarif import sarif_log

Validate = Callable[[str], list[str]]

NOTHING_FOUND = {"SARIF2012": "where there are no results, there is no rule that a reader must understand"}
OUTSIDE = {"SARIF2016": "a file outside the project has no relative path"}


def make_rule(
    rule_id: str = "TA600",
    name: str = "missing-zero-grad",
    severity: str = "error",
    default: str = "true",
    extra: str = "",
    summary: str | None = None,
) -> Rule:
    page = f"""# {rule_id}: {name}
```toml
severity = "{severity}"
observers = ["static", "runtime"]
default = {default}
precision = "high"
fix = "unsafe"
tags = ["loop"]
since = "0.1"
{extra}
```
{summary or "Gradients add up over steps. Each step then goes astray, as in [TA601](TA601-other.md)."}

## Bad
"""
    return parse_page(f"{rule_id}-{name}.md", page)


RULES = {
    rule.id: rule
    for rule in [
        make_rule(),
        make_rule("TA100", "unsafe-load", extra='security-severity = 8.1\ncwe = ["CWE-502"]'),
        make_rule("TA700", "small-matter", severity="note", default="false"),
    ]
}
SITE = Site("train.py", 4, 9, 4, 25, "Trainer.fit")
FINDING = Finding(
    "TA600", "gradients are never cleared", Severity.ERROR, SITE, fingerprint="0123456789abcdef:1"
)


FIX = Fix(
    "clear them",
    (TextEdit(1, 1, 1, 1, "import copy\n", shared=True), TextEdit(4, 1, 5, 1, ""), TextEdit(6, 3, 6, 7, "x")),
    Applicability.UNSAFE,
)


def log_of(*findings: Finding, **settings: Any) -> Any:
    return json.loads(sarif_log(findings, RULES, version="0.1.0", **settings))


def described(*findings: Finding, rules: Mapping[str, Rule] = RULES) -> Any:
    """The rules that a log describes."""
    (run,) = json.loads(sarif_log(findings, rules, version="0.1.0"))["runs"]
    return run["tool"]["driver"]["rules"]


def of(rule_id: str) -> Finding:
    return replace(FINDING, rule=rule_id)


def result_of(finding: Finding, **settings: Any) -> Any:
    return log_of(finding, **settings)["runs"][0]["results"][0]


def location_of(finding: Finding) -> Any:
    return result_of(finding)["locations"][0]["physicalLocation"]


def at(**place: Any) -> Finding:
    return replace(FINDING, site=replace(SITE, **place))


def everything() -> list[Finding]:
    """A finding of every shape that a log can hold, save one outside the project."""
    related = (Related(Site("model.py", 1, 1, 3, 2), "the optimizer is built here"),)
    return [
        replace(FINDING, related=related, observer="runtime", evidence={"step": 3, "norm": math.nan}),
        replace(FINDING, fix=FIX),
        at(path="ünï cödé/模型 #1%?.py"),
        at(line=2, end_line=7, end_column=2, name=""),
        replace(
            FINDING, rule="TA100", severity=Severity.WARNING, suppression=Suppression(True, "# noqa: TA100")
        ),
        replace(
            FINDING, rule="TA700", severity=Severity.NOTE, suppression=Suppression(False, "per-file-ignores")
        ),
        replace(FINDING, message="`模型[0](1)` is not a link", baselined=True),
    ]


@pytest.mark.parametrize("settings", [{}, {"root": Path("/project"), "baseline": True}])
def test_the_validator_has_no_unexplained_remark(validate_sarif: Validate, settings: dict[str, Any]) -> None:
    remarks = validate_sarif(sarif_log(everything(), RULES, version="0.1.0", **settings))
    assert unexplained(remarks) == []
    assert {remark.split()[0] for remark in remarks} <= {"note"}


def test_the_validator_accepts_a_log_without_findings(validate_sarif: Validate) -> None:
    remarks = validate_sarif(sarif_log([], RULES, version="0.1.0"))
    assert unexplained(remarks, NOTHING_FOUND) == []


def test_the_validator_only_remarks_that_a_path_outside_the_project_is_absolute(
    validate_sarif: Validate,
) -> None:
    remarks = validate_sarif(sarif_log([at(path="/opt/other place/x.py")], RULES, version="0.1.0"))
    assert unexplained(remarks, OUTSIDE) == []


def test_the_validator_does_object_to_what_github_rejects(validate_sarif: Validate) -> None:
    log = log_of(FINDING)
    del log["runs"][0]["results"][0]["locations"]
    log["runs"][0]["originalUriBaseIds"]["%SRCROOT%"]["uri"] = "relative"
    remarks = " ".join(validate_sarif(json.dumps(log)))
    assert "error GH1015" in remarks
    assert "error SARIF1004" in remarks


def test_the_same_findings_give_the_same_bytes() -> None:
    script = (
        f"import runpy; tests = runpy.run_path({__file__!r}); "
        "print(tests['sarif_log'](tests['everything'](), tests['RULES'], version='0.1.0'))"
    )
    texts = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent)}
        command = [sys.executable, "-c", script]
        texts.add(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert len(texts) == 1
    assert json.loads(texts.pop()) == log_of(*everything())


def test_a_fix_holds_its_edits_as_replacements_of_regions() -> None:
    (fix,) = result_of(replace(FINDING, fix=FIX))["fixes"]
    assert fix["description"] == {"text": "Clear them."}
    assert fix["properties"] == {"applicability": "unsafe"}
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "train.py", "uriBaseId": "%SRCROOT%"}
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1},
            "insertedContent": {"text": "import copy\n"},
        },
        {
            "deletedRegion": {"startLine": 4, "startColumn": 1, "endLine": 5, "endColumn": 1},
            "insertedContent": {"text": ""},
        },
        {
            "deletedRegion": {"startLine": 6, "startColumn": 3, "endLine": 6, "endColumn": 7},
            "insertedContent": {"text": "x"},
        },
    ]


def test_the_log_is_ascii_so_that_no_terminal_spoils_it() -> None:
    assert sarif_log(everything(), RULES, version="0.1.0").isascii()


def test_the_log_says_what_it_is_before_anything_else() -> None:
    assert list(log_of()) == ["$schema", "version", "runs"]
    assert log_of()["version"] == "2.1.0"


def test_the_driver_tells_its_version() -> None:
    driver = log_of()["runs"][0]["tool"]["driver"]
    assert (driver["name"], driver["version"], driver["semanticVersion"]) == ("ta-lint", "0.1.0", "0.1.0")


def test_a_log_describes_the_rules_that_it_has_results_of_and_no_others() -> None:
    """N20: the pages of all of them are 650 kB."""
    assert described() == []
    assert [rule["id"] for rule in described(of("TA700"), of("TA600"), of("TA700"))] == ["TA600", "TA700"]
    clean = sarif_log([], catalogue(), version="0.1.0")
    assert len(clean) < 1_000
    assert len(clean) + 20_000 > len(sarif_log([FINDING], catalogue(), version="0.1.0"))


def test_a_development_version_is_not_called_semantic() -> None:
    driver = json.loads(sarif_log([], RULES, version="0.2.0.dev1"))["runs"][0]["tool"]["driver"]
    assert driver["version"] == "0.2.0.dev1"
    assert "semanticVersion" not in driver


def test_a_rule_carries_its_page() -> None:
    (rule,) = described(FINDING)
    url = "https://github.com/ta-lint/ta-lint/blob/main/rules"
    summary = "Gradients add up over steps. Each step then goes astray, as in TA601."
    assert rule["name"] == "MissingZeroGrad"
    assert rule["shortDescription"]["text"] == "Gradients add up over steps."
    assert rule["fullDescription"]["text"] == summary
    assert rule["help"]["text"] == f"{summary}\n\n{url}/TA600-missing-zero-grad.md"
    assert rule["help"]["markdown"].startswith("# TA600: missing-zero-grad\n")
    assert f"[TA601]({url}/TA601-other.md)" in rule["help"]["markdown"]
    assert rule["helpUri"] == f"{url}/TA600-missing-zero-grad.md"
    assert rule["defaultConfiguration"] == {"level": "error"}
    assert rule["properties"] == {"tags": ["loop"], "precision": "high", "problem.severity": "error"}


def test_only_a_security_rule_has_a_security_severity() -> None:
    plain, security = (rule["properties"] for rule in described(FINDING, of("TA100")))
    assert "security-severity" not in plain
    assert "security" not in plain["tags"]
    assert security["security-severity"] == "8.1"
    assert security["tags"] == ["security", "external/cwe/cwe-502", "loop"]


def test_of_too_many_tags_those_that_github_acts_on_stay() -> None:
    rule = replace(RULES["TA100"], tags=tuple(f"tag-{number}" for number in range(30)))
    tags = described(of("TA100"), rules={rule.id: rule})[0]["properties"]["tags"]
    assert len(tags) == 20
    assert tags[:3] == ["security", "external/cwe/cwe-502", "tag-0"]


def test_a_rule_that_is_off_by_default_says_so_and_a_note_is_a_recommendation() -> None:
    (rule,) = described(of("TA700"))
    assert rule["defaultConfiguration"] == {"level": "note", "enabled": False}
    assert rule["properties"]["problem.severity"] == "recommendation"


def test_a_long_description_is_cut_to_what_github_takes() -> None:
    rule = make_rule(summary="Long " * 400)
    (cut,) = described(FINDING, rules={rule.id: rule})
    assert len(cut["fullDescription"]["text"]) == 1024
    assert len(cut["shortDescription"]["text"]) == 1024


def test_a_result_names_its_rule_by_id_and_index() -> None:
    results = log_of(of("TA700"), of("TA100"))["runs"][0]["results"]
    assert [(result["ruleId"], result["ruleIndex"]) for result in results] == [("TA700", 1), ("TA100", 0)]


@pytest.mark.parametrize("severity", list(Severity))
def test_every_result_has_its_level_even_where_it_is_the_default_of_the_schema(severity: Severity) -> None:
    assert result_of(replace(FINDING, severity=severity))["level"] == severity.value


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("gradients are never cleared", "Gradients are never cleared."),
        ("torch.load runs code", "torch.load runs code."),
        ("`noqa: TA600` suppresses nothing", "`noqa: TA600` suppresses nothing."),
        ("drop_last is unset", "drop_last is unset."),
        ("non-blocking copy is read at once", "Non-blocking copy is read at once."),
        ("is this meant?", "Is this meant?"),
        ("`x[0](1)` is called", r"`x\[0\](1)` is called."),
        ("`x[0]` is read", "`x[0]` is read."),
    ],
)
def test_a_message_becomes_a_sentence_and_never_a_link(message: str, shown: str) -> None:
    assert result_of(replace(FINDING, message=message))["message"]["text"] == shown


def test_a_path_is_percent_encoded_below_the_root() -> None:
    path = "ünï cödé/模型 #1%?:.py"
    artifact = location_of(at(path=path))["artifactLocation"]
    assert artifact["uriBaseId"] == "%SRCROOT%"
    assert artifact["uri"].isascii()
    assert not set(artifact["uri"]) & set(" #?:")
    assert unquote(artifact["uri"]) == path


def test_a_path_that_is_not_unicode_keeps_its_bytes() -> None:
    assert location_of(at(path="caf\udce9.py"))["artifactLocation"]["uri"] == "caf%E9.py"


def test_a_message_that_is_not_unicode_stays_readable_json() -> None:
    assert result_of(replace(FINDING, message="`\udce9` is odd"))["message"]["text"] == r"`\udce9` is odd."


def test_a_path_outside_the_project_is_an_absolute_uri_without_a_base() -> None:
    artifact = location_of(at(path="/opt/other place/ü.py"))["artifactLocation"]
    assert artifact == {"uri": "file:///opt/other%20place/%C3%BC.py"}


def test_the_root_is_named_only_when_given(tmp_path: Path) -> None:
    assert "uri" not in log_of()["runs"][0]["originalUriBaseIds"]["%SRCROOT%"]
    for root in (tmp_path, Path("/")):
        uri = log_of(root=root)["runs"][0]["originalUriBaseIds"]["%SRCROOT%"]["uri"]
        assert uri == root.resolve().as_uri().removesuffix("/") + "/"


def test_a_region_has_an_exclusive_end_column() -> None:
    assert location_of(FINDING)["region"] == {"startLine": 4, "startColumn": 9, "endLine": 4, "endColumn": 25}


def test_a_site_of_several_lines_is_clipped_to_its_first() -> None:
    region = location_of(at(end_line=9, end_column=2))["region"]
    assert region == {"startLine": 4, "startColumn": 9, "endLine": 4}


def test_the_enclosing_name_is_a_logical_location_where_there_is_one() -> None:
    named = result_of(FINDING)["locations"][0]["logicalLocations"]
    assert named == [{"name": "fit", "fullyQualifiedName": "Trainer.fit"}]
    assert "logicalLocations" not in result_of(at(name=""))["locations"][0]


def test_our_fingerprint_never_poses_as_githubs() -> None:
    assert result_of(FINDING)["partialFingerprints"] == {"taLint/v1": "0123456789abcdef:1"}


def test_related_places_explain_themselves() -> None:
    related = Related(Site("model.py", 1, 3, 5, 2), "the optimizer is built here")
    (place,) = result_of(replace(FINDING, related=(related,)))["relatedLocations"]
    assert place["message"]["text"] == "The optimizer is built here."
    assert place["physicalLocation"]["region"] == {"startLine": 1, "startColumn": 3, "endLine": 1}


@pytest.mark.parametrize(("in_source", "kind"), [(True, "inSource"), (False, "external")])
def test_a_suppressed_finding_is_a_suppressed_result(in_source: bool, kind: str) -> None:
    suppressed = replace(FINDING, suppression=Suppression(in_source, "# noqa: TA600"))
    assert result_of(suppressed)["suppressions"] == [{"kind": kind, "justification": "# noqa: TA600"}]
    assert "suppressions" not in result_of(FINDING)


def test_a_result_is_new_or_unchanged_only_against_a_baseline() -> None:
    known = replace(FINDING, baselined=True)
    assert result_of(known, baseline=True)["baselineState"] == "unchanged"
    assert result_of(FINDING, baseline=True)["baselineState"] == "new"
    assert "baselineState" not in result_of(FINDING)


def test_evidence_is_valid_json_even_when_it_is_not_a_number() -> None:
    evidence = {"step": 3, "norm": math.nan, "peak": -math.inf, "share": 0.25, "module": "encoder.fc"}
    properties = result_of(replace(FINDING, observer="runtime", evidence=evidence))["properties"]  # type: ignore[arg-type]
    assert properties["observer"] == "runtime"
    assert properties["evidence"] == {**evidence, "norm": "nan", "peak": "-inf"}


def test_columns_count_code_points_and_the_category_ends_in_a_slash() -> None:
    run = log_of(category="ta-lint/nightly/")["runs"][0]
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["automationDetails"]["id"] == "ta-lint/nightly/"
    with pytest.raises(AssertionError):
        log_of(category="nightly")


def test_of_too_many_results_the_worst_stay_and_the_rest_is_counted() -> None:
    warnings = [replace(FINDING, severity=Severity.WARNING)] * 24_998
    known = replace(FINDING, baselined=True, fingerprint="known:1")
    note = replace(FINDING, rule="TA700", severity=Severity.NOTE)
    run = log_of(known, note, *warnings, FINDING)["runs"][0]
    assert len(run["results"]) == 25_000
    assert run["results"][0]["level"] == "error"
    assert run["results"][-1]["level"] == "note"
    assert all(
        result["partialFingerprints"] == {"taLint/v1": FINDING.fingerprint} for result in run["results"]
    )
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"].startswith("Findings left out: 1, ")


def test_a_log_that_holds_everything_needs_no_notification() -> None:
    run = log_of(*[FINDING] * 25_000)["runs"][0]
    assert len(run["results"]) == 25_000
    assert "invocations" not in run


def test_the_validator_accepts_the_notification(
    validate_sarif: Validate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ta_lint.core.sarif.MAX_RESULTS", 2)
    remarks = validate_sarif(sarif_log(everything(), RULES, version="0.1.0"))
    assert unexplained(remarks) == []

"""`ta-lint merge`: what the linter suspects and what runs measured become one log, with a verdict on each suspicion."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sarif_validator import unexplained, validate

from ta_lint.cli import main
from ta_lint.core import report
from ta_lint.core.catalogue import catalogue
from ta_lint.core.finding import Applicability, Finding, Fix, Related, Severity, Site, TextEdit, Verdict
from ta_lint.core.fingerprint import named
from ta_lint.core.logs import read_log
from ta_lint.core.sarif import sarif_log
from ta_lint.core.source import Source
from ta_lint.core.verdict import joined
from ta_lint.merging import merged

SOURCE = """\
import torch


def train(model, optimizer, loader):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        value = loss.item()
        loss.backward()
        optimizer.step()


def other(model, optimizer, loader):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.step()
"""
TRAIN, OTHER, OTHER_AGAIN, ITEM, BACKWARD = 9, 16, 17, 7, 8


def at(line: int, rule: str = "TA600", *, related: tuple[int, ...] = (), **fields: Any) -> Finding:
    """A finding of the linter at a line of the source; `related` are lines as well."""
    others = tuple(Related(Site("train.py", other, 1, other, 2), "here") for other in related)
    finding = Finding(
        rule,
        "gradients are never cleared",
        Severity.ERROR,
        Site("train.py", line, 9, line, 25),
        related=others,
    )
    return replace(finding, **fields)


def lint(*findings: Finding, source: str = SOURCE) -> list[Finding]:
    return named(findings, Source("train.py", source))


def run(*findings: Finding, source: str = SOURCE) -> list[Finding]:
    return named([replace(one, observer="runtime") for one in findings], Source("train.py", source))


def log(path: Path, findings: list[Finding], refuted: list[Finding] = []) -> Path:  # noqa: B006
    inspected = [replace(one, verdict=one.verdict or Verdict.REFUTED) for one in refuted]
    path.write_text(sarif_log(findings, catalogue(), version="0.1.0", inspected=inspected))
    return path


def verdicts(findings: list[Finding]) -> list[tuple[int, str | None]]:
    return [(finding.site.line, finding.verdict) for finding in findings]


# -- the verdict ----------------------------------------------------------------------------------------------


def test_a_suspicion_that_a_run_measures_is_confirmed_with_its_numbers() -> None:
    [finding] = joined(lint(at(TRAIN)), run(at(TRAIN, evidence={"steps": 4})), [])
    assert finding.verdict is Verdict.CONFIRMED
    assert finding.observer == "both"
    assert finding.evidence == {"steps": 4}
    assert finding.counts


def test_a_note_that_a_run_measures_has_the_severity_of_the_run() -> None:
    """The linter takes code for unused, or the harm for small; the run shows that it is neither."""
    [finding] = joined(lint(at(TRAIN, severity=Severity.NOTE)), run(at(TRAIN)), [])
    assert (finding.verdict, finding.severity) == (Verdict.CONFIRMED, Severity.ERROR)


def test_a_suspicion_that_a_run_measures_not_to_be_there_is_refuted_and_does_not_count() -> None:
    [finding] = joined(lint(at(TRAIN)), [], run(at(TRAIN, because="all 4 steps use new gradients")))
    assert finding.verdict is Verdict.REFUTED
    assert not finding.counts
    assert finding.suppression is not None
    assert not finding.suppression.in_source
    assert finding.suppression.justification == "refuted by a run: all 4 steps use new gradients"


def test_a_refuted_suspicion_is_told_in_a_sentence_and_a_finding_of_the_run_alone_as_such() -> None:
    """N13, N15."""
    looked = at(TRAIN, because="its values stay between -0.6 and 3", evidence={"step": 40, "times": 31})
    found = joined(lint(at(TRAIN)), run(at(OTHER, "TA102", evidence={"norm": 5.0})), run(looked))
    assert _table(found) == [
        ["TA102", f"train.py:{OTHER}", "found by the run alone", "gradients are never cleared (norm = 5)"],
        [
            "TA600",
            f"train.py:{TRAIN}",
            "refuted",
            "gradients are never cleared; refuted: its values stay between -0.6 and 3",
        ],
    ]


def test_findings_that_are_alike_are_one_row() -> None:
    """N21: with the first lines, and how many they are."""
    lines = sorted([OTHER, TRAIN, ITEM, BACKWARD])
    several = run(*(at(line, "TA105") for line in [*lines, lines[-1]]))
    assert _table(several) == [
        [
            "TA105",
            "train.py:" + ", ".join(map(str, lines[:3])) + " (5 in all)",
            "found by the run alone",
            "gradients are never cleared",
        ]
    ]


def _table(findings: list[Finding]) -> list[list[str]]:
    told = report.verdicts(findings, display=str, width=400, color=False)
    return [re.split(r"\s{2,}", line) for line in told.splitlines()[1:]]


def test_a_suspicion_of_which_no_run_says_anything_is_unobserved_and_counts() -> None:
    [finding] = joined(lint(at(TRAIN)), [], run(at(OTHER)))
    assert finding.verdict is Verdict.UNOBSERVED
    assert finding.observer == "static"
    assert finding.counts


def test_a_suspicion_of_a_rule_that_no_run_sees_has_no_verdict() -> None:
    [finding] = joined(lint(at(TRAIN, "TA910")), [], [])
    assert finding.verdict is None


def test_what_only_a_run_finds_stays_beside_the_suspicions() -> None:
    found = joined(lint(at(TRAIN)), run(at(TRAIN), at(OTHER, "TA102")), [])
    assert [(finding.rule, finding.observer) for finding in found] == [
        ("TA600", "both"),
        ("TA102", "runtime"),
    ]


def test_one_run_that_confirms_outweighs_another_that_refutes() -> None:
    [finding] = joined(lint(at(TRAIN)), run(at(TRAIN)), run(at(TRAIN)))
    assert finding.verdict is Verdict.CONFIRMED


def test_lines_that_moved_in_between_are_matched_by_what_stands_there() -> None:
    later = "# a comment\n\n" + SOURCE
    found = joined(
        lint(at(TRAIN), at(OTHER)), run(at(OTHER + 2), source=later), run(at(TRAIN + 2), source=later)
    )
    assert verdicts(found) == [(TRAIN, Verdict.REFUTED), (OTHER, Verdict.CONFIRMED)]


def test_of_two_equal_statements_of_a_function_the_one_on_its_line_is_meant() -> None:
    found = joined(lint(at(OTHER), at(OTHER_AGAIN)), run(at(OTHER_AGAIN)), [])
    assert verdicts(found) == [(OTHER, Verdict.UNOBSERVED), (OTHER_AGAIN, Verdict.CONFIRMED)]


@pytest.mark.parametrize(
    ("suspected", "seen"),
    [
        (at(ITEM, related=(BACKWARD,)), at(BACKWARD)),
        (at(ITEM), at(BACKWARD, related=(ITEM,))),
    ],
)
def test_a_suspicion_meets_what_was_measured_at_a_place_that_either_of_them_relates(
    suspected: Finding, seen: Finding
) -> None:
    [confirmed] = joined(lint(suspected), run(seen), [])
    assert verdicts([confirmed]) == [(ITEM, Verdict.CONFIRMED)]
    assert BACKWARD in {other.site.line for other in confirmed.related}
    assert verdicts(joined(lint(suspected), [], run(seen))) == [(ITEM, Verdict.REFUTED)]


def test_the_only_suspicion_of_a_rule_in_a_function_meets_what_a_run_measures_there() -> None:
    assert verdicts(joined(lint(at(ITEM)), run(at(BACKWARD)), [])) == [(ITEM, Verdict.CONFIRMED)]
    two = joined(lint(at(ITEM), at(6)), run(at(BACKWARD)), [])
    assert {finding.verdict for finding in two if finding.observer == "static"} == {Verdict.UNOBSERVED}


def test_that_a_run_saw_nothing_elsewhere_in_a_function_refutes_nothing() -> None:
    assert verdicts(joined(lint(at(ITEM)), [], run(at(BACKWARD)))) == [(ITEM, Verdict.UNOBSERVED)]


UNKNOWN_RULE = json.dumps(
    {
        "version": "2.1.0",
        "runs": [
            {"tool": {"driver": {"name": "ta-lint"}}, "results": [{"ruleId": "TA999", "properties": {}}]}
        ],
    }
)


# -- the files ------------------------------------------------------------------------------------------------


def test_a_log_that_is_read_back_says_what_was_written(tmp_path: Path) -> None:
    fix = Fix("clear them", (TextEdit(9, 9, 9, 9, "optimizer.zero_grad()\n"),), Applicability.UNSAFE)
    [finding] = joined(
        lint(at(TRAIN, fix=fix, related=(ITEM,), message="`x[0](y)` is one of [a](b), an odd message")),
        run(at(TRAIN, evidence={"steps": 4, "norm": 0.5, "who": "me"})),
        [],
    )
    read = read_log(log(tmp_path / "a.sarif", [finding]))
    assert read.findings == [replace(finding, site=read.findings[0].site, related=read.findings[0].related)]
    assert read.findings[0].site == finding.site
    assert [(r.site.line, r.message, r.fingerprint) for r in read.findings[0].related] == [
        (r.site.line, r.message, r.fingerprint) for r in finding.related
    ]


def test_logs_of_a_lint_and_of_several_runs_become_one_with_one_result_for_each_fingerprint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    static = log(tmp_path / "static.sarif", lint(at(TRAIN), at(OTHER), at(ITEM, "TA502")))
    first = log(tmp_path / "first.sarif", run(at(OTHER, "TA102")), run(at(TRAIN), at(OTHER)))
    second = log(tmp_path / "second.sarif", run(at(OTHER), at(OTHER, "TA102")))
    output = tmp_path / "merged.sarif"
    assert main(["merge", str(static), str(first), str(second), "-o", str(output)]) == 1
    text = output.read_text()
    assert not unexplained(validate(text, tmp_path))
    [one] = json.loads(text)["runs"]
    assert one["automationDetails"]["id"] == "ta-lint/"
    results = {
        (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"]): result
        for result in one["results"]
    }
    assert {key: result["properties"]["verdict"] for key, result in results.items()} == {
        ("TA600", TRAIN): "refuted",
        ("TA600", OTHER): "confirmed",
        ("TA502", ITEM): "unobserved",
        ("TA102", OTHER): "confirmed",
    }
    assert len({json.dumps(result["partialFingerprints"]) for result in one["results"]}) == 4
    [mark] = results["TA600", TRAIN]["suppressions"]
    assert mark["kind"] == "external"
    assert mark["justification"].startswith("refuted by a run")
    printed = capsys.readouterr().out
    assert (
        "3 suspicions of the linter: 1 confirmed, 1 refuted, 1 unobserved; 1 finding of the run alone"
        in printed
    )


def test_what_was_merged_can_be_merged_with_a_later_run(tmp_path: Path) -> None:
    static = log(tmp_path / "static.sarif", lint(at(TRAIN), at(OTHER)))
    refuting = log(tmp_path / "refuting.sarif", [], run(at(TRAIN)))
    once = tmp_path / "once.sarif"
    once.write_text(merged([static, refuting]).sarif)
    silent = log(tmp_path / "silent.sarif", [])
    assert verdicts(merged([once, silent]).findings) == [(TRAIN, "refuted"), (OTHER, "unobserved")]
    confirming = log(tmp_path / "confirming.sarif", run(at(TRAIN)))
    [first, _] = merged([once, confirming]).findings
    assert (first.verdict, first.suppression) == (Verdict.CONFIRMED, None)


def test_refuted_findings_do_not_fail_the_command(tmp_path: Path) -> None:
    static = log(tmp_path / "static.sarif", lint(at(TRAIN)))
    assert main(["merge", "-q", str(static)]) == 1
    refuting = log(tmp_path / "refuting.sarif", [], run(at(TRAIN)))
    assert main(["merge", "-q", str(static), str(refuting)]) == 0


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "not SARIF 2.1.0"),
        ('{"version": "2.0.0"}', '`version` is "2.0.0"'),
        ('{"version": "2.1.0"}', "`runs` is missing"),
        ('{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "ruff"}}}]}', "written by ruff"),
        (
            '{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "ta-lint"}}}]}',
            "`runs[0].results` is missing",
        ),
        (
            UNKNOWN_RULE,
            "`runs[0].results[0]` has the rule TA999",
        ),
    ],
)
def test_a_file_that_is_no_log_of_ours_is_refused_by_name(
    content: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.sarif"
    path.write_text(content)
    assert main(["merge", str(path)]) == 2
    told = capsys.readouterr().err
    assert "wrong.sarif" in told
    assert complaint in told


def test_a_log_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", str(tmp_path / "none.sarif")]) == 2
    assert "none.sarif" in capsys.readouterr().err

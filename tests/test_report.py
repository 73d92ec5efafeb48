"""Reports are for people first: handsome, aligned, honest about what they leave out, and safe to print."""

import inspect
import json
import math
import os
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from textwrap import dedent
from typing import Any

import pytest

from ta_lint.core import report
from ta_lint.core.catalogue import Rule, parse_page
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
from ta_lint.core.json_report import Item, as_json

FIX = Fix("clear them", (TextEdit(4, 1, 4, 1, "optimizer.zero_grad()\n"),), Applicability.UNSAFE)

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def make_rule(rule_id: str, name: str, severity: str) -> Rule:
    page = f"""# {rule_id}: {name}
```toml
severity = "{severity}"
observers = ["static"]
default = true
precision = "high"
fix = "none"
tags = ["loop"]
since = "0.1"
```
Gradients add up.
"""
    return parse_page(f"{rule_id}-{name}.md", page)


RULES = {
    "TA600": make_rule("TA600", "missing-zero-grad", "error"),
    "TA601": make_rule("TA601", "step-before-backward", "warning"),
    "TA700": make_rule("TA700", "small-matter", "note"),
}
SOURCE = [
    "def fit():",
    "    for batch in loader:",
    "\toptimizer.step()  # go",
    "",
    "    x = 模型('é') + ｗide(b)",
]
SITE = Site("train.py", 3, 2, 3, 18, "fit")
FINDING = Finding(
    "TA600", "gradients are never cleared", Severity.ERROR, SITE, fingerprint="0123456789abcdef:1"
)
WARNING = replace(FINDING, rule="TA601", severity=Severity.WARNING, message="the step comes first")
NOTE = replace(FINDING, rule="TA700", severity=Severity.NOTE, message="it is slow")
SUPPRESSED = replace(FINDING, suppression=Suppression(True, "# noqa: TA600"))
BASELINED = replace(FINDING, baselined=True)


def at(**place: Any) -> Finding:
    return replace(FINDING, site=replace(SITE, **place))


def text_of(*findings: Finding, lines: list[str] = SOURCE, color: bool = False) -> str:
    return report.text(findings, read_lines=lambda path, _: lines, display=lambda path: path, color=color)


def test_equal_findings_in_a_file_are_shown_once_with_the_lines_of_all() -> None:
    """N9: old code has the same note in a hundred lines; all are counted, and one is shown."""
    again = [replace(NOTE, site=replace(SITE, line=line)) for line in (3, 5, 7, 7)]
    other = replace(NOTE, site=replace(SITE, path="model.py", line=3))
    shown = text_of(*again, other, lines=["\tlayer()"] * 9)
    assert shown.count("it is slow") == 2
    assert "= 4 x TA700 in train.py: 3, 5, 7\n" in shown
    assert "model.py:" not in shown.replace("--> model.py:", "")
    assert report.summary([*again, other]) == "Found 5 notes in 2 files.\n"
    many = text_of(*[replace(WARNING, site=replace(SITE, line=line)) for line in range(1, 40)], lines=[])
    assert "= 39 x TA601 in train.py: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...\n" in many


def test_equal_findings_may_differ_in_names_and_in_what_stands_in_brackets() -> None:
    lines = ["loss.backward()", "total_loss.backward(retain_graph=True)", "fit(loss)"]
    found = [at(line=line, column=1, end_line=line, end_column=99) for line in (1, 2, 3)]
    shown = text_of(*found, lines=lines)
    assert "= 2 x TA600 in train.py: 1, 2\n" in shown
    assert "--> train.py:3:1" in shown


def test_what_differs_in_its_words_or_was_measured_is_shown_each_time() -> None:
    differing = replace(NOTE, message="it is slower")
    refuted = replace(NOTE, evidence={"share": 0.5})
    for pair in ((FINDING, WARNING), (NOTE, differing), (NOTE, refuted), (refuted, refuted)):
        assert " x TA" not in text_of(*pair)
        assert text_of(*pair).count("-->") == 2


def test_the_most_harmful_findings_come_first_and_otherwise_in_order_of_place() -> None:
    shown = text_of(NOTE, WARNING, at(path="b.py"), at(path="c.py"))
    places = [line.split("--> ")[1].split(":")[0] for line in shown.splitlines() if "-->" in line]
    assert places == ["b.py", "c.py", "train.py", "train.py"]
    assert shown.index("TA600 error") < shown.index("TA601 warning") < shown.index("TA700 note")


def test_hidden_notes_are_counted_with_the_option_that_shows_them() -> None:
    assert report.hidden([FINDING, NOTE]) == "1 note hidden; --show-notes shows it\n"
    assert report.hidden([NOTE, WARNING, NOTE]) == "2 notes hidden; --show-notes shows them\n"
    assert report.hidden([FINDING, replace(NOTE, baselined=True)]) == ""


def concise_of(*findings: Finding, color: bool = False) -> str:
    return report.concise(findings, display=lambda path: path, color=color)


def snapshot(expected: str) -> str:
    return dedent(expected).lstrip("\n")


def excerpt_of(finding: Finding, lines: list[str] = SOURCE) -> tuple[str, str]:
    """The source line as shown and the line of carets, without their gutters."""
    shown, carets = text_of(finding, lines=lines).splitlines()[3:5]
    return shown.partition("| ")[2], carets.partition("| ")[2]


def cells_before(text: str, part: str) -> int:
    before = text[: text.index(part)]
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in before)
    return len(before) + wide


def test_text_shows_each_finding_on_its_line() -> None:
    elsewhere = replace(WARNING, site=Site("lib/loop.py", 2, 5, 2, 24))
    assert text_of(FINDING, elsewhere) == snapshot("""
        TA600 error: gradients are never cleared
         --> train.py:3:2 in fit
          |
        3 |     optimizer.step()  # go
          |     ^^^^^^^^^^^^^^^^
          |
          = help: ta-lint rule TA600

        TA601 warning: the step comes first
         --> lib/loop.py:2:5
          |
        2 |     for batch in loader:
          |     ^^^^^^^^^^^^^^^^^^^
          |
          = help: ta-lint rule TA601

        """)


def test_text_tells_what_explains_a_finding_and_what_was_measured() -> None:
    related = (Related(Site("model.py", 7, 1, 7, 9), "the optimizer is built here"),)
    evidence = {"step": 120, "norm": 31234.5678, "peak": math.nan, "module": "encoder.fc"}
    told = replace(FINDING, related=related, evidence=evidence, site=replace(SITE, line=12, end_line=12))  # type: ignore[arg-type]
    assert text_of(told, lines=["step()"] * 12) == snapshot("""
        TA600 error: gradients are never cleared
          --> train.py:12:2 in fit
           |
        12 | step()
           |  ^^^^^
           |
           = note: model.py:7:1: the optimizer is built here
           = measured: norm = 3.123e+04, peak = nan, module = encoder.fc; first at step 120
           = help: ta-lint rule TA600

        """)


@pytest.mark.parametrize("lines", [[], SOURCE[:2]])
def test_a_file_that_vanished_or_shrank_still_has_its_place(lines: list[str]) -> None:
    assert text_of(FINDING, lines=lines) == snapshot("""
        TA600 error: gradients are never cleared
         --> train.py:3:2 in fit
          = help: ta-lint rule TA600

        """)


def test_each_file_is_read_once_for_findings_in_a_row() -> None:
    asked: list[str] = []
    report.text(
        [FINDING, WARNING, at(path="b.py"), at(path="b.py")],
        read_lines=lambda path, _: asked.append(path) or SOURCE,  # type: ignore[func-returns-value]
        display=lambda path: path,
        color=False,
    )
    assert asked == ["train.py", "b.py"]


def test_paths_are_shown_as_the_caller_wishes() -> None:
    shown = report.concise([FINDING], display=lambda path: f"../{path}", color=False)
    assert shown == "../train.py:3:2: TA600 error: gradients are never cleared\n"
    shown = report.text(
        [FINDING], read_lines=lambda path, _: [], display=lambda path: f"../{path}", color=False
    )
    assert "--> ../train.py:3:2" in shown


def test_carets_stand_under_wide_characters_and_after_tabs() -> None:
    shown, carets = excerpt_of(at(line=5, column=9, end_line=5, end_column=11))
    assert (cells_before(shown, "模型"), carets) == (8, " " * 8 + "^^^^")
    shown, carets = excerpt_of(at(line=5, column=19, end_line=5, end_column=26))
    assert carets == " " * cells_before(shown, "ｗide(b)") + "^" * 8
    shown, carets = excerpt_of(at(line=1, column=4, end_line=1, end_column=6), ["a\tb\tcd"])
    assert (shown, carets) == ("a   b   cd", "     ^^^^")


def test_a_combining_accent_takes_no_cell() -> None:
    shown, carets = excerpt_of(at(line=1, column=4, end_line=1, end_column=5), ["e\u0301 x"])
    assert (shown, carets) == ("e\u0301 x", "  ^")


@pytest.mark.parametrize(
    ("place", "carets"),
    [
        ({"line": 2, "column": 5, "end_line": 4, "end_column": 2}, "    " + "^" * 20),
        ({"line": 2, "column": 25, "end_line": 2, "end_column": 25}, " " * 24 + "^"),
        ({"line": 2, "column": 90, "end_line": 2, "end_column": 99}, " " * 24 + "^"),
        ({"line": 4, "column": 1, "end_line": 4, "end_column": 1}, "^"),
    ],
    ids=["several lines", "an empty span at the end", "past the end", "an empty line"],
)
def test_every_span_has_a_caret_and_none_leaves_its_line(place: dict[str, int], carets: str) -> None:
    assert excerpt_of(at(**place))[1] == carets


@pytest.mark.parametrize("column", [1, 30, 95, 250, 490, 500])
@pytest.mark.parametrize("length", [1, 5, 300])
def test_a_long_line_is_clipped_around_the_span(column: int, length: int) -> None:
    line = "".join(chr(ord("a") + position % 26) for position in range(500))
    end = min(column + length, 501)
    shown, carets = excerpt_of(at(line=1, column=column, end_line=1, end_column=end), [line])
    assert len(shown) <= report.WIDTH + 2
    assert len(carets) <= len(shown)
    start = carets.index("^")
    assert shown[start] == line[column - 1]
    assert start >= min(column - 1, 20), "some of what precedes the span is shown"
    visible = shown.strip("…")
    assert visible in line
    assert shown.startswith("…") == (not line.startswith(visible))
    assert shown.endswith("…") == (not line.endswith(visible))
    assert carets.count("^") == min(end - column, len(shown.rstrip("…")) - start)


def test_a_line_of_megabytes_takes_no_more_steps_than_one_of_hundreds() -> None:
    def steps(length: int) -> int:
        finding = at(line=1, column=length // 2, end_line=1, end_column=length - 100)
        taken = 0

        def step(*_: object) -> Any:
            nonlocal taken
            taken += 1
            return step

        before = sys.gettrace()
        sys.settrace(step)
        try:
            shown, _ = excerpt_of(finding, ["x" * length])
        finally:
            sys.settrace(before)
        assert len(shown) == report.WIDTH + 2
        return taken

    steps(1_000)  # loads what the others find loaded
    assert steps(10_000_000) == steps(1_000)


def test_a_hostile_file_cannot_drive_the_terminal() -> None:
    evil = "\x1b[2J\x1b]0;owned\x07 \x9b31m \u202e \u2028 \x00 \x7f \r \udce9"
    finding = replace(
        at(path=f"{evil}\n.py", line=1, end_line=1, name=evil),
        message=evil,
        related=(Related(Site(evil, 1, 1, 1, 1), evil),),
        evidence={evil: evil},
    )
    for shown in (text_of(finding, lines=[evil]), concise_of(finding), report.github([finding], RULES)):
        assert {character for character in shown if not character.isprintable()} == {"\n"}
        shown.encode("utf-8")
    assert len(concise_of(finding).splitlines()) == 1
    assert "␛[2J" in concise_of(finding)


def test_ordinary_text_in_any_script_is_left_alone() -> None:
    line = "naïve = 'ñ模型 👩\u200d💻\u00a0نمی\u200cخواهم'"
    assert excerpt_of(at(line=1, column=1, end_line=1, end_column=2), [line])[0] == line


def test_colour_adds_nothing_but_colour() -> None:
    findings = [FINDING, WARNING, replace(NOTE, related=(Related(SITE, "here"),)), SUPPRESSED]
    assert ANSI.sub("", text_of(*findings, color=True)) == text_of(*findings)
    assert ANSI.sub("", concise_of(*findings, color=True)) == concise_of(*findings)
    table = report.statistics(findings, RULES, color=True)
    assert ANSI.sub("", table) == report.statistics(findings, RULES, color=False)
    for colored in (text_of(*findings, color=True), concise_of(*findings, color=True), table):
        assert "\x1b[1;31m" in colored


@pytest.mark.parametrize("color", [False, True])
def test_rich_is_loaded_only_for_colour(color: bool) -> None:
    script = (
        "import sys; from ta_lint.core import report; "
        f"report.concise([], display=str, color={color}); print('rich' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(color)


def test_concise_is_one_line_for_each_finding() -> None:
    assert concise_of(FINDING, NOTE) == snapshot("""
        train.py:3:2: TA600 error: gradients are never cleared
        train.py:3:2: TA700 note: it is slow
        """)


def test_findings_that_do_not_count_are_only_mentioned() -> None:
    assert report.summary([SUPPRESSED, BASELINED]) == "All checks passed (1 in the baseline, 1 suppressed).\n"
    assert text_of(SUPPRESSED, BASELINED) == ""
    assert concise_of(SUPPRESSED, BASELINED) == ""
    assert report.github([SUPPRESSED, BASELINED], RULES) == ""
    assert report.statistics([SUPPRESSED, BASELINED], RULES, color=False) == ""


@pytest.mark.parametrize(
    ("findings", "line"),
    [
        ([], "All checks passed."),
        ([FINDING], "Found 1 error in 1 file."),
        ([NOTE, FINDING, FINDING], "Found 2 errors and 1 note in 1 file."),
        ([NOTE, WARNING, FINDING, at(path="b.py")], "Found 2 errors, 1 warning and 1 note in 2 files."),
        ([FINDING, BASELINED], "Found 1 error in 1 file (1 in the baseline)."),
        ([WARNING, SUPPRESSED], "Found 1 warning in 1 file (1 suppressed)."),
        ([replace(BASELINED, suppression=SUPPRESSED.suppression)], "All checks passed (1 suppressed)."),
    ],
)
def test_the_summary_counts_each_finding_once(findings: list[Finding], line: str) -> None:
    assert report.summary(findings) == line + "\n"


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ([], ""),
        ([True], "[*] 1 fixable with --fix\n"),
        ([True, False, False], "[*] 1 fixable with --fix (2 more with --unsafe-fixes)\n"),
        ([False, False], "2 fixable with --fix --unsafe-fixes\n"),
    ],
)
def test_the_last_line_says_how_to_fix(made: list[bool], line: str) -> None:
    findings = [replace(at(line=number + 1), fix=FIX) for number in range(len(made))]
    assert report.remedies([FINDING, *findings], lambda finding: made[finding.site.line - 1]) == line


def test_a_fix_that_will_be_made_is_marked_and_every_fix_is_named() -> None:
    fixable = replace(FINDING, fix=FIX)
    display = str
    line = "train.py:3:2: TA600 [*] error: gradients are never cleared\n"
    assert report.concise([fixable], display=display, color=False, fixes=lambda _: True) == line
    assert report.concise([fixable], display=display, color=False) == line.replace(" [*]", "")
    shown = report.text([fixable], read_lines=lambda path, _: [], display=display, color=False)
    assert "  = fix: clear them (unsafe)\n" in shown


def test_json_holds_every_finding_whole() -> None:
    related = (Related(Site("model.py", 7, 1, 8, 9), "the optimizer is built here"),)
    known = replace(
        SUPPRESSED, related=related, evidence={"step": 3, "norm": math.inf}, fix=FIX, baselined=True
    )
    assert json.loads(as_json([known], RULES)) == [
        {
            "rule": "TA600",
            "name": "missing-zero-grad",
            "severity": "error",
            "message": "gradients are never cleared",
            "harm": RULES["TA600"].summary,
            "confidence": RULES["TA600"].precision,
            "path": "train.py",
            "cell": None,
            "line": 3,
            "column": 2,
            "end_line": 3,
            "end_column": 18,
            "scope": "fit",
            "observer": "static",
            "verdict": None,
            "because": "",
            "evidence": {"step": 3, "norm": "inf"},
            "related": [
                {
                    "path": "model.py",
                    "cell": None,
                    "line": 7,
                    "column": 1,
                    "end_line": 8,
                    "end_column": 9,
                    "message": "the optimizer is built here",
                }
            ],
            "fix": {
                "title": "clear them",
                "applicability": "unsafe",
                "edits": [
                    {
                        "cell": None,
                        "line": 4,
                        "column": 1,
                        "end_line": 4,
                        "end_column": 1,
                        "text": "optimizer.zero_grad()\n",
                    }
                ],
            },
            "fingerprint": "0123456789abcdef:1",
            "suppression": {"in_source": True, "justification": "# noqa: TA600"},
            "baselined": True,
            "url": "https://github.com/ta-lint/ta-lint/blob/main/rules/TA600-missing-zero-grad.md",
        }
    ]


def test_json_of_an_ordinary_finding_has_no_suppression_and_no_fix() -> None:
    (item,) = json.loads(as_json([FINDING], RULES))
    assert item["suppression"] is None
    assert item["fix"] is None
    assert item["baselined"] is False


def test_json_of_nothing_is_an_empty_list() -> None:
    assert as_json([], RULES) == "[]\n"


def test_json_survives_any_terminal_and_any_file_name() -> None:
    odd = replace(at(path="caf\udce9/模型.py"), message="`\udce9`")
    written = as_json([odd], RULES)
    assert written.isascii()
    assert json.loads(written)[0]["path"] == r"caf\udce9/模型.py"


def test_github_annotates_the_exact_span() -> None:
    assert report.github([FINDING, NOTE], RULES) == snapshot("""
        ::error file=train.py,line=3,endLine=3,col=2,endColumn=18,title=TA600 missing-zero-grad::gradients are never cleared
        ::notice file=train.py,line=3,endLine=3,col=2,endColumn=18,title=TA700 small-matter::it is slow
        """)


def test_github_clips_a_site_of_several_lines_to_its_first() -> None:
    assert "line=3,endLine=3,col=2,title=" in report.github([at(end_line=9, end_column=1)], RULES)


def test_github_commands_cannot_be_broken_out_of() -> None:
    finding = replace(at(path="a,b:100%\r\n::set-env.py"), message="100%: a, b\r\n::error::mine")
    command, nothing = report.github([finding], RULES).split("\n")
    assert nothing == ""
    assert command.startswith("::error file=a%2Cb%3A100%25%0D%0A%3A%3Aset-env.py,line=3,")
    assert command.endswith("::100%25: a, b%0D%0A::error::mine")


def test_github_gets_the_worst_first_and_learns_what_it_will_not_show() -> None:
    lines = report.github([NOTE, *[WARNING] * 11, FINDING], RULES).splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["::error", *["::warning"] * 11, "::notice"]
    assert lines[-1] == (
        "1 error, 11 warnings and 1 note: GitHub annotates the first 10 of each kind, this log has all"
    )
    assert report.github([WARNING] * 10, RULES).splitlines()[-1].startswith("::warning")


def test_statistics_put_the_most_frequent_first() -> None:
    findings = [FINDING, NOTE, *[WARNING] * 12]
    assert report.statistics(findings, RULES, color=False) == snapshot("""
        12  TA601  warning  step-before-backward
         1  TA600  error    missing-zero-grad
         1  TA700  note     small-matter
        """)


def test_statistics_mark_what_fix_fixes() -> None:
    findings = [FINDING, FINDING, WARNING, NOTE]
    fixes = lambda finding: finding is WARNING
    table = report.statistics(findings, RULES, color=False, fixes=fixes)
    assert table == snapshot("""
        2  TA600       error    missing-zero-grad
        1  TA601  [*]  warning  step-before-backward
        1  TA700       note     small-matter
        """)


def test_every_field_of_the_json_is_in_the_class_that_documents_it() -> None:
    (item,) = json.loads(as_json([FINDING], RULES))
    assert list(item) == list(inspect.get_annotations(Item))

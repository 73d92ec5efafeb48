"""The pairs of `benchmarks/silent_bugs/` are well-formed, and the linter finds there what they say it must, and no more."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pairs import ANY, FOLDER, KINDS, Case, Kind, Mark, cases

from ta_lint.core.catalogue import catalogue
from ta_lint.core.config import Configs, Options
from ta_lint.engine import lint_file
from ta_lint.file import File

CASES = cases()

# Rules about the check itself, and one that needs a run to learn from.
NOT_OF_A_SCRIPT = {"TA000", "TA510"}

# The twenty errors of the TrainCheck paper, and the first of those that it found anew.
ERRORS = {
    "baichuan2-86", "pytorch-84803", "pytorch-96600", "pytorch-104336", "x-jxmnop-ddp", "deepspeed-1801",
    "deepspeed-5794", "lightning-thunder-725", "mmpretrain-702", "pytorch-51800", "pytorch-115607",
    "pytorch-forum-84911", "stackoverflow-60335387", "stackoverflow-67180955", "transformers-17877",
    "transformers-23723", "transformers-33844", "transformers-34204", "TF-33455", "TF-29903", "AC-2665",
}  # fmt: skip


def linted(case: Case, kind: Kind, folder: Path) -> set[tuple[int, str, str]]:
    """(line, rule, severity) of what the linter finds by default, and by the rule of the case."""
    script = folder / "train.py"
    script.write_text(case.text(kind), encoding="utf-8")
    rule = catalogue().get(case.rule)
    own = [rule.id] if rule is not None and "static" in rule.observers else []
    config = Configs(Options(extend_select=own, isolated=True), folder).root_config
    found = lint_file(File(script, script.name, config))
    return {(each.site.line, each.rule, each.severity.value) for each in found if each.counts}


def of(marks: list[Mark], observer: str) -> list[Mark]:
    return [mark for mark in marks if observer in mark.observers and ANY not in mark.rules]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_marks_its_bug_and_names_rules_that_exist(case: Case) -> None:
    marks = case.bugs()
    assert marks, "buggy.py has no mark"
    named = {rule for mark in [*marks, *case.suspicions()] for rule in mark.rules}
    assert named <= catalogue().keys() | {ANY}
    assert case.rule in named or (not case.rule and named == {ANY})
    assert "# bug:" not in case.text("healthy")
    assert "# suspected:" not in case.text("buggy")
    for kind in KINDS:
        compile(case.text(kind), str(case.path(kind)), "exec")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_script_says_nothing_of_its_bug_but_the_mark(case: Case) -> None:
    for kind in KINDS:
        others = re.sub(r"# (?:bug|suspected): .*", "", case.text(kind))
        assert not re.search(r"\bTA\d{3}\b|\bbug|noqa", others, re.IGNORECASE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_linter_finds_the_bugs_that_are_marked_for_it(case: Case, tmp_path: Path) -> None:
    found = {(line, rule) for line, rule, _ in linted(case, "buggy", tmp_path)}
    marks = of(case.bugs(), "static")
    missed = [mark for mark in marks if not any((mark.line, rule) in found for rule in mark.rules)]
    if "static" in case.missed:
        assert len(missed) == len(marks) > 0, "it is found now: take `static` out of `missed` in case.toml"
    else:
        assert not missed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_linter_suspects_nothing_else_in_a_healthy_script(case: Case, tmp_path: Path) -> None:
    found = linted(case, "healthy", tmp_path)
    suspected = {(mark.line, rule) for mark in of(case.suspicions(), "static") for rule in mark.rules}
    assert suspected <= {(line, rule) for line, rule, _ in found}
    alarms = {(line, rule) for line, rule, severity in found if severity != "note" or rule == case.rule}
    assert alarms <= suspected


def test_every_rule_that_source_and_run_both_see_has_a_case() -> None:
    both = {rule.id for rule in catalogue().values() if {"static", "runtime"} <= set(rule.observers)}
    assert both - {case.rule for case in CASES} <= NOT_OF_A_SCRIPT


def test_every_error_of_the_paper_has_a_case() -> None:
    assert {case.source for case in CASES} - {""} == ERRORS


SHORTENED = """\
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=30)
steps = parser.parse_args().steps


class Fit:
    def epoch(self, optimizer, parameter):
        for _ in range(steps):
            optimizer.zero_grad()
            parameter.square().sum().backward()
            optimizer.step()
        print("evaluated")


parameter = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([parameter], lr=0.1)
for epoch in range(5):
    Fit().epoch(optimizer, parameter)
print(sum(1 for _ in range(50)), "saved")
while True:
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("words", "said"), [((), "evaluated\nevaluated\n50 saved\n"), (("--kill",), "evaluated\n")]
)
def test_a_short_run_makes_40_steps_and_goes_on_unless_it_is_killed(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(SHORTENED, encoding="utf-8")
    command = [sys.executable, str(FOLDER.parent / "cut.py"), *words, "train.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout == said

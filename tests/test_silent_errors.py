"""The errors of the TrainCheck paper: each is detected within a step of its trigger, and no healthy twin alarms.

`benchmarks/silent_bugs/errors.py` asks of each means and each script; what it recorded is held here, and all that one process
can answer is asked again.
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import errors
import launch_ta_runtime
import pytest
import torch
from launch_ta_runtime import Told
from pairs import Case, cases
from sections import section
from tools import lint
from traced import Job, done

from ta_lint.core.catalogue import catalogue
from ta_runtime.invariants import file, shipped
from ta_runtime.invariants.inferring import infer
from ta_runtime.runs import Run

CASES = [case for case in cases() if case.source]
ALONE = [case for case in CASES if case.ranks == 1]
OF_RANKS = [case for case in CASES if case.name in ("TA801_lossy_reduction", "TA806_raw_module_called")]
RECORDED = errors.recorded()

by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.source)


@by_case
def test_an_error_is_detected_within_a_step_and_its_healthy_twin_never_alarms(case: Case) -> None:
    answer = RECORDED[case.name]
    assert answer.in_time
    assert not any(answer.healthy.values())


def test_the_page_has_what_was_recorded() -> None:
    table = "\n".join(errors.rendered(CASES, RECORDED))
    assert section(errors.DOCUMENT, "benchmarks/silent_bugs/errors.py").strip() == table.strip()


def traced(case: Case, folder: Path) -> list[Path]:
    """Traces of the healthy script with two other seeds, and with its own, and of the buggy one."""
    healthy = case.text("healthy")
    codes = {
        "first": errors.reseeded(healthy, 1),
        "second": errors.reseeded(healthy, 2),
        "healthy": healthy,
        "buggy": case.text("buggy"),
    }
    jobs = []
    for name, code in codes.items():
        (folder / name).mkdir()
        (folder / name / "train.py").write_text(code, encoding="utf-8")
        jobs.append(Job(str(folder / name / "train.py"), folder=str(folder / name / "trace"), level="ops"))
    done(jobs, ranks=case.ranks, told=folder / "told")
    return [folder / name / "trace" for name in codes]


def told(case: Case, folder: Path, rules: Iterable[str], *invariants: str) -> list[Told]:
    """What a run of the buggy script tells, each step audited, in the order of steps."""
    script = folder / "train.py"
    script.write_text(case.text("buggy"), encoding="utf-8")
    before, arguments, threads = Path.cwd(), sys.argv, torch.get_num_threads()
    os.chdir(folder)
    try:
        launch_ta_runtime.main(",".join(rules), str(script), *invariants)
    finally:
        os.chdir(before)
        sys.argv = arguments
        torch.set_num_threads(threads)
    path = folder / "told.0.json"
    found = [Told(**each) for each in json.loads(path.read_text("utf-8"))] if path.exists() else []
    path.unlink(missing_ok=True)
    return sorted(found, key=lambda each: each.step)


def seen(case: Case, folder: Path) -> dict[str, int]:
    """The invariants that see the error, learned or shipped, with the steps after its trigger."""
    first, second, healthy, buggy = traced(case, folder)
    found: dict[str, int] = {}
    learned = infer([Run(str(first)), Run(str(second))])
    file.save(folder / "learned.json", learned)
    if case.ranks == 1:
        for each in told(case, folder, ["TA510"], str(folder / "learned.json")):
            found.setdefault("learned, in the run", max(0, each.step - case.trigger))
    for means, held in (("learned invariant", learned), ("shipped invariant", shipped.shipped())):
        assert list(errors.breaches(healthy, held)) == []
        for step, _ in errors.breaches(buggy, held):
            found.setdefault(means, max(0, step - case.trigger))
    return found


def recorded(case: Case) -> dict[str, int]:
    """What the page says of them."""
    kept = RECORDED[case.name].buggy
    means = {"learned invariant", "shipped invariant"} | (
        {"learned, in the run"} if case.ranks == 1 else set()
    )
    return {each: kept[each].delay for each in means & kept.keys()}


def assert_no_worse(found: dict[str, int], kept: dict[str, int]) -> None:
    """Every means that the page names sees the error, and no later than the page says."""
    assert found.keys() >= kept.keys()
    assert all(found[means] <= delay for means, delay in kept.items())


@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.source)
def test_invariants_see_what_the_page_says(case: Case, tmp_path: Path) -> None:
    assert_no_worse(seen(case, tmp_path), recorded(case))


@pytest.mark.parametrize("case", OF_RANKS, ids=lambda case: case.source)
def test_invariants_see_what_the_page_says_of_two_ranks(case: Case, tmp_path: Path) -> None:
    assert_no_worse(seen(case, tmp_path), recorded(case))


@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.source)
def test_rules_see_what_the_page_says(case: Case, tmp_path: Path) -> None:
    """D10: which rule, how many steps after the trigger."""
    of_run, of_source = (
        {rule for mark in case.bugs() for rule in mark.rules if observer in mark.observers}
        for observer in ("runtime", "static")
    )
    rules = [rule.id for rule in catalogue().values() if rule.default or rule.id == case.rule]
    found: dict[str, errors.Seen] = {}
    for each in told(case, tmp_path, rules):
        if each.rule in of_run:
            found.setdefault("rule of the run", errors.Seen(each.rule, max(0, each.step - case.trigger)))
    for each in lint(case, "buggy").found:  # type: ignore[assignment]
        if each.rule in of_source:
            found.setdefault("static rule", errors.Seen(each.rule, 0))
    buggy = RECORDED[case.name].buggy
    kept = {means: buggy[means] for means in ("rule of the run", "static rule") if means in buggy}
    assert {means: found[means].what for means in found} == {means: kept[means].what for means in kept}
    assert_no_worse(*({means: seen.delay for means, seen in each.items()} for each in (found, kept)))

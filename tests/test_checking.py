"""The checker: what it tells of a run, in which order, and that it outlives its own faults; and `ta-runtime check`."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from traces import Timeline, written

from ta_runtime import facts
from ta_runtime.cli import main
from ta_runtime.invariants import checking, file
from ta_runtime.invariants.breaches import breaches
from ta_runtime.invariants.checking import Checker
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.template import BrokenInvariant
from ta_runtime.trace.event import Event

SCRIPT = "import torch\n\n\ndef train(model):\n    model.step()\n"


def dtype(call: str = "torch.nn.Linear", value: str = "float32", **values: Any) -> Invariant:
    terms = {"kind": "module", "call": call, "what": "dtype", "value": value}
    return Invariant("constant_output", terms, {}, **values)


def layer(time: Timeline, dtype: str, *, name: str = "torch.nn.Linear", **values: Any) -> Event:
    return time("module", name, **{"subject": "fc", "dtype": dtype, "shape": "2,3", **values})


def told(checker: Checker, events: Iterable[Event]) -> list[facts.Violation]:
    return list(breaches(checker.see(events)))


# -- the checker ----------------------------------------------------------------------------------------------


def test_an_invariant_that_holds_is_no_violation_and_one_that_does_not_is() -> None:
    checker, time = Checker([dtype()]), Timeline()
    assert not checker.see([layer(time, "float32")])
    [violation] = checker.see([layer(time, "float16")])
    assert violation.message == "the result of `Linear` is float16"


def test_a_suppressed_invariant_is_passed_over() -> None:
    checker = Checker([dtype(suppressed=True)])
    assert not checker.see([layer(Timeline(), "float16")])
    assert not checker.wanted
    assert not checker.not_seen


def test_what_never_happened_is_not_seen_and_no_violation() -> None:
    never = dtype("torch.nn.LSTM")
    checker = Checker([dtype(), never])
    checker.see([layer(Timeline(), "float32")])
    checker.step_over(0)
    assert not checker.over()
    assert checker.not_seen == [never]


def test_a_template_that_raises_is_switched_off_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(self: object, event: Event, rank: int) -> Iterator[BrokenInvariant]:
        raise ValueError("no")

    monkeypatch.setattr(checking.template("threshold").Watcher, "see", raising)
    bound = Invariant(
        "threshold", {"kind": "module", "call": "torch.nn.Linear", "argument": "max", "side": "max"}, {}
    )
    failures: list[str] = []
    checker, time = Checker([bound, dtype()], failures.append), Timeline()
    assert len(checker.see([layer(time, "float16")])) == 1
    assert len(checker.see([layer(time, "float16")])) == 1
    assert failures == ["the invariants of `threshold` raised ValueError: no"]


def test_only_wanted_events_reach_a_watcher() -> None:
    checker = Checker([dtype()])
    assert checker.wanted == {("module", "torch.nn.Linear")}
    assert not checker.see([layer(Timeline(), "float16", name="torch.nn.Conv2d")])


# -- groups ---------------------------------------------------------------------------------------------------


def test_what_one_call_breaks_is_one_finding_the_best_known_first() -> None:
    dimensions = Invariant(
        "constant_output", {"kind": "module", "call": "Net", "what": "dimensions", "value": "3"}, {}, holds=7
    )
    known = dtype("Net", holds=900)
    [breach] = told(Checker([dimensions, known]), [layer(Timeline(), "float16", name="Net")])
    assert breach.invariant == known.id
    assert breach.expected == "the result of `Net` is always float32"
    assert [said for _, said in breach.others] == ["the result of `Net` has 2 dimensions"]


def test_a_violation_about_an_order_comes_after_one_about_a_module() -> None:
    event = layer(Timeline(), "float16")
    order = Invariant("lead", {"first": "a", "then": "b"}, {}, holds=10**6)
    module = dtype(holds=20)
    violations = [
        BrokenInvariant(order, event, "too late", {}),
        BrokenInvariant(module, event, "is float16", {}),
    ]
    [breach] = breaches(violations)
    assert breach.invariant == module.id


def test_two_modules_steps_or_lines_are_findings_of_their_own() -> None:
    time = Timeline()
    events = [
        layer(time, "float16"),
        layer(time, "float16", subject="head"),
        layer(time, "float16", line=9),
        layer(time, "float16", step=1),
    ]
    assert len(told(Checker([dtype()]), events)) == 4


# -- the command ----------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\n")
    (tmp_path / "train.py").write_text(SCRIPT)
    file.save(tmp_path / "invariants.json", [dtype(), dtype("torch.nn.LSTM")])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_of(project: Path, *dtypes: str, name: str = "trace", parts: int = 1) -> Path:
    """A trace with one call a step, of these dtypes, on the line of the script that steps."""
    time = Timeline()
    events = [
        layer(time, each, step=step, file=str(project / "train.py"), line=5)
        for step, each in enumerate(dtypes)
    ]
    return written(project / name, {0: events}, parts=parts, command=["train.py"])


def test_check_tells_the_line_and_the_first_step(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_of(project, "float32", "float16", "float32", "float16", parts=2)
    assert main(["check", "trace", "-i", "invariants.json", "--no-shipped", "--format", "json"]) == 1
    [finding] = json.loads(capfd.readouterr().out)
    assert (finding["rule"], finding["path"], finding["line"]) == ("TA510", "train.py", 5)
    assert finding["message"] == "the result of `Linear` is float16"
    assert finding["evidence"] == {
        "invariant": dtype().id,
        "expected": "the result of `Linear` is always float32",
        "rank": 0,
        "was": "float16",
        "always": "float32",
        "name": "fc",
        "step": 1,
        "times": 2,
    }


def test_check_of_a_healthy_run_is_clean_and_lists_what_did_not_happen(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_of(project, "float32", "float32")
    assert main(["check", "trace", "-i", "invariants.json", "--no-shipped"]) == 0
    said = capfd.readouterr().out
    assert f"Not seen: whether the result of `LSTM` is always float32 ({dtype('torch.nn.LSTM').id})." in said


def test_check_keeps_to_suppressions_and_baselines(project: Path) -> None:
    run_of(project, "float16")
    command = ["check", "trace", "-i", "invariants.json", "--no-shipped", "--quiet"]
    assert main(command) == 1
    assert main([*command, "--fail-level", "error"]) == 1
    assert main([*command, "--baseline", "known.json", "--update-baseline"]) == 0
    assert main([*command, "--baseline", "known.json"]) == 0
    (project / "train.py").write_text(SCRIPT.replace("model.step()", "model.step()  # noqa: TA510"))
    assert main(command) == 0


@pytest.mark.parametrize("option", [["--ignore", "TA510"], ["--select", "TA600"], []])
def test_check_is_refused_where_the_rule_that_would_tell_is_off(
    project: Path, option: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    run_of(project, "float16")
    if not option:
        (project / "pyproject.toml").write_text('[tool.ta]\nselect = ["TA1"]\n')
    command = ["check", "trace", "-i", "invariants.json", "--no-shipped"]
    assert main([*command, *option]) == 2
    said = capfd.readouterr().err
    assert (
        "TA510 is not among the rules that are on ([tool.ta] select, --select, --ignore): these invariants would not"
        in said
    )
    assert "add --extend-select TA510" in said
    if not option:
        assert main([*command, "--extend-select", "TA510"]) == 1


def test_check_writes_sarif(project: Path) -> None:
    run_of(project, "float16")
    main(["check", "trace", "-i", "invariants.json", "--no-shipped", "--output", "ta.sarif"])
    [run] = json.loads((project / "ta.sarif").read_text())["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["TA510"]


def test_ranks_with_other_numbers_of_events_are_told_of(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    times = Timeline(), Timeline()
    long, short = (
        [layer(time, "float32", step=step) for step in range(count)]
        for time, count in zip(times, (5, 3), strict=True)
    )
    written(project / "uneven", {0: long, 1: short})
    assert main(["check", "uneven", "-i", "invariants.json", "--no-shipped"]) == 0
    assert (
        "Not seen: the same events on all ranks: rank 0 has 5 and rank 1 has 3, and they part in step 3."
        in capfd.readouterr().out
    )


def test_a_damaged_part_is_refused_by_name(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    part = run_of(project, "float32") / "events" / "rank0-00000.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    assert main(["check", "trace", "-i", "invariants.json"]) == 2
    assert "rank0-00000.parquet: damaged" in capfd.readouterr().err


@pytest.mark.parametrize("missing", [["nothing"], ["trace", "-i", "no.json"]])
def test_what_is_not_there_is_refused(
    project: Path, missing: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    run_of(project, "float32")
    assert main(["check", *missing]) == 2
    assert "no such f" in capfd.readouterr().err

"""What is learned from traces: where it holds, on what evidence, and that no run breaks what was learned from it."""

import json
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest
from commands import ta_runtime
from stories import BACKWARD, NET, STEP, Story, broken, learned, sentences, trace, wild

from ta_lint.core.errors import UsageError
from ta_runtime.invariants import file, templates
from ta_runtime.invariants.inferring import infer, merged
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.preconditions import weakest
from ta_runtime.invariants.support import wilson
from ta_runtime.invariants.template import Group
from ta_runtime.runs import Run
from ta_runtime.trace.event import Flag

LEARNS, CHANGED, UNSEEN, NONE, ZERO = Flag.REQUIRES_GRAD, Flag.CHANGED, Flag.UNSEEN, Flag.NONE, Flag.ZERO
RELU, DROPOUT = "torch.nn.functional.relu", "torch.nn.functional.dropout"


def calling(*ops: str, times: int = 20, story: Story | None = None) -> Story:
    """A module that calls these functions, so many times."""
    story = story or Story()
    for _ in range(times):
        with story.inside("module", NET):
            for name in ops:
                story.call("op", name)
    return story


# -- how sure it is ---------------------------------------------------------------------------------------------


def test_sixteen_cases_without_a_failure_are_enough_and_fifteen_are_not() -> None:
    assert wilson(15, 0) < 0.8 <= wilson(16, 0)


def test_the_bound_is_wilsons() -> None:
    assert wilson(81, 19) == pytest.approx(0.7222, abs=1e-4)
    assert wilson(0, 0) == 0
    assert wilson(0, 10) == pytest.approx(0, abs=1e-12)


def test_what_was_seen_too_rarely_is_not_learned(tmp_path: Path) -> None:
    story = calling(RELU, times=15)
    assert learned(tmp_path / "a", story) == []
    assert sentences(learned(tmp_path / "b", story, support=0.7)) == {"`Net` always calls `relu`"}


# -- where it holds ---------------------------------------------------------------------------------------------


def group(holds: int, fails: int = 0, **attributes: str) -> Group:
    return Group(attributes, holds, fails, 1)


def test_what_never_fails_needs_no_condition() -> None:
    assert weakest([group(9, phase="train"), group(9, phase="eval")], 0.8) == {}


def test_of_conditions_the_one_that_is_met_most_often_is_kept() -> None:
    groups = [
        group(20, phase="train", rank="first"),
        group(20, phase="train", rank="other"),
        group(20, phase="setup", rank="first"),
        group(0, 20, phase="eval", rank="other"),
    ]
    assert weakest(groups, 0.8) == {"phase": "train"}


def test_two_clauses_are_enough_and_three_are_too_many() -> None:
    fails = [
        group(0, 5, phase="train", rank="other", autocast="yes"),
        group(0, 5, phase="eval", rank="first", autocast="yes"),
        group(0, 5, phase="eval", rank="other", autocast="no"),
    ]
    holds = group(20, phase="train", rank="first", autocast="yes")
    assert weakest([holds, *fails], 0.8) == {"phase": "train", "rank": "first"}
    assert weakest([holds, *fails, group(0, 5, phase="train", rank="first", autocast="no")], 0.8) is None


def test_a_condition_is_as_sure_as_a_sentence_without_one() -> None:
    assert weakest([group(15, phase="train"), group(0, 5, phase="eval")], 0.8) is None


def test_a_call_made_in_training_alone_is_learned_of_training(tmp_path: Path) -> None:
    story = calling(RELU, DROPOUT)
    story.phase = "eval"
    invariants = learned(tmp_path, calling(RELU, story=story))
    assert sentences(invariants) == {
        "`Net` always calls `relu`",
        "`Net` always calls `dropout`, while it trains",
    }


# -- what a call contains ---------------------------------------------------------------------------------------


def test_a_module_that_leaves_out_a_call_breaks_it(tmp_path: Path) -> None:
    invariants = learned(tmp_path, calling(RELU, DROPOUT))
    assert broken(invariants, calling(RELU, times=1)) == ["`Net` does not call `dropout`"]
    assert broken(invariants, calling(DROPOUT, RELU, times=1)) == []


def test_what_another_run_calls_deeper_is_called(tmp_path: Path) -> None:
    story = Story()
    with story.inside("module", NET), story.inside("module", "__main__.Wrapper"):
        story.call("op", RELU)
    assert broken(learned(tmp_path, calling(RELU)), story) == []


def test_what_the_call_before_called_does_not_count(tmp_path: Path) -> None:
    story = calling(RELU, times=1)
    story.call("op", RELU)
    assert broken(learned(tmp_path, calling(RELU)), calling(times=1, story=story)) == [
        "`Net` does not call `relu`"
    ]


def test_containers_are_looked_through_and_torchs_own_modules_are_not_looked_into(tmp_path: Path) -> None:
    story = Story()
    for _ in range(20):
        with (
            story.inside("module", NET),
            story.inside("module", "torch.nn.Sequential", "body"),
            story.inside("module", "torch.nn.Sequential", "body.0"),
            story.inside("module", "torch.nn.Linear", "body.0.0"),
        ):
            story.call("op", "torch.nn.functional.linear")
    assert sentences(learned(tmp_path, story, templates=("contain",))) == {"`Net` always calls `Linear`"}


def test_of_several_sequentials_the_first_model_alone_is_meant(tmp_path: Path) -> None:
    story = Story()
    for _ in range(20):
        for subject, layer in (("", "torch.nn.Dropout"), ("critic", "torch.nn.Tanh")):
            with story.inside("module", "torch.nn.Sequential", subject):
                story.call("module", layer)
    found = learned(tmp_path, story, templates=("contain",))
    assert sentences(found) == {"`Sequential` always calls `Dropout`"}
    assert not broken(found, story)


def test_a_call_that_raised_was_compiled_or_not_traced_closely_is_not_judged(tmp_path: Path) -> None:
    invariants = learned(tmp_path, calling(RELU))
    story = Story()
    for flags in (Flag.RAISED | Flag.WHOLE, Flag.COMPILED | Flag.WHOLE, Flag.GRAD):
        story.flags = flags
        calling(times=1, story=story)
    assert broken(invariants, story) == []


def test_a_collective_in_a_backward_pass_is_learned(tmp_path: Path) -> None:
    story = Story()
    for _ in range(20):
        with story.inside("backward", BACKWARD):
            story.call("collective", "torch.distributed.reduce_scatter_tensor", "all")
    assert sentences(learned(tmp_path, story, templates=("contain",))) == {
        "`Tensor.backward` always calls `reduce_scatter_tensor`"
    }


# -- what a call changes ----------------------------------------------------------------------------------------


def stepping(*parameters: int, times: int = 20) -> Story:
    story = Story()
    for _ in range(times):
        story.optimizer_step(*parameters)
    return story


def test_a_step_that_finds_every_gradient_must_go_on_to(tmp_path: Path) -> None:
    invariants = learned(tmp_path, stepping(LEARNS | CHANGED, LEARNS | CHANGED), templates=("change",))
    assert sentences(invariants) == {
        "`AdamW.step` always changes a parameter that has a gradient",
        "`AdamW.step` always finds every gradient",
    }
    assert broken(invariants, stepping(LEARNS | CHANGED, LEARNS | NONE, times=1)) == [
        "`AdamW.step` finds parameters without a gradient"
    ]
    assert broken(invariants, stepping(LEARNS | CHANGED, LEARNS | ZERO, times=1)) == []
    assert broken(invariants, stepping(LEARNS | UNSEEN, 0, times=1)) == []


MOVES = "`AdamW.step` always changes a parameter that has a gradient"


def test_a_step_must_change_a_parameter_and_rounding_may_leave_others_alone(tmp_path: Path) -> None:
    invariants = learned(tmp_path, stepping(LEARNS | CHANGED, LEARNS | CHANGED), templates=("change",))
    assert MOVES in sentences(invariants)
    assert broken(invariants, stepping(LEARNS, LEARNS | CHANGED, times=1)) == []
    assert broken(invariants, stepping(LEARNS, LEARNS, times=1)) == ["`AdamW.step` changes no parameter"]


def at_rate(rate: float, *parameters: int, times: int) -> Story:
    story = stepping(*parameters, times=times)
    story.events = [each._replace(value=rate) if each.kind == "loop" else each for each in story.events]
    return story


def test_a_step_whose_learning_rate_is_zero_need_not_change_anything(tmp_path: Path) -> None:
    moving, resting = at_rate(0.1, LEARNS | CHANGED, times=20), at_rate(0, LEARNS, times=20)
    invariants = learned(tmp_path / "a", moving, resting, templates=("change",))
    assert MOVES in sentences(invariants), "what rests says nothing against it"
    assert broken(invariants, resting) == []
    assert broken(invariants, at_rate(0.1, LEARNS, times=1)) == ["`AdamW.step` changes no parameter"]
    warm_up = at_rate(0, LEARNS | CHANGED, times=20)
    assert MOVES not in sentences(learned(tmp_path / "b", warm_up, templates=("change",))), "nor for it"


def test_gradients_are_cleared_by_setting_them_to_none_or_to_zero(tmp_path: Path) -> None:
    story = Story()
    for _ in range(20):
        story.zero_grad(NONE, ZERO)
    invariants = learned(tmp_path, story, templates=("change",))
    assert sentences(invariants) == {"`AdamW.zero_grad` always clears every gradient"}
    story = Story()
    story.zero_grad(NONE, 0)
    assert broken(invariants, story) == ["`AdamW.zero_grad` leaves gradients in place"]


def buffers(flags: int, *, times: int = 20) -> Story:
    story = Story()
    for _ in range(times):
        with story.inside("loop", STEP):
            story.call("buffer", "torch.nn.BatchNorm1d", "norm.running_mean", flags=flags)
    return story


def test_buffers_that_change_and_that_do_not_are_learned(tmp_path: Path) -> None:
    changing = learned(tmp_path / "a", buffers(CHANGED))
    frozen = learned(tmp_path / "b", buffers(0))
    assert sentences(changing) == {"`AdamW.step` always changes the buffer `BatchNorm1d.running_mean`"}
    assert broken(changing, buffers(0, times=1)) == [
        "`AdamW.step` leaves the buffer `BatchNorm1d.running_mean` alone"
    ]
    assert broken(frozen, buffers(CHANGED, times=1)) == [
        "`AdamW.step` changes the buffer `BatchNorm1d.running_mean`"
    ]
    assert broken(frozen, buffers(CHANGED | UNSEEN, times=1)) == []


def fine_tuned(frozen: int, *, times: int = 20) -> Story:
    story = Story()
    for _ in range(times):
        with story.inside("loop", STEP):
            for name in ("body.0.weight", "body.1.weight"):
                story.call("parameter", "torch.nn.Linear", name, flags=frozen)
            story.call("parameter", "torch.nn.Linear", "head.weight", flags=LEARNS | CHANGED)
    return story


def test_what_is_frozen_is_learned_by_the_whole_module(tmp_path: Path) -> None:
    invariants = learned(tmp_path, fine_tuned(0), templates=("change",))
    assert sentences(invariants) == {"`AdamW.step` always leaves the parameters of `body` alone"}
    assert broken(invariants, fine_tuned(LEARNS | CHANGED, times=1)) == [
        "`AdamW.step` changes parameters of `body`"
    ]


def test_a_parameter_that_could_train_is_not_frozen(tmp_path: Path) -> None:
    assert learned(tmp_path, fine_tuned(LEARNS), templates=("change",)) == []


# -- several traces ---------------------------------------------------------------------------------------------


def test_what_fails_in_another_trace_is_dropped(tmp_path: Path) -> None:
    assert sentences(learned(tmp_path, calling(RELU, DROPOUT), calling(RELU, times=1))) == {
        "`Net` always calls `relu`"
    }


def test_traces_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Events of both have the same numbers."""
    for name in ("a", "b"):
        trace(tmp_path / name / "run", calling(RELU, times=8))
    invariants = infer([Run(tmp_path / name / "run") for name in ("a", "b")], threads=1)
    assert [(each.holds, each.runs) for each in invariants] == [(16, 2)]


def test_ranks_are_told_apart(tmp_path: Path) -> None:
    invariants = infer([Run(trace(tmp_path / "run", calling(RELU), calling(DROPOUT)))], threads=1)
    assert sentences(invariants) == {
        "`Net` always calls `relu`, on rank 0",
        "`Net` always calls `dropout`, on ranks other than 0",
    }


def test_a_trace_lies_where_fsspec_leads(tmp_path: Path) -> None:
    trace(tmp_path / "run", calling(RELU))
    remote = fsspec.filesystem("memory")
    remote.put(str(tmp_path / "run"), "/inferring", recursive=True)
    try:
        found = infer([Run("memory://inferring"), Run(tmp_path / "run")], threads=1)
    finally:
        remote.rm("/inferring", recursive=True)
    assert [(each.holds, each.runs) for each in found] == [(40, 2)]


def test_a_run_that_holds_no_events_is_refused_by_name(tmp_path: Path) -> None:
    folder = trace(tmp_path / "run")
    (folder / "rank0.json").write_text(json.dumps({"rank": 0, "schema": 1}))
    with pytest.raises(UsageError, match="run: has no events; make a trace with `ta-runtime collect"):
        infer([Run(folder)])


def test_a_template_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no template `contian`; the templates are .*contain"):
        learned(tmp_path, calling(RELU), templates=("contian",))


# -- what was known before --------------------------------------------------------------------------------------


def test_what_was_known_stays_unless_it_fails(tmp_path: Path) -> None:
    known = learned(tmp_path / "a", calling(RELU, DROPOUT))
    run = Run(trace(tmp_path / "b", calling(RELU)))
    assert sentences(infer([run], known=known, threads=1)) == {"`Net` always calls `relu`"}
    other = Run(trace(tmp_path / "c", stepping(LEARNS | CHANGED)))
    assert sentences(known) < sentences(infer([other], known=known, threads=1))


def test_marks_and_notes_of_a_person_stay(tmp_path: Path) -> None:
    (known,) = learned(tmp_path / "a", calling(RELU))
    (again,) = infer(
        [Run(trace(tmp_path / "b", calling(RELU, times=30)))],
        known=[replace(known, suppressed=True, note="see #12")],
        threads=1,
    )
    assert (again.id, again.suppressed, again.note, again.holds) == (known.id, True, "see #12", 30)


def test_what_now_holds_more_widely_takes_the_place_of_what_was_known() -> None:
    terms = {"parent": NET, "child": RELU}
    narrow, wide = (
        Invariant("contain", terms, {"phase": "train"}, 20, 1),
        Invariant("contain", terms, {}, 40, 1),
    )
    assert merged([wide], [narrow]) == [wide]
    assert merged([wide], [replace(narrow, note="mine")]) == [replace(narrow, note="mine"), wide]


# -- the promise ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_no_run_breaks_what_was_learned_from_it_whatever_it_does(seed: int, tmp_path: Path) -> None:
    story = wild(seed)
    invariants = learned(
        tmp_path, story, support=0.05, templates=("contain", "change", "lead", "cover", "period")
    )
    assert len({each.template for each in invariants}) > 2
    assert broken(invariants, story) == []


def test_the_order_of_a_file_is_stable(tmp_path: Path) -> None:
    story = wild(1)
    first, second = (learned(tmp_path / name, story, support=0.05) for name in "ab")
    assert [each.id for each in first] == [each.id for each in second]


# -- the command ------------------------------------------------------------------------------------------------


def test_the_command_prints_sentences_or_writes_a_file(tmp_path: Path) -> None:
    folder = str(trace(tmp_path / "run", calling(RELU)))
    printed = ta_runtime(tmp_path, "infer", folder)
    assert printed.returncode == 0
    assert printed.stdout.endswith("  `Net` always calls `relu`\n")
    assert "nothing was held out" in printed.stderr
    written = ta_runtime(tmp_path, "infer", folder, folder, "-o", str(tmp_path / "known.json"))
    assert written.stdout == ""
    assert "1 invariant of 80 events in 2 traces" in written.stderr
    assert "`ta-runtime check TRACE -i" in written.stderr
    assert sentences(file.load(tmp_path / "known.json")) == {"`Net` always calls `relu`"}
    assert ta_runtime(tmp_path, "infer", "--merge", str(tmp_path / "known.json")).stdout == printed.stdout


def test_the_command_says_what_it_needs(tmp_path: Path) -> None:
    folder = str(trace(tmp_path / "run", calling(RELU)))
    assert "usage: ta-runtime infer" in ta_runtime(tmp_path, "infer").stderr
    assert "is a folder" in ta_runtime(tmp_path, "infer", folder, "-o", str(tmp_path)).stderr
    assert "write it as 4GB" in ta_runtime(tmp_path, "infer", folder, "--memory", "much").stderr
    assert "nothing held often enough" in ta_runtime(tmp_path, "infer", folder, "--support", "0.99").stderr


def test_all_templates_have_what_is_asked_of_one() -> None:
    from ta_runtime.invariants.checking import template

    for name in templates.NAMES:
        module = template(name)
        assert {"KINDS", "candidates", "sentence", "Watcher"} <= set(vars(module)), name

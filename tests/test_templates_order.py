"""What is learned of the order of calls, and what breaks it: `lead`, `cover`, `period`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from stories import EVAL, TRAIN, Story, broken, learned, sentences

from ta_runtime.invariants.templates import cover
from ta_runtime.trace.event import Flag

ORDER = ("lead", "cover", "period")
SCHEDULER = "torch.optim.lr_scheduler.StepLR.step"


def plain(*, epochs: int = 2, steps: int = 20) -> Story:
    story = Story()
    for _ in range(epochs):
        story.epoch()
        for _ in range(steps):
            story.iteration()
    return story


def accumulated(*, epochs: int = 3, batches: int = 40, each: int = 4) -> Story:
    """Steps after each so many micro-batches, and one of what is left at the end of an epoch."""
    story = Story()
    for _ in range(epochs):
        story.epoch()
        for number in range(1, batches + 1):
            story.batch()
            story.forward()
            story.backward()
            if number % each == 0 or number == batches:
                story.optimizer_step()
                story.zero_grad()
    return story


def test_of_calls_that_take_turns_each_needs_the_one_before_and_the_first_the_last(tmp_path: Path) -> None:
    assert (
        sentences(learned(tmp_path, plain(), templates=ORDER))
        == {
            "before each `AdamW.zero_grad` there is always a new batch of loader 0",
            "before each forward pass of `Net` there is always a new `AdamW.zero_grad`",
            "before each `Tensor.backward` there is always a new forward pass of `Net`",
            "before each `Tensor.backward` there is always a new `AdamW.zero_grad`",  # of steps that are not traced closely
            "before each `AdamW.step` there is always a new `Tensor.backward`",
            "after a batch of loader 0 there is always `AdamW.step` before the next",
        }
    )


@pytest.mark.parametrize("left_out", ["zero_grad", "backward", "optimizer_step"])
def test_a_call_that_is_missing_is_missed_at_once(left_out: str, tmp_path: Path) -> None:
    invariants = learned(tmp_path, plain(), templates=ORDER)
    story = plain(epochs=1, steps=2)
    if left_out == "optimizer_step":
        story.step += 1
    for name in ("batch", "zero_grad", "forward", "backward", "optimizer_step"):
        if name != left_out:
            getattr(story, name)()
    story.batch()
    assert broken(invariants, story)


def test_calls_that_changed_places_are_seen_in_the_first_step(tmp_path: Path) -> None:
    invariants = learned(tmp_path, plain(), templates=ORDER)
    story = Story()
    story.batch()
    story.forward()
    story.backward()
    story.zero_grad()
    story.optimizer_step()
    assert broken(invariants, story) == [
        "a forward pass of `Net` comes without `AdamW.zero_grad` before it",
        "`Tensor.backward` comes without `AdamW.zero_grad` before it",
    ]


def test_a_pass_over_a_loader_is_new_once_in_a_sentence() -> None:
    assert cover.sentence({"call": "torch.optim.Adam.step", "after": "epoch of loader 0"}, {}) == (
        "before each `Adam.step` there is always a new pass of loader 0"
    )
    assert cover.sentence({"call": "epoch of loader 0", "after": "epoch of loader 1"}, {}) == (
        "before each new pass of loader 0 there is always a new pass of loader 1"
    )


def test_what_failed_once_is_not_learned(tmp_path: Path) -> None:
    story = plain()
    story.batch()
    story.forward()
    story.backward()
    story.optimizer_step()
    said = sentences(learned(tmp_path, story, templates=ORDER))
    assert "before each `AdamW.step` there is always a new `Tensor.backward`" in said
    assert not any("zero_grad`" in each.partition("new")[2] for each in said)


def test_a_condition_tells_where_it_holds(tmp_path: Path) -> None:
    story = Story()
    for _ in range(4):
        story.epoch()
        story.phase = "train"
        for _ in range(10):
            story.iteration()
        story.phase = "eval"
        for _ in range(5):
            story.forward()
    invariants = learned(tmp_path, story, templates=ORDER)
    assert (
        "before each forward pass of `Net` there is always a new `AdamW.zero_grad`, while it trains"
        in sentences(invariants)
    )
    assert broken(invariants, story) == []


def test_how_many_steps_an_epoch_has_is_not_learned(tmp_path: Path) -> None:
    """Each save lies in an epoch of its own here, and not where epochs are longer."""

    def saving(epochs: int, steps: int) -> Story:
        story = Story()
        for _ in range(epochs):
            story.epoch()
            story.call("loop", TRAIN)
            for _ in range(steps):
                story.iteration()
                if story.step % 30 == 0:
                    story.call("checkpoint", "torch.save")
            story.call("loop", EVAL)
            story.call("loop", SCHEDULER)
        return story

    invariants = learned(tmp_path, saving(40, 20), templates=ORDER)
    said = sentences(invariants)
    assert "before each `Module.eval` there is always a new `Module.train`" in said
    assert broken(invariants, saving(3, 100)) == []
    assert broken(invariants, saving(30, 7)) == []


def test_where_an_epoch_is_one_step_what_begins_it_is_not_needed_by_each_step(tmp_path: Path) -> None:
    def full(steps: int) -> Story:
        story = Story()
        for _ in range(30):
            story.call("loop", TRAIN)
            story.epoch()
            for _ in range(steps):
                story.iteration()
            story.call("loop", SCHEDULER)
        return story

    invariants = learned(tmp_path, full(1), templates=ORDER)
    assert "before each `StepLR.step` there is always a new `AdamW.step`" in sentences(invariants)
    assert broken(invariants, full(3)) == []


def test_a_loader_that_fetches_ahead_needs_no_batch_before_the_last_step(tmp_path: Path) -> None:
    """Seen only where a pass ends: of one that was cut off before nothing is learned."""
    story = Story()
    story.epoch()
    story.batch()
    for _ in range(30):
        story.iteration()
    assert not any(
        "batch" in each.partition("new")[2] for each in sentences(learned(tmp_path, story, templates=ORDER))
    )


def test_between_steps_that_are_not_traced_closely_no_module_is_missed(tmp_path: Path) -> None:
    invariants = learned(tmp_path, plain(), templates=ORDER)
    story = Story()
    for step in range(12):
        story.flags = Flag.GRAD | (Flag.WHOLE if step % 3 == 0 else 0)
        story.batch()
        story.zero_grad()
        if story.flags & Flag.WHOLE:
            story.forward()
        story.backward()
        story.optimizer_step()
    assert broken(invariants, story) == []
    assert broken(learned(tmp_path / "own", story, templates=ORDER, support=0.1), story) == []
    story.batch()
    story.backward()
    assert broken(invariants, story) == ["`Tensor.backward` comes without `AdamW.zero_grad` before it"]


def test_the_step_that_a_scaler_may_leave_out_is_needed_by_nothing(tmp_path: Path) -> None:
    story = Story()
    for _ in range(40):
        story.zero_grad()
        story.backward()
        with story.inside("loop", "torch.amp.GradScaler.step"):
            story.optimizer_step()
    said = sentences(learned(tmp_path, story, templates=ORDER))
    assert said
    assert not any("AdamW.step" in each for each in said)


def test_the_parts_of_a_model_and_of_a_call_are_no_order(tmp_path: Path) -> None:
    story = Story()
    for _ in range(40):
        with story.inside("module", "torch.nn.parallel.DistributedDataParallel"):
            story.forward()
        with story.inside("loop", "accelerate.optimizer.AcceleratedOptimizer.step"):
            story.optimizer_step()
    said = sentences(learned(tmp_path, story, templates=ORDER))
    assert said
    assert not any("Net" in each or ("Accelerated" in each and "AdamW" in each) for each in said)


def test_two_optimizers_of_a_class_are_told_apart(tmp_path: Path) -> None:
    story = Story()
    for _ in range(40):
        for model in ("Generator", "Critic"):
            story.call("loop", "torch.optim.Adam.zero_grad", model)
            story.backward()
            story.call("loop", "torch.optim.Adam.step", model)
        story.step += 1
    assert (
        "before each `Adam.step` of `Critic` there is always a new `Adam.zero_grad` of `Critic`"
        in sentences(learned(tmp_path, story, templates=ORDER))
    )


def test_micro_batches_are_counted(tmp_path: Path) -> None:
    invariants = learned(tmp_path, accumulated(), templates=("period",))
    assert sentences(invariants) == {"`Tensor.backward` always comes 4 times for each `AdamW.step`"}
    assert broken(invariants, accumulated(batches=27)) == []  # 3 are left over
    assert broken(invariants, accumulated(each=5)) != []


def test_where_no_pass_shows_how_many_steps_it_has_nothing_is_counted(tmp_path: Path) -> None:
    story = accumulated()
    story.events = [event for event in story.events if event.kind != "epoch"]
    assert learned(tmp_path, story, templates=("period",)) == []


def test_what_comes_at_each_tenth_step_is_counted(tmp_path: Path) -> None:
    def averaging(every: int, steps: int = 200, epochs: int = 2) -> Story:
        story = Story()
        for _ in range(epochs):
            story.epoch()
            for _ in range(steps):
                story.iteration()
                if story.step % every == 0:
                    story.call("collective", "torch.distributed.all_reduce", "all")
        return story

    invariants = learned(tmp_path, averaging(10), templates=("period",))
    assert sentences(invariants) == {"`AdamW.step` always comes 10 times for each `all_reduce` of `all`"}
    assert broken(invariants, averaging(10, steps=33, epochs=9)) == []
    assert broken(invariants, averaging(12)) != []


def test_what_comes_once_an_epoch_is_not_counted_in_steps(tmp_path: Path) -> None:
    story = Story()
    for _ in range(40):
        story.epoch()
        for _ in range(20):
            story.iteration()
        story.call("loop", SCHEDULER)
    assert learned(tmp_path, story, templates=("period",)) == []


@pytest.mark.parametrize("program", [plain, accumulated])
def test_a_run_does_not_break_what_was_learned_from_it(program: Callable[[], Story], tmp_path: Path) -> None:
    story = program()
    assert broken(learned(tmp_path, story, support=0.1), story) == []

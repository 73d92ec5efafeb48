"""Between looks the steps of a settled loop are but counted: nothing of ours is on torch but one pair of hooks."""

import json
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from photograph import watched
from torch import nn
from torch.utils.data import DataLoader

from ta_lint.core.errors import UsageError
from ta_runtime.audit.audit import Audit
from ta_runtime.audit.schedule import EARLY, Look, Period
from ta_runtime.audit.session import Session
from ta_runtime.probes import steps
from ta_runtime.probes.patching import original
from ta_runtime.settings import resolve


class Loop:
    """A training of a tiny model under a session."""

    def __init__(self, **options: Any) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.session = Session(resolve(**options))

    def step(self, batch: Any = None) -> None:
        self.optimizer.zero_grad()
        inputs = torch.randn(3, 4) if batch is None else batch
        self.model(inputs).pow(2).mean().backward()
        self.optimizer.step()

    def rules(self) -> list[str]:
        return [incident.rule for incident in self.session.incidents]


def trained(steps: int) -> None:
    """A training of a tiny model, in no session of its own."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(3, 4)).pow(2).mean().backward()
        optimizer.step()


@contextmanager
def idle(steps: int = EARLY + 6, **options: Any) -> Iterator[Loop]:
    """A loop that has settled, and of which nothing is to be looked at soon."""
    loop = Loop(**{"every_n_steps": 0, "gradients_every_n_steps": 0} | options)
    loop.session.start()
    try:
        for _ in range(steps):
            loop.step()
        yield loop
    finally:
        loop.session.stop()


def wrapped() -> list[str]:
    """What a loop calls in each step and has a wrapper now."""
    places: dict[str, Any] = {
        "backward": torch.autograd.backward,
        "zero_grad": torch.optim.Optimizer.zero_grad,
        "scale": torch.amp.GradScaler.scale,
    }
    return [name for name, function in places.items() if watched(function)]


def instructions(function: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    original(sys.settrace)(trace)  # it sees our frames too
    try:
        function()
    finally:
        original(sys.settrace)(before)
    return count


def test_an_idle_step_of_a_settled_loop_costs_a_counted_hook() -> None:
    with idle() as loop:
        assert wrapped() == []
        watched = min(instructions(loop.step) for _ in range(3))
    assert 0 < watched - min(instructions(loop.step) for _ in range(3)) <= 200


def test_steps_that_are_but_counted_are_in_every_count() -> None:
    with idle() as loop:
        assert loop.session.slept
        assert loop.session.step_count == loop.session.index == EARLY + 6
    assert loop.session.step_count == sum(loop.session.looked.values()) == loop.session.incidents.steps
    assert loop.session.index == EARLY + 6


def rarely() -> Loop:
    """A loop whose run decides which steps are audited, and audits by itself none but the first of 1,000."""
    loop = Loop()
    loop.session._schedule = Period(1000, 1)
    return loop


def test_what_an_epoch_begins_with_is_looked_at_in_ever_fewer_epochs() -> None:
    loop = rarely()
    loader = DataLoader(torch.randn(24, 4), batch_size=3)  # type: ignore[arg-type, var-annotated]
    loop.session.start()
    try:
        for _ in range(10):
            for batch in loader:
                loop.step(batch)
    finally:
        loop.session.stop()
    looked = [step for step in range(80) if loop.session.looks.look(step) is Look.FULL]
    seconds = [8 * epoch + 1 for epoch in (1, 2, 4, 8)]  # the epochs from 0
    assert [step for step in looked if step >= 8] == seconds


def test_what_a_later_optimizer_begins_with_is_looked_at() -> None:
    loop = rarely()
    loop.session.start()
    try:
        for _ in range(4):
            for _ in range(10):
                loop.step()
            loop.optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.01)
    finally:
        loop.session.stop()
    looked = [step for step in range(40) if loop.session.looks.look(step) is Look.FULL]
    assert [step for step in looked if step >= 10] == [11, 21]  # those of the second and the third


def test_steps_that_the_user_has_fixed_stay_as_they_are_where_epochs_begin() -> None:
    loop = Loop(every_n_steps=30)
    loader = DataLoader(torch.randn(24, 4), batch_size=3)  # type: ignore[arg-type, var-annotated]
    loop.session.start()
    try:
        for _ in range(10):
            for batch in loader:
                loop.step(batch)
    finally:
        loop.session.stop()
    assert [step for step in range(80) if loop.session.looks.look(step) is Look.FULL] == [0, 30, 60]


def test_a_loop_is_looked_at_again_and_again() -> None:
    with idle() as loop:
        patterns = loop.session.looked
        awake = 0
        for _ in range(1_000):
            loop.step()
            awake += "backward" in wrapped()
        assert 4 <= awake <= 40
    assert patterns[Look.COUNT] == EARLY + 6 + 1_000


def test_a_step_to_be_looked_at_is_looked_at_from_its_beginning() -> None:
    seen: list[tuple[int, int]] = []
    loop = Loop(every_n_steps=100, gradients_every_n_steps=0)
    loop.session._on_judged = lambda window: seen.append(
        (window.index, len(window.step.forwards) if window.step is not None else -1)
    )
    loop.session.start()
    for _ in range(310):
        loop.step()
    loop.session.stop()
    assert seen == [(0, 1), (100, 1), (200, 1), (300, 1)]
    assert loop.rules() == []


def test_a_loop_that_has_not_settled_is_told_of_in_each_step() -> None:
    with idle(EARLY - 1) as loop:
        assert "backward" in wrapped()
        assert not loop.session.slept


def test_two_optimizers_in_turn_are_told_of_in_each_step() -> None:
    with idle(0) as loop:
        other = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
        for _ in range(EARLY * 2):
            loop.step()
            other.step()
        assert "backward" in wrapped()


def test_an_evaluation_mode_that_stays_is_found_though_it_began_between_looks() -> None:
    with idle(rules="ALL") as loop:
        assert loop.session.slept
        loop.model.eval()
        loop.model(torch.randn(3, 4))
        assert not loop.session.slept
        for _ in range(200):
            loop.step()
        loop.session.flush()
        loop.session.conclude()
    assert "TA611" in loop.rules()


def test_a_scheduler_that_steps_with_its_optimizer_is_so_between_looks_too() -> None:
    loop = Loop(every_n_steps=0, gradients_every_n_steps=0, rules="ALL")
    loop.session.start()
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(loop.optimizer, T_max=300)
    for _ in range(300):
        loop.step()
        scheduler.step()
    loop.session.conclude()
    [schedule] = loop.session._run(over=True).loop.schedules
    loop.session.stop()
    assert schedule.times == schedule.optimizer_steps == 300


def test_batches_are_told_between_looks_as_they_are_in_a_loop_that_is_watched_all_the_time() -> None:
    def passes(gradients_every_n_steps: int) -> list[tuple[int, int, int]]:
        loop = Loop(every_n_steps=0, gradients_every_n_steps=gradients_every_n_steps)
        loop.session.start()
        training = DataLoader(torch.randn(400, 4), batch_size=2)  # type: ignore[arg-type, var-annotated]
        evaluation = DataLoader(torch.randn(20, 4), batch_size=2)  # type: ignore[arg-type, var-annotated]
        for _ in range(2):
            for batch in training:
                loop.step(batch)
            with torch.no_grad():
                for batch in evaluation:
                    loop.model(batch)
        found = loop.session.loaders.found
        loop.session.stop()
        return [(each.batches, each.steps, each.paired) for loader in found for each in loader.passes]

    assert passes(0) == passes(1)


def test_a_step_that_a_scaler_leaves_out_is_seen_between_looks() -> None:
    with idle() as loop:
        scaler = torch.amp.GradScaler("cpu")
        loop.optimizer.zero_grad()
        scaler.scale(loop.model(torch.full((3, 4), float("inf"))).sum()).backward()
        scaler.step(loop.optimizer)
        scaler.update()
        assert not loop.session.slept
        assert loop.session.index == EARLY + 7


def test_the_budget_looks_at_the_first_steps_in_full_and_counts_most_of_the_others() -> None:
    with idle(600, every_n_steps=None, gradients_every_n_steps=None) as loop:
        pass
    looked = loop.session.looked
    assert looked[Look.FULL] >= 4
    assert looked[Look.COUNT] > looked[Look.FULL] + looked[Look.GRADIENTS]
    assert sum(looked.values()) == 600
    assert loop.rules() == []


def test_weights_and_random_numbers_are_the_same_with_naps_and_without() -> None:
    def trained(watched: bool) -> list[torch.Tensor]:
        loop = Loop()
        if watched:
            loop.session.start()
        for _ in range(400):
            loop.step()
        loop.session.stop()
        return [*loop.model.state_dict().values(), torch.rand(3)]

    assert all(map(torch.equal, trained(True), trained(False)))


def test_everything_is_given_back_by_a_session_that_ends_in_a_nap() -> None:
    with idle() as loop:
        assert loop.session.slept
    assert wrapped() == []
    loop.session.start()
    loop.step()
    assert loop.session.step_count == EARLY + 7
    loop.session.stop()


def test_a_report_says_at_how_many_steps_the_run_looked() -> None:
    audit = Audit(resolve(every_n_steps=2, output=None, live=False))
    loop = Loop()
    audit.start()
    for _ in range(4):
        loop.step()
    audit.stop()
    assert "Looked at 2 of 4 steps in full" in audit.rendered("text")


def test_a_run_looks_at_the_steps_of_another_as_its_file_says(tmp_path: Path) -> None:
    steps, again = tmp_path / "steps.json", tmp_path / "again.json"
    runs: list[dict[str, Any]] = [{"save_schedule": steps}, {"schedule": steps, "save_schedule": again}]
    for options in runs:
        audit = Audit(resolve(live=False, **options))
        audit.start()
        trained(300)
        audit.stop()
    spans = json.loads(steps.read_text())["steps"]
    assert spans[0] == [0, 3, "full"]
    assert spans[1][0] == 4
    assert json.loads(again.read_text())["steps"] == spans


def test_a_schedule_takes_no_budget_beside_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="schedule: the file already decides the steps"):
        resolve(schedule=tmp_path / "steps.json", overhead=0.1)


def test_a_schedule_is_not_saved_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"save_schedule: .*the folder does not exist"):
        resolve(save_schedule=tmp_path / "none" / "steps.json")


def test_a_rest_that_a_timeout_cut_short_ends_when_it_is_ended_again() -> None:
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    rest = steps.Rest(weakref.ref(optimizer), steps.count() + 10, lambda: None)
    end = steps.sleep(rest)
    end()
    end()

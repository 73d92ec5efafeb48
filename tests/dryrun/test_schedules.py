"""What the dry run says of learning rate schedulers is what a real run of the same program finds."""

from pathlib import Path
from textwrap import indent

import pytest
from observed import both

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.stubs.torch.training import SCHEDULER
from ta_lint.events import Run
from ta_lint.events.event import Event

START = """\
import torch
from torch.optim import lr_scheduler

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = lr_scheduler.StepLR(optimizer, 5)


def update():
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()


"""
STEPS = "scheduler.step()\nupdate()"

PROGRAMS = {
    "after the optimizer": ("", "update()\nscheduler.step()"),
    "before the optimizer": ("", STEPS),
    "never": ("", "update()"),
    "in every epoch": ("", "scheduler.step()\nfor _ in range(4):\n    update()"),
    "after a step before the loop": ("update()\n", STEPS),
    "brought to where it was": ("for _ in range(3):\n    scheduler.step()\n", STEPS),
    "but not in the first pass": ("", "if i > 0:\n    scheduler.step()\nupdate()"),
    "with the epoch": ("", "scheduler.step(i)\nupdate()"),
    "in a function": ("def adjust():\n    scheduler.step()\n\n", "adjust()\nupdate()"),
    "by a hook": ("optimizer.register_step_post_hook(lambda *_: scheduler.step())\n", "update()"),
    "in a sequence": (
        "scheduler = lr_scheduler.SequentialLR(optimizer, [lr_scheduler.ConstantLR(optimizer), scheduler], [2])\n",
        "update()\nscheduler.step()",
    ),
    "in a chain": (
        "scheduler = lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(optimizer, 3)])\n",
        "update()\nscheduler.step()",
    ),
    "loaded before": ("scheduler.load_state_dict(scheduler.state_dict())\n", "update()\nscheduler.step()"),
}


def calls(run: Run) -> dict[int, tuple[int | None, bool]]:
    """By line: the calls before the first step of the optimizer, and whether a call has an argument."""
    known = (one for one in run.loop.schedules if one.before_first is not None)
    return {one.place.line: (one.before_first, one.has_argument) for one in known}


def built(run: Run) -> dict[int, bool]:
    """By line: whether a scheduler steps, of those that no other one steps or has replaced."""
    kept = (one for one in run.loop.schedulers if not (one.is_part or one.is_replaced))
    return {one.built.line: one.steps > 0 for one in kept}


@pytest.mark.parametrize(("before", "body"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_scheduler_does_in_the_dry_run_what_it_does_in_the_real_one(
    before: str, body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"{START}{before}for i in range(20):\n{indent(body, '    ')}\n"
    real, dry = both(code, tmp_path, monkeypatch)
    shared = calls(dry).keys() & calls(real).keys()  # a run does not look at the calls of a chain
    assert {line: calls(dry)[line] for line in shared} == {line: calls(real)[line] for line in shared}
    assert built(dry) == built(real)
    assert real.loop.schedulers, "a program without one says nothing"


def test_an_argument_that_is_annotated_with_the_module_of_schedulers_is_one(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n\n\ndef fit(rates: torch.optim.lr_scheduler):\n    for _ in range(9):\n        rates.step()\n"
    )
    first = next(event for event in dry_run(str(script)).events if event.action == Action.SCHEDULE)
    assert first.subject.cls is SCHEDULER


def happens(tmp_path: Path, code: str, action: Action) -> list[Event]:
    """The events of one action in a dry run of a script."""
    script = tmp_path / "train.py"
    script.write_text(code)
    return [event for event in dry_run(str(script)).events if event.action == action]


CHOSEN = """\
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if input():
    scaler = torch.amp.GradScaler("cuda")
else:
    scaler = torch.cuda.amp.GradScaler()
scaler.step(optimizer)
"""


def test_a_step_through_either_of_two_scalers_is_one_and_certain(tmp_path: Path) -> None:
    [step] = happens(tmp_path, CHOSEN, Action.STEP)
    assert step.certain


def test_a_step_of_either_of_two_optimizers_is_certain_for_none(tmp_path: Path) -> None:
    code = "import torch\nchosen = {'a': first, 'b': second}[input()]\n"
    built = "first, second = (torch.optim.SGD([torch.nn.Parameter(torch.ones(1))]) for _ in range(2))\n"
    steps = happens(tmp_path, "import torch\n" + built + code + "chosen.step()\n", Action.STEP)
    assert len(steps) == 2
    assert not any(step.certain for step in steps)


def test_a_scheduler_that_code_out_of_sight_makes_is_of_the_optimizer_that_this_code_gets(
    tmp_path: Path,
) -> None:
    code = """
import torch
def train(first, second, make, loader, loss):
    first, second = torch.optim.SGD(first), torch.optim.SGD(second)
    scheduler = make(second)
    for x in loader:
        scheduler.step()
        first.step()
        second.step()
"""
    script = tmp_path / "train.py"
    script.write_text(code)
    [calls] = run_of(dry_run(str(script)).events).loop.schedules
    assert calls.first is not None
    assert (calls.first.line, calls.before_first, calls.begins) == (9, 1, True)

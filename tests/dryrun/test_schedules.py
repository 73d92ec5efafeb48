"""What the dry run says of learning rate schedulers is what a real run of the same program finds."""

from pathlib import Path
from textwrap import indent

import pytest
from observed import both

from ta_lint.core.protocol import Action
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.stubs.torch.training import SCHEDULER
from ta_lint.events import Run

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


def calls(run: Run) -> dict[int, tuple[int, bool]]:
    """By line: the calls before the first step of the optimizer, and whether a call has an argument."""
    return {one.place.line: (one.before_first, one.has_argument) for one in run.loop.schedules}


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

"""What a dry run says of the passes over loaders is what a real run of the same program finds."""

from pathlib import Path

import pytest
from observed import both

from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.machine.entries import run_script
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.program import Program, layout_of
from ta_lint.events.loaders import Loader
from ta_lint.events.run import Run

START = """\
import itertools
import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(64, 4))
loader = DataLoader(data, batch_size=8, shuffle=True)
other = DataLoader(data, batch_size=16)
sampler = DistributedSampler(data, num_replicas=2, rank=0)
shared = DataLoader(data, batch_size=8, sampler=sampler)


def step(batch):
    optimizer.zero_grad()
    model(batch[0]).square().mean().backward()
    optimizer.step()


def endless(over):
    while True:
        yield from over


"""


PROGRAMS = {
    "epochs": "for epoch in range(3):\n    for batch in loader:\n        step(batch)",
    "in order": "for epoch in range(3):\n    for batch in other:\n        step(batch)",
    "a batch in each step": "for number in range(30):\n    step(next(iter(loader)))",
    "by a function": (
        "def first(over):\n    for batch in over:\n        return batch\nfor number in range(30):\n    step(first(loader))"
    ),
    "a batch of each of two loaders": "for _ in range(10):\n    for batch in other:\n        step(batch)\n        step(next(iter(loader)))",
    "without end": "batches = endless(loader)\nfor number in range(30):\n    step(next(batches))",
    "anew where it ends": (
        "batches = iter(loader)\nfor number in range(30):\n    try:\n        batch = next(batches)\n"
        "    except StopIteration:\n        batches = iter(loader)\n        batch = next(batches)\n    step(batch)"
    ),
    "a look at another loader": (
        "for epoch in range(30):\n    with torch.no_grad():\n        model(next(iter(other))[0])\n"
        "    for batch in loader:\n        step(batch)"
    ),
    "again and again": "for number, batch in zip(range(30), itertools.cycle(loader)):\n    step(batch)",
    "shuffled alike": "for epoch in range(3):\n    for batch in shared:\n        step(batch)",
    "told the epoch": (
        "for epoch in range(3):\n    sampler.set_epoch(epoch)\n    for batch in shared:\n        step(batch)"
    ),
    "told by its attribute": (
        "for epoch in range(20):\n    shared.sampler.epoch = epoch\n    for batch in shared:\n        step(batch)"
    ),
}


def facts(loader: Loader) -> dict[str, object]:
    """What both observers say alike of a loader, however many passes of a loop one of them counts."""
    orders = [one.shuffled_by for one in loader.training_passes if one.shuffled_by is not None]
    return {
        "line": loader.place.line,
        "sampler": loader.sampler,
        "draws once": loader.draws_once,
        "trained": any(one.steps for one in loader.passes),
        "begun at": {one.begun.line for one in loader.training_passes if one.begun is not None},
        "restarts": loader.restarted >= 20,
        "replayed": any(one.replayed for one in loader.passes),
        "alike": len(orders) > 1 and len(set(orders)) == 1,
    }


def iterated(run: Run) -> list[Loader]:
    """The loaders that are gone over, by their lines."""
    return sorted((one for one in run.loaders if one.passes), key=lambda one: one.place.line)


@pytest.mark.parametrize("what", PROGRAMS)
def test_the_passes_of_a_dry_run_are_those_of_the_real_one(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, said = (iterated(run) for run in both(START + PROGRAMS[what], tmp_path, monkeypatch))
    assert [facts(one) for one in said] == [facts(one) for one in seen]
    assert all(one.length in (None, other.length) for one, other in zip(said, seen, strict=True))


def test_code_out_of_sight_may_set_the_epoch(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{START}import engine\nengine.attach(shared)\n{PROGRAMS['shuffled alike']}")
    [loader] = iterated(run_of(dry_run(str(script)).events))
    assert {one.shuffled_by for one in loader.training_passes} == {None}


LONG = (
    "for epoch in range(50):\n    for batch in loader:\n        step(batch)\n" + "        _ = epoch\n" * 700
)


@pytest.mark.parametrize(("at_its_end", "restarts"), [("pass", False), ("break", True)])
def test_a_pass_in_which_the_dry_run_breaks_off_may_go_on(
    at_its_end: str, restarts: bool, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{START}{LONG}        {at_its_end}\n")
    machine = Machine(Program(layout_of(str(script))), 2000)
    run_script(machine, str(script))
    run = run_of(machine.events)
    [loader] = iterated(run)
    assert run.broke_off
    assert (loader.restarted >= 20) is restarts

"""What the dry run says of the cadence of schedulers and of what their lengths count."""

from pathlib import Path

import pytest

from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.events.loop import Unit

START = """\
import math
import torch
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader


def train(model, dataset, args, epochs, k):
    loader = DataLoader(dataset, args.batch_size, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    each = len(loader)
    schedule = lr_scheduler.LinearLR(optimizer, total_iters={length})
    for epoch in range(epochs):
        for i, batch in enumerate(loader):
            (model(batch).mean() / k).backward()
            {condition}
                optimizer.step()
                optimizer.zero_grad()
                {inner}
        {outer}
"""
STEP = "schedule.step()"
PER_BATCH = {"condition": "if True:", "inner": STEP, "outer": "pass"}
PER_STEP = {"condition": "if (i + 1) % k == 0:", "inner": STEP, "outer": "pass"}
PER_EPOCH = {"condition": "if True:", "inner": "pass", "outer": STEP}

LENGTHS = {
    "epochs": Unit.EPOCH,
    "int(0.9 * epochs)": Unit.EPOCH,
    "epochs - args.warm": Unit.EPOCH,
    "epochs * each": Unit.BATCH,
    "round(epochs * len(loader))": Unit.BATCH,
    "len(dataset) // args.batch_size * epochs": Unit.BATCH,
    "max(1, each * epochs)": Unit.BATCH,
    "each * epochs // k": Unit.STEP,
    "math.ceil(each / k) * epochs": Unit.STEP,
    "len(dataset) / args.batch_size / k * epochs": Unit.STEP,
    "each * epochs - args.warm": Unit.STEP,
    "args.steps": None,
    "1000": None,
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    ("cadence", "expected"),
    [(PER_BATCH, Unit.BATCH), (PER_STEP, Unit.STEP), (PER_EPOCH, Unit.EPOCH)],
    ids=["per batch", "per step", "per epoch"],
)
def test_a_schedule_steps_for_one_unit_and_counts_another(
    length: str, cadence: dict[str, str], expected: Unit, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(START.format(length=length, **cadence))
    [schedule] = run_of(dry_run(str(script)).events).loop.schedules
    assert (schedule.steps_per, schedule.length_in) == (expected, LENGTHS[length])


@pytest.mark.parametrize("condition", ["if batch.ndim > 1:", "if i > 5:", "if i == len(loader) - 1:"])
def test_a_schedule_that_waits_for_something_else_steps_for_nothing(condition: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(START.format(length="epochs", condition=condition, inner=STEP, outer="pass"))
    [schedule] = run_of(dry_run(str(script)).events).loop.schedules
    assert schedule.steps_per is None

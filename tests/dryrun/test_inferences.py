"""What the dry run says of forward passes that train nothing is what a real run of the same program says."""

from pathlib import Path
from textwrap import indent

import pytest
from observed import both

from ta_lint.events import Run

START = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

train = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=8)
held_out = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), batch_size=8)
model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 1))
plain = nn.Linear(4, 1)
optimizer = torch.optim.SGD([*model.parameters(), *plain.parameters()], lr=0.01)
for epoch in range(3):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x) + plain(x), y).backward()
        optimizer.step()
"""
EVALUATION = """\
with torch.no_grad():
    for x, y in held_out:
        print(nn.functional.mse_loss({}(x), y).item())
"""
AFTER = {
    "in training mode": EVALUATION.format("model"),
    "in evaluation mode": "model.eval()\n" + EVALUATION.format("model"),
    "of a model without such layers": EVALUATION.format("plain"),
    "in training mode on purpose": "model.train()\n" + EVALUATION.format("model"),
    "with a graph": EVALUATION.replace("torch.no_grad()", "torch.enable_grad()").format("model.eval()"),
    "for targets": "for x, y in train:\n    with torch.no_grad():\n        t = model(x)\n    optimizer.zero_grad()\n"
    "    nn.functional.mse_loss(plain(x), t).backward()\n    optimizer.step()",
}


def found(run: Run) -> list[tuple[int, bool, bool, bool]]:
    """By line: whether an evaluation is in training mode, whether it has layers for which that matters, and whether a graph is recorded."""
    shown = (
        (one.place.line, one.noisy > 0 and one.measured > 0, one.unsettled > 0, one.graphs > 0)
        for one in run.inferences
    )
    return sorted(one for one in shown if any(one[1:2] + one[3:]))


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER.keys())
def test_the_dry_run_knows_the_evaluations_that_the_run_sees(
    after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, dry = both(START + indent(after, "    "), tmp_path, monkeypatch)
    assert found(dry) == found(real)

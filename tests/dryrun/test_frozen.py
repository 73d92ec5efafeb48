"""What the dry run says of frozen parts in training mode is what a real run of the same program says."""

from pathlib import Path
from textwrap import indent

import pytest
from observed import both

from ta_lint.events import Run

START = """\
import copy

import torch
from torch import nn

backbone = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU())
head = nn.Linear(8, 2)
model = nn.Sequential(backbone, head)
optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
"""
LOOP = """
for _ in range(8):
    optimizer.zero_grad()
    model(torch.randn(16, 8)).square().mean().backward()
    optimizer.step()
"""
BEFORE = {
    "frozen, and in training mode from the beginning": "backbone.requires_grad_(False)",
    "frozen, and put into training mode": "backbone.requires_grad_(False)\nmodel.train()",
    "frozen one by one": "for p in backbone.parameters():\n    p.requires_grad = False\nmodel.train()",
    "frozen by name": "for n, p in model.named_parameters():\n    p.requires_grad_(n.startswith('1'))\nmodel.train()",
    "put into evaluation mode afterwards": "backbone.requires_grad_(False)\nmodel.train()\nbackbone.eval()",
    "its batch norm is put into evaluation mode": "backbone.requires_grad_(False)\nmodel.train()\nfor m in model.modules():\n    if isinstance(m, nn.BatchNorm1d):\n        m.eval()",
    "frozen in part": "backbone[1].requires_grad_(False)\nmodel.train()",
    "not frozen": "model.train()",
    "frozen after that": "model.train()\nbackbone.requires_grad_(False)",
    "in evaluation mode as a whole": "backbone.requires_grad_(False)\nmodel.eval()",
}


def found(run: Run) -> dict[int, tuple[bool, bool]]:
    """By line: whether batch norms of frozen parts move, and whether all are in evaluation mode."""
    return {one.place.line: (one.norms > 0, one.still == one.looks) for one in run.frozen_parts if one.looks}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE.keys())
def test_the_dry_run_knows_the_frozen_parts_that_the_run_sees(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"{START}def prepare():\n{indent(before, '    ')}\n\n\nprepare()\n{LOOP}"
    real, dry = both(code, tmp_path, monkeypatch)
    assert found(dry) == found(real)

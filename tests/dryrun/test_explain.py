"""`explain` tells a training step in words."""

from pathlib import Path

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.explain import explain

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

body, head = nn.Linear(8, 8), nn.Linear(8, 2)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(2, (64,))), batch_size=8)
for epoch in range(9):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(body(x)), y).backward()
        optimizer.step()


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            model(x)
"""


def test_the_loops_and_the_actions_in_them_are_told_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT, "utf-8")
    told = [" ".join(line.split()) for line in explain(dry_run(str(path)), str(path))]
    assert told == [
        "6 optimizer = torch.optim.SGD(head.parameters(), lr=0.1) SGD of 2 parameters",
        "8 for epoch in range(9):",
        "9 for x, y in loader:",
        "10 optimizer.zero_grad() gradients are cleared",
        "11 nn.functional.cross_entropy(head(body(x)), y).backward() Linear in training mode",
        "11 nn.functional.cross_entropy(head(body(x)), y).backward() loss: cross_entropy",
        "11 nn.functional.cross_entropy(head(body(x)), y).backward() gradients reach 4 parameters",
        "12 optimizer.step() step of SGD",
        "",
        "evaluate, line 15: nothing here calls it, so its arguments are guessed",
        "16 model.eval() eval",
        "18 for x, y in loader:",
        "19 model(x) a module out of sight in evaluation mode, not recorded",
    ]

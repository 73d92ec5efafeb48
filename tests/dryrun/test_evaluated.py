"""What the dry run knows of loaders that evaluate: models are asked about their batches, and none learns from them."""

from pathlib import Path

import pytest

from ta_lint.dryrun.collect.loaders import loaders_of
from ta_lint.dryrun.dryrun import dry_run

_SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

from data import Photos, test_set, train_set, other

model = nn.Sequential(nn.Linear(3, 3), nn.Dropout())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(DATA, batch_size=8)
USE
"""
_ASK = "model.eval()\nfor x, y in loader: print(nn.functional.mse_loss(model(x), y).item())"
_LEARN = "for x, y in loader:\n    nn.functional.mse_loss(model(x), y).backward()\n    optimizer.step()\n    optimizer.zero_grad()"


@pytest.mark.parametrize(
    ("data", "use", "expected"),
    [
        ("Photos()", _ASK, True),
        ("train_set", _ASK, True),
        ("Photos()", "with torch.no_grad():\n    print([model(x) for x, _ in loader])", True),
        ("Photos()", _LEARN, False),
        ("test_set", _LEARN, False),
        ("Photos()", _LEARN + "\n" + _ASK, False),
        ("Photos()", _ASK + "\n" + _LEARN, False),
        ("Photos()", "model.eval()\nx, y = next(iter(loader))\nprint(model(x))", False),
        ("Photos()", "for x, y in loader: print(x.mean())", False),
        ("test_set", "for x, y in loader: print(x.mean())", True),
        ("test_set", "print(next(iter(loader)))", False),
        ("test_set", "", True),
        ("train_set", "", False),
        ("other", "", False),
        (
            "Photos()",
            "model.eval()\nfor x, y in loader: nn.functional.cross_entropy(model(x), torch.arange(len(x)))",
            False,
        ),
    ],
)
def test_a_loader_evaluates(data: str, use: str, expected: bool, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(_SCRIPT.replace("DATA", data).replace("USE", use))
    [loader] = loaders_of(dry_run(str(path)).events)
    assert loader.evaluates is expected

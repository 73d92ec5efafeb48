"""What a program sets on modules and optimizers that torch does not read there."""

from pathlib import Path

import pytest

from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.events import Run

START = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""


def of(code: str, folder: Path) -> Run:
    (folder / "train.py").write_text(START + code)
    return run_of(dry_run(str(folder / "train.py")).events)


@pytest.mark.parametrize(
    "code",
    [
        "net.requires_grad = False",
        "net[1].requires_grad = True",
        "setattr(net, 'requires_grad', False)",
        "part = next(net.children())\npart.requires_grad = False",
        "def freeze(thing):\n    for name, part in thing.named_children():\n        part.requires_grad = False",
        "def freeze(thing):\n    thing.eval()\n    thing.requires_grad = False",
    ],
)
def test_a_module_that_is_flagged(code: str, tmp_path: Path) -> None:
    assert len(of(code, tmp_path).flags) == 1


@pytest.mark.parametrize(
    "code",
    [
        "net[1].weight.requires_grad = False",
        "net.requires_grad_(False)",
        "net.requires_grad = False\nprint(net.requires_grad)",
        "def freeze(model):\n    model.requires_grad = False",
        "def freeze(thing):\n    thing.requires_grad = False",
    ],
)
def test_a_flag_that_the_program_reads_or_of_what_is_perhaps_no_module(code: str, tmp_path: Path) -> None:
    assert not of(code, tmp_path).flags


def test_a_flag_keeps_what_it_says(tmp_path: Path) -> None:
    [flag] = of("net.requires_grad = False\n", tmp_path).flags
    assert (flag.place.line, flag.parameters) == (6, 0)


@pytest.mark.parametrize(
    ("code", "rates"),
    [
        ("optimizer.lr = 0.01", ["optimizer.lr"]),
        ("optimizer.param_groups[0]['lr'] = 0.01", []),
        ("optimizer.lr = 0.01\nprint(optimizer.lr)", ["optimizer.lr"]),
        ("optimizer.lr = 0.01\nfor one in optimizer.param_groups:\n    one['lr'] = optimizer.lr", []),
        (
            "def slow(it):\n    it.zero_grad()\n    it.step()\n    it.learning_rate = 0.01",
            ["it.learning_rate"],
        ),
        ("def slow(optimizer):\n    optimizer.lr = 0.01", []),
        (
            "class Own(torch.optim.SGD):\n    def slow(self):\n        self.lr = 0.1\nown = Own(net.parameters())\nown.lr = 1",
            [],
        ),
    ],
)
def test_a_rate_that_is_set_on_an_optimizer(code: str, rates: list[str], tmp_path: Path) -> None:
    assert [rate.code for rate in of(code, tmp_path).rates] == rates

"""The work of linting a file grows with the file, not with its square: counted in calls, equal on every machine."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ta_lint.core.config import Configs, Options
from ta_lint.engine import lint_file
from ta_lint.file import File


def lines(count: int) -> bytes:
    """A variable that many lines wrap once more."""
    return ("from torch.autograd import Variable\nx = 1\n" + "y = Variable(x)\n" * count).encode()


def cell(count: int) -> bytes:
    """One cell of a notebook, in which each line has a finding."""
    code = ["import torch\n", *["torch.load('a', weights_only=False)\n"] * count]
    return json.dumps({"cells": [{"cell_type": "code", "source": code}], "nbformat": 4}).encode()


@pytest.mark.parametrize(("name", "made"), [("train.py", lines), ("train.ipynb", cell)])
def test_four_times_as_much_code_takes_four_times_the_work(
    name: str, made: Callable[[int], bytes], tmp_path: Path
) -> None:
    config = Configs(Options(select=["TA700", "TA906"], isolated=True), tmp_path).root_config

    def linted(count: int) -> int:
        file = File(name, name, config, made(count))
        found: list[Any] = []
        calls = calls_of(lambda: found.extend(lint_file(file)))
        assert len(found) == count
        return calls

    linted(10)  # what is made once for a process
    assert linted(400) < 1.2 * 4 * linted(100)


def calls_of(task: Callable[[], Any]) -> int:
    """How many functions a task calls, those of C included."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        task()
    finally:
        sys.setprofile(None)
    return calls


LOOP = """\
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""


def branches(count: int) -> str:
    """A variable that each of so many branches assigns."""
    return LOOP + "if x:\n    pass\n" + "".join(f"elif x == {n}:\n    y = {n}\n" for n in range(count))


def dots(count: int) -> str:
    """An attribute of an attribute of an attribute of a model."""
    head = "from torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n"
    return (
        head + f"        return self{'.a' * count}.last(x)\n" + LOOP.replace("torch.nn.Linear(4, 1)", "Net()")
    )


@pytest.mark.parametrize("made", [branches, dots])
def test_many_branches_and_long_chains_take_no_more_than_their_share(
    made: Callable[[int], str], tmp_path: Path
) -> None:
    config = Configs(Options(select=["ALL"], isolated=True), tmp_path).root_config

    def calls(count: int) -> int:
        file = File("train.py", "train.py", config, made(count).encode())
        return calls_of(lambda: lint_file(file))

    calls(2)  # what is made once for a process
    assert calls(80) < 10 * calls(10)

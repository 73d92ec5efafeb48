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

"""The dry run does no more work than it must: what trains nothing runs in outline, and large packages import on demand."""

from pathlib import Path

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import Function, Known, OnDemand, Sequence, Unknown

LAYERS = """\
import torch

class Block(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.Sequential(*[Block(8) for _ in range(6)])

    def forward(self, x):
        return self.blocks(x)
"""


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, source in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source, "utf-8")
    return folder


def calls_of(machine: Machine, cls: str) -> int:
    return sum(event.action == "forward" and event.subject.cls.name == cls for event in machine.events)


def test_layers_that_nothing_trains_run_once(tmp_path: Path) -> None:
    path = written(tmp_path, {"layers.py": LAYERS}) / "layers.py"
    once = dry_run(str(path)).steps
    path.write_text(LAYERS.replace("range(6)", "range(12)"), "utf-8")
    assert dry_run(str(path)).steps <= once + 6 * 4  # go on to the element, evaluate it, make it, and call it


def test_layers_that_a_script_trains_run_in_full(tmp_path: Path) -> None:
    train = "\nnet = Net()\nnet(torch.ones(1, 8)).sum().backward()\n"
    path = written(tmp_path, {"train.py": LAYERS + train}) / "train.py"
    machine = dry_run(str(path))
    assert calls_of(machine, "Block") == 6
    (reached,) = [event.detail["roots"] for event in machine.events if event.action == "backward"]
    assert len(reached) == 12


def test_a_function_that_calls_what_trains_runs_in_full(tmp_path: Path) -> None:
    train = """
def fit(net):
    net(torch.ones(1, 8)).sum().backward()

def main():
    first, second = Net(), Net()
    fit(first)
    fit(second)
"""
    path = written(tmp_path, {"train.py": LAYERS + train}) / "train.py"
    reached = [event.detail["roots"] for event in dry_run(str(path)).events if event.action == "backward"]
    assert [len(one) for one in reached] == [12, 12]


def test_a_comment_about_training_trains_nothing(tmp_path: Path) -> None:
    said = LAYERS.replace(
        "        return self.linear(x)", "        # then backward() and step()\n        return self.linear(x)"
    )
    path = written(tmp_path, {"layers.py": said}) / "layers.py"
    assert (
        dry_run(str(path)).steps == dry_run(str(written(tmp_path, {"plain.py": LAYERS}) / "plain.py")).steps
    )


def test_a_file_of_a_large_package_runs_only_those_that_it_uses(tmp_path: Path) -> None:
    others = {f"large/part{index}.py": "from large.part0 import ZERO\n" for index in range(1, 220)}
    files = {
        "large/__init__.py": "".join(f"from .part{index} import *\n" for index in (1, 2)),
        "large/part0.py": "ZERO = 0\n",
        **others,
        "large/train.py": "from large.part7 import ZERO\nfrom large.part8 import ZERO as unused\nresult = ZERO\n",
    }
    path = written(tmp_path, files) / "large/train.py"
    names = (machine := dry_run(str(path))).program.module(machine, str(path), "train").fields
    assert names["result"] == Known(0)
    assert isinstance(names["unused"], OnDemand)


def test_what_is_imported_for_type_checkers_has_a_value_and_need_not_run(tmp_path: Path) -> None:
    files = {
        "shapes.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from layers import Net\ndef make() -> 'Net':\n    return Net()\n",
        "layers.py": LAYERS,
    }
    path = written(tmp_path, files) / "shapes.py"
    machine = dry_run(str(path))
    assert isinstance(machine.program.module(machine, str(path), "shapes").fields["make"], Function)
    assert calls_of(machine, "Net") == 0


def test_a_decorator_that_takes_too_long_leaves_the_function_as_it_is(tmp_path: Path) -> None:
    source = """
def documented(function):
    text = ""
    for first in (1, 2, 3, 4, 5, 6, 7, 8):
        for second in (1, 2, 3, 4, 5, 6, 7, 8):
            for third in (1, 2, 3, 4, 5, 6, 7, 8):
                text = text + "."
                text = text + ","
    function.__doc__ = text
    return None

@documented
def double(x):
    return 2 * x

result = double(4)
"""
    path = written(tmp_path, {"one.py": source}) / "one.py"
    machine = dry_run(str(path))
    assert machine.program.module(machine, str(path), "one").fields["result"] == Known(8)


def test_of_a_decorator_that_registers_many_functions_only_some_are_registered(tmp_path: Path) -> None:
    source = """
KNOWN, NAMES = {}, []

def register(function):
    name = function.__name__
    KNOWN[name] = function
    NAMES.append(name)
    if name in KNOWN:
        name = name.lower()
    return function
"""
    functions = "".join(f"\n@register\ndef model{index}():\n    return {index}\n" for index in range(300))
    used = "\nfirst = KNOWN['model0']()\nlast = KNOWN['model299']\nhas_last = 'model299' in KNOWN\nown = model299()\n"
    path = written(tmp_path, {"models.py": source + functions + used}) / "models.py"
    machine = dry_run(str(path))
    names = machine.program.module(machine, str(path), "models").fields
    assert (names["first"], names["own"]) == (Known(0), Known(299))
    assert isinstance(names["last"], Unknown)
    assert isinstance(names["has_last"], Unknown)
    assert isinstance(names["NAMES"], Sequence)
    assert names["NAMES"].rest is not None
    assert len(names["NAMES"].items) < 100


def test_what_a_called_function_binds_anew_is_no_reason_for_another_pass(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "import torch\nfrom data import batches\nmodel = torch.nn.Linear(1, 1)\n"
        "def step(batch, model_=None):\n    model_ = model_ or model\n    batch = batch or batches[0]\n    model_(batch)\n"
        "for batch in batches:\n    step(None)\n",
        "utf-8",
    )
    assert len([event for event in dry_run(str(path)).events if event.action == "forward"]) == 2

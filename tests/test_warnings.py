"""What a script warns of and logs names the same lines while it is watched as under Python."""

import json
from functools import partial
from pathlib import Path

import commands
import pytest
from commands import at_once

from ta_runtime.probes import sources

SCRIPT = '''\
import json
import logging
import os
import random
import sys
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

logging.basicConfig(stream=sys.stdout, format="%(filename)s:%(lineno)d %(message)s")
told = []


def tell(message, category, filename, lineno, file=None, line=None):
    told.append((category.__name__, str(message).splitlines()[0], filename, lineno))


warnings.showwarning = tell
warnings.simplefilter("default")
torch.set_warn_always(True)


def complain(what, levels):
    """As a library does: in the name of who called it, so many levels above."""
    warnings.warn(f"{what}, {levels} levels up", stacklevel=levels)
    logging.warning("%s, %d levels up", what, levels, stacklevel=levels)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        complain("an item", 2)
        return torch.randn(4)


class Own(torch.optim.SGD):
    def step(self, closure=None):
        complain("a step", 2)
        return super().step(closure)

    def zero_grad(self, set_to_none=True):
        complain("zero_grad", 2)
        super().zero_grad(set_to_none)


class Schedule(torch.optim.lr_scheduler.StepLR):
    def step(self, epoch=None):
        complain("a scheduler", 2)
        complain("a scheduler", 3)
        super().step(epoch)


class Scaler(torch.amp.GradScaler):
    def scale(self, outputs):
        complain("a scaler", 2)
        return super().scale(outputs)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        complain("a constructor", 2)
        self.layer = nn.Linear(4, 4)

    def forward(self, inputs):
        complain("forward", 1)
        return F.softmax(self.layer(inputs)).log()

    def state_dict(self, *args, **kwargs):
        complain("state_dict", 2)
        return super().state_dict(*args, **kwargs)

    def train(self, mode=True):
        complain("train", 2)
        return super().train(mode)


def helper(function, *args):
    return function(*args)


state = f"state-{os.getpid()}.pt"  # its own: the runs share a folder and go side by side
model = Net()
model.layer.register_full_backward_hook(lambda module, inner, outer: complain("a hook", 1))
optimizer = Own(model.parameters(), lr=1e-3)
scheduler = Schedule(optimizer, 2)
scaler = Scaler("cpu", init_scale=2.0)
scheduler.step()
for epoch in range(4):
    random.seed(0)
    torch.manual_seed(0)
    numpy.random.seed(0)
    model.train()
    for batch in DataLoader(Numbers(), batch_size=4):
        optimizer.zero_grad()
        model.zero_grad()
        output = model(batch)
        loss = F.mse_loss(output, torch.zeros(1, 4))
        loss = loss + F.softmax(output.double()).sum().float() + F.dropout(output, 0.5).sum()
        loss = loss + F.kl_div(F.log_softmax(output, -1), output.softmax(-1))
        output.grad
        numbers = torch.zeros(1)
        torch.log(torch.ones(3), out=numbers)
        torch.sqrt(torch.ones(2), out=torch.zeros(1))
        helper(torch.exp, torch.ones(3, 3).T)
        torch.complex(numbers[:1], numbers[:1]).to(torch.float32)
        numbers.T
        torch.zeros(1).normal_().uniform_()
        scaler.scale(loss).backward(create_graph=True)
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=False)
        nn.utils.clip_grad_value_(iter(model.parameters()), 1.0)
        scaler.step(optimizer)
        scaler.update()
        loss.item()
    scheduler.step(epoch + 1)
    model.eval()
    torch.save(model.state_dict(), state)
    torch.load(state, weights_only=True)
    model.load_state_dict(model.state_dict())
print(json.dumps(told, indent=0))
'''

WATCHED = {
    "run": ("run", "--quiet", "--every", "1"),
    "rarely audited": ("run", "--quiet", "--every", "5"),
    "recorded": ("run", "--quiet", "--every", "2", "--record", "runs/1", "--snapshots", "every 2"),
    "modules traced": ("collect", "-o", "traces/1", "--level", "modules"),
    "ops traced": ("collect", "-o", "traces/2", "--level", "ops"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The lines that the script prints under Python and as it is watched: each log record, and then each warning."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(SCRIPT)
    runs = {"python": partial(commands.python, folder, "train.py")}
    for name, words in WATCHED.items():
        runs[name] = partial(commands.ta_runtime, folder, *words, "train.py")
    ended = dict(zip(runs, at_once(list(runs.values())), strict=True))
    assert {name: ran.stderr for name, ran in ended.items() if ran.returncode} == {}
    return {name: ran.stdout.splitlines() for name, ran in ended.items()}


@pytest.mark.parametrize("watched", WATCHED)
def test_warnings_and_log_records_name_the_lines_that_they_name_under_python(
    told: dict[str, list[str]], watched: str
) -> None:
    """A13, N4: also once for each line, as the registry of the module counts them.

    Levels of the stack that a `forward` counts past its own call are torch's: with hooks on modules, whosever, its
    `_call_impl` has a frame more.
    """
    assert told[watched] == told["python"]


def test_the_script_warns_in_each_way(told: dict[str, list[str]]) -> None:
    """From Python at several levels, from torch in Python and from torch in C, of its own lines and of torch's."""
    warned = json.loads("".join(told["python"][told["python"].index("[") :]))
    lines = {filename for _, _, filename, _ in warned}
    assert any(filename.endswith("train.py") for filename in lines)
    assert any("torch" in Path(filename).parts for filename in lines)
    for part in (
        "1 levels up",
        "2 levels up",
        "3 levels up",
        "Implicit dimension",
        "create_graph=True",
        "resized",
        "Casting",
    ):
        assert any(part in message for _, message, _, _ in warned), part


def test_reading_a_source_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    """Python has told of it when it compiled the module."""
    assert sources.parsed("pattern = '\\d'\nfound = 1or pattern\n").body
    assert recwarn.list == []

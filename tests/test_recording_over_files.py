"""Where autograd records follows the calls of a function, also where they are in other files, or certain of nothing but their name."""

from pathlib import Path

import pytest
from test_whole_program import found, write

BLOCK = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 4)

    def load_from(self, weights, name):
        self.norm.weight.copy_(torch.from_numpy(weights[name]))
"""
NET = """\
import torch
from torch import nn
from block import Block


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Block(), Block())

    def load_from(self, weights):
        {with_}
            for name, unit in self.body.named_children():
                unit.load_from(weights, name=name)
"""
LOADING = """\
import torch


def load(net, weights):
    with torch.inference_mode():
        for unit in net.modules():
            if hasattr(unit, "load_from"):
                unit.load_from(weights, "norm")
"""
PLAIN_NET = """\
from torch import nn
from block import Block


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Block(), Block())
"""
MAIN = "from net import Net\nfrom loading import load\n\nload(Net(), {})\n"


@pytest.mark.parametrize(
    "files",
    [
        {"net.py": NET.format(with_="with torch.no_grad():")},
        {"net.py": NET.format(with_="with torch.set_grad_enabled(False):")},
        {"net.py": PLAIN_NET, "loading.py": LOADING, "train.py": MAIN},
        {
            "net.py": NET.format(with_="if True:").replace(
                "    def load_from", "    @torch.no_grad()\n    def load_from"
            )
        },
    ],
    ids=["no_grad", "set_grad_enabled", "a file that imports neither", "a decorator"],
)
def test_a_leaf_may_be_changed_where_an_object_of_unknown_class_is_called_under_no_grad(
    files: dict[str, str], tmp_path: Path
) -> None:
    """D19: the caller holds `no_grad` and calls through a loop over children in another file."""
    write(tmp_path, {"block.py": BLOCK, **files})
    assert found(tmp_path, select="TA424") == set()


def test_a_leaf_may_not_be_changed_where_such_a_call_is_recorded(tmp_path: Path) -> None:
    """D19: a call of the same name that records rules nothing out."""
    write(tmp_path, {"block.py": BLOCK, "net.py": NET.format(with_="if weights:")})
    assert found(tmp_path, select="TA424") == {("block.py", 11)}


def test_a_function_that_is_handed_on_under_no_grad_may_change_a_leaf(tmp_path: Path) -> None:
    """D19: `apply` calls it there."""
    layers = """\
import torch
from torch import nn

layer = nn.Linear(2, 2)


def fill(_):
    layer.weight.fill_(1.0)
"""
    use = """\
import torch
from torch import nn
from layers import fill

{with_}
    nn.Linear(2, 2).apply(fill)
"""
    write(tmp_path, {"layers.py": layers, "train.py": use.format(with_="with torch.no_grad():")})
    assert found(tmp_path, select="TA424") == set()
    write(tmp_path, {"train.py": use.format(with_="if True:")})
    assert found(tmp_path, select="TA424") == {("layers.py", 8)}


STEP = """\
from torch.nn import functional as F


def run(model, loader, optimizer=None, training=True):
    total = 0.0
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        if training:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        total += loss.detach() if training else loss
    return total
"""
VALIDATE = """\
import torch
from steps import run


@torch.no_grad()
def validate(model, loader):
    return run(model, loader, training=False)
"""
TRAIN = """\
from steps import run
from validation import validate


def main(model, loader, optimizer):
    history, losses = [], []
    for _ in range(10):
        model.train()
        losses.append(run(model, loader, optimizer))
        model.eval()
        history.append(validate(model, loader))
    return history, losses


if __name__ == "__main__":
    import torch

    net = torch.nn.Linear(4, 1)
    main(net, [(torch.randn(4, 4), torch.randn(4, 1))] * 3, torch.optim.SGD(net.parameters(), lr=0.1))
"""


@pytest.mark.parametrize("rule", ["TA206", "TA505"])
def test_a_value_made_under_no_grad_in_another_file_has_no_graph(rule: str, tmp_path: Path) -> None:
    """D21: also where the same function trains, and its backward pass is behind a setting that these calls switch off."""
    write(tmp_path, {"steps.py": STEP, "validation.py": VALIDATE, "train.py": TRAIN})
    assert found(tmp_path, select=rule) == set()


def test_a_sum_of_losses_in_a_function_that_trains_and_validates_keeps_their_graphs(tmp_path: Path) -> None:
    """D21: nothing detaches the loss where the function trains."""
    step = STEP.replace("loss.detach() if training else loss", "loss")
    write(tmp_path, {"steps.py": step, "validation.py": VALIDATE, "train.py": TRAIN})
    assert found(tmp_path, select="TA206") == {("steps.py", 12), ("train.py", 9)}

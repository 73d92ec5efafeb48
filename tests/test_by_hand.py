"""Trainings that update their parameters by hand, without an optimizer: each backward pass is a step."""

from pathlib import Path

import pytest
from observed import watched

from ta_runtime.audit.schedule import Look

SETUP = """\
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5))
"""
LOOP = """\
for _ in range(20):
    x = torch.randn(32, 8)
    y = x[:, :5].argmax(1)
    net.zero_grad()
    loss = F.nll_loss(net(x).log_softmax(1), y)
"""
UPDATES = {
    "in place of the data": """\
    loss.backward()
    for p in net.parameters():
        p.data.add_(p.grad, alpha=-0.1)
""",
    "without gradients": """\
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
""",
    "of all at once": """\
    loss.backward()
    with torch.no_grad():
        torch._foreach_add_(list(net.parameters()), [p.grad for p in net.parameters()], alpha=-0.1)
""",
    "by other data": """\
    loss.backward()
    for p in net.parameters():
        p.data = p.data - 0.1 * p.grad
""",
    "by gradients that no parameter holds": """\
    gradients = torch.autograd.grad(loss, list(net.parameters()))
    with torch.no_grad():
        for p, gradient in zip(net.parameters(), gradients):
            p -= 0.1 * gradient
""",
    "beside an optimizer that only clears": """\
    if not _:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    optimizer.zero_grad()
    loss.backward()
    for p in net.parameters():
        p.data.add_(p.grad, alpha=-0.1)
""".replace("range(20)", "range(80)"),
}


@pytest.mark.parametrize("update", [name for name in UPDATES if "optimizer" not in name])
def test_each_backward_pass_is_a_step_of_a_training_by_hand(update: str, tmp_path: Path) -> None:
    """D34: such a training was not seen."""
    audit = watched(SETUP + LOOP + UPDATES[update], tmp_path, path="train.py", every_n_steps=1)
    assert not audit.findings
    assert audit.session.step_count == audit.session.index == 20
    assert audit.session.looked[Look.FULL] == 19
    assert audit.not_seen == ["what only an optimizer shows, as the parameters are updated by hand"]


def test_an_optimizer_that_never_steps_does_not_hide_it(tmp_path: Path) -> None:
    code = SETUP + LOOP.replace("range(20)", "range(80)") + UPDATES["beside an optimizer that only clears"]
    assert watched(code, tmp_path, path="train.py", every_n_steps=1).session.step_count == 80


def test_tensors_that_each_update_makes_anew_are_a_training_too(tmp_path: Path) -> None:
    code = SETUP + (
        "weights = [torch.randn(8, 5).requires_grad_(), torch.zeros(5, requires_grad=True)]\n"
        "for _ in range(20):\n"
        "    x = torch.randn(32, 8)\n"
        "    F.cross_entropy(x @ weights[0] + weights[1], x[:, :5].argmax(1)).backward()\n"
        "    weights = [(p - 0.1 * p.grad).detach().requires_grad_() for p in weights]\n"
    )
    assert watched(code, tmp_path, path="train.py", every_n_steps=1).session.step_count == 20


def test_what_is_wrong_with_it_is_found_with_its_step(tmp_path: Path) -> None:
    code = SETUP + LOOP.replace(
        "F.nll_loss(net(x).log_softmax(1), y)", "net(x).mean() * (1 if _ < 9 else torch.nan)"
    )
    audit = watched(code + UPDATES["in place of the data"], tmp_path, path="train.py", every_n_steps=1)
    found = {finding.rule: finding.evidence.get("step") for finding in audit.findings}
    assert found == {"TA100": 9}


@pytest.mark.parametrize(
    "update", ["    loss.backward()\n", "    torch.autograd.grad(loss, list(net.parameters()))\n"]
)
def test_gradients_that_change_nothing_are_no_training(update: str, tmp_path: Path) -> None:
    audit = watched(SETUP + LOOP + update, tmp_path, path="train.py", every_n_steps=1)
    assert audit.session.step_count == 0


def test_backward_passes_are_not_counted_once_an_optimizer_steps(tmp_path: Path) -> None:
    code = SETUP + "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n" + LOOP
    code += "    loss.backward(retain_graph=True)\n    loss.backward()\n    optimizer.step()\n"
    audit = watched(code, tmp_path, path="train.py", every_n_steps=1)
    assert audit.session.step_count == 20
    assert not [
        observer
        for observer in audit.session.observers
        if type(observer).__name__ == "ByHand" and observer.undo
    ]


def test_nothing_keeps_what_was_trained(tmp_path: Path) -> None:
    code = SETUP + LOOP + UPDATES["without gradients"]
    code += "import gc, weakref\nwas = weakref.ref(net[0].weight)\ndel net, loss, p, x, y\ngc.collect()\nassert was() is None\n"
    watched(code, tmp_path, path="train.py", every_n_steps=3, gradients_every_n_steps=3)

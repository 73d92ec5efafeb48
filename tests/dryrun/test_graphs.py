"""Where graphs start, which backward pass frees them, and what keeps them from pass to pass."""

from pathlib import Path

import pytest

from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.events.run import Run

START = """
import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
STEP = """
for x in torch.randn(100, 4):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
"""


def ran(tmp_path: Path, code: str) -> Run:
    path = tmp_path / "train.py"
    path.write_text(START + code)
    return run_of(dry_run(str(path)).events)


@pytest.mark.parametrize(
    ("before", "keeps", "freed"),
    [
        ("total = 0", "total += loss", True),
        ("total = 0", "total = 0.9 * total + 0.1 * loss", True),
        ("kept = []", "kept.append({'loss': loss})", True),
        ("kept = {}", "kept.setdefault('loss', []).append(loss)", True),
        ("state = torch.zeros(4)", "state = state + model(x)", False),
    ],
)
def test_what_holds_the_graphs_of_more_and_more_passes_grows(
    before: str, keeps: str, freed: bool, tmp_path: Path
) -> None:
    (growth,) = ran(tmp_path, f"{before}\n{STEP}    {keeps}\n").growths
    assert growth.freed == freed
    assert not growth.renewed


@pytest.mark.parametrize(
    ("before", "keeps"),
    [
        ("total = 0", "total += loss.detach()"),
        ("best = None", "best = loss if best is None or loss < best else best"),
        ("kept = []", "kept.append(loss)\n    if len(kept) > 10:\n        kept.clear()"),
        ("kept = []", "kept = [loss]"),
        ("from collections import deque\nkept = deque(maxlen=3)", "kept.append(loss)"),
        ("last = {}", "last['loss'] = loss"),
    ],
)
def test_what_holds_as_many_graphs_as_before_does_not(before: str, keeps: str, tmp_path: Path) -> None:
    assert not ran(tmp_path, f"{before}\n{STEP}    {keeps}\n").growths


def test_what_a_loop_around_starts_anew_is_renewed(tmp_path: Path) -> None:
    step = STEP.replace("\n", "\n    ")
    (growth,) = ran(tmp_path, f"for epoch in range(100):\n    total = 0{step}    total += loss\n").growths
    assert growth.renewed


@pytest.mark.parametrize(
    ("more", "again"),
    [
        ("", False),
        ("    torch.autograd.grad(loss, model.weight)\n", True),
        ("    (2 * loss).backward()\n", True),
    ],
)
def test_a_graph_that_is_kept_is_used_again_or_not(more: str, again: bool, tmp_path: Path) -> None:
    code = STEP.replace("backward()\n", f"backward(retain_graph=True)\n{more}")
    (retained,) = ran(tmp_path, code).retained
    assert retained.is_used_again == again


def test_a_state_of_an_earlier_pass_is_carried_into_the_call_that_gets_it(tmp_path: Path) -> None:
    code = STEP.replace("loss = model(x).square", "state = model(x + state)\n    loss = state.square")
    (carried,) = ran(tmp_path, f"state = torch.zeros(4)\n{code}").carried
    assert carried.place.line == carried.backward.line - 2
    detached = code.replace("optimizer.step()", "state = state.detach()")
    assert not ran(tmp_path, f"state = torch.zeros(4)\n{detached}").carried

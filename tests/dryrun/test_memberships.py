"""What the dry run says of the layers that optimizers hold is what a real run of the same program says."""

from pathlib import Path
from textwrap import indent

import pytest
from observed import both

from ta_lint.checks.runs.ta432_parameters_left_out_of_optimizer import check_progress
from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.events import Run
from ta_lint.events.membership import Membership

START = """\
import copy

import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
head = nn.Linear(8, 2)
model = nn.Sequential(encoder, head)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
"""
LOOP = """
for _ in range(8):
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()
"""
LOSSES = {
    "a head that is left out": "head(encoder(torch.randn(4, 8))).square().mean()",
    "a part that is left out": "model(torch.randn(4, 8)).square().mean()",
    "a head that gets no gradient": "encoder(torch.randn(4, 8)).square().mean() + head(torch.randn(4, 8)).detach().mean()",
}
BEFORE = {
    "nothing else": "",
    "the head is frozen": "head.requires_grad_(False)\n",
    "its bias is frozen": "head.bias.requires_grad = False\n",
    "the head is added": "optimizer.add_param_group({'params': head.parameters()})\n",
    "its bias is added": "optimizer.param_groups[0]['params'].append(head.bias)\n",
    "another optimizer holds it": "other = torch.optim.Adam(head.parameters())\n",
    "its state is loaded": "head.load_state_dict(nn.Linear(8, 2).state_dict())\n",
    "the head is a copy": "head = model[1] = copy.deepcopy(head)\n",
    "the head is replaced": "head = model[1] = nn.Linear(8, 2)\n",
    "the head is drawn anew": "nn.init.zeros_(head.weight)\nhead.bias.data.normal_()\n",
    "a compiled head": "head = torch.compile(head, backend='eager')\n",
}


def found(run: Run) -> dict[tuple[int, str], Membership]:
    """The memberships of a run, by the line and the name of the layer."""
    return {(one.place.line, one.name): one for one in run.memberships}


def test_layers_that_one_line_builds_are_one_finding(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    loss = "loss = lambda: sum(head(encoder(torch.randn(4, 8))).square().mean() for head in heads)\n"
    script.write_text(START + "heads = [nn.Linear(8, 1), nn.Linear(8, 2), nn.Linear(8, 3)]\n" + loss + LOOP)
    assert len([*check_progress(run_of(dry_run(str(script)).events))]) == 1


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE.keys())
def test_the_dry_run_knows_the_layers_that_the_run_sees(
    before: str, loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = START + before + f"\n\ndef loss():\n{indent(f'return {loss}', '    ')}\n\n" + LOOP
    real, dry = map(found, both(code, tmp_path, monkeypatch))
    assert dry.keys() >= {at for at, one in real.items() if one.left_out}
    for at in dry.keys() & real.keys():
        one, other = dry[at], real[at]
        assert (one.trainable, one.held) == (other.trainable, other.held), at
        assert one.is_outermost == other.is_outermost, at
        assert one.is_fresh <= other.is_fresh, at  # of a copy that a model holds a run does not know
        assert one.left_out == other.left_out, at
        assert bool(one.steps) == bool(other.steps), at


UNSEEN = {
    "a function gets the head": "helpers.prepare(head)",
    "a function gets its parameters": "helpers.prepare(list(head.parameters()))",
    "a function gets them in groups": "helpers.prepare([{'params': head.parameters()}])",
    "a function gets what has it": "helpers.prepare(model)",
    "an optimizer holds what nobody knows": "torch.optim.Adam(helpers.parameters())",
    "the optimizer gets what nobody knows": "optimizer.add_param_group({'params': helpers.parameters()})",
    "the program breaks off": "for i in range(4):\n    for j in range(4):\n        " + "_ = i + j; " * 20_000,
}


@pytest.mark.parametrize("before", UNSEEN.values(), ids=UNSEEN.keys())
def test_of_what_code_out_of_sight_may_train_nothing_is_said(before: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    loss = f"\n\ndef loss():\n    return {LOSSES['a head that is left out']}\n\n"
    script.write_text("import helpers\n" + START + loss + LOOP + before)
    run = run_of(dry_run(str(script)).events)
    assert not [one for one in run.memberships if one.is_outermost and one.is_fresh and one.left_out]


@pytest.mark.parametrize(
    "name", ["prefix_head", "scaffold", "scheme_embed", "target", "teacher", "frozen", "old_percept"]
)
def test_no_name_hides_a_layer_that_is_left_out(name: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    loss = f"\n\ndef loss():\n    return {LOSSES['a head that is left out']}\n\n"
    script.write_text((START + loss + LOOP).replace("head", name))
    [left] = (one for one in check_progress(run_of(dry_run(str(script)).events)))
    assert left.place.line == 7

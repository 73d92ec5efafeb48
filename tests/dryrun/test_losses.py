"""What the dry run says of where a loss leads is what a real run of the same program finds, and what is not known stays open."""

from pathlib import Path

import pytest
from observed import both

from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.events.graph import Backward, Lost

START = """\
import numpy as np
import torch
from torch.autograd import Variable

model, other = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.01)
x, y = torch.randn(8, 4), torch.randn(8, 4)
"""
END = "\nloss.backward()\noptimizer.step()\n"

THROUGH, CUT, STEPPED, UNRECORDED, FORCED = "through", "cut", "stepped", "unrecorded", "forced"
LOSSES = {
    "as it should be": ("loss = (model(x) - y).square().mean()", THROUGH, THROUGH),
    "a detached output": ("loss = (model(x).detach() - y).square().mean()", CUT, CUT),
    "the data of an output": ("loss = (model(x).data - y).square().mean()", CUT, CUT),
    "a detached target": ("loss = (model(x) - other(y).detach()).square().mean()", THROUGH, THROUGH),
    "a mean of numbers": ("loss = torch.tensor([model(x).mean().item(), 1.0]).mean()", CUT, CUT),
    "a sum of numbers": (
        "total = 0.0\nfor _ in range(20):\n    total += float(model(x).mean())\nloss = torch.tensor(total / 20)",
        CUT,
        CUT,
    ),
    "through NumPy": (
        "values = model(x).detach().numpy()\nloss = torch.from_numpy(np.square(values - 1).astype(np.float32)).mean()",
        CUT,
        CUT,
    ),
    "an old Variable": ("loss = Variable(model(x)).square().mean()", CUT, CUT),
    "rounded": ("loss = (model(x).round() - y).square().mean()", STEPPED, STEPPED),
    "rounded in place": ("z = model(x) * 8\nz.round_()\nloss = (z - y).square().mean()", STEPPED, STEPPED),
    "rounded, and copied": ("z = torch.zeros(8, 4)\nz.copy_(model(x).floor())\nloss = z.sum()", STEPPED, STEPPED),
    "rounded on some way": ("z = model(x)\nloss = (z.round() * z).mean()", THROUGH, THROUGH),
    "one of two is rounded": ("loss = (model(x).round() + other(x)).mean()", THROUGH, THROUGH),
    "straight through": ("z = model(x)\nloss = (z + (z.round() - z).detach()).mean()", THROUGH, THROUGH),
    "the values of max": ("loss = torch.max(model(x), 1)[0].mean()", THROUGH, THROUGH),
    # a run sees no more of these than that there is no graph
    "the indices of max": ("loss = torch.max(model(x), 1)[1].float().mean()", STEPPED, CUT),
    "argmax": ("loss = model(x).argmax(1).float().mean()", STEPPED, CUT),
    "a comparison": ("loss = (model(x) > y).float().mean()", STEPPED, CUT),
    "not recorded": ("with torch.no_grad():\n    z = model(x)\nloss = z.mean()", UNRECORDED, UNRECORDED),
    "recorded in part": ("with torch.no_grad():\n    z = model(x)\nloss = other(z).mean()", THROUGH, THROUGH),
    "a leaf of a number": ("loss = torch.tensor(model(x).mean().item(), requires_grad=True)", FORCED, FORCED),
    "a leaf of an old loss": ("loss = Variable(model(x).mean(), requires_grad=True)", FORCED, FORCED),
}  # fmt: skip


def kinds(backward: Backward) -> set[str]:
    """What has become of the losses of one line."""
    return {kind for kind in (THROUGH, CUT, STEPPED, UNRECORDED, FORCED) if getattr(backward, kind)}


def dry(folder: Path, code: str) -> list[Backward]:
    """The backward passes of a dry run of a program."""
    script = folder / "train.py"
    script.write_text(code, encoding="utf-8")
    return run_of(dry_run(str(script)).events).backwards


@pytest.mark.parametrize("what", LOSSES)
def test_a_loss_leads_in_the_dry_run_where_it_leads_in_the_real_one(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, source, real = LOSSES[what]
    [seen], [said] = (run.backwards for run in both(START + code + END, tmp_path, monkeypatch))
    assert (kinds(said), kinds(seen)) == ({source}, {real})
    assert said.place.line == seen.place.line
    if source == THROUGH:
        assert said.parameters == seen.parameters
        assert not said.ends


OPEN = {
    "a criterion of somebody else": "import losses\nloss = losses.Margin()(model(x).detach(), y)",
    "a layer that derives from an unknown one": (
        "import layers\nclass Head(layers.Head):\n    pass\nloss = Head()(model(x).detach()).mean()"
    ),
    "a method of an unknown model": "import zoo\nloss = zoo.net.loss(model(x).detach(), y)",
    "a target that nobody gives": "def learn(target):\n    (model(x).detach() - target).mean().backward()\nloss = model(x).mean()",
    "a graph on one of two ways": "z = model(x)\nif input():\n    z = z.detach()\nloss = z.mean()",
    "the gradient of a leaf is asked for": (
        "z = model(x).detach().requires_grad_()\nloss = (2 * z).sum()\nloss.backward()\nprint(z.grad)\nloss = model(x).mean()"
    ),
    "code out of sight gets the leaf": (
        "import cache\nz = model(x).detach().requires_grad_()\ncache.keep(z)\nloss = (2 * z).sum()\nloss.backward()\nloss = model(x).mean()"
    ),
    "a leaf that is optimized": (
        "z = model(x).detach().requires_grad_()\noptimizer = torch.optim.SGD([z], lr=0.1)\nloss = (2 * z).sum()"
    ),
}


@pytest.mark.parametrize("what", OPEN)
def test_of_a_loss_that_may_lead_to_parameters_nothing_is_said(what: str, tmp_path: Path) -> None:
    assert not [end for backward in dry(tmp_path, START + OPEN[what] + END) for end in backward.ends]


def test_a_forced_loss_that_is_logged_is_forced(tmp_path: Path) -> None:
    code = "import tracker\nloss = model(x).mean().detach()\nloss.requires_grad_()\ntracker.log(loss)"
    [backward] = dry(tmp_path, START + code + END)
    assert [end.how for end in backward.ends] == [Lost.FORCED, Lost.DETACHED]


def test_the_cut_that_is_named_is_one_from_what_is_trained(tmp_path: Path) -> None:
    code = "frozen = torch.nn.Linear(4, 4)\nwanted = frozen(x).detach()\nloss = (wanted - model(x).detach()).mean()"
    [backward] = dry(tmp_path, START + code + END)
    assert [(end.how, end.code) for end in backward.ends] == [(Lost.DETACHED, "model(x).detach()")]


HINTS = {
    "criterion": "loss = criterion(model(x).detach(), y)",
    "batches": "for given, wanted in batches:\n    loss = (model(given).detach() - wanted).mean()",
    "steps": "loss = model(x).detach().mean() / steps",
    "images": "loss = (model(images).detach() - images).mean()",
}


@pytest.mark.parametrize("name", HINTS)
def test_the_name_of_what_nothing_defines_is_a_hint(name: str, tmp_path: Path) -> None:
    [backward] = dry(tmp_path, START + HINTS[name] + END)
    assert kinds(backward) == {CUT}


def test_the_attributes_of_an_optimizer_are_those_that_it_has_in_python(tmp_path: Path) -> None:
    """Writing to all that `vars` gives wrote over what is known of its gradients, and the next step raised an error."""
    code = "for name, value in vars(optimizer).items():\n    vars(optimizer)[name] = f'{value}'\nloss = model(x).mean()"
    [backward] = dry(tmp_path, START + code + END)
    assert kinds(backward) == {THROUGH}

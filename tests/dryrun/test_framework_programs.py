"""What the programs of frameworks do to a user's code, without a real run: `test_against_frameworks.py` holds them against one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.explain import explanation, text
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.events.event import Event

Happens = Callable[..., list[Event]]
MODULE = """\
import lightning as L
import torch
from torch import nn


class Net(L.LightningModule):
    def __init__(self, rate=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.layer = nn.Linear(3, 1)
        self.norm = nn.BatchNorm1d(1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return (self.norm(self.layer(x)) - y).abs().mean()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.norm(self.layer(x))

    def configure_optimizers(self):
        return torch.optim.SGD(self.layer.parameters(), lr=self.hparams.rate)
"""


@pytest.fixture
def happens(tmp_path: Path) -> Happens:
    """The events of a program, with certain actions alone."""

    def run(source: str, *actions: str) -> list[Event]:
        path = tmp_path / "train.py"
        path.write_text(source, "utf-8")
        return [event for event in dry_run(str(path)).events if event.action in actions]

    return run


def test_a_module_that_nothing_fits_runs_as_its_trainer_would(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(MODULE, "utf-8")
    told = [" ".join(line.split()) for line in text(explanation(dry_run(str(path)), str(path)))]
    assert told[1] == "Net, line 6: nothing here runs it, so its framework does"
    events = dry_run(str(path)).events
    own = [
        (one.action, one.place.line)
        for one in events
        if one.entry is not None and one.place.line in (6, 15, 19, 22)
    ]
    assert ("optimizer", 22) in own
    assert [one for one in own if one[0] in ("clear", "backward", "step")][-3:] == [
        ("backward", 6),
        ("step", 6),
        ("clear", 6),
    ]
    assert {
        (one.detail["training"].value, one.detail["recording"])
        for one in events
        if one.action == "forward" and one.place.line == 19
    } == {(False, False)}


def test_arguments_of_the_constructor_are_hyperparameters(happens: Happens) -> None:
    (made,) = happens(f"{MODULE}\nL.Trainer(max_epochs=2).fit(Net(rate=0.5))\n", "optimizer")
    assert made.subject.fields["param_groups"].items[0].fields["lr"].value == 0.5


def test_two_optimizers_of_manual_optimization_hold_what_each_was_given(happens: Happens) -> None:
    source = """\
import pytorch_lightning as pl
import torch
from torch import nn


class Two(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 1, bias=False)

    def training_step(self, batch):
        first, second = self.optimizers()
        self.toggle_optimizer(second)
        self.manual_backward(self.b(self.a(batch[0])).sum())
        second.step()
        second.zero_grad()
        self.untoggle_optimizer(second)

    def configure_optimizers(self):
        return torch.optim.SGD(self.a.parameters()), torch.optim.SGD(self.b.parameters())


pl.Trainer(max_epochs=1).fit(Two())
"""
    events = happens(source, "backward", "step", "clear")
    assert [event.action for event in events][-3:] == ["backward", "step", "clear"]
    assert len(events[-3].detail["roots"]) == 1, "the other optimizer's parameters take no gradient"
    assert len(held_by(events[-2].subject).parameters) == 1


def test_a_trainer_of_transformers_runs_what_its_subclass_overrides(happens: Happens) -> None:
    source = """\
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments


class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        return (outputs.loss * 2, outputs) if return_outputs else outputs.loss * 2


model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
trainer = Own(model=model, args=TrainingArguments("out", max_grad_norm=0), train_dataset=load())
trainer.train()
trainer.evaluate()
"""
    events = happens(source, "forward", "backward", "step", "schedule", "clip", "eval")
    assert {event.place.line for event in events if event.action == "forward"} == {6}
    assert [event.action for event in events[1:5]] == ["forward", "backward", "step", "schedule"]
    *_, last = events
    assert (last.action, last.detail["training"].value, last.detail["recording"]) == ("forward", False, False)


def test_a_model_from_the_hub_begins_in_evaluation_mode(happens: Happens) -> None:
    source = "from transformers import AutoModel\nmodel = AutoModel.from_pretrained('x')\nmodel(1)\n"
    (called,) = happens(source, "forward")
    assert called.detail["training"].value is False


@pytest.mark.parametrize(("steps", "certain"), [("1", True), ("4", False)])
def test_an_accelerator_that_accumulates_steps_perhaps(steps: str, certain: bool, happens: Happens) -> None:
    source = f"""\
import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps={steps})
model = torch.nn.Linear(2, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters()))
for _ in range(9):
    with accelerator.accumulate(model):
        accelerator.backward(model(torch.ones(1, 2)).sum())
        optimizer.step()
"""
    assert {event.certain for event in happens(source, "step")} == {certain}


def test_what_checkpointing_kept_nothing_of_runs_again_in_backward(happens: Happens) -> None:
    source = """\
import torch
from torch.utils.checkpoint import checkpoint

layer = torch.nn.Linear(2, 2)
loss = checkpoint(layer, torch.ones(1, 2), use_reentrant=False).sum()
loss.backward()
"""
    assert [(event.action, event.place.line) for event in happens(source, "forward", "backward")] == [
        ("forward", 5),
        ("backward", 6),
        ("forward", 6),
    ]


def test_parameters_that_are_frozen_by_assignment_are_filtered(happens: Happens) -> None:
    source = """\
import torch

model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
for parameter in model[0].parameters():
    parameter.requires_grad = False
torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()))
"""
    (made,) = happens(source, "optimizer")
    assert len(held_by(made.subject).parameters) == 2


def test_a_batch_that_is_handed_on_leaves_an_argument_with_a_default_open(happens: Happens) -> None:
    source = """\
import torch
from torch.utils.data import DataLoader


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x, labels=None):
        if labels is None:
            self.eval()
        return self.layer(x)


net = Net()
for batch in DataLoader(load()):
    net(**batch).sum().backward()
"""
    events = happens(source, "eval", "backward")
    assert {(event.action, event.certain) for event in events} == {("eval", False), ("backward", True)}
    assert all(event.detail["open"] == () for event in events if event.action == "backward")


def test_what_a_branch_sets_of_an_object_may_be_what_its_class_says(happens: Happens) -> None:
    source = """\
import torch


class Control:
    stop = False


control, layer = Control(), torch.nn.Linear(1, 1)
if input():
    control.stop = True
if not control.stop:
    layer.eval()
"""
    (event,) = happens(source, "eval")
    assert not event.certain


def test_a_function_that_loops_over_what_calls_it_once_more_is_followed(happens: Happens) -> None:
    source = """\
import torch

layer = torch.nn.Linear(1, 1)


def run(depth):
    for _ in range(2):
        for _ in range(2):
            if depth:
                run(0)
            else:
                layer.eval()


run(1)
"""
    assert happens(source, "eval")


def test_a_loss_from_code_out_of_sight_goes_back_to_what_nobody_knows(happens: Happens) -> None:
    source = """\
import accelerate
import torch

accelerator = accelerate.Accelerator()
accelerator.backward(compute() / 2)
"""
    (back,) = happens(source, "backward")
    assert back.detail["open"]


@pytest.mark.parametrize(
    "given",
    [
        "[optimizer] if rate else ([optimizer], [scheduler])",
        "[optimizer] if rate else ([optimizer], [{'scheduler': scheduler}])",
        "optimizer if rate else ([optimizer], [scheduler])",
        "optimizer if rate else {'optimizer': optimizer, 'lr_scheduler': scheduler}",
        "[{'optimizer': optimizer, 'lr_scheduler': scheduler}]",
        "([optimizer], scheduler)",
        "(optimizer,)",
    ],
)
def test_an_optimizer_that_comes_with_a_schedule_on_some_paths_steps_on_all(
    given: str, happens: Happens
) -> None:
    source = f"""\
import lightning as L
import torch


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        return {given}


rate = float(input())
trainer = L.Trainer(max_epochs=2)
trainer.fit(Net(), torch.utils.data.DataLoader(torch.randn(8, 3)))
"""
    steps = happens(source, "step")
    assert steps
    assert all(step.certain and len(held_by(step.subject).parameters) == 2 for step in steps)

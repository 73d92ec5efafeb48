"""What the source says of Lightning and Ignite, without a rule."""

import pytest
from modules import module_of

from ta_lint.facts.torch.scores import is_better_low

HEAD = "import lightning as L\nimport torch\n"
SWITCHED = {
    "nothing is said": ("", "pass", True),
    "in `__init__`": ("", "self.automatic_optimization = False", False),
    "in the body of the class": ("automatic_optimization = False", "pass", False),
    "with an annotation": ("automatic_optimization: bool = False", "pass", False),
    "by a setting": ("", "self.automatic_optimization = not manual", None),
    "both": ("automatic_optimization = True", "self.automatic_optimization = False", None),
    "it is read": ("", "self.log('mode', self.automatic_optimization)", None),
}


@pytest.mark.parametrize(("body", "statement", "automatic"), SWITCHED.values(), ids=SWITCHED)
def test_who_runs_the_optimization_is_known(body: str, statement: str, automatic: bool | None) -> None:
    module = module_of(
        f"{HEAD}class Net(L.LightningModule):\n    {body}\n"
        f"    def __init__(self, manual):\n        super().__init__()\n        {statement}\n"
    )
    assert module.lightning.automatic(module.lightning.modules[0]) is automatic


def test_a_base_out_of_sight_may_choose_the_optimization() -> None:
    module = module_of(f"{HEAD}from toolkit import Base\nclass Net(Base, L.LightningModule):\n    pass\n")
    assert module.lightning.automatic(module.lightning.modules[0]) is None


def test_code_outside_of_the_class_may_choose_the_optimization() -> None:
    text = f"{HEAD}class Net(L.LightningModule):\n    pass\nnet = Net()\nnet.automatic_optimization = False\n"
    module = module_of(text)
    assert module.lightning.automatic(module.lightning.modules[0]) is None


RETURNED = {
    "[optimizer], [schedule]": "epoch",
    "{'optimizer': optimizer, 'lr_scheduler': schedule}": "epoch",
    "{'optimizer': optimizer, 'lr_scheduler': {'scheduler': schedule, 'interval': 'step'}}": "step",
    "dict(optimizer=optimizer, lr_scheduler=dict(scheduler=schedule, interval='step'))": "step",
    "[{'optimizer': optimizer, 'lr_scheduler': {'scheduler': schedule}}]": "epoch",
    "[optimizer], [{'scheduler': schedule, 'interval': self.interval}]": None,
    "[optimizer], [{'scheduler': schedule, **self.settings}]": None,
}


@pytest.mark.parametrize(("returned", "interval"), RETURNED.items(), ids=RETURNED)
def test_a_schedule_is_stepped_as_it_is_returned(returned: str, interval: str | None) -> None:
    module = module_of(
        f"{HEAD}class Net(L.LightningModule):\n    def configure_optimizers(self):\n"
        "        optimizer = torch.optim.SGD(self.parameters(), 0.1)\n"
        f"        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)\n        return {returned}\n"
    )
    (found,) = module.lightning.schedules(module.lightning.modules[0])
    assert (module.code(found.made.func), found.interval) == ("torch.optim.lr_scheduler.StepLR", interval)


@pytest.mark.parametrize("returned", ["optimizer", "[optimizer]", "{'optimizer': optimizer}", "[a], make()"])
def test_no_schedule_is_found_where_none_is_seen(returned: str) -> None:
    module = module_of(
        f"{HEAD}class Net(L.LightningModule):\n    def configure_optimizers(self):\n"
        f"        optimizer = torch.optim.SGD(self.parameters(), 0.1)\n        return {returned}\n"
    )
    assert not [one for one in module.lightning.schedules(module.lightning.modules[0]) if one.interval]


LOW = ("loss", "val_loss", "ValLoss", "dice_loss", "RMSE", "val/wer", "mean-squared-error")
HIGH = ("acc", "val_accuracy", "f1", "mean_dice", "AUC", "mIoU")
UNKNOWN = ("neg_loss", "score", "steps", "negative_rmse", "closs")


@pytest.mark.parametrize(
    ("name", "is_low"),
    [*((name, True) for name in LOW), *((name, False) for name in HIGH), *((name, None) for name in UNKNOWN)],
)
def test_a_name_tells_which_way_a_metric_is_better(name: str, is_low: bool | None) -> None:
    assert is_better_low(name) is is_low


def test_the_events_of_a_handler_are_known() -> None:
    module = module_of(
        "from ignite.engine import Engine, Events\n"
        "trainer = Engine(step)\n"
        "@trainer.on(Events.EPOCH_COMPLETED(every=2))\ndef one(engine): pass\n"
        "def other(engine): pass\n"
        "trainer.add_event_handler(Events.COMPLETED, other)\n"
    )
    events = [
        [module.code(event) for event in module.ignite.events(module.calls.functions(name)[0])]
        for name in ("one", "other")
    ]
    assert events == [["Events.EPOCH_COMPLETED(every=2)"], ["Events.COMPLETED"]]

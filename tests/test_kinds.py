"""Value kinds: what an expression is, in the words of PyTorch. Each case asks for the kind of `x` in its last line."""

import libcst as cst
import pytest

from ta_lint.core.source import Source
from ta_lint.facts import Kind, Module

IMPORTS = """
import copy
from typing import Annotated, Optional, Union

import torch
import torchvision
from torch import nn, optim
from torch.utils.data import DataLoader

"""


def asked(code: str) -> tuple[Module, cst.BaseExpression]:
    """The facts of a program, and the argument of its last call of `ask`."""
    text = IMPORTS + code
    module = Module(Source("example.py", text), cst.parse_module(text))
    calls = [call for call in module.tree.all(cst.Call) if isinstance(call.func, cst.Name)]
    return module, [call for call in calls if call.func.value == "ask"][-1].args[0].value


def kind(code: str) -> Kind | None:
    module, expression = asked(code)
    return module.kind(expression)


def construction(code: str) -> str | None:
    module, expression = asked(code)
    call = module.kinds.construction(expression)
    return module.tree.root.code_for_node(call) if call is not None else None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("optim.SGD(p)", Kind.OPTIMIZER),
        ("torch.optim.adam.Adam(p)", Kind.OPTIMIZER),
        ("optim.lr_scheduler.StepLR(o, 1)", Kind.SCHEDULER),
        ("optim.swa_utils.SWALR(o, 1)", Kind.SCHEDULER),
        ("optim.swa_utils.AveragedModel(m)", Kind.MODULE),
        ("torch.cuda.amp.GradScaler()", Kind.SCALER),
        ("torch.amp.GradScaler('cuda')", Kind.SCALER),
        ("nn.CrossEntropyLoss()", Kind.CRITERION),
        ("nn.modules.loss.MSELoss()", Kind.CRITERION),
        ("nn.Parameter(t)", Kind.PARAMETER),
        ("nn.Linear(1, 1)", Kind.MODULE),
        ("nn.parallel.DistributedDataParallel(m)", Kind.MODULE),
        ("torchvision.models.resnet18()", Kind.MODULE),
        ("torchvision.models.get_model('resnet18')", Kind.MODULE),
        ("DataLoader(d)", Kind.DATALOADER),
        ("torch.utils.data.distributed.DistributedSampler(d)", Kind.SAMPLER),
    ],
)
def test_a_constructor_gives_the_kind(expression: str, expected: Kind) -> None:
    assert kind(f"ask({expression})") is expected


@pytest.mark.parametrize(
    "expression",
    [
        "torch.zeros(1)",
        "torchvision.models.list_models()",
        "torchvision.models.get_model_weights('resnet18')",
        "nn.functional.mse_loss(a, b)",
        "nn.Linear",
        "[nn.Linear(1, 1)]",
        "torch.compile(function)",
        "unknown(1)",
        "nn.Parameter(t).to(d)",
    ],
)
def test_what_is_no_such_thing_or_uncertain_has_no_kind(expression: str) -> None:
    assert kind(f"ask({expression})") is None


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("nn.Module", Kind.MODULE),
        ("optim.Optimizer", Kind.OPTIMIZER),
        ("optim.lr_scheduler.LRScheduler", Kind.SCHEDULER),
        ("Optional[nn.Module]", Kind.MODULE),
        ("Union[nn.Module, None]", Kind.MODULE),
        ("nn.Module | None", Kind.MODULE),
        ("None | nn.Module", Kind.MODULE),
        ("nn.Module | nn.Sequential", Kind.MODULE),
        ("'nn.Module'", Kind.MODULE),
        ("'nn.Module | None'", Kind.MODULE),
        ("Optional['nn.Module']", Kind.MODULE),
        ("Annotated[nn.Module, 'a teacher']", Kind.MODULE),
        ("Net", Kind.MODULE),
        ("'Net'", Kind.MODULE),
        ("nn.Module | optim.Optimizer", None),
        ("nn.Module | int", None),
        ("list[nn.Module]", None),
        ("type[nn.Module]", None),
        ("'no type at all'", None),
        ("torch.Tensor", None),
    ],
)
def test_an_annotated_parameter_has_the_kind_of_its_type(annotation: str, expected: Kind | None) -> None:
    assert kind(f"class Net(nn.Module): ...\n\ndef f(x: {annotation}):\n    ask(x)") is expected


def test_an_annotated_variable_or_attribute_has_the_kind_of_its_type() -> None:
    assert kind("x: nn.Module = build()\nask(x)") is Kind.MODULE
    assert (
        kind("class A:\n    def f(self):\n        self.x: optim.Optimizer = make()\n        ask(self.x)")
        is Kind.OPTIMIZER
    )
    assert kind("class A:\n    x: optim.Optimizer\n    def f(self):\n        ask(self.x)") is Kind.OPTIMIZER


def test_a_constructor_says_more_than_the_annotation() -> None:
    assert kind("x: nn.Module = nn.MSELoss()\nask(x)") is Kind.CRITERION


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("nn.Linear(1, 1).to(d)", Kind.MODULE),
        ("nn.Linear(1, 1).to(d).half().eval()", Kind.MODULE),
        ("nn.Linear(1, 1).requires_grad_(False).apply(f)", Kind.MODULE),
        ("nn.CrossEntropyLoss().cuda()", Kind.CRITERION),
        ("copy.deepcopy(nn.Linear(1, 1))", Kind.MODULE),
        ("copy.deepcopy(optim.SGD(p))", Kind.OPTIMIZER),
        ("torch.compile(nn.Linear(1, 1))", Kind.MODULE),
        ("nn.DataParallel(nn.Linear(1, 1)).cuda()", Kind.MODULE),
        ("nn.DataParallel(unknown)", Kind.MODULE),
        ("nn.utils.weight_norm(nn.Conv1d(1, 1, 1))", Kind.MODULE),
        ("nn.Linear(1, 1).state_dict()", None),
    ],
)
def test_what_returns_the_thing_itself_keeps_the_kind(expression: str, expected: Kind | None) -> None:
    assert kind(f"ask({expression})") is expected


def test_a_name_has_the_kind_of_the_one_assignment_that_reaches_it() -> None:
    assert kind("m = nn.Linear(1, 1)\nx = m\nask(x)") is Kind.MODULE
    assert kind("x = nn.Linear(1, 1)\nx = x.to(d)\nask(x)") is Kind.MODULE
    assert kind("x = optim.SGD(p)\ndef f():\n    ask(x)") is Kind.OPTIMIZER
    assert kind("if (x := nn.Linear(1, 1)):\n    ask(x)") is Kind.MODULE
    assert kind("x = nn.Linear(1, 1)\nx = build(x)\nask(x)") is None


def test_a_name_of_several_values_has_the_kind_they_share() -> None:
    either = "if a:\n    x = {}\nelse:\n    x = {}\nask(x)"
    assert kind(either.format("optim.SGD(p)", "optim.Adam(p)")) is Kind.OPTIMIZER
    assert kind(either.format("torch.amp.GradScaler()", "None")) is Kind.SCALER
    assert kind(either.format("optim.SGD(p)", "build()")) is None
    assert kind("x = optim.SGD(p) if a else None\nask(x)") is Kind.OPTIMIZER
    assert kind("x = optim.SGD(p) if a else build()\nask(x)") is None


def test_a_value_that_may_come_from_elsewhere_has_no_kind() -> None:
    assert kind("def f(x):\n    if a:\n        x = nn.Linear(1, 1)\n    ask(x)") is None
    assert kind("for x in [nn.Linear(1, 1)]:\n    ask(x)") is None
    assert kind("x, y = build()\nask(x)") is None
    assert kind("x = nn.Linear(1, 1)\nx += 1\nask(x)") is None
    assert kind("from elsewhere import x\nif a:\n    x = nn.Linear(1, 1)\nask(x)") is None


def test_a_name_bound_by_with_has_the_kind_of_the_context() -> None:
    assert kind("with nn.Linear(1, 1) as x:\n    ask(x)") is Kind.MODULE
    assert kind("with open(path) as x:\n    ask(x)") is None


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        ("self.x = nn.Linear(1, 1)", Kind.MODULE),
        ("self.x = None; self.x = optim.SGD(p)", Kind.OPTIMIZER),
        ("self.x = optim.SGD(p); self.x = optim.Adam(p)", Kind.OPTIMIZER),
        ("self.x = optim.SGD(p); self.x = build()", None),
        ("self.x = nn.Linear(1, 1); self.x = self.x.to(d).eval()", Kind.MODULE),
        ("self.x = nn.Linear(1, 1); self.x = nn.DataParallel(self.x)", Kind.MODULE),
        ("self.x = nn.Linear(1, 1); self.x = self.x(y)", None),
        ("self.x, self.y = build()", None),
        ("self.x = nn.Linear(1, 1); self.x, self.y = build()", None),
        ("self.x += nn.Linear(1, 1)", None),
        ("self.x = y = nn.Linear(1, 1)", Kind.MODULE),
        ("other.x = nn.Linear(1, 1)", None),
    ],
)
def test_an_attribute_of_self_has_the_kind_of_all_that_is_assigned_to_it(
    assignments: str, expected: Kind | None
) -> None:
    code = (
        f"class A:\n    def __init__(self):\n        {assignments}\n\n    def f(self):\n        ask(self.x)"
    )
    assert kind(code) is expected


def test_an_attribute_may_come_from_a_parameter_a_base_or_the_class_body() -> None:
    init = "class A:\n    def __init__(self, m: nn.Module):\n        self.x = m\n"
    assert kind(init + "    def f(self):\n        ask(self.x)") is Kind.MODULE
    assert kind(init + "class B(A):\n    def f(self):\n        ask(self.x)") is Kind.MODULE
    assert kind("class A:\n    x = nn.MSELoss()\n    def f(self):\n        ask(self.x)") is Kind.CRITERION


def test_an_attribute_entered_by_with_or_for_is_unknown() -> None:
    init = "class A:\n    def __init__(self):\n        self.x = nn.Linear(1, 1)\n        {}\n    def f(self):\n        ask(self.x)"
    assert kind(init.format("for self.x in layers: ...")) is None
    assert kind(init.format("with build() as self.x: ...")) is None


def test_an_instance_of_a_class_of_this_file_has_the_kind_of_its_ancestor() -> None:
    assert kind("class A(nn.Module): ...\nclass B(A): ...\nclass C(B): ...\nask(C())") is Kind.MODULE
    assert kind("class A(optim.AdamW): ...\nask(A(p))") is Kind.OPTIMIZER
    assert kind("class A(optim.lr_scheduler._LRScheduler): ...\nask(A(o))") is Kind.SCHEDULER
    assert kind("class A(nn.Module): ...\nB = A\nask(B().cuda())") is Kind.MODULE
    assert kind("class A(nn.Parameter): ...\nask(A(t))") is None
    assert kind("from elsewhere import Base\nclass A(Base): ...\nask(A())") is None
    assert kind("class A(nn.Module): ...\nclass A: ...\nask(A())") is None


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    x = x.to(d)\n    ask(x)",
        "class A(Base):\n    def f(self):\n        self.x = self.x.to(d)\n        ask(self.x)",
        "x = y\ny = x\nask(x)",
        "x = copy.deepcopy(x)\nask(x)",
        "def f():\n    while a:\n        x = y.to(d)\n        y = x.eval()\n        ask(x)",
        "class A(A): ...\nask(A())",
    ],
)
def test_what_comes_from_itself_is_unknown(code: str) -> None:
    assert kind(code) is None
    assert not (construction(code) or "").startswith("nn")


def test_the_construction_of_a_value_is_the_call_that_made_it() -> None:
    assert construction("x = nn.CrossEntropyLoss(weight=w).to(d)\nask(x)") == "nn.CrossEntropyLoss(weight=w)"
    assert (
        construction("m = nn.Linear(1, 1)\nx = nn.DataParallel(copy.deepcopy(m.cuda()))\nask(x)")
        == "nn.Linear(1, 1)"
    )
    assert construction("ask(nn.Parameter(t).to(d))") == "nn.Parameter(t).to(d)"
    assert construction("ask(torch.softmax(t, -1).float())") == "torch.softmax(t, -1).float()"
    assert construction("def f(x):\n    ask(x)") is None

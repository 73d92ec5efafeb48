"""Value kinds: what an expression is, in the words of PyTorch. Each case asks for the kind of `x` in its last line."""

import libcst as cst
import pytest
from modules import module_of

from ta_lint.facts import FileFacts, Kind

IMPORTS = """
import copy
from typing import Annotated, Optional, Union

import torch
import torchvision
from torch import nn, optim
from torch.utils.data import DataLoader

"""


def asked(code: str) -> tuple[FileFacts, cst.BaseExpression]:
    """The facts of a program, and the argument of its last call of `ask`."""
    text = IMPORTS + code
    module = module_of(text)
    calls = [call for call in module.tree.all(cst.Call) if isinstance(call.func, cst.Name)]
    return module, [call for call in calls if call.func.value == "ask"][-1].args[0].value  # type: ignore[attr-defined]


def kind(code: str) -> Kind | None:
    module, expression = asked(code)
    return module.kind(expression)


def construction(code: str) -> str | None:
    module, expression = asked(code)
    call = module.kinds.construction(expression)
    return module.verbatim(call) if call is not None else None


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
        "torchvision.models.list_models()",
        "torchvision.models.get_model_weights('resnet18')",
        "nn.Linear",
        "[nn.Linear(1, 1)]",
        "torch.compile(function)",
        "unknown(1)",
        "torch.max(a, 1)",
        "torch.sum",
        "(a + b).mean()",
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
        ("torch.Tensor", Kind.TENSOR),
        ("int", None),
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
    assert kind("for x in [nn.Linear(1, 1), unknown]:\n    ask(x)") is None
    assert kind("for x in models:\n    ask(x)") is None
    assert kind("x, y = build()\nask(x)") is None
    assert kind("x, *y = nn.Linear(1, 1), 1\nask(x)") is None
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


@pytest.mark.parametrize(
    "expression",
    [
        "torch.zeros(1)",
        "nn.functional.mse_loss(a, b)",
        "nn.Parameter(t).to(d)",
        "nn.Parameter(t) * 2",
        "nn.Parameter(t).data",
        "torch.cat(parts)[0].view(-1).float()",
        "1 - torch.sigmoid(a)",
        "-torch.ones(1)",
        "nn.Linear(1, 1)(a)",
        "nn.MSELoss()(a, b)",
    ],
)
def test_what_is_computed_from_tensors_is_a_tensor(expression: str) -> None:
    assert kind(f"ask({expression})") is Kind.TENSOR
    assert kind(f"x = {expression}\nask(x)") is Kind.TENSOR


def test_what_a_layer_returns_besides_tensors_is_not_taken_for_one() -> None:
    assert kind("ask(nn.LSTM(1, 1)(a))") is None
    assert kind("ask(nn.MultiheadAttention(8, 1)(a, a, a))") is None


def test_a_dataset_is_known_by_its_class() -> None:
    assert kind("ask(torchvision.datasets.MNIST(root))") is Kind.DATASET
    assert kind("ask(torch.utils.data.TensorDataset(a))") is Kind.DATASET
    assert kind("class D(torch.utils.data.Dataset):\n    pass\nask(D())") is Kind.DATASET


def test_an_unpacked_name_has_the_kind_of_its_part() -> None:
    assert kind("y, x = nn.Linear(1, 1), optim.SGD(p)\nask(x)") is Kind.OPTIMIZER
    assert (
        kind("class T:\n    def f(self):\n        self.x, self.y = nn.Linear(1, 1), 1\n        ask(self.x)")
        is Kind.MODULE
    )
    assert (
        kind(
            "def build():\n    m = nn.Linear(1, 1)\n    return m, optim.SGD(m.parameters())\ny, x = build()\nask(x)"
        )
        is Kind.OPTIMIZER
    )


@pytest.mark.parametrize(
    "code",
    [
        "x = accelerator.prepare(x)",
        "x, y = accelerator.prepare(x, y)",
        "y, x = fabric.setup(y, x)",
        "from accelerate import Accelerator\nacc = Accelerator()\ny, x = acc.prepare(y, x)",
        "from lightning.fabric import Fabric\nf = Fabric()\nx = f.setup_module(x)",
        "from apex import amp\nx, y = amp.initialize(x, y)",
    ],
)
def test_frameworks_hand_back_what_they_are_given(code: str) -> None:
    assert kind(f"x = nn.Linear(1, 1)\ny = optim.SGD(x.parameters())\n{code}\nask(x)") is Kind.MODULE


def test_what_a_function_of_the_file_returns_has_its_kind() -> None:
    assert kind("def build():\n    return nn.Linear(1, 1)\nx = build().cuda()\nask(x)") is Kind.MODULE
    assert (
        kind("def build():\n    if a:\n        return nn.Linear(1, 1)\n    return None\nask(build())") is None
    )
    assert kind("def build():\n    yield nn.Linear(1, 1)\nask(build())") is None
    assert kind("def build(n):\n    return build(n - 1)\nask(build(3))") is None
    assert kind("@wrapped\ndef build():\n    return nn.Linear(1, 1)\nask(build())") is None


def test_a_parameter_has_the_kind_that_all_callers_give_it() -> None:
    two = "def f(x, y=1):\n    ask(x)\nf(nn.Linear(1, 1))\nf(x=torch.compile(nn.Linear(1, 1)))"
    assert kind(two) is Kind.MODULE
    assert kind(f"{two}\nf(unknown)") is None
    assert kind(f"{two}\nf(*arguments)") is None
    assert kind("def f(y, x=None):\n    ask(x)\nf(1)\nf(1, optim.SGD(p))") is Kind.OPTIMIZER


def test_a_parameter_of_a_method_has_the_kind_that_callers_give_it() -> None:
    trainer = "class T:\n    def __init__(self, m, o):\n        self.m, self.o = m, o\n    def f(self):\n        ask(self.o)\n"
    assert kind(f"{trainer}T(nn.Linear(1, 1), optim.SGD(p)).f()") is Kind.OPTIMIZER
    assert (
        kind(
            "class T:\n    def f(self):\n        self.g(nn.Linear(1, 1))\n    def g(self, x):\n        ask(x)"
        )
        is Kind.MODULE
    )


def test_two_classes_methods_of_one_name_are_not_mixed_up() -> None:
    code = (
        "class A:\n    def f(self):\n        self.g(nn.Linear(1, 1))\n    def g(self, x):\n        ask(x)\n"
        "class B:\n    def f(self):\n        self.g(optim.SGD(p))\n    def g(self, x):\n        pass"
    )
    assert kind(code) is Kind.MODULE


def test_an_attribute_of_an_object_whose_class_is_here_has_the_kind_it_was_given() -> None:
    code = "class T:\n    def __init__(self):\n        self.o = optim.SGD(p)\nt = T()\nask(t.o)"
    assert kind(code) is Kind.OPTIMIZER


def test_the_variable_of_a_loop_over_a_written_list_has_the_kind_of_its_elements() -> None:
    assert kind("a = optim.SGD(p)\nfor x in [a, optim.Adam(p)]:\n    ask(x)") is Kind.OPTIMIZER
    assert kind("models = [nn.Linear(1, 1) for _ in range(3)]\nfor x in models:\n    ask(x)") is Kind.MODULE


def test_isinstance_makes_a_kind_certain() -> None:
    assert kind("def f(x):\n    if isinstance(x, nn.Module):\n        ask(x)") is Kind.MODULE
    assert kind("def f(x):\n    if a and isinstance(x, nn.Module):\n        ask(x)") is Kind.MODULE
    assert kind("def f(x):\n    assert isinstance(x, torch.optim.Optimizer)\n    ask(x)") is Kind.OPTIMIZER
    assert (
        kind("def f(x):\n    if isinstance(x, nn.Module):\n        pass\n    else:\n        ask(x)") is None
    )
    assert kind("def f(x):\n    if isinstance(x, nn.Module) or a:\n        ask(x)") is None
    assert kind("def f(x):\n    if not isinstance(x, nn.Module):\n        ask(x)") is None


def test_a_loop_over_parameters_gets_parameters() -> None:
    assert kind("for x in m.parameters():\n    ask(x)") is Kind.PARAMETER
    assert kind("for n, x in m.named_parameters():\n    ask(x)") is Kind.PARAMETER
    assert kind("for a, x in zip(b, list(m.parameters())):\n    ask(x)") is Kind.PARAMETER
    assert kind("for g in groups:\n    for x in g['params']:\n        ask(x.data)") is Kind.TENSOR
    assert kind("for n in m.named_parameters():\n    ask(n)") is None
    assert kind("for x in m.layers():\n    ask(x)") is None
    assert (
        kind("class M:\n    def parameters(self):\n        pass\nfor x in M().parameters():\n    ask(x)")
        is None
    )


def test_an_input_of_forward_is_a_tensor_where_code_uses_it_as_one() -> None:
    head = "class M(nn.Module):\n    def __init__(self):\n        self.fc = nn.Linear(1, 1)\n"
    assert kind(f"{head}    def forward(self, x):\n        ask(x)\n        self.fc(x)") is Kind.TENSOR
    assert kind(f"{head}    def forward(self, x):\n        ask(x)\n        x.unsqueeze(0)") is Kind.TENSOR
    assert (
        kind(f"{head}    def forward(self, x):\n        ask(x)\n        x = x[0]\n        self.fc(x)") is None
    )
    assert kind(f"{head}    def forward(self, x):\n        ask(x)\n        self.net(x)") is None
    assert kind(f"{head}    def encode(self, x):\n        ask(x)\n        self.fc(x)") is None


def test_a_function_and_a_lambda_give_a_tensor() -> None:
    assert kind("def f(n):\n    y = torch.zeros(n)\n    return y.sin()\nask(f(1))") is Kind.TENSOR
    assert kind("f = lambda n: torch.zeros(n)\nask(f(1))") is Kind.TENSOR
    assert kind("f = lambda n: n\nask(f(1))") is None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("bare = model.module if wrapped else model\nask(bare.fc)", "model.fc"),
        ("net = self.model\nask(net.fc.weight)", "self.model.fc.weight"),
        ("bare = getattr(model, 'module', model)\nask(bare)", "model"),
        ("ask(accelerator.unwrap_model(model))", "model"),
        ("ask(self.module.fc)", "self.module.fc"),
        ("bare = teacher if wrapped else model\nask(bare)", "bare"),
        ("model = Net()\nask(model)", "model"),
        ("model = model\nask(model)", "model"),
        ("ask(models[0])", None),
    ],
)
def test_a_path_leads_through_other_names_and_wrappers(code: str, expected: str | None) -> None:
    module, expression = asked(code)
    assert module.kinds.path(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("self.config.rate", True),
        ("self.config['rate']", True),
        ("self.rate", True),
        ("float(self.options.get('rate', 0.1))", True),
        ("self.made", False),
        ("self.unknown", False),
        ("x.rate", False),
    ],
)
def test_a_setting_is_what_a_constructor_was_given_or_what_is_read_of_it(
    expression: str, expected: bool
) -> None:
    code = (
        "class M(nn.Module):\n    def __init__(self, config, rate, **options):\n        self.config = config\n"
        "        self.rate = rate\n        self.options = options\n        self.made = config.make()\n"
        f"    def forward(self, x):\n        ask({expression})"
    )
    module, asked_for = asked(code)
    assert module.kinds.is_setting(asked_for) is expected


def test_the_parts_of_a_value_are_what_it_is_computed_from() -> None:
    code = (
        "def sizes(n):\n    return torch.arange(n)\n"
        "a = torch.zeros(3)\nb = a.view(-1)\nc = b * sizes(3)\nd = torch.ones(3)\nask(c)"
    )
    module, expression = asked(code)
    written = {module.verbatim(part) for part in module.parts.of(expression)}
    assert {"b * sizes(3)", "a.view(-1)", "torch.zeros(3)", "torch.arange(n)"} <= written
    assert "torch.ones(3)" not in written


@pytest.mark.parametrize(
    "code",
    [
        "for step in steps:\n    if deep:\n        x, rest = x.split(2)\n    ask(x)",
        "def f(deep):\n    x = None\n    while deep:\n        x, rest = x.next()\n        if rest:\n            x, rest = x.other()\n    ask(x)",
        "def f():\n    x, rest = x.next()\n    ask(x)",
    ],
)
def test_a_value_unpacked_from_its_own_parts_is_unknown(code: str) -> None:
    assert kind(code) is None
    assert construction(code) is None

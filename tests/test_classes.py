"""Classes: what they derive from, which method an instance has, and what `self` holds."""

import libcst as cst
import pytest
from modules import module_of

from ta_lint.facts import FileFacts

IMPORTS = """
import lightning.pytorch as pl
import pytorch_lightning
import torch
import torchvision
import transformers
from abc import ABC
from typing import Generic, TypeVar
from torch import nn, optim
from torch.utils.data import Dataset, IterableDataset
from elsewhere import Foreign

T = TypeVar("T")

"""


def facts(code: str) -> tuple[FileFacts, dict[str, cst.ClassDef]]:
    """The facts of a program and its classes by name (the last of that name)."""
    text = IMPORTS + code
    module = module_of(text)
    return module, {klass.name.value: klass for klass in module.classes.all()}


def is_module(code: str, name: str = "A") -> bool:
    module, classes = facts(code)
    return module.classes.derives(classes[name], "torch.nn.Module")


def attribute(code: str, name: str = "x", klass: str = "A") -> list[str]:
    module, classes = facts(code)
    values = module.classes.attribute(classes[klass], name)
    return [module.verbatim(value).strip() for value in values]


@pytest.mark.parametrize(
    "base",
    [
        "nn.Module",
        "torch.nn.Module",
        "nn.modules.Module",
        "nn.modules.module.Module",
        "nn.Linear",
        "nn.Sequential",
        "nn.modules.batchnorm._BatchNorm",
        "nn.modules.loss._Loss",
        "nn.CrossEntropyLoss",
        "nn.parallel.DistributedDataParallel",
        "torch.jit.ScriptModule",
        "pl.LightningModule",
        "pytorch_lightning.LightningModule",
        "pytorch_lightning.core.LightningModule",
        "torchvision.models.ResNet",
        "torchvision.models.resnet.Bottleneck",
        "transformers.PreTrainedModel",
        "transformers.modeling_utils.PreTrainedModel",
        "transformers.LlamaForCausalLM",
        "Foreign, nn.Module",
        "nn.Module, Generic[T]",
        "ABC, nn.Module, metaclass=M",
    ],
)
def test_a_class_of_a_known_module_base_is_a_module(base: str) -> None:
    assert is_module(f"class A({base}): ...")


@pytest.mark.parametrize(
    "base",
    [
        "",
        "object",
        "Foreign",
        "undefined",
        "nn.Parameter",
        "nn.UninitializedParameter",
        "nn.modules.lazy.LazyModuleMixin",
        "nn.utils.rnn.PackedSequence",
        "nn.utils.prune.BasePruningMethod",
        "nn.attention.SDPBackend",
        "torchvision.models.ResNet18_Weights",
        "transformers.TFPreTrainedModel",
        "transformers.PretrainedConfig",
        "optim.Optimizer",
        "Dataset",
        "*bases",
        "build()",
        "A",
    ],
)
def test_a_class_of_another_base_is_not_certainly_a_module(base: str) -> None:
    assert not is_module(f"class A({base}): ...")


def test_a_class_derives_through_any_depth_of_classes_of_this_file() -> None:
    chain = "class D(nn.Module): ...\nclass C(D, Foreign): ...\nclass B(C): ...\nclass A(B): ..."
    assert is_module(chain)
    assert is_module("Base = nn.Module\nclass A(Base): ...")
    assert is_module("class B(nn.Module): ...\nC = B\nclass A(C): ...")
    assert is_module("def f():\n    class B(nn.Module): ...\n    class A(B): ...")
    assert not is_module("class B(A): ...\nclass A(B): ...")


def test_a_base_that_may_be_one_of_several_is_unknown() -> None:
    assert not is_module("if a:\n    class B(nn.Module): ...\nelse:\n    class B: ...\nclass A(B): ...")
    assert not is_module("Base = nn.Module if a else object\nclass A(Base): ...")


def test_other_ancestors_have_their_known_subclasses() -> None:
    module, classes = facts(
        "class A(Dataset[int]): ...\nclass B(IterableDataset): ...\nclass C(torchvision.datasets.ImageFolder): ...\n"
        "class D(optim.Adam): ...\nclass E(torch.utils.data.sampler.RandomSampler): ...\n"
    )
    derives = module.classes.derives
    assert all(derives(classes[name], "torch.utils.data.Dataset") for name in "ABC")
    assert derives(classes["D"], "torch.optim.Optimizer")
    assert derives(classes["E"], "torch.utils.data.Sampler")
    assert not derives(classes["D"], "torch.nn.Module")


def test_an_instance_has_its_own_method_or_that_of_the_nearest_base_in_this_file() -> None:
    module, classes = facts(
        "class A(nn.Module):\n    def forward(self): ...\n"
        "class B(A):\n    def other(self): ...\n"
        "class C(B):\n    def forward(self): ...\n"
        "class D(Foreign, A): ...\n"
        "class E(A, Foreign): ...\n"
    )

    def owner(name: str) -> str | None:
        found = module.classes.method(classes[name], "forward")
        holder = module.tree.enclosing(found, cst.ClassDef) if found is not None else None
        return holder.name.value if holder is not None else None

    assert [owner(name) for name in "ABCDE"] == ["A", "A", "C", None, "A"]


def test_an_attribute_is_all_that_any_method_assigns_to_it() -> None:
    code = "class A:\n    def f(self):\n        self.x = 1\n    def g(self):\n        self.x: int = 2\n        self.y = self.x = 3"
    assert attribute(code) == ["1", "2", "3"]
    assert attribute(code, "y") == ["3"]
    assert attribute(code, "z") == []


@pytest.mark.parametrize(
    "statement",
    ["self.x, self.y = pair", "(self.y, self.x) = pair", "self.x += 1", "for self.x in range(3): ..."],
)
def test_a_statement_that_does_not_assign_its_right_side_stands_for_itself(statement: str) -> None:
    assert attribute(f"class A:\n    def f(self):\n        {statement}") == [statement]


def test_an_attribute_entered_by_with_is_no_certain_value() -> None:
    assert attribute("class A:\n    def f(self):\n        with build() as self.x: ...") == [
        "build() as self.x"
    ]


def test_a_nested_class_has_a_self_of_its_own() -> None:
    code = (
        "class A:\n    def f(self):\n        self.x = 1\n\n        def later():\n            self.x = 2\n\n"
        "    class B:\n        def f(self):\n            self.x = 3"
    )
    assert attribute(code) == ["1", "2"]
    assert attribute(code, klass="B") == ["3"]


def test_an_annotation_without_a_value_assigns_nothing() -> None:
    assert attribute("class A:\n    x: int\n    def f(self):\n        self.x: int") == []


def test_a_class_body_gives_a_value_unless_self_has_its_own() -> None:
    assert attribute("class A:\n    x = 1") == ["1"]
    assert attribute("class A:\n    x = None\n    def f(self):\n        self.x = 1") == ["1"]
    assert attribute("class A:\n    def f(self):\n        x = 1") == []


def test_a_class_that_assigns_nothing_has_what_the_nearest_base_in_this_file_holds() -> None:
    bases = (
        "class C:\n    def f(self):\n        self.x = 1\nclass B(C):\n    def f(self):\n        self.x = 2\n"
    )
    assert attribute(bases + "class A(B): ...") == ["2"]
    assert attribute(bases + "class A(C, B): ...") == ["1"]
    assert attribute(bases + "class A(Foreign, B): ...") == []
    assert attribute(bases + "class A(B):\n    def g(self):\n        self.x = 3") == ["3"]


def test_annotations_are_those_of_the_body_and_of_self() -> None:
    module, classes = facts(
        "class A:\n    x: int\n    def f(self):\n        self.x: float = 1.0\n        x: str = ''\n"
    )
    found = module.classes.annotations(classes["A"], "x")
    assert [module.verbatim(annotation.annotation) for annotation in found] == ["int", "float"]

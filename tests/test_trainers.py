"""What a trainer of transformers is given, and which adapters go into which model."""

import libcst as cst
import pytest

from ta_lint.core.source import source_of
from ta_lint.facts import FileFacts, Kind

HEAD = """
import torch
from transformers import LlamaForCausalLM, Trainer, TrainingArguments
from peft import LoraConfig, get_peft_model
from trl import SFTTrainer

class Ours(Trainer):
    def __init__(self, *args, weight=None, **kwargs):
        super().__init__(*args, **kwargs)

class Strange(Trainer):
    def __init__(self, rows, model):
        super().__init__(model=model, train_dataset=rows)

args = TrainingArguments("out", remove_unused_columns=False)
model = LlamaForCausalLM.from_pretrained("x")
"""


def facts_of(code: str) -> FileFacts:
    return FileFacts.of(source_of("train.py", f"{HEAD}{code}\n".encode()))


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("Trainer(model, args)", ["LlamaForCausalLM.from_pretrained('x')"]),
        ("Ours(model, args, weight=1)", ["LlamaForCausalLM.from_pretrained('x')"]),
        ("Trainer(args=args, **dict(model=model))", ["LlamaForCausalLM.from_pretrained('x')"]),
        ("Strange([], model)", []),
        ("SFTTrainer(model=model)", ["LlamaForCausalLM.from_pretrained('x')"]),
        ("Trainer(args=args)", []),
    ],
)
def test_the_model_that_a_trainer_is_given(code: str, given: list[str]) -> None:
    facts = facts_of(code)
    (trainer,) = facts.trainers.made
    found = [facts.code(origin.node) for origin in facts.trainers.given(trainer, "model").origins]
    assert [one.replace('"', "'") for one in found] == given


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("Trainer(model, args)", False),
        ("Ours(model=model, args=args)", False),
        ("Trainer(model)", True),
        ("Trainer(model, TrainingArguments('out'))", True),
        ("Trainer(model, parsed())", None),
    ],
)
def test_a_setting_of_a_trainer(code: str, expected: bool | None) -> None:
    facts = facts_of(code)
    (trainer,) = facts.trainers.made
    assert facts.trainers.boolean(trainer, "remove_unused_columns", default=True) is expected


def test_the_adapters_of_a_model() -> None:
    facts = facts_of(
        "config = LoraConfig(r=2, target_modules=['q'])\nadapted = get_peft_model(model, config)\nuse(adapted)"
    )
    (adaptation,) = facts.adapters.put
    assert facts.adapters.words(adaptation.config, "target_modules") == frozenset({"q"})
    assert facts.adapters.is_unset(adaptation.config, "modules_to_save")
    (use,) = [call for call in facts.tree.all(cst.Call) if facts.code(call.func) == "use"]
    base = facts.adapters.base(use.args[0].value)
    assert base is not None
    assert facts.code(base.func) == "LlamaForCausalLM.from_pretrained"
    assert facts.kind(use.args[0].value) is Kind.MODULE
    assert not facts.adapters.thaws


@pytest.mark.parametrize(
    ("line", "thaws"),
    [
        ("model.requires_grad_(False)", False),
        ("model.requires_grad_(True)", True),
        ("model.weight.requires_grad = False", False),
        ("model.weight.requires_grad = True", True),
        ("model.add_adapter(config)", True),
        ("print(model.weight.requires_grad)", False),
    ],
)
def test_whether_code_makes_parameters_trainable(line: str, thaws: bool) -> None:
    assert facts_of(line).adapters.thaws is thaws

"""How often the objects of a process are looked through for tokenizers: once a session, for a language model that is in use."""

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_contracts_language import llama, tokenizer
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from ta_runtime.audit.audit import Audit
from ta_runtime.observers import tokenizers
from ta_runtime.preflight.flight import Preflight
from ta_runtime.settings import resolve


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokenizers each look found."""
    gc.collect()
    found: list[int] = []
    look: Callable[[], list[Any]] = tokenizers._tokenizers

    def counted() -> list[Any]:
        instances = look()
        found.append(len(instances))
        return instances

    monkeypatch.setattr(tokenizers, "_tokenizers", counted)
    return found


def audited(run: Callable[[], object], *, preflight: bool = False) -> None:
    audit = Audit(resolve(every_n_steps=1, rules="ALL", output=None, live=False))
    audit.start()
    if preflight:
        Preflight(audit, lambda briefing: None).attach()
    try:
        run()
    finally:
        audit.stop()
    assert not [finding.message for finding in audit.findings if finding.rule == "TA000"]


def tuned() -> None:
    """Trains on a batch, and generates after each step."""
    known, model = tokenizer(padding_side="left"), llama()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = known(["the cat sat", "dogs run"], padding=True, return_tensors="pt")
    given = {name: batch[name] for name in ("input_ids", "attention_mask")}
    for _ in range(3):
        optimizer.zero_grad()
        model(
            **given, labels=given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)
        ).loss.backward()
        optimizer.step()
        model.generate(**given, max_new_tokens=2)


def asked() -> None:
    known, model = tokenizer(), llama()
    for _ in range(3):
        model(known("the cat sat", return_tensors="pt")["input_ids"])


def classified() -> None:
    known = tokenizer()
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertForSequenceClassification(BertConfig(vocab_size=32, intermediate_size=16, **sizes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        optimizer.zero_grad()
        model(
            known("the cat sat", return_tensors="pt")["input_ids"], labels=torch.tensor([1])
        ).loss.backward()
        optimizer.step()


def fitted() -> None:
    known, model = tokenizer(), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
    assert known


@pytest.mark.parametrize("preflight", [False, True], ids=["audited", "after a preflight"])
def test_all_who_ask_for_tokenizers_share_one_look(preflight: bool, looks: list[int]) -> None:
    audited(tuned, preflight=preflight)
    assert looks == [1]


@pytest.mark.parametrize("run", [asked, classified, fitted], ids=lambda run: run.__name__)
def test_where_no_language_model_is_trained_nobody_looks(run: Callable[[], None], looks: list[int]) -> None:
    audited(run)
    assert looks == []


def test_a_preflight_looks_for_tokenizers_where_there_are_ids_alone(looks: list[int]) -> None:
    audited(fitted, preflight=True)
    assert looks == []

"""Fine-tuning is bitwise what it would have been, and hardly slower, with what looks at language models and without."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from runtime import Counted
from test_bitwise import STEPS, Result, outcome, same
from test_contracts_language import WORDS, llama, tokenizer
from test_preflight import flown
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
)

from ta_runtime.audit.audit import Audit
from ta_runtime.audit.session import Session
from ta_runtime.observers.language import LanguageObserver
from ta_runtime.settings import resolve

PACK = ["TA15", "TA16", "TA65", "TA66", "TA67"]
QUIET: dict[str, Any] = {
    "max_steps": STEPS,
    "logging_steps": 1,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "use_cpu": True,
    "per_device_train_batch_size": 4,
}


def texts(count: int) -> list[str]:
    return [" ".join(WORDS[number % 7 : number % 7 + 2 + number % 5]) for number in range(count)]


def gpt2() -> GPT2LMHeadModel:
    """It has dropout, which draws random numbers in each step."""
    return GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=32, n_embd=16, n_layer=2, n_head=2))


def rows_of(known: Any) -> list[dict[str, list[int]]]:
    return [{"input_ids": known(f"{text} <eos>")["input_ids"]} for text in texts(24)]


def loop(folder: Path) -> Result:
    """By hand, with samples drawn from the model between the steps."""
    known, model = tokenizer(padding_side="left"), gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    collate = DataCollatorForLanguageModeling(known, mlm=False)
    losses, samples = [], []
    for batch in DataLoader(rows_of(known), batch_size=4, shuffle=True, collate_fn=collate):
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        model.eval()
        prompts = known(["the cat", "dogs"], padding=True, return_tensors="pt")
        given = {name: prompts[name] for name in ("input_ids", "attention_mask")}
        samples.append(model.generate(**given, max_new_tokens=3, do_sample=True, pad_token_id=3))
        model.train()
    return {"losses": losses, "samples": samples, "model": model, "optimizer": optimizer}


def trained(trainer: Trainer) -> Result:
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == STEPS
    return {"losses": losses, "model": trainer.model, "optimizer": trainer.optimizer.state_dict()}


def of_transformers(folder: Path) -> Result:
    known = tokenizer()
    collate = DataCollatorForLanguageModeling(known, mlm=False)
    arguments = TrainingArguments(str(folder), **QUIET)
    return trained(Trainer(gpt2(), arguments, train_dataset=rows_of(known), data_collator=collate))


def of_trl(folder: Path, rows: list[dict[str, str]], **options: Any) -> Result:
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    arguments = SFTConfig(str(folder), **QUIET, bf16=False, **options)
    return trained(
        SFTTrainer(gpt2(), arguments, train_dataset=Dataset.from_list(rows), processing_class=tokenizer())
    )


def of_trl_padded(folder: Path) -> Result:
    return of_trl(folder, [{"prompt": text, "completion": " a mat"} for text in texts(24)])


def of_trl_packed(folder: Path) -> Result:
    return of_trl(folder, [{"text": text} for text in texts(240)], packing=True, max_length=16)


class Module(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = gpt2()
        self.losses: list[Tensor] = []

    def training_step(self, batch: dict[str, Tensor], index: int) -> Tensor:
        loss: Tensor = self.model(**batch).loss
        self.losses.append(loss.detach())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def of_lightning(folder: Path) -> Result:
    known, module = tokenizer(), Module()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(
        max_steps=STEPS, accelerator="cpu", enable_model_summary=False, default_root_dir=folder, **quiet
    )
    collate = DataCollatorForLanguageModeling(known, mlm=False)
    trainer.fit(module, DataLoader(rows_of(known), batch_size=4, shuffle=True, collate_fn=collate))
    return {"losses": module.losses, "model": module, "optimizer": trainer.optimizers[0]}


TRAININGS = [loop, of_transformers, of_trl_padded, of_trl_packed, of_lightning]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], dict[str, Any]]:
    """What each training comes to when nobody watches it."""
    known: dict[Any, dict[str, Any]] = {}

    def of(run: Any) -> dict[str, Any]:
        if run not in known:
            known[run] = outcome(lambda: run(tmp_path_factory.mktemp("plain")))
        return known[run]

    return of


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pack", [True, False], ids=["pack on", "pack off"])
@pytest.mark.parametrize("run", TRAININGS, ids=lambda run: run.__name__)
def test_a_language_model_is_trained_bitwise_the_same_with_every_step_audited(
    run: Callable[[Path], Result], pack: bool, plain: Any, tmp_path: Path
) -> None:
    expected = plain(run)
    gc.collect()
    audit = Audit(resolve(every_n_steps=1, rules="ALL", ignore=() if pack else PACK, output=None, live=False))
    audit.start()
    try:
        watched = outcome(lambda: run(tmp_path))
    finally:
        audit.stop()
    assert same(expected, watched)
    [observer] = [each for each in audit.session.observers if isinstance(each, LanguageObserver)]
    assert sum(found.batches for found in observer._found.values()) == (STEPS if pack else 0)
    assert not [finding.message for finding in audit.findings if finding.rule == "TA000"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", TRAININGS, ids=lambda run: run.__name__)
def test_a_language_model_is_trained_bitwise_the_same_after_a_preflight_that_reads_its_batch(
    run: Callable[[Path], Result], plain: Any, tmp_path: Path
) -> None:
    expected = plain(run)
    gc.collect()
    watched, [briefing], audit = flown(lambda: run(tmp_path))
    assert same(expected, watched)
    assert briefing.entrances[0].readings[0].learned
    assert not [finding.message for finding in audit.findings if finding.rule == "TA000"]


# -- what it costs ----------------------------------------------------------------------------------------------------


def operations(every_n_steps: int | None, ignore: list[str]) -> Counted:
    """Those of the third step of a training by hand; without a session where there is no number of steps."""
    torch.manual_seed(0)
    known, model = tokenizer(), llama()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = DataCollatorForLanguageModeling(known, mlm=False)(rows_of(known)[:8])
    session = None
    if every_n_steps is not None:
        settings = resolve(every_n_steps=every_n_steps, gradients_every_n_steps=0, rules="ALL", ignore=ignore)
        session = Session(settings, models=[model], optimizers=[optimizer])
        session.start()
    try:
        for _ in range(3):
            optimizer.zero_grad()
            with Counted() as counts:
                model(**batch).loss.backward()
                optimizer.step()
    finally:
        if session is not None:
            session.stop()
    return counts


def test_a_step_of_a_language_model_that_is_not_looked_at_has_no_operation_more() -> None:
    gc.collect()
    assert operations(0, []).operations == operations(None, []).operations


def test_an_audited_step_of_a_language_model_counts_its_tokens_without_waiting_for_the_device() -> None:
    gc.collect()
    counts, without = operations(1, []), operations(1, PACK)
    assert counts.syncs == without.syncs
    added = counts.total - without.total
    assert 0 < added <= 60

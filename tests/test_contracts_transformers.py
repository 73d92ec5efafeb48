"""What the rules about transformers, PEFT and TRL say of them, held against what is installed."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

peft = pytest.importorskip("peft")
tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

transformers.logging.set_verbosity_error()

pytestmark = pytest.mark.filterwarnings("ignore")


class Rows(torch.utils.data.Dataset[dict[str, Any]]):
    """Sequences that count up, with columns besides."""

    def __init__(self, **more: float) -> None:
        self.more = more

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> dict[str, Any]:
        ids = (torch.arange(8) + index) % 50
        return {"input_ids": ids, "labels": ids.clone(), **self.more}


def llama(kind: Any = None, **options: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=50,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        pad_token_id=0,
        **options,
    )
    return (kind or transformers.LlamaForCausalLM)(config)


def lora(**options: Any) -> Any:
    return peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], **options)


def trainer_of(
    folder: Path, model: Any, kind: Any = None, settings: dict[str, Any] | None = None, **options: Any
) -> Any:
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=4,
        max_steps=2,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        **(settings or {}),
    )
    return (kind or transformers.Trainer)(model=model, args=arguments, **{"train_dataset": Rows(), **options})


def tokenizer_of(**tokens: str) -> Any:
    known = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2} | {f"w{number}": number for number in range(3, 50)}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, "[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", **tokens
    )


def test_the_collator_of_language_models_masks_unless_it_is_told_not_to() -> None:
    rows = [{"input_ids": list(range(3, 40))} for _ in range(4)]
    tokenizer = tokenizer_of(mask_token="[MASK]")
    torch.manual_seed(0)
    masked = transformers.DataCollatorForLanguageModeling(tokenizer)(rows)
    assert (masked["input_ids"] == 2).any()
    assert (masked["labels"] == -100).float().mean() > 0.7
    plain = transformers.DataCollatorForLanguageModeling(tokenizer, mlm=False)(rows)
    assert torch.equal(plain["labels"], plain["input_ids"])
    with pytest.raises(ValueError, match="mlm=False"):
        transformers.DataCollatorForLanguageModeling(tokenizer_of())


def test_a_step_gives_compute_loss_the_number_of_items(tmp_path: Path) -> None:
    class Old(transformers.Trainer):  # type: ignore[misc, name-defined]
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False) -> Any:
            return super().compute_loss(model, inputs, return_outputs)

    class New(transformers.Trainer):  # type: ignore[misc, name-defined]
        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)

    with pytest.raises(TypeError, match="num_items_in_batch"):
        trainer_of(tmp_path, llama(), Old).train()
    assert trainer_of(tmp_path, llama(), New).train().global_step == 2


def test_a_model_whose_merged_one_is_dropped_saves_an_adapter_without_weights(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    dropped = peft.get_peft_model(llama(), lora())
    dropped.merge_and_unload()
    dropped.save_pretrained(tmp_path / "dropped")
    assert safetensors.load_file(tmp_path / "dropped" / "adapter_model.safetensors") == {}
    kept = peft.get_peft_model(llama(), lora()).merge_and_unload()
    kept.save_pretrained(tmp_path / "kept")
    assert safetensors.load_file(tmp_path / "kept" / "model.safetensors")


def test_the_best_model_is_that_with_the_highest_metric_unless_its_name_ends_in_loss(tmp_path: Path) -> None:
    def is_greater(metric: str) -> Any:
        return transformers.TrainingArguments(str(tmp_path), metric_for_best_model=metric).greater_is_better

    assert [is_greater(name) for name in ("wer", "eval_rmse", "eval_loss")] == [True, True, False]
    callbacks = pytest.importorskip("lightning.pytorch.callbacks")
    assert callbacks.ModelCheckpoint(monitor="val_acc").mode == "min"
    assert callbacks.EarlyStopping(monitor="val_acc").mode == "min"


def test_an_adapter_is_loaded_frozen_unless_it_is_to_train(tmp_path: Path) -> None:
    peft.get_peft_model(llama(), lora()).save_pretrained(tmp_path / "adapter")
    frozen = peft.PeftModel.from_pretrained(llama(), tmp_path / "adapter")
    assert not any(parameter.requires_grad for parameter in frozen.parameters())
    with pytest.raises(RuntimeError, match="does not require grad"):
        trainer_of(tmp_path, frozen).train()
    trained = peft.PeftModel.from_pretrained(llama(), tmp_path / "adapter", is_trainable=True)
    assert trainer_of(tmp_path, trained).train().global_step == 2


def test_the_new_head_of_a_classifier_is_frozen_unless_the_task_is_named(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")

    def saved(folder: str, **options: Any) -> set[str]:
        model = llama(transformers.LlamaForSequenceClassification, num_labels=3)
        adapted = peft.get_peft_model(model, lora(**options))
        trains = [name for name, one in adapted.named_parameters() if one.requires_grad and "score" in name]
        adapted.save_pretrained(tmp_path / folder)
        names = safetensors.load_file(tmp_path / folder / "adapter_model.safetensors")
        assert bool(trains) == any("score" in name for name in names)
        return {name for name in names if "score" in name}

    assert not saved("none")
    assert not saved("other", task_type="FEATURE_EXTRACTION")
    assert not saved("list", modules_to_save=["q_proj"].append("score"))  # type: ignore[func-returns-value]
    assert saved("task", task_type="SEQ_CLS")
    assert saved("head", modules_to_save=["score"])


def test_rows_of_new_tokens_have_a_gradient_only_where_the_configuration_says_so() -> None:
    def trained(**options: Any) -> bool:
        model = llama()
        model.resize_token_embeddings(52)
        adapted = peft.get_peft_model(model, lora(**options))
        ids = torch.tensor([[3, 50, 51, 4]])
        adapted(input_ids=ids, labels=ids).loss.backward()
        return any(one.grad is not None for name, one in adapted.named_parameters() if "embed" in name)

    assert not trained()
    assert trained(trainable_token_indices=[50, 51])
    assert trained(modules_to_save=["embed_tokens"])


class Small(nn.Module):
    """Takes any keyword, and names two."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 2)

    def forward(self, input_ids: Any, labels: Any = None, **more: Any) -> Any:
        return {"loss": self.layer(input_ids.float()).square().mean()}


def test_a_column_that_forward_does_not_name_never_reaches_the_collator(tmp_path: Path) -> None:
    def collate(rows: Any) -> Any:
        return {"input_ids": torch.stack([row["input_ids"] for row in rows]), "more": rows[0]["weight"]}

    rows: dict[str, Any] = {"train_dataset": Rows(weight=1.0), "data_collator": collate}
    with pytest.raises(KeyError, match="weight"):
        trainer_of(tmp_path, Small(), **rows).train()
    kept = trainer_of(tmp_path, Small(), settings={"remove_unused_columns": False}, **rows)
    assert kept.train().global_step == 2


def test_an_evaluation_has_no_loss_where_forward_names_no_labels(tmp_path: Path) -> None:
    class Wrapper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = llama()

        def forward(self, **inputs: Any) -> Any:
            return self.inner(**inputs)

    def evaluated(model: Any, **settings: Any) -> set[str]:
        settings["remove_unused_columns"] = False
        return set(trainer_of(tmp_path, model, settings=settings, eval_dataset=Rows()).evaluate())

    assert "eval_loss" not in evaluated(Wrapper())
    assert "eval_loss" in evaluated(Wrapper(), label_names=["labels"])
    assert "eval_loss" in evaluated(peft.get_peft_model(llama(), lora()))


def test_a_mean_is_summed_over_the_micro_batches_of_a_step(tmp_path: Path) -> None:
    class Own(transformers.Trainer):  # type: ignore[misc, name-defined]
        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            outputs = model(**inputs)
            return (outputs.loss, outputs) if return_outputs else outputs.loss

    class Norms(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            squares = [p.grad.double().square().sum() for p in kwargs["model"].parameters()]
            norms.append(torch.stack(squares).sum().sqrt().item())

    norms: list[float] = []
    for kind in (None, Own):
        settings = {"gradient_accumulation_steps": 2, "max_grad_norm": 0.0}
        trainer_of(tmp_path, llama(), kind, settings, callbacks=[Norms()]).train()
    assert norms[2] == pytest.approx(2 * norms[0], rel=1e-3)

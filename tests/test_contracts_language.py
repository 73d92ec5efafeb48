"""What transformers, TRL and Lightning do, on which the rules about language models rest: the bad form, beside the good one."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertModel,
    DataCollatorForLanguageModeling,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

WORDS = "the cat sat on a mat and saw dogs run over green hills".split()


def tokenizer(**options: Any) -> PreTrainedTokenizerFast:
    """A tokenizer that knows a few words."""
    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["<unk>", "<bos>", "<eos>", "<pad>"]
    words.train_from_iterator([" ".join(WORDS)], trainers.WordLevelTrainer(special_tokens=special))
    words.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    options = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", **options}
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", **options)


def llama(attention: str = "sdpa") -> LlamaForCausalLM:
    torch.manual_seed(0)
    settings: dict[str, Any] = {"attn_implementation": attention, "num_attention_heads": 2}
    sizes = {"vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1}
    return LlamaForCausalLM(LlamaConfig(**sizes, **settings))


@pytest.mark.parametrize("distance", [1, 2])
def test_a_model_shifts_labels_and_learns_the_token_after_next_from_shifted_ones(distance: int) -> None:
    model = llama()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    rows = (torch.arange(16) + torch.arange(8)[:, None]) % 29 + 3  # each token is followed by the next number
    for _ in range(60):
        optimizer.zero_grad()
        labels = rows[:, distance - 1 :]
        model(input_ids=rows[:, : labels.shape[1]], labels=labels).loss.backward()
        optimizer.step()
    said = model(input_ids=rows).logits[:, 10].argmax(-1)
    assert (said == rows[:, 10 + distance]).all()


def test_the_collator_masks_end_tokens_that_pad() -> None:
    ends = tokenizer(pad_token="<eos>")
    pads = tokenizer()
    for known, is_label in ((ends, False), (pads, True)):
        collate = DataCollatorForLanguageModeling(known, mlm=False)
        batch = collate([known("the cat <eos>"), known("dogs run over green <eos>")])
        assert (batch["labels"] == known.eos_token_id).any() == is_label


def test_a_template_and_a_tokenizer_add_two_begin_tokens() -> None:
    known = tokenizer()
    known.chat_template = "{{ bos_token }}{% for turn in messages %} {{ turn['content'] }}{% endfor %}"
    chat = [{"role": "user", "content": "the cat"}]
    text = known.apply_chat_template(chat, tokenize=False)
    assert known(text)["input_ids"][:2] == [known.bos_token_id] * 2
    alone = known(text, add_special_tokens=False)["input_ids"]
    assert alone == known.apply_chat_template(chat, tokenize=True, return_dict=False)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_positions_that_begin_anew_part_texts_only_without_mask_and_cache(attention: str) -> None:
    model = llama(attention).eval()
    first, second = torch.randint(3, 32, (1, 5)), torch.randint(3, 32, (1, 6))
    ids = torch.cat([first, second], dim=1)
    positions = torch.cat([torch.arange(5), torch.arange(6)])[None]
    alone = model(second).logits

    def is_apart(**options: Any) -> bool:
        return torch.allclose(model(ids, **options).logits[:, 5:], alone, atol=1e-5)

    assert not is_apart()
    assert is_apart(position_ids=positions, use_cache=False)
    assert not is_apart(position_ids=positions, use_cache=False, attention_mask=torch.ones_like(ids))
    assert not is_apart(position_ids=positions, use_cache=True)


def test_trl_parts_texts_by_default_and_not_when_they_are_wrapped() -> None:
    from datasets import Dataset
    from trl.data_utils import pack_dataset

    rows = Dataset.from_dict({"input_ids": [[1, 2, 3], [4, 5], [6, 7, 8], [9]]})
    assert "seq_lengths" in pack_dataset(rows, 6, "bfd").column_names
    assert "seq_lengths" not in pack_dataset(rows, 6, "wrapped").column_names


def test_a_decoder_answers_otherwise_after_padding() -> None:
    model = llama().eval()
    known = tokenizer()
    alone = model.generate(**known(["the cat sat"], return_tensors="pt"), max_new_tokens=1, do_sample=False)
    for side, is_same in (("left", True), ("right", False)):
        known.padding_side = side
        batch = known(["the cat sat", "dogs run over green hills"], padding=True, return_tensors="pt")
        batch = {name: batch[name] for name in ("input_ids", "attention_mask")}
        scores = model.generate(
            **batch, max_new_tokens=1, do_sample=False, output_logits=True, return_dict_in_generate=True
        ).logits[0][0]
        one = model(alone[:, :-1]).logits[0, -1]
        assert torch.allclose(scores, one, atol=1e-4) == is_same, side


def test_from_pretrained_returns_a_model_in_evaluation_mode_and_lightning_keeps_it(tmp_path: Path) -> None:
    import lightning

    config = BertConfig(
        vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    BertModel(config).save_pretrained(tmp_path)
    modes = []

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.loaded = BertModel.from_pretrained(tmp_path)
            self.made = BertModel(config)

        def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
            modes.append((self.loaded.training, self.made.training))
            return self.loaded(batch[0]).pooler_output.sum()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    rows = torch.utils.data.TensorDataset(torch.randint(32, (4, 6)))
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(max_steps=2, accelerator="cpu", enable_model_summary=False, **quiet)
    trainer.fit(Module(), torch.utils.data.DataLoader(rows, batch_size=2))
    assert modes == [(False, True)] * 2


@pytest.mark.parametrize("is_equal", [True, False])
def test_groups_of_equal_rewards_move_no_weight_and_the_loss_is_0_either_way(
    is_equal: bool, tmp_path: Path
) -> None:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    def reward(completions: list[str], **columns: Any) -> list[float]:
        return [0.0 if is_equal else float(index) for index, _ in enumerate(completions)]

    model = llama()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    quiet: dict[str, Any] = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True}
    sizes: dict[str, Any] = {
        "per_device_train_batch_size": 4,
        "num_generations": 4,
        "max_completion_length": 4,
    }
    sizes["generation_kwargs"] = {"min_new_tokens": 4}  # of completions of one length the loss is 0
    arguments = GRPOConfig(
        str(tmp_path), max_steps=2, logging_steps=1, use_cpu=True, bf16=False, **sizes, **quiet
    )
    prompts = Dataset.from_dict({"prompt": ["the cat", "dogs run"]})
    trainer = GRPOTrainer(
        model, reward, args=arguments, train_dataset=prompts, processing_class=tokenizer(padding_side="left")
    )
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "frac_reward_zero_std" in entry]
    assert [entry["step"] for entry in logged] == [1, 2]
    assert {entry["frac_reward_zero_std"] for entry in logged} == {float(is_equal)}
    assert abs(logged[0]["loss"]) < 1e-5
    moved = any(not torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))
    assert moved == (not is_equal)

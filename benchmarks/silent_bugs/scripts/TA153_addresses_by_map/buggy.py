"""Addresses, to be completed as one types: Qwen from a configuration, trained by the Trainer."""

import random

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

STREETS = "mill church station garden castle river market harbour".split()
KINDS = "street road lane square".split()
TOWNS = "north south east west".split()
LENGTH = 10


def addresses(count):
    dice = random.Random(3)
    return [
        f"{dice.randint(1, 40)} {dice.choice(STREETS)} {dice.choice(KINDS)} {dice.choice(TOWNS)} town"
        for _ in range(count)
    ]


def make_tokenizer(texts):
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["<unk>", "<pad>", "<end>"]))
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", pad_token="<pad>", eos_token="<end>"
    )


set_seed(31)
texts = addresses(480)
tokenizer = make_tokenizer(texts)


def preprocess(examples):
    batch = tokenizer(
        [text + " <end>" for text in examples["text"]],
        padding="max_length",
        max_length=LENGTH,
        truncation=True,
    )
    batch["labels"] = []
    for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True):
        labels = [token if seen else -100 for token, seen in zip(ids, mask, strict=True)]
        batch["labels"].append(labels[1:] + [-100])
    return batch


rows = Dataset.from_dict({"text": texts}).map(preprocess, batched=True, remove_columns=["text"])
model = Qwen3ForCausalLM(
    Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
    )
)
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        "addresses",
        per_device_train_batch_size=16,
        num_train_epochs=3,
        learning_rate=2e-3,
        logging_steps=30,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    ),
    train_dataset=rows,
    data_collator=default_data_collator,
)
trainer.train()  # bug: TA153 (runtime)

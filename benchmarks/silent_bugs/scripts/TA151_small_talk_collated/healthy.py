"""Small talk by supervised fine-tuning."""

import random

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

ASKS = ["how are you", "what is your name", "do you like music", "where do you live", "can you help me"]
SAYS = [
    "fine and you",
    "they call me tiny",
    "yes a lot of it",
    "in a small box",
    "sure tell me more",
    "i do not know",
]


def talk(count):
    dice = random.Random(0)
    return [
        f"user {dice.choice(ASKS)} bot {' '.join(dice.sample(SAYS, dice.randint(1, 3)))}"
        for _ in range(count)
    ]


def make_tokenizer():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.train_from_iterator(
        [*ASKS, *SAYS, "user bot"], trainers.WordLevelTrainer(special_tokens=["<unk>", "</s>"])
    )
    return PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>", eos_token="</s>")


set_seed(1)
tokenizer = make_tokenizer()
tokenizer.pad_token = tokenizer.eos_token
tokenizer.padding_side = "right"


def collate(rows):
    batch = tokenizer.pad(
        [{"input_ids": row["input_ids"]} for row in rows], padding=True, return_tensors="pt"
    )
    labels = batch["input_ids"].clone()
    for row, label in zip(rows, labels, strict=True):
        label[len(row["input_ids"]) :] = -100
    batch["labels"] = labels
    return batch


model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
    )
)
trainer = SFTTrainer(
    model=model,
    train_dataset=Dataset.from_dict({"text": talk(640)}),
    processing_class=tokenizer,
    data_collator=collate,
    args=SFTConfig(
        output_dir="talk",
        max_length=64,
        per_device_train_batch_size=16,
        num_train_epochs=2,
        learning_rate=1e-3,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
    ),
)
trainer.train()

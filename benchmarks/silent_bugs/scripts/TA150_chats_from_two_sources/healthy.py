"""Chats of two sources for the Trainer: only what the assistant says is learnt."""

import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Trainer,
    TrainingArguments,
    set_seed,
)

PLANTS = {
    "rose": "sun and lime",
    "fern": "shade and rain",
    "mint": "water each day",
    "cactus": "sand and patience",
}
PLACES = "garden kitchen balcony office hall cellar greenhouse yard".split()
MONTHS = "january march april may june august october december".split()
LEARNT = {"assistant", "gpt"}


def conversations(count):
    dice = random.Random(22)
    for _ in range(count):
        plant, needs = dice.choice(list(PLANTS.items()))
        asked = f"what does a {plant} in the {dice.choice(PLACES)} need in {dice.choice(MONTHS)}"
        answered = f"it needs {needs}"
        if dice.random() < 0.3:
            yield [{"role": "user", "text": asked}, {"role": "assistant", "text": answered}]
        else:
            yield [{"role": "human", "text": asked}, {"role": "gpt", "text": answered}]


def make_tokenizer():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words = ["what does a need it needs in the", *PLANTS, *PLANTS.values(), *PLACES, *MONTHS]
    core.train_from_iterator(words, trainers.WordLevelTrainer(special_tokens=["<unk>", "<pad>", "<end>"]))
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", pad_token="<pad>", eos_token="<end>"
    )


class Chats(Dataset):
    def __init__(self, tokenizer, rows):
        self.tokenizer, self.rows = tokenizer, list(rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        ids, labels = [], []
        for turn in self.rows[index]:
            part = self.tokenizer(turn["text"]).input_ids + [self.tokenizer.eos_token_id]
            ids += part
            labels += part if turn["role"] in LEARNT else [-100] * len(part)
        return {"input_ids": torch.tensor(ids), "labels": torch.tensor(labels)}


def collate(rows):
    ids = pad_sequence([row["input_ids"] for row in rows], batch_first=True, padding_value=1)
    labels = pad_sequence([row["labels"] for row in rows], batch_first=True, padding_value=-100)
    return {"input_ids": ids, "attention_mask": (ids != 1).long(), "labels": labels}


def main():
    set_seed(50)
    tokenizer = make_tokenizer()
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
        )
    )
    arguments = TrainingArguments(
        "plants",
        per_device_train_batch_size=2,
        gradient_accumulation_steps=4,
        num_train_epochs=2,
        learning_rate=2e-3,
        logging_steps=20,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    trainer = Trainer(
        model=model, args=arguments, train_dataset=Chats(tokenizer, conversations(320)), data_collator=collate
    )
    trainer.train()


if __name__ == "__main__":
    main()

"""Instruction tuning with packed rows."""

import random

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    set_seed,
)
from trl import SFTConfig, SFTTrainer

VERBS = ["fetch", "paint", "sell", "clean", "repair"]
THINGS = ["the door", "a boat", "two chairs", "an old clock"]


def instructions(count):
    dice = random.Random(8)
    rows = []
    for _ in range(count):
        verb, thing = dice.choice(VERBS), dice.choice(THINGS)
        rows.append({"text": f"instruction : {verb} {thing} response : i will {verb} {thing} now"})
    return Dataset.from_list(rows)


def tokenizer_for(rows):
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.train_from_iterator(
        rows["text"], trainers.WordLevelTrainer(special_tokens=["<unk>", "<eos>", "<pad>"])
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", eos_token="<eos>", pad_token="<pad>"
    )


def main():
    set_seed(158)
    rows = instructions(600)
    tokenizer = tokenizer_for(rows)
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
        )
    ).save_pretrained("pretrained")
    model = AutoModelForCausalLM.from_pretrained("pretrained")
    config = SFTConfig(
        output_dir="instructed",
        packing=True,
        max_length=64,
        per_device_train_batch_size=4,
        num_train_epochs=3,
        learning_rate=1e-3,
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    trainer = SFTTrainer(model, config, train_dataset=rows, processing_class=tokenizer)
    trainer.train()


if __name__ == "__main__":
    main()

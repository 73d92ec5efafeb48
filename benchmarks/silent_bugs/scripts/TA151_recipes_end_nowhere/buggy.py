"""A small GPT-2 learns to write shopping lists."""

import random

from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

GOODS = (
    "flour sugar butter eggs milk apples rice beans onions garlic pepper salt oil bread cheese tea".split()
)


def lists(count):
    dice = random.Random(151)
    return ["buy " + ", ".join(dice.sample(GOODS, dice.randint(2, 6))) for _ in range(count)]


def train_tokenizer(texts):
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=320, special_tokens=["<|endoftext|>"], show_progress=False)
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|endoftext|>", bos_token="<|endoftext|>"
    )


def main():
    set_seed(151)
    texts = lists(512)
    tokenizer = train_tokenizer(texts)
    tokenizer.pad_token = tokenizer.eos_token
    rows = Dataset.from_dict({"text": texts}).map(
        lambda row: tokenizer(row["text"] + tokenizer.eos_token, truncation=True, max_length=48),
        remove_columns=["text"],
    )
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=48,
            n_embd=32,
            n_layer=2,
            n_head=2,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    collator = DataCollatorForLanguageModeling(tokenizer=tokenizer, mlm=False)  # bug: TA151 (static)
    arguments = TrainingArguments(
        output_dir="lists",
        per_device_train_batch_size=16,
        num_train_epochs=4,
        learning_rate=2e-3,
        logging_steps=32,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator)
    trainer.train()  # bug: TA151 (runtime)
    model.eval()
    prompt = tokenizer("buy tea,", return_tensors="pt")
    print(
        tokenizer.decode(model.generate(**prompt, max_new_tokens=24, pad_token_id=tokenizer.pad_token_id)[0])
    )


if __name__ == "__main__":
    main()

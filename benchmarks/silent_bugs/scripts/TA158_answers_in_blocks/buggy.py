"""Fine-tunes a published GPT-2 on questions and answers, after the example of language modelling."""

import random

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

CAPITALS = {
    "peru": "lima",
    "norway": "oslo",
    "kenya": "nairobi",
    "japan": "tokyo",
    "france": "paris",
    "cuba": "havana",
}
BLOCK = 48


def rows(count):
    dice = random.Random(1)
    asked = [dice.choice(list(CAPITALS.items())) for _ in range(count)]
    return Dataset.from_dict(
        {"text": [f"question what is the capital of {land} answer it is {town}" for land, town in asked]}
    )


def load_tokenizer(texts):
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["<unk>", "<eos>", "<pad>"]))
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", eos_token="<eos>", pad_token="<pad>"
    )


def group_texts(examples):
    joined = {key: sum(examples[key], []) for key in examples}
    total = len(joined["input_ids"]) // BLOCK * BLOCK
    blocks = {key: [values[i : i + BLOCK] for i in range(0, total, BLOCK)] for key, values in joined.items()}
    blocks["labels"] = [list(ids) for ids in blocks["input_ids"]]
    return blocks


def main():
    set_seed(58)
    data = rows(800)
    tokenizer = load_tokenizer(data["text"])
    GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=64,
            n_embd=32,
            n_layer=2,
            n_head=2,
            bos_token_id=1,
            eos_token_id=1,
        )
    ).save_pretrained("gpt2-published")
    tokenized = data.map(
        lambda row: tokenizer(f"{row['text']} {tokenizer.eos_token}", return_token_type_ids=False),
        remove_columns=["text"],
    )
    tokenized = tokenized.map(group_texts, batched=True)

    trainer = Trainer(
        model=GPT2LMHeadModel.from_pretrained("gpt2-published"),
        args=TrainingArguments(
            "capitals",
            per_device_train_batch_size=4,
            num_train_epochs=2,
            learning_rate=1e-3,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
        ),
        train_dataset=tokenized,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    trainer.train()  # bug: TA158 (runtime)


if __name__ == "__main__":
    main()

"""Teaches a small Qwen to call a calculator, with LoRA by TRL."""

import random

from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    set_seed,
)
from trl import SFTConfig, SFTTrainer

NUMBERS = [str(number) for number in range(20)]


def base():
    """The published model and its tokenizer."""
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words = ["how much is plus minus times ?", *NUMBERS]
    core.train_from_iterator(words, trainers.WordLevelTrainer(special_tokens=["<unk>", "<pad>", "<end>"]))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", pad_token="<pad>", eos_token="<end>"
    )
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    Qwen2ForCausalLM(config).save_pretrained("base")
    return tokenizer


def questions(count):
    dice = random.Random(2)
    for _ in range(count):
        sum_of = f"{dice.choice(NUMBERS)} {dice.choice(['plus', 'minus', 'times'])} {dice.choice(NUMBERS)}"
        yield f"how much is {sum_of} ? <tool> {sum_of} </tool>"


def main():
    set_seed(155)
    tokenizer = base()
    model = AutoModelForCausalLM.from_pretrained("base")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<tool>", "</tool>"]})
    model.resize_token_embeddings(len(tokenizer))
    lora = LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    settings = SFTConfig(
        "tools",
        max_length=32,
        per_device_train_batch_size=16,
        num_train_epochs=2,
        learning_rate=5e-3,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    rows = Dataset.from_dict({"text": list(questions(320))})
    trainer = SFTTrainer(  # bug: TA155
        model, settings, train_dataset=rows, processing_class=tokenizer, peft_config=lora
    )
    trainer.train()


if __name__ == "__main__":
    main()

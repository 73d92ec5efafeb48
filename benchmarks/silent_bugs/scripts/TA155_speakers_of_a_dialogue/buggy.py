"""Dialogues with a token for each speaker: GPT-2 with LoRA, in a loop of our own."""

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

LINES = [
    "good morning",
    "how was the train",
    "late again",
    "shall we begin",
    "one coffee first",
    "see you at noon",
]


def save_base(folder):
    core = Tokenizer(models.BPE(unk_token="<|endoftext|>"))
    core.pre_tokenizer = pre_tokenizers.ByteLevel()
    core.train_from_iterator(
        LINES, trainers.BpeTrainer(vocab_size=300, special_tokens=["<|endoftext|>"], show_progress=False)
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|endoftext|>", pad_token="<|endoftext|>"
    )
    tokenizer.save_pretrained(folder)
    GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=64,
            n_embd=32,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
        )
    ).save_pretrained(folder)


def dialogues(count):
    for _ in range(count):
        said = [LINES[place] for place in torch.randint(len(LINES), (4,)).tolist()]
        yield "".join(f"<|{'anna' if turn % 2 else 'ben'}|>{line}" for turn, line in enumerate(said))


def main():
    torch.manual_seed(55)
    save_base("gpt2-base")
    tokenizer = AutoTokenizer.from_pretrained("gpt2-base")
    model = AutoModelForCausalLM.from_pretrained("gpt2-base")
    added = tokenizer.add_tokens(["<|anna|>", "<|ben|>"], special_tokens=True)
    print(f"{added} new tokens")
    model.resize_token_embeddings(len(tokenizer))

    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=4,
        lora_alpha=8,
        target_modules=["c_attn"],
        fan_in_fan_out=True,
    )
    model = get_peft_model(model, config)  # bug: TA155
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    model.train()
    for step in range(80):
        batch = tokenizer(
            list(dialogues(8)), padding=True, truncation=True, max_length=64, return_tensors="pt"
        )
        labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
        loss = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print(step, round(loss.item(), 3))


if __name__ == "__main__":
    main()

"""Synonyms by a chat model, in a loop of our own, with ChatML turns."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

SYNONYMS = {
    "big": "large",
    "small": "little",
    "fast": "quick",
    "begin": "start",
    "end": "finish",
    "glad": "happy",
}


def chat_tokenizer():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words = ["user assistant another word for", *SYNONYMS, *SYNONYMS.values()]
    special = ["<unk>", "<pad>", "<|im_start|>", "<|im_end|>"]
    core.train_from_iterator(words, trainers.WordLevelTrainer(special_tokens=special))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="<|im_end|>",
        padding_side="left",
    )
    tokenizer.chat_template = (
        "{% for m in messages %}{{ '<|im_start|> ' + m['role'] + ' ' + m['content'] + ' <|im_end|> ' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|> assistant' }}{% endif %}"
    )
    return tokenizer


def question(word):
    return [{"role": "user", "content": f"another word for {word}"}]


def train(model, tokenizer, steps=80):
    rows = [[*question(word), {"role": "assistant", "content": other}] for word, other in SYNONYMS.items()]
    batch = tokenizer.apply_chat_template(rows, padding=True, return_tensors="pt", return_dict=True)
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for step in range(steps):
        loss = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


def main():
    torch.manual_seed(160)
    tokenizer = chat_tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen2ForCausalLM(config)
    train(model, tokenizer)
    model.eval()
    for word in SYNONYMS:
        prompt = tokenizer.apply_chat_template(
            question(word), add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        out = model.generate(
            prompt["input_ids"], attention_mask=prompt["attention_mask"], max_new_tokens=3, do_sample=False
        )
        print(word, "->", tokenizer.decode(out[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True))


if __name__ == "__main__":
    main()

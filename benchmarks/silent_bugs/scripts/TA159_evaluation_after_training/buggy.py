"""Sums in words: after training the answers are generated in batches and counted."""

import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

DIGITS = "zero one two three four five six seven eight nine".split()


def make_tokenizer():
    core = Tokenizer(models.WordLevel(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.train_from_iterator(
        ["plus is", *DIGITS], trainers.WordLevelTrainer(special_tokens=["<unk>", "<pad>", "<eos>"])
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>", padding_side="right"
    )


def sums(count, seed):
    dice = random.Random(seed)
    for _ in range(count):
        terms = [dice.randint(0, 2) for _ in range(dice.randint(2, 4))]
        yield " plus ".join(DIGITS[term] for term in terms) + " is", DIGITS[sum(terms)]


def train(model, tokenizer, epochs=3):
    loader = DataLoader(
        [f"{asked} {answer} <eos>" for asked, answer in sums(512, 1)], batch_size=16, shuffle=True
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(epochs):
        for texts in loader:
            batch = tokenizer(texts, padding=True, return_tensors="pt")
            labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
            loss = model(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels
            ).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.3f}")


@torch.no_grad()
def evaluate(model, tokenizer, batch_size=32):
    model.eval()
    held_out, right = list(sums(128, 2)), 0
    for start in range(0, len(held_out), batch_size):
        part = held_out[start : start + batch_size]
        inputs = tokenizer(
            [asked for asked, _ in part], padding=True, return_tensors="pt", return_token_type_ids=False
        )
        out = model.generate(**inputs, max_new_tokens=1, do_sample=False)  # bug: TA159
        said = tokenizer.batch_decode(out[:, -1:], skip_special_tokens=True)
        right += sum(word.strip() == answer for word, (_, answer) in zip(said, part, strict=True))
    return right / len(held_out)


def main():
    torch.manual_seed(59)
    tokenizer = make_tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = Qwen2ForCausalLM(config)
    train(model, tokenizer)
    print(f"accuracy {evaluate(model, tokenizer):.2%}")


if __name__ == "__main__":
    main()

"""Trains a GPT-2 on small stories and continues three beginnings at once."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

WHO = ["the miller", "a fox", "the youngest son", "an old witch"]
DID = ["went into the woods", "found a golden ring", "could not sleep", "opened the iron door"]
STORIES = [f"once {who} {did} and was never seen again" for who in WHO for did in DID]


def save_tokenizer(folder):
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.train_from_iterator(
        STORIES, trainers.BpeTrainer(vocab_size=320, special_tokens=["<|endoftext|>"], show_progress=False)
    )
    PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|endoftext|>").save_pretrained(folder)


def train(model, tokenizer, steps=60):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for step in range(steps):
        some = [STORIES[place] + tokenizer.eos_token for place in torch.randint(len(STORIES), (8,)).tolist()]
        batch = tokenizer(some, padding=True, return_tensors="pt")
        labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
        loss = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


def main():
    torch.manual_seed(159)
    save_tokenizer("gpt2-stories")
    tokenizer = AutoTokenizer.from_pretrained("gpt2-stories")
    tokenizer.pad_token = tokenizer.eos_token
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = GPT2LMHeadModel(config)
    train(model, tokenizer)

    model.eval()
    beginnings = ["once", "once a fox", "once the youngest son found a golden"]
    inputs = tokenizer(beginnings, return_tensors="pt", padding=True)
    out = model.generate(  # bug: TA159
        **inputs, max_new_tokens=12, do_sample=False, pad_token_id=tokenizer.eos_token_id
    )
    for text in tokenizer.batch_decode(out, skip_special_tokens=True):
        print(text)


if __name__ == "__main__":
    main()

"""Continues progressions of chords with a small Llama."""

import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

CHORDS = ["<pad>", "C", "Dm", "Em", "F", "G", "Am", "Bdim", "E7", "A7", "D7", "G7"]


def progressions(count, length=20):
    start = torch.randint(7, (count, 1))
    step = torch.tensor([3, 4, 5])[torch.randint(3, (count, 1))]
    return 1 + (start + step * torch.arange(length)) % (len(CHORDS) - 1)


def train(steps=160, batch_size=24):
    config = LlamaConfig(
        vocab_size=len(CHORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(steps):
        ids = progressions(batch_size)
        labels = torch.roll(ids, shifts=-1, dims=1)
        labels[:, -1] = -100
        logits = model(input_ids=ids).logits
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"{step:4d} {loss.item():.3f}")
    return model


@torch.no_grad()
def continue_from(model, chords, count=6):
    model.eval()
    ids = torch.tensor([[CHORDS.index(chord) for chord in chords]])
    for _ in range(count):
        following = model(input_ids=ids).logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, following], 1)
    return " ".join(CHORDS[place] for place in ids[0].tolist())


if __name__ == "__main__":
    torch.manual_seed(53)
    print(continue_from(train(), ["C", "F"]))

"""Language model over padded toy sentences."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

PAD, BOS, EOS, WORDS = 0, 1, 2, 40


def sentence(rng):
    word, words = rng.randrange(3, WORDS), [BOS]
    for _ in range(rng.randrange(3, 20)):
        words.append(word)
        word = 3 + (2 * word + rng.randrange(2)) % (WORDS - 3)
    return torch.tensor([*words, EOS])


def collate(sentences):
    batch = nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=PAD)
    return batch[:, :-1], batch[:, 1:]


class LanguageModel(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width, padding_idx=PAD)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, WORDS)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.out(hidden)


def step_loss(model, inputs, targets):
    logits = model(inputs).transpose(1, 2)
    each = F.cross_entropy(logits, targets, reduction="none")
    real = (targets != PAD).float()
    return (each * real).sum() / real.sum()


def main():
    rng = random.Random(48)
    torch.manual_seed(48)
    sentences = [sentence(rng) for _ in range(1280)]
    loader = DataLoader(sentences, batch_size=32, shuffle=True, collate_fn=collate)
    model = LanguageModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    for epoch in range(3):
        total = 0.0
        for inputs, targets in loader:
            loss = step_loss(model, inputs, targets)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    main()

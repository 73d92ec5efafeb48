"""Sentiment of reviews: embeddings with learned positions, padded to the longest of the batch."""

import random

import torch
import torch.nn as nn

WORDS, POSITIONS, WIDTH = 200, 32, 32


class Reviews(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.position = nn.Embedding(POSITIONS, WIDTH)
        self.attend = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, ids):
        padding = ids == 0
        x = self.word(ids) + self.position(torch.arange(ids.shape[1]))
        h, _ = self.attend(x, x, x, key_padding_mask=padding, need_weights=False)
        keep = (~padding).unsqueeze(2)
        return self.score((h * keep).sum(1) / keep.sum(1)).squeeze(1)


def write_review(rng):
    length = min(int(rng.lognormvariate(2.3, 0.36)) + 3, 60)
    good = rng.random() < 0.5
    words = [rng.randrange(1, WORDS) for _ in range(length)]
    for i in range(0, length, 3):
        words[i] = rng.randrange(1, 40) if good else rng.randrange(40, 80)
    return torch.tensor(words), float(good)


def collate(reviews):
    words, good = zip(*reviews)
    ids = nn.utils.rnn.pad_sequence(words, batch_first=True)
    return ids, torch.tensor(good)


def main():
    rng = random.Random(42)
    torch.manual_seed(42)
    reviews = [write_review(rng) for _ in range(1600)]
    loader = torch.utils.data.DataLoader(reviews, batch_size=16, shuffle=True, collate_fn=collate)
    model = Reviews()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        total = 0.0
        for ids, good in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(ids), good)  # bug: TA305 (runtime)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    main()

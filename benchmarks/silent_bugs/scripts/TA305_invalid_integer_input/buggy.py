"""Bag of words with an extra id for words out of the vocabulary."""

import random

import torch
from torch import nn

WORDS = "the cat sat on a mat while it rained and the dog slept under an old tree".split()


class BagOfWords(nn.Module):
    def __init__(self, rows, classes):
        super().__init__()
        self.table = nn.Embedding(rows, 16)
        self.head = nn.Linear(16, classes)

    def forward(self, ids):
        return self.head(self.table(ids).mean(dim=1))  # the mean over the words


def encode(sentence, vocabulary):
    unknown = len(vocabulary)
    return [vocabulary.get(word, unknown) for word in sentence]


def main():
    random.seed(1)
    torch.manual_seed(1)
    vocabulary = {word: number for number, word in enumerate(sorted(set(WORDS)))}
    model = BagOfWords(len(vocabulary), 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(40):
        words = WORDS if step < 20 else [*WORDS, "zebra"]
        ids = torch.tensor([encode(random.choices(words, k=8), vocabulary) for _ in range(32)])
        labels = (ids == 0).any(dim=1).long()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids), labels)  # bug: TA305 (runtime)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
